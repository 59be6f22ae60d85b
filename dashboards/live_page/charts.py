"""The charts of the page: an agent's last minutes, and the stress-response curve of a family.

Of an agent they show g by channel, what recovering costs, and p and q, with its rebound windows shaded; of a family the
margin M_f over stress, what each level shows, and where the family is now. Colours are the style sheet's variables, so
that they follow dark and light.
"""

from collections.abc import Mapping, Sequence
from math import ceil, inf, log10
from typing import Any

from nicegui import ui

from springback.dashboards.live_page.agent_memory import AgentHistory, Span
from springback.stream_processors.metrics.figure_words import (
    aborted_sentences,
    capacity_sentence,
    dependable_text,
    learning_sentences,
    live_sentence,
    live_word,
    stress_text,
    violated_sentences,
)
from springback.stream_processors.resilience.readings import FamilyReading, LevelState, StressMargin

INK, MUTED, LINE, CARD = (f"var(--sb-{name})" for name in ("ink", "muted", "line", "card"))

Options = dict[str, Any]
"""Options of Apache ECharts."""

# By name: the width of a text is measured apart from the page, where nothing can be inherited.
FONT = {"fontFamily": "system-ui, -apple-system, Segoe UI, Roboto, Noto Sans, sans-serif", "fontSize": 12}

# An intensity is normal up to 1, and may be 80: on a straight scale, one of the two could not be read.
_TICK_STEPS = (1, 3)
_LEAST_TOP = 3.0
_MAGNITUDE_OF_G = "value => value == null ? '\N{EN DASH}' : (10 ** value - 1).toFixed(2)"

_CHANNELS = (("cognitive", "solid"), ("physical", "dashed"), ("debt", "dotted"))
CHANNELS = tuple(name for name, _ in _CHANNELS)
"""The channels of g, in the order in which they are drawn."""

_SHORTEST_AXIS_S = 60.0
_COLOUR = "var(--sb-cognitive)"
_LEVELS: Mapping[LevelState, tuple[str, str]] = {
    "kept": ("circle", _COLOUR),
    "broken": ("rect", "var(--sb-rebound)"),
    "undecided": ("triangle", "var(--sb-stalled)"),
    "insufficient": ("circle", _COLOUR),
}
_MIDDLE = 0.5
# Either side of their lines, towards the middle.
_LEFT = {"position": "end", "align": "right", "padding": [0, 4]}
_RIGHT = {"position": "end", "align": "left", "padding": [0, 4]}


class LiveChart:
    """A chart that is sent to the browser again only when it has changed.

    Args:
        label: what it shows, for those who do not see it.
        classes: of its element.
    """

    def __init__(self, label: str, classes: str = "sb-chart") -> None:
        self._chart = ui.echart({"series": []}, renderer="svg").classes(classes)
        self._chart.props["role"], self._chart.props["aria-label"] = "img", label

    def show(self, options: Options) -> None:
        """Shows this."""
        if self._chart.options != options:
            self._chart.options.clear()
            self._chart.options.update(options)
            self._chart.update()


def base_options() -> Options:
    """What every chart has."""
    return {
        "animation": False,
        "textStyle": FONT | {"color": INK},
        "grid": {"left": 44, "right": 16, "top": 36, "bottom": 28},
        "legend": {
            **{"top": 0, "left": 0, "itemWidth": 24, "itemHeight": 8, "itemGap": 18, "itemStyle": {"opacity": 0}},
            "textStyle": FONT | {"color": INK},
            "inactiveColor": MUTED,
        },
        "tooltip": {
            "trigger": "axis",
            "confine": True,
            "backgroundColor": CARD,
            "borderColor": LINE,
            "textStyle": FONT | {"color": INK},
            "axisPointer": {"lineStyle": {"color": MUTED}},
        },
    }


def value_axis(**options: Any) -> Options:
    """An axis of numbers, upward."""
    return {
        "type": "value",
        "axisLabel": FONT | {"color": MUTED},
        "splitLine": {"lineStyle": {"color": LINE}},
        "splitNumber": 4,
        "nameTextStyle": FONT | {"color": MUTED},
        **options,
    }


def line_series(name: str, colour: str, data: list[Any], style: str = "solid", width: float = 2) -> Options:
    """A line; told from others by its dashes too, not by its colour alone."""
    return {
        "name": name,
        "type": "line",
        "symbol": "none",
        "connectNulls": False,
        "color": colour,
        "lineStyle": {"color": colour, "width": width, "type": style},
        "data": data,
    }


def mark_line(value: Mapping[str, float], text: str, colour: str, style: str, **label: Any) -> Options:
    """A straight line across the chart, with its meaning beside it."""
    return {
        **value,
        "lineStyle": {"color": colour, "type": style, "width": 1.5},
        "label": FONT | {"formatter": text, "color": colour, "position": "insideEndTop", **label},
    }


def intensity_height(intensity: float) -> float:
    """Where an intensity stands on its axis, which is that of the logarithm of 1 + g.

    >>> [round(intensity_height(g), 2) for g in (0.0, 1.0, 9.0, 99.0)]
    [0.0, 0.3, 1.0, 2.0]
    """
    return log10(1.0 + max(0.0, intensity))


def intensity_ticks(highest: float) -> list[float]:
    """The intensities that are named on an axis that reaches one so high: 0, 1, 3, 10, 30 and so on.

    >>> intensity_ticks(0.4), intensity_ticks(80.0)
    ([0.0, 1.0, 3.0], [0.0, 1.0, 3.0, 10.0, 30.0, 100.0])
    """
    ticks = [0.0]
    while ticks[-1] < max(highest, _LEAST_TOP):
        power, step = divmod(len(ticks) - 1, len(_TICK_STEPS))
        ticks.append(_TICK_STEPS[step] * 10.0**power)
    return ticks


def intensity_axis(highest: float) -> Options:
    """An axis of intensities, for data that `intensity_height` has placed.

    Args:
        highest: the largest intensity that is shown.
    """
    heights = [intensity_height(tick) for tick in intensity_ticks(highest)]
    return value_axis(
        min=0,
        max=heights[-1],
        axisTick={"customValues": heights},
        axisLabel=FONT
        | {"color": MUTED, "customValues": heights}
        | {":formatter": "value => Math.round(10 ** value - 1).toLocaleString('en')"},
    )


def intensity_series(data: Mapping[str, list[Any]], total: str, lines: Sequence[Options]) -> list[Options]:
    """g^rec and its channels.

    Args:
        data: the points of each, placed by `intensity_height`.
        total: by which name g^rec is among them.
        lines: straight ones, as `mark_line` makes them.
    """
    series = [line_series("g", INK, data[total], width=2.5)]
    series += [line_series(name, f"var(--sb-{name})", data[name], style, 1.75) for name, style in _CHANNELS]
    series[0]["markLine"] = {"silent": True, "symbol": "none", "data": list(lines)}
    return series


def tell_intensities(options: Options) -> Options:
    """A chart of `intensity_series` whose tooltip tells g itself."""
    return options | {"tooltip": options["tooltip"] | {":valueFormatter": _MAGNITUDE_OF_G}}


def progress_series(progress: list[Any], propositions: list[Any]) -> list[Options]:
    """Progress p and the share q of goal propositions that hold."""
    return [
        line_series("progress p", "var(--sb-calm)", progress),
        line_series("propositions q", "var(--sb-cognitive)", propositions, "dashed"),
    ]


def intensity_chart(
    history: AgentHistory, spans: Sequence[Span], calm: float, threshold: float | None, last_s: float = inf
) -> Options:
    """g^rec and its channels, with the level at or below which an agent re-enters.

    Args:
        history: what is shown.
        spans: of rebound windows.
        calm: that level.
        threshold: the level of the alarm, where a detector has one.
        last_s: how many of the last seconds are shown.
    """
    places = {name: _points(history, name, last_s) for name in ("total", *CHANNELS)}
    highest = max((g for points in places.values() for _, g in points if g is not None), default=0.0)
    raised = {
        name: [[at, None if g is None else round(intensity_height(g), 4)] for at, g in points]
        for name, points in places.items()
    }
    lines = [_level(calm, "re-entry", MUTED)]
    if threshold is not None:
        lines.append(_level(threshold, "alarm", "var(--sb-rebound)"))
    series = intensity_series(raised, "total", lines)
    axis = intensity_axis(max(highest, calm, threshold or 0.0))
    return tell_intensities(_over_time(history, spans, series, axis, last_s))


def cost_chart(history: AgentHistory, spans: Sequence[Span], last_s: float = inf) -> Options:
    """The recovery cost of the open window, running up, over so many of the last seconds."""
    cost = line_series("recovery cost of the open window", "var(--sb-rebound)", _points(history, "cost", last_s))
    cost["areaStyle"] = {"color": "var(--sb-rebound)", "opacity": 0.12}
    return _over_time(history, spans, [cost], value_axis(min=0), last_s)


def progress_chart(history: AgentHistory, spans: Sequence[Span], last_s: float = inf) -> Options:
    """Progress p and the share q of goal propositions that hold, over so many of the last seconds."""
    series = progress_series(*(_points(history, name, last_s) for name in ("progress", "propositions")))
    return _over_time(history, spans, series, value_axis(min=0, max=1, interval=0.25), last_s)


def _level(intensity: float, name: str, colour: str) -> Options:
    label = {"position": "insideStartTop", "backgroundColor": CARD, "padding": [1, 3]}
    return mark_line({"yAxis": intensity_height(intensity)}, name, colour, "dashed", **label)


def _points(history: AgentHistory, name: str, last_s: float) -> list[list[Any]]:
    from_s, _ = _shown_extent(history, last_s)
    return [
        [round(time_s * 1000), None if y is None else round(y, 4)]
        for time_s, y in history.series(name)
        if time_s >= from_s
    ]


def _shown_extent(history: AgentHistory, last_s: float) -> Span:
    extent = history.extent
    if extent is None:
        return Span(0.0, 0.0)
    return Span(max(extent.start_s, extent.end_s - last_s), extent.end_s)


def _over_time(
    history: AgentHistory, spans: Sequence[Span], series: list[Options], axis: Options, last_s: float
) -> Options:
    first_s, last_shown_s = _shown_extent(history, last_s)
    shortest_s = min(_SHORTEST_AXIS_S, last_s)
    shades = [[{"xAxis": round(1000 * s)}, {"xAxis": round(1000 * e)}] for s, e in spans if e >= first_s]
    series[0]["markArea"] = {"silent": True, "itemStyle": {"color": "var(--sb-window)"}, "data": shades}
    return {
        **base_options(),
        "xAxis": {
            "type": "time",
            "min": round(1000 * min(first_s, last_shown_s - shortest_s)),
            "max": round(1000 * last_shown_s),
            "axisLine": {"lineStyle": {"color": MUTED}},
            "axisLabel": FONT
            | {"color": MUTED, "hideOverlap": True, "formatter": "{HH}:{mm}:{ss}"}
            | {"showMinLabel": False, "showMaxLabel": False},
        },
        "yAxis": axis,
        "series": series,
    }


def stress_chart(family: FamilyReading) -> Options:
    """The curve (equation 9) with the dependable capacity and the live stress.

    What a level shows is told by the shape of its point, and by its being hollow; what was not tested is shaded.
    """
    points = [_point(margin) for margin in family.margins if margin.margin is not None]
    # All that a margin can be by the cap as it is set, so that families can be compared by eye.
    highest = max([0.5, *(point["value"][1] for point in points)])
    curve = line_series("margin M", _COLOUR, points)
    curve |= {"symbolSize": 9}
    lines = [mark_line({"yAxis": 0}, "contract", MUTED, "solid", position="insideStartBottom")]
    if family.dependable is not None:
        name = f"dependable: {dependable_text(family).partition('; ')[0]}"  # that nothing above was tested is shaded
        lines.append(
            mark_line({"xAxis": family.dependable}, name, "var(--sb-calm)", "solid", **_side(family.dependable))
        )
    if family.live_stress is not None:
        name = f"live {stress_text(family.live_stress)}: {live_word(family)}"
        colour = "var(--sb-rebound)" if family.in_breach else INK
        lines.append(mark_line({"xAxis": family.live_stress}, name, colour, "dashed", **_above(family.live_stress)))
    curve["markLine"] = {"silent": True, "symbol": "none", "data": lines}
    tested = 0.0 if family.tested_up_to is None else family.tested_up_to
    # Where all is tested an empty one, for a chart keeps what it is not told anew.
    untested = [[{"xAxis": tested}, {"xAxis": 1.0}]] if tested < 1.0 else []
    curve["markArea"] = {"silent": True, "itemStyle": {"color": "var(--sb-untested)"}, "data": untested}
    axis = value_axis(min=0, max=1, name="stress λ", nameLocation="middle", nameGap=26)
    options = base_options()
    options["grid"] = {"left": 60, "right": 28, "top": 44, "bottom": 44}
    del options["legend"]
    return {
        **options,
        "xAxis": axis | {"splitLine": {"show": False}, "axisLine": {"show": True, "onZero": False}, "splitNumber": 5},
        "yAxis": value_axis(
            # To a whole tick: the label of a bound between two would touch that of the tick below it.
            min=-1,
            max=ceil(2 * highest) / 2,
            interval=0.5,
            name="margin M",
            nameLocation="middle",
            nameGap=44,
        ),
        "series": [curve],
    }


def curve_words(family: FamilyReading) -> str:
    """The curve in words, what runs now, and what is not known of it."""
    told = [capacity_sentence(family), live_sentence(family)]
    told += violated_sentences(family)
    told += aborted_sentences(family.censored, family.episodes)
    told += learning_sentences(family.bound_references, family.bound_references_needed, family.provisional_episodes)
    return " ".join(told)


def _side(stress: float) -> Options:
    return _LEFT if stress >= _MIDDLE else _RIGHT


def _above(stress: float) -> Options:
    """A line higher, so that two names of lines that stand close do not cross."""
    return _side(stress) | {"offset": [0, -16]}


def _point(margin: StressMargin) -> Options:
    symbol, colour = _LEVELS[margin.state]
    return {
        "value": [margin.stress, round(margin.margin or 0.0, 4)],
        "symbol": symbol,
        "itemStyle": {"color": colour if margin.sufficient else CARD, "borderColor": colour, "borderWidth": 2},
    }
