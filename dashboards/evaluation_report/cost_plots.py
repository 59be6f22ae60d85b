"""The plots of the recovery cost: of clean and disturbed episodes, against the stress, and what it consists of."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes

from springback.dashboards.evaluation_report.group_rows import GroupRow, StressRow
from springback.dashboards.evaluation_report.plot_style import (
    INK,
    MUTED,
    SERIES,
    SURFACE,
    Panel,
    PlotSection,
    cost_scale,
    count_ticks,
    draw,
    legend_above,
    series_style,
    stress_axis,
    tell,
)
from springback.dashboards.evaluation_report.report_display import (
    MOST_SERIES,
    Chosen,
    count_text,
    counts_text,
    figure_text,
    method_name,
    name_text,
    own,
    p_text,
    share_text,
)
from springback.dashboards.evaluation_report.report_groups import RUNS, Run
from springback.dashboards.evaluation_report.report_numbers import ChannelRow, CostPoint, ReportNumbers
from springback.stream_processors.metrics.figure_words import stress_text
from springback.stream_processors.offline.resampling import Interval
from springback.stream_processors.offline.significance import RankCorrelation
from springback.stream_processors.resilience.families.stress_capacity import nearest_point

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
    kinds: list[Run] = [run for run in RUNS if run != "undeclared" or any(point.run == run for point in points)]

    def plot(axes: Axes) -> None:
        labels = []
        for height, run in enumerate(reversed(kinds)):
            own_points = sorted((p for p in points if p.run == run), key=lambda point: point.recovery_cost)
            _strip(axes, own_points, height, SERIES[RUNS.index(run)])
            labels.append(f"{run}\nn = {len(own_points)}\nat 0: {_free(own_points)}")
        axes.set_yticks(range(len(kinds)), labels)
        axes.set_ylim(-0.5, len(kinds) - 0.5)
        axes.grid(visible=False, axis="y")
        cost_scale(axes, "x", max(point.recovery_cost for point in points))
        axes.set_xlabel("recovery cost C_rec of an episode (no unit)")

    height = 0.7 + 0.8 * len(kinds)
    return Panel(f"{name}: {_distribution_finding(row)}", draw(plot, height=height), _distribution_note(row))


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


def _free(points: list[CostPoint]) -> str:
    """The share of episodes that cost nothing."""
    return share_text(sum(point.recovery_cost == 0 for point in points) / len(points) if points else None)


def told(point: CostPoint) -> str:
    """What an episode's dot says of it."""
    return (
        f"{name_text(point.agent)}, episode {name_text(point.episode)}, task {name_text(point.task)}, "
        f"λ {stress_text(point.stress)}, {point.run}: C_rec {figure_text(point.recovery_cost)}"
    )


def _strip(axes: Axes, points: list[CostPoint], height: int, colour: str) -> None:
    costs = [point.recovery_cost for point in points]
    if not costs:
        axes.annotate("none", (0.5, height), xycoords=("axes fraction", "data"), color=MUTED, ha="center")
        return
    every = max(1, -(-len(costs) // _MOST_DOTS_OF_A_STRIP))
    shown = points[every // 2 :: every]
    spread = (np.arange(len(shown)) * _GOLDEN % 1 - 0.5) * 0.5
    (dots,) = axes.plot(
        [point.recovery_cost for point in shown],
        height + spread,
        "o",
        color=colour,
        markersize=3.4,
        alpha=0.55,
        markeredgewidth=0,
    )
    tell(dots, [told(point) for point in shown])
    low, middle, high = np.quantile(costs, (0.25, 0.5, 0.75))
    axes.plot([low, low, high, high, low], height + np.array([-1, 1, 1, -1, -1]) * 0.33, color=INK, linewidth=1.0)
    axes.plot([middle, middle], [height - 0.33, height + 0.33], color=INK, linewidth=2.2)
    mean = float(np.mean(costs))
    (diamond,) = axes.plot([mean], [height], "D", color=INK, markersize=6, markeredgecolor=SURFACE)
    tell(diamond, [f"mean of {count_text(len(costs), 'episode')}: {figure_text(mean)}"])
    side = "left" if mean < _NEAR_NOTHING else "center"
    axes.annotate(f"mean {figure_text(mean)}", (mean, height + 0.36), color=INK, fontsize=8, ha=side)


def cost_stress_section(numbers: ReportNumbers, chosen: Chosen) -> PlotSection:
    """A panel for each family, with its methods in it."""
    panels, missing = [], list(chosen.left_out)
    for family, rows in chosen.families.items():
        shown = [(row, declared) for row in rows if (declared := _declared(row, numbers))]
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


_Declared = list[tuple[float, CostPoint]]
"""The episodes of a group that declared their stress, each with it, in order of stress and cost."""


def _declared(row: GroupRow, numbers: ReportNumbers) -> _Declared:
    known = [(point.stress, point) for point in own(numbers.costs, row) if point.stress is not None]
    return sorted(known, key=lambda one: (one[0], one[1].recovery_cost))


def _stress_panel(family: str, shown: list[tuple[GroupRow, _Declared]], numbers: ReportNumbers) -> Panel:
    rows = [row for row, _ in shown]

    def plot(axes: Axes) -> None:
        largest = max(point.recovery_cost for _, declared in shown for _, point in declared)
        for number, (row, declared) in enumerate(shown):
            _series(axes, number, (number - (len(rows) - 1) / 2) * 0.02, row, declared, numbers)
        cost_scale(axes, "y", largest)
        stress_axis(axes, numbers.grid)
        if len(rows) == 1:
            known = _scored_by_stress(shown[0][1], numbers)
            names = [f"{point:g}" for point in numbers.grid]
            count_ticks(axes, numbers.grid, names, [known[point] for point in numbers.grid])
        axes.set_ylabel("C_rec of an episode (no unit)")
        if len(rows) > 1:
            legend_above(axes)

    return Panel(f"{name_text(family)}: {_stress_finding(rows)}", draw(plot), _stress_note(shown, numbers))


def _scored_by_stress(declared: _Declared, numbers: ReportNumbers) -> Counter[float]:
    """How many of the episodes there are at each point of the grid."""
    return Counter(nearest_point(stress, numbers.grid) for stress, _ in declared)


def _stress_finding(rows: list[GroupRow]) -> str:
    if len(rows) > 1:
        rising = sum(_trend(row.correlation) == "cost rises" for row in rows)
        return f"cost clearly rises for {rising} of {len(rows)} methods"
    (one,) = rows
    if one.correlation is None:
        if one.provisional and one.provisional >= one.clean + one.disturbed:
            return _LEARNING
        return "too few episodes count, or stress or cost does not vary"
    return f"{_trend(one.correlation)} ({_rho_text(one.correlation)})"


def _trend(found: RankCorrelation | None) -> str:
    """What a correlation shows: a trend is clear where its interval leaves out 0."""
    if found is None or found.low is None or found.high is None or found.low <= 0 <= found.high:
        return "no clear trend"
    return "cost rises" if found.rho > 0 else "cost falls"


def _rho_text(found: RankCorrelation) -> str:
    interval = "" if found.low is None or found.high is None else f", {found.low:.2f} to {found.high:.2f}"
    return f"ρ = {found.rho:.2f}{interval}"  # noqa: RUF001


def _stress_note(shown: list[tuple[GroupRow, _Declared]], numbers: ReportNumbers) -> str:
    rows = [row for row, _ in shown]
    said = "; ".join(
        (f"{method_name(row)}: " if len(rows) > 1 else "") + ", ".join(_correlation_texts(row)) for row in rows
    )
    undeclared = sum(point.stress is None for row in rows for point in own(numbers.costs, row))
    if len(rows) > 1:
        said += "; " + "; ".join(f"{method_name(row)} {_counts_text(declared, numbers)}" for row, declared in shown)
    return said + (f". Not drawn: {count_text(undeclared, 'episode')} of undeclared stress." if undeclared else "")


def _counts_text(declared: _Declared, numbers: ReportNumbers) -> str:
    known = _scored_by_stress(declared, numbers)
    return counts_text([(point, known[point]) for point in numbers.grid if point in known])


def _correlation_texts(row: GroupRow) -> Iterator[str]:
    episodes, levels = row.correlation, row.level_correlation
    yield "ρ unknown" if episodes is None else f"{_rho_text(episodes)} over {episodes.points} episodes"  # noqa: RUF001
    if levels is not None and levels.p_holm is not None:
        yield f"{levels.rho:.2f} over {levels.points} level means ({p_text(levels.p_holm)})"


def _series(axes: Axes, number: int, shift: float, row: GroupRow, declared: _Declared, numbers: ReportNumbers) -> None:
    points = declared[:: max(1, -(-len(declared) // _MOST_DOTS))]
    spread = (np.arange(len(points)) * _GOLDEN % 1 - 0.5) * 0.07
    style = series_style(number)
    (dots,) = axes.plot(
        np.array([stress for stress, _ in points], dtype=np.float64) + spread + shift,
        [point.recovery_cost for _, point in points],
        "o",
        color=style["color"],
        markersize=3,
        alpha=0.35,
        markeredgewidth=0,
    )
    tell(dots, [told(point) for _, point in points])
    found = [(figures, figures.stress, figures.recovery_cost_mean) for figures in own(numbers.stresses, row)]
    rows = [(figures, stress + shift, mean) for figures, stress, mean in found if stress is not None and mean]
    xs, ys = [stress for _, stress, _ in rows], [mean.value for _, _, mean in rows]
    (line,) = axes.plot(xs, ys, label=method_name(row), **style)
    tell(line, [_mean_told(figures, mean) for figures, _, mean in rows])
    for _, stress, mean in rows:
        if mean.low is not None and mean.high is not None:
            axes.plot([stress, stress], [mean.low, mean.high], color=style["color"], linewidth=2.6, alpha=0.6)


def _mean_told(figures: StressRow, mean: Interval) -> str:
    """What the mark of a mean says of it."""
    scored = figures.episodes - figures.censored - figures.unscored
    interval = "" if mean.low is None or mean.high is None else f", {figure_text(mean.low)} to {figure_text(mean.high)}"
    return (
        f"{method_name(figures)}, λ {stress_text(figures.stress)}, {figures.run}: mean C_rec {figure_text(mean.value)}"
        f"{interval}; n = {scored}"
    )


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
        count_ticks(
            axes, range(len(shares)), [_share_name(share, shares) for share in shares], [s.episodes for s in shares]
        )
        axes.set_xlim(-0.6, len(shares) - 0.4)
        axes.set_ylim(0, 1)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
        axes.set_ylabel("share of the cost")
        axes.grid(visible=False, axis="x")
        axes.legend(loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=3)

    return draw(plot)


def _share_name(share: ChannelRow, shares: list[ChannelRow]) -> str:
    """The stress of a bar, and how its episodes ran where that does not go without saying."""
    several = sum(other.stress == share.stress for other in shares) > 1
    name = stress_text(share.stress).replace("undeclared", "un-\ndeclared")
    return f"{name}\n{share.run}" if several else name


def _bar(axes: Axes, place: int, share: ChannelRow) -> None:
    if share.debt is None:
        axes.annotate("no\ncost", (place, 0.03), ha="center", color=MUTED, fontsize=8)
        return
    below = 0.0
    for channel, name, colour, hatch in _CHANNELS:
        height = getattr(share, channel)
        (bar,) = axes.bar(
            [place], [height], bottom=[below], width=0.7, color=colour, hatch=hatch, edgecolor=SURFACE, linewidth=0.8
        )
        n = count_text(share.episodes, "episode")
        tell(bar, [f"λ {stress_text(share.stress)}, {share.run}: {height:.0%} {name}, of {n}"])
        below += height
