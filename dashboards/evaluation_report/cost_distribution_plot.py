"""Recovery costs of clean and of disturbed episodes, side by side."""

import numpy as np
from matplotlib.axes import Axes
from springback.dashboards.evaluation_report.group_rows import GroupRow
from springback.dashboards.evaluation_report.plot_axes import cost_scale
from springback.dashboards.evaluation_report.plot_style import INK, MUTED, SERIES, SURFACE, Panel, PlotSection, draw
from springback.dashboards.evaluation_report.readable_text import figure_text, p_text, share_text
from springback.dashboards.evaluation_report.report_numbers import CostPoint, ReportNumbers
from springback.dashboards.evaluation_report.report_selection import Chosen, own

_MOST_DOTS = 400
_CLEAR_P = 0.05
_NEAR_NOTHING = 0.03


def cost_distribution_section(numbers: ReportNumbers, chosen: Chosen) -> PlotSection:
    """A panel for each group."""
    panels, missing = [], list(chosen.left_out)
    for row in chosen.groups:
        points = own(numbers.costs, row)
        if points:
            panels.append(_panel(chosen.name(row), row, points))
        else:
            missing.append(f"{chosen.name(row)}: no episode has a cost; it takes a baseline and an end that was seen.")
    return PlotSection(
        "Do disturbances cost the agent anything?",
        "Each dot is an episode; the box holds the middle half, its line is the median, the diamond the mean. "
        "An episode without a rebound window costs 0. The p-value is Mann–Whitney's (two-sided).",  # noqa: RUF001
        panels,
        missing,
    )


def _panel(name: str, row: GroupRow, points: list[CostPoint]) -> Panel:
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

    return Panel(f"{name}: {_finding(row)}", draw(plot, height=2.3))


def _finding(row: GroupRow) -> str:
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
    every = max(1, -(-len(costs) // _MOST_DOTS))
    shown = np.asarray(costs[every // 2 :: every])
    # The golden ratio spreads neighbours apart without chance.
    spread = (np.arange(len(shown)) * 0.618034 % 1 - 0.5) * 0.5
    axes.plot(shown, height + spread, "o", color=colour, markersize=3.4, alpha=0.55, markeredgewidth=0)
    low, middle, high = np.quantile(costs, (0.25, 0.5, 0.75))
    axes.plot([low, low, high, high, low], height + np.array([-1, 1, 1, -1, -1]) * 0.33, color=INK, linewidth=1.0)
    axes.plot([middle, middle], [height - 0.33, height + 0.33], color=INK, linewidth=2.2)
    mean = float(np.mean(costs))
    axes.plot([mean], [height], "D", color=INK, markersize=6, markeredgecolor=SURFACE)
    side = "left" if mean < _NEAR_NOTHING else "center"
    axes.annotate(f"mean {figure_text(mean)}", (mean, height + 0.36), color=INK, fontsize=8, ha=side)
