"""The charts of one episode, over its steps: progress, modes, g by channel, and the sums of both detectors.

Rebound windows are shaded in all of them, each with the name of its cause.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from springback.dashboards.live_page.charts import (
    CHANNELS,
    FONT,
    INK,
    MUTED,
    Options,
    base_options,
    intensity_axis,
    intensity_height,
    intensity_series,
    line_series,
    mark_line,
    progress_series,
    tell_intensities,
    value_axis,
)
from springback.sinks.fleet.labels import clean_label_value
from springback.stream_processors.resilience.readings import WindowReading
from springback.stream_processors.resilience.tracking.step_trace import TracedStep

_SUMS = (("effort", "var(--sb-rebound)", "solid"), ("delay", "var(--sb-stalled)", "dashed"))
_BANDS = (0.15, 0.4)  # opacities: two shades that are told apart on a dark page too
_MOST_POINTS = 4000
"""Of a longer episode every n-th step is drawn, and those with the largest g of each stretch."""
_MOST_BANDS = 1000
"""Of a longer episode the mode of every n-th step is drawn: a browser takes long for more."""
_NAMED_SHARE = 0.08
"""A band that is narrower than this share of the chart has no room for its name."""


class ModeBand(NamedTuple):
    """Steps in a row in one mode: from step `first` to before step `stop`."""

    mode: str
    first: int
    stop: int


def mode_bands(steps: Sequence[TracedStep], most: int = _MOST_BANDS) -> Iterator[ModeBand]:
    """The runs of modes, in their order, each up to the next; not more than so many."""
    looked_at = steps[:: max(1, -(-len(steps) // most))]
    runs = [(mode, next(run).step) for mode, run in groupby(looked_at, key=lambda step: step.mode)]
    stops = [first for _, first in runs[1:]] + [steps[-1].step + 1 for _ in runs[-1:]]
    return (ModeBand(mode, first, stop) for (mode, first), stop in zip(runs, stops, strict=True))


def drawn(steps: Sequence[TracedStep], most: int = _MOST_POINTS) -> list[TracedStep]:
    """Not more steps than so many, the largest g among them."""
    if len(steps) <= most:
        return list(steps)
    size = -(-len(steps) // most)
    stretches = (steps[start : start + size] for start in range(0, len(steps), size))
    return [max(stretch, key=lambda s: -1.0 if s.figures is None else s.figures.intensity) for stretch in stretches]


def episode_progress_chart(steps: Sequence[TracedStep], windows: Sequence[WindowReading]) -> Options:
    """Progress p and propositions q after each step."""
    series = progress_series(_points(steps, lambda s: s.progress), _points(steps, lambda s: s.propositions))
    return _over_steps(steps, windows, series, value_axis(min=0, max=1, interval=0.25), named=True)


def mode_chart(steps: Sequence[TracedStep]) -> Options:
    """The modes as bands, in two shades by turns, with their names where there is room."""
    blank = line_series("", "transparent", [])
    span = max(1, steps[-1].step - steps[0].step) if steps else 1
    bands = []
    for number, band in enumerate(mode_bands(steps)):
        wide = (band.stop - band.first) / span >= _NAMED_SHARE
        look = {
            "name": clean_label_value(band.mode) if wide else "",
            "itemStyle": {"color": MUTED, "opacity": _BANDS[number % 2]},
        }
        bands.append([{"xAxis": band.first - 0.5, **look}, {"xAxis": band.stop - 0.5}])
    label = FONT | {"color": INK, "position": "inside", "overflow": "truncate"}
    blank["markArea"] = {"silent": True, "label": label, "data": bands}
    options = _over_steps(steps, [], [blank], value_axis(min=0, max=1, show=False))
    options["grid"] = {"left": 44, "right": 16, "top": 2, "bottom": 24}
    del options["legend"], options["tooltip"]
    return options


def channel_chart(steps: Sequence[TracedStep], windows: Sequence[WindowReading], calm: float) -> Options:
    """g^rec and its channels, on a scale of log(1 + g).

    Args:
        steps: of the episode.
        windows: of it.
        calm: the level at or below which a step is calm.
    """
    names = ("intensity", *CHANNELS)
    highest = max((getattr(s.figures, name) for s in steps if s.figures is not None for name in names), default=0.0)

    def height(name: str) -> Callable[[TracedStep], float | None]:
        return lambda s: None if s.figures is None else intensity_height(getattr(s.figures, name))

    line = mark_line({"yAxis": intensity_height(calm)}, "re-entry", MUTED, "dashed", position="insideStartTop")
    series = intensity_series({name: _points(steps, height(name)) for name in names}, "intensity", [line])
    return tell_intensities(_over_steps(steps, windows, series, intensity_axis(max(highest, calm))))


def detector_chart(steps: Sequence[TracedStep], windows: Sequence[WindowReading]) -> Options:
    """The sums of both detectors, and the bounds that raise an alarm when a sum passes them."""

    def of(name: str) -> Callable[[TracedStep], float | None]:
        def value(step: TracedStep) -> float | None:
            found: float | None = None if step.figures is None else getattr(step.figures, name)
            return found

        return value

    series = []
    for name, colour, style in _SUMS:
        series.append(line_series(name, colour, _points(steps, of(name)), style))
        bound = line_series(f"{name} bound", colour, _points(steps, of(f"{name}_bound")), "dotted", 1.25)
        series.append(bound)
    options = _over_steps(steps, windows, series, value_axis(min=0))
    options["legend"] = options["legend"] | {"data": [name for name, _, _ in _SUMS]}  # all four have no room on a phone
    return options


def _points(steps: Sequence[TracedStep], value: Callable[[TracedStep], float | None]) -> list[Any]:
    found = ((step.step, value(step)) for step in steps)
    return [[step, None if y is None else round(y, 4)] for step, y in found]


def _over_steps(
    steps: Sequence[TracedStep],
    windows: Sequence[WindowReading],
    series: list[Options],
    axis: Options,
    *,
    named: bool = False,
) -> Options:
    first, last = (steps[0].step, steps[-1].step) if steps else (0, 1)
    shades = [
        [{"xAxis": w.departure_step, "name": w.cause.replace("+", " and ") if named else ""}, {"xAxis": w.reentry_step}]
        for w in windows
    ]
    if windows or "markArea" not in series[0]:
        series[0]["markArea"] = {
            "silent": True,
            "itemStyle": {"color": "var(--sb-window)"},
            "label": FONT | {"color": INK, "position": "insideBottom"},
            "data": shades,
        }
    return {
        **base_options(),
        "xAxis": value_axis(min=first - 0.5, max=max(last, first + 1) + 0.5, minInterval=1)
        | {"splitLine": {"show": False}, "axisLine": {"show": True, "lineStyle": {"color": MUTED}}}
        | {"axisLabel": FONT | {"color": MUTED, "showMinLabel": False, "showMaxLabel": False, "hideOverlap": True}},
        "yAxis": axis | {"axisLine": {"show": False}},  # it would stand at step 0, through what is written there
        "series": series,
    }
