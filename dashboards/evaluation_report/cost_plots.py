"""The plots of the recovery cost: of clean and disturbed episodes, against the stress, and what it consists of."""

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes

from springback.dashboards.evaluation_report.group_rows import GroupRow
from springback.dashboards.evaluation_report.plot_style import (
    INK,
    MUTED,
    SERIES,
    SURFACE,
    Panel,
    PlotSection,
    cost_scale,
    draw,
    legend_above,
    series_style,
    stress_axis,
)
from springback.dashboards.evaluation_report.report_display import (
    MOST_SERIES,
    Chosen,
    count_text,
    figure_text,
    method_name,
    name_text,
    own,
    p_text,
    share_text,
)
from springback.dashboards.evaluation_report.report_numbers import ChannelRow, CostPoint, ReportNumbers
from springback.stream_processors.metrics.figure_words import stress_text
from springback.stream_processors.offline.significance import RankCorrelation

_MOST_DOTS = 600
_MOST_DOTS_OF_A_STRIP = 400
_GOLDEN = 0.618034
"""Multiples of the golden ratio, less their whole part, spread neighbouring dots apart without chance."""
_NEAR_NOTHING = 0.03
_CLEAR_P = 0.05
_LEARNING = "its episodes are provisional, and tested for nothing"
_CHANNELS = (
    ("cognitive", "thinking", SERIES[0], ""),
    ("physical", "moving", SERIES[4], ""),
    ("debt", "state debt", SERIES[3], "////"),
)


def cost_distribution_section(numbers: ReportNumbers, chosen: Chosen) -> PlotSection:
    """A panel for each group."""
    panels, missing = [], list(chosen.left_out)
    for row in chosen.groups:
        points = own(numbers.costs, row)
        if points:
            panels.append(_distribution_panel(chosen.name(row), row, points))
        else:
            missing.append(f"{chosen.name(row)}: no episode has a cost; it takes a baseline and an end that was seen.")
    return PlotSection(
        "Do disturbances cost the agent anything?",
        "Each dot is an episode; the box holds the middle half, its line is the median, the diamond the mean. "
        "An episode without a rebound window costs 0. p is Wilcoxon's, over the tasks that ran both ways, or where too "
        "few did Mann–Whitney's over tasks; two-sided, Holm-corrected over the groups.",  # noqa: RUF001
        panels,
        missing,
    )


def _distribution_panel(name: str, row: GroupRow, points: list[CostPoint]) -> Panel:
    clean = sorted(point.recovery_cost for point in points if point.clean)
    disturbed = sorted(point.recovery_cost for point in points if not point.clean)

    def plot(axes: Axes) -> None:
        rows = [(clean, "clean", 0), (disturbed, "disturbed", 1)]
        for height, (costs, _, series) in enumerate(reversed(rows)):
            _strip(axes, costs, height, SERIES[series])
        labels = [f"{kind}\nn = {len(costs)}\nat 0: {_free(costs)}" for costs, kind, _ in reversed(rows)]
        axes.set_yticks([0, 1], labels)
        axes.set_ylim(-0.5, 1.5)
        axes.grid(visible=False, axis="y")
        cost_scale(axes, "x", max(clean + disturbed))
        axes.set_xlabel("recovery cost C_rec of an episode (no unit)")

    return Panel(f"{name}: {_distribution_finding(row)}", draw(plot, height=2.3), _distribution_note(row))


def _distribution_finding(row: GroupRow) -> str:
    found = row.comparison
    if found is None or found.p is None or found.superiority is None:
        return "no clean episode" if not row.clean else "no disturbed episode" if not row.disturbed else _LEARNING
    p = p_text(found.p, brief=True)
    if found.p > _CLEAR_P:
        return f"no clear difference ({p})"
    dearer = found.higher > found.lower if found.paired else found.superiority > 0.5
    return f"disturbed episodes cost {'more' if dearer else 'less'} ({p})"


def _distribution_note(row: GroupRow) -> str:
    found = row.comparison
    if found is None or found.p is None:
        return ""
    tasks = count_text(found.paired_tasks, "task") if found.paired_tasks else "No task"
    if not found.paired:
        few = ", too few for pairs" if found.paired_tasks else ""
        return f"{tasks} ran both ways{few}: by Mann–Whitney."  # noqa: RUF001
    same = found.paired_tasks - found.higher - found.lower
    return (
        f"Disturbance made {found.higher} of {tasks} that ran both ways dearer, {found.lower} cheaper, {same} neither."
    )


def _free(costs: list[float]) -> str:
    """The share of episodes that cost nothing."""
    return share_text(sum(cost == 0 for cost in costs) / len(costs) if costs else None)


def _strip(axes: Axes, costs: list[float], height: int, colour: str) -> None:
    if not costs:
        axes.annotate("none", (0.5, height), xycoords=("axes fraction", "data"), color=MUTED, ha="center")
        return
    every = max(1, -(-len(costs) // _MOST_DOTS_OF_A_STRIP))
    shown = np.asarray(costs[every // 2 :: every])
    spread = (np.arange(len(shown)) * _GOLDEN % 1 - 0.5) * 0.5
    axes.plot(shown, height + spread, "o", color=colour, markersize=3.4, alpha=0.55, markeredgewidth=0)
    low, middle, high = np.quantile(costs, (0.25, 0.5, 0.75))
    axes.plot([low, low, high, high, low], height + np.array([-1, 1, 1, -1, -1]) * 0.33, color=INK, linewidth=1.0)
    axes.plot([middle, middle], [height - 0.33, height + 0.33], color=INK, linewidth=2.2)
    mean = float(np.mean(costs))
    axes.plot([mean], [height], "D", color=INK, markersize=6, markeredgecolor=SURFACE)
    side = "left" if mean < _NEAR_NOTHING else "center"
    axes.annotate(f"mean {figure_text(mean)}", (mean, height + 0.36), color=INK, fontsize=8, ha=side)


def cost_stress_section(numbers: ReportNumbers, chosen: Chosen) -> PlotSection:
    """A panel for each family, with its methods in it."""
    panels, missing = [], list(chosen.left_out)
    for family, rows in chosen.families.items():
        shown = [row for row in rows if _declared(row, numbers)]
        if shown:
            panels.append(_stress_panel(family, shown[:MOST_SERIES], numbers))
        else:
            missing.append(f"{name_text(family)}: no episode has a cost and a declared stress.")
    return PlotSection(
        "Does the cost rise with the stress?",
        "Faint dots are episodes, marks with a line are means, with their bootstrap interval. "
        "ρ is Spearman's rank correlation: 1 if more stress always costs more, 0 if it makes no difference; over "  # noqa: RUF001
        "episodes with the interval from resampling tasks, and over the means of stress levels with its p, "
        "Holm-corrected over the groups.",
        panels,
        missing,
    )


def _declared(row: GroupRow, numbers: ReportNumbers) -> list[tuple[float, float]]:
    """Stress and cost of the episodes that declared their stress, in order."""
    points = own(numbers.costs, row)
    return sorted((point.stress, point.recovery_cost) for point in points if point.stress is not None)


def _stress_panel(family: str, rows: list[GroupRow], numbers: ReportNumbers) -> Panel:
    def plot(axes: Axes) -> None:
        largest = max(cost for row in rows for _, cost in _declared(row, numbers))
        for number, row in enumerate(rows):
            _series(axes, number, (number - (len(rows) - 1) / 2) * 0.02, row, numbers)
        cost_scale(axes, "y", largest)
        stress_axis(axes, numbers.grid)
        axes.set_ylabel("C_rec of an episode (no unit)")
        if len(rows) > 1:
            legend_above(axes)

    return Panel(f"{name_text(family)}: {_stress_finding(rows)}", draw(plot), _stress_note(rows, numbers))


def _stress_finding(rows: list[GroupRow]) -> str:
    if len(rows) > 1:
        rising = sum(_trend(row.correlation) == "cost rises" for row in rows)
        return f"cost clearly rises for {rising} of {len(rows)} methods"
    (one,) = rows
    if one.correlation is None:
        return "stress or cost does not vary"
    return f"{_trend(one.correlation)} ({_rho_text(one.correlation)})"


def _trend(found: RankCorrelation | None) -> str:
    """What a correlation shows: a trend is clear where its interval leaves out 0."""
    if found is None or found.low is None or found.high is None or found.low <= 0 <= found.high:
        return "no clear trend"
    return "cost rises" if found.rho > 0 else "cost falls"


def _rho_text(found: RankCorrelation) -> str:
    interval = "" if found.low is None or found.high is None else f", {found.low:.2f} to {found.high:.2f}"
    return f"ρ = {found.rho:.2f}{interval}"  # noqa: RUF001


def _stress_note(rows: list[GroupRow], numbers: ReportNumbers) -> str:
    said = "; ".join(
        (f"{method_name(row)}: " if len(rows) > 1 else "") + ", ".join(_correlation_texts(row)) for row in rows
    )
    undeclared = sum(point.stress is None for row in rows for point in own(numbers.costs, row))
    return said + (f". Not drawn: {count_text(undeclared, 'episode')} of undeclared stress." if undeclared else "")


def _correlation_texts(row: GroupRow) -> Iterator[str]:
    episodes, levels = row.correlation, row.level_correlation
    yield "ρ unknown" if episodes is None else f"{_rho_text(episodes)} over {episodes.points} episodes"  # noqa: RUF001
    if levels is not None and levels.p_holm is not None:
        yield f"{levels.rho:.2f} over {levels.points} level means ({p_text(levels.p_holm)})"


def _series(axes: Axes, number: int, shift: float, row: GroupRow, numbers: ReportNumbers) -> None:
    points = _declared(row, numbers)
    points = points[:: max(1, -(-len(points) // _MOST_DOTS))]
    spread = (np.arange(len(points)) * _GOLDEN % 1 - 0.5) * 0.07
    style = series_style(number)
    axes.plot(
        [stress for stress, _ in points] + spread + shift,
        [cost for _, cost in points],
        "o",
        color=style["color"],
        markersize=3,
        alpha=0.35,
        markeredgewidth=0,
    )
    means = [(own_row.stress, own_row.recovery_cost_mean) for own_row in own(numbers.stresses, row)]
    known = [(stress + shift, mean) for stress, mean in means if stress is not None and mean is not None]
    axes.plot([stress for stress, _ in known], [mean.value for _, mean in known], label=method_name(row), **style)
    for stress, mean in known:
        if mean.low is not None and mean.high is not None:
            axes.plot([stress, stress], [mean.low, mean.high], color=style["color"], linewidth=2.6, alpha=0.6)


def channel_share_section(numbers: ReportNumbers, chosen: Chosen) -> PlotSection:
    """A panel for each group."""
    panels, missing = [], list(chosen.left_out)
    for row in chosen.groups:
        shares = own(numbers.channels, row)
        if any(share.debt is not None for share in shares):
            panels.append(Panel(f"{chosen.name(row)}: {_channel_finding(shares)}", _shares(shares)))
        else:
            missing.append(f"{chosen.name(row)}: no episode cost anything.")
    return PlotSection(
        "What does recovering consist of?",
        "Thinking is planning and perception time above the normal, moving is travel and retries, state debt is "
        "progress that lags, and risk. Shares are of the channels' own costs, summed over the episodes of a stress.",
        panels,
        missing,
    )


def _channel_finding(shares: list[ChannelRow]) -> str:
    costly = [share for share in shares if share.debt is not None]
    hardest = max(costly, key=lambda share: -1.0 if share.stress is None else share.stress)
    largest, name = max((getattr(hardest, channel) or 0.0, name) for channel, name, _, _ in _CHANNELS)
    at = "at undeclared stress" if hardest.stress is None else f"at λ = {stress_text(hardest.stress)}"
    return f"{at}, {largest:.0%} is {name}"


def _shares(shares: list[ChannelRow]) -> str:
    def plot(axes: Axes) -> None:
        for place, share in enumerate(shares):
            _bar(axes, place, share)
        for _, name, colour, hatch in _CHANNELS:
            axes.bar([0], [0], color=colour, hatch=hatch, edgecolor=SURFACE, linewidth=0.8, label=name)
        axes.set_xticks(range(len(shares)), [stress_text(share.stress) for share in shares])
        axes.set_xlim(-0.6, len(shares) - 0.4)
        axes.set_xlabel("stress λ (0 clean, 1 hardest)")
        axes.set_ylim(0, 1)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
        axes.set_ylabel("share of the cost")
        axes.grid(visible=False, axis="x")
        axes.legend(loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=3)

    return draw(plot)


def _bar(axes: Axes, place: int, share: ChannelRow) -> None:
    if share.debt is None:
        axes.annotate("no\ncost", (place, 0.03), ha="center", color=MUTED, fontsize=8)
        return
    below = 0.0
    for channel, _, colour, hatch in _CHANNELS:
        height = getattr(share, channel)
        axes.bar(
            [place], [height], bottom=[below], width=0.7, color=colour, hatch=hatch, edgecolor=SURFACE, linewidth=0.8
        )
        below += height
