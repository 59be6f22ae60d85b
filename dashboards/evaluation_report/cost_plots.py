"""The plots of the recovery cost: of clean and disturbed episodes, against the stress, and what it consists of."""

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
    figure_text,
    method_name,
    name_text,
    own,
    p_text,
    share_text,
)
from springback.dashboards.evaluation_report.report_numbers import ChannelRow, CostPoint, ReportNumbers

_MOST_DOTS = 600
_MOST_DOTS_OF_A_STRIP = 400
_GOLDEN = 0.618034
"""Multiples of the golden ratio, less their whole part, spread neighbouring dots apart without chance."""
_NEAR_NOTHING = 0.03
_CLEAR_P = 0.05
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
        "An episode without a rebound window costs 0. The p-value is Mann–Whitney's (two-sided).",  # noqa: RUF001
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

    return Panel(f"{name}: {_distribution_finding(row)}", draw(plot, height=2.3))


def _distribution_finding(row: GroupRow) -> str:
    if row.comparison is None:
        return "no clean episode" if not row.clean else "no disturbed episode"
    p = p_text(row.comparison.p, brief=True)
    if row.comparison.p > _CLEAR_P:
        return f"no clear difference ({p})"
    chance = row.comparison.superiority
    if chance > 0.5:
        return f"disturbed episodes cost more ({p})"
    return f"disturbed episodes cost less ({p})"


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
        shown = [row for row in rows if own(numbers.costs, row)]
        if shown:
            panels.append(_stress_panel(family, shown[:MOST_SERIES], numbers))
        else:
            missing.append(f"{name_text(family)}: no episode has a cost.")
    return PlotSection(
        "Does the cost rise with the stress?",
        "Faint dots are episodes, marks with a line are means, with their bootstrap interval. "
        "ρ is Spearman's rank correlation: 1 if more stress always costs more, 0 if it makes no difference.",  # noqa: RUF001
        panels,
        missing,
    )


def _stress_panel(family: str, rows: list[GroupRow], numbers: ReportNumbers) -> Panel:
    def plot(axes: Axes) -> None:
        largest = max(point.recovery_cost for row in rows for point in own(numbers.costs, row))
        for number, row in enumerate(rows):
            _series(axes, number, (number - (len(rows) - 1) / 2) * 0.02, row, numbers)
        cost_scale(axes, "y", largest)
        stress_axis(axes, numbers.grid)
        axes.set_ylabel("C_rec of an episode (no unit)")
        if len(rows) > 1:
            legend_above(axes)

    return Panel(f"{name_text(family)}: {_stress_finding(rows)}", draw(plot), _stress_note(rows))


def _stress_finding(rows: list[GroupRow]) -> str:
    found = [row.correlation for row in rows]
    if len(rows) > 1:
        rising = sum(c is not None and c.rho > 0 and c.p <= _CLEAR_P for c in found)
        return f"cost clearly rises for {rising} of {len(rows)} methods"
    (one,) = found
    if one is None:
        return "stress or cost does not vary"
    direction = "no clear trend" if one.p > _CLEAR_P else "cost rises" if one.rho > 0 else "cost falls"
    return f"{direction} (ρ = {one.rho:.2f}, {p_text(one.p, brief=True)})"  # noqa: RUF001


def _stress_note(rows: list[GroupRow]) -> str:
    if len(rows) == 1:
        return ""
    return "; ".join(
        f"{method_name(row)}: " + ("ρ unknown" if c is None else f"ρ = {c.rho:.2f}, {p_text(c.p)}")  # noqa: RUF001
        for row in rows
        for c in [row.correlation]
    )


def _series(axes: Axes, number: int, shift: float, row: GroupRow, numbers: ReportNumbers) -> None:
    points = sorted(own(numbers.costs, row), key=lambda point: (point.stress, point.recovery_cost))
    points = points[:: max(1, -(-len(points) // _MOST_DOTS))]
    spread = (np.arange(len(points)) * _GOLDEN % 1 - 0.5) * 0.07
    style = series_style(number)
    axes.plot(
        [point.stress for point in points] + spread + shift,
        [point.recovery_cost for point in points],
        "o",
        color=style["color"],
        markersize=3,
        alpha=0.35,
        markeredgewidth=0,
    )
    means = [(own_row.stress, own_row.recovery_cost_mean) for own_row in own(numbers.stresses, row)]
    known = [(stress + shift, mean) for stress, mean in means if mean is not None]
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
    hardest = max((share for share in shares if share.debt is not None), key=lambda share: share.stress)
    largest, name = max((getattr(hardest, channel) or 0.0, name) for channel, name, _, _ in _CHANNELS)
    return f"at λ = {hardest.stress:g}, {largest:.0%} is {name}"


def _shares(shares: list[ChannelRow]) -> str:
    def plot(axes: Axes) -> None:
        for place, share in enumerate(shares):
            _bar(axes, place, share)
        for _, name, colour, hatch in _CHANNELS:
            axes.bar([0], [0], color=colour, hatch=hatch, edgecolor=SURFACE, linewidth=0.8, label=name)
        axes.set_xticks(range(len(shares)), [f"{share.stress:g}" for share in shares])
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
