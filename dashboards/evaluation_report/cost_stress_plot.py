"""Recovery cost against stress, every episode a dot, the mean of each stress a line."""

import numpy as np
from matplotlib.axes import Axes
from springback.dashboards.evaluation_report.group_rows import GroupRow
from springback.dashboards.evaluation_report.plot_axes import cost_scale, legend_above, stress_axis
from springback.dashboards.evaluation_report.plot_style import Panel, PlotSection, draw, series_style
from springback.dashboards.evaluation_report.readable_text import name_text, p_text
from springback.dashboards.evaluation_report.report_numbers import ReportNumbers
from springback.dashboards.evaluation_report.report_selection import MOST_SERIES, Chosen, method_name, own

_MOST_DOTS = 600
_CLEAR_P = 0.05


def cost_stress_section(numbers: ReportNumbers, chosen: Chosen) -> PlotSection:
    """A panel for each family, with its methods in it."""
    panels, missing = [], list(chosen.left_out)
    for family, rows in chosen.families.items():
        shown = [row for row in rows if own(numbers.costs, row)]
        if shown:
            panels.append(_panel(family, shown[:MOST_SERIES], numbers))
        else:
            missing.append(f"{name_text(family)}: no episode has a cost.")
    return PlotSection(
        "Does the cost rise with the stress?",
        "Faint dots are episodes, marks with a line are means, with their bootstrap interval. "
        "ρ is Spearman's rank correlation: 1 if more stress always costs more, 0 if it makes no difference.",  # noqa: RUF001
        panels,
        missing,
    )


def _panel(family: str, rows: list[GroupRow], numbers: ReportNumbers) -> Panel:
    def plot(axes: Axes) -> None:
        largest = max(point.recovery_cost for row in rows for point in own(numbers.costs, row))
        for number, row in enumerate(rows):
            _series(axes, number, (number - (len(rows) - 1) / 2) * 0.02, row, numbers)
        cost_scale(axes, "y", largest)
        stress_axis(axes, numbers.grid)
        axes.set_ylabel("C_rec of an episode (no unit)")
        if len(rows) > 1:
            legend_above(axes)

    return Panel(f"{name_text(family)}: {_finding(rows)}", draw(plot), _note(rows))


def _finding(rows: list[GroupRow]) -> str:
    found = [row.correlation for row in rows]
    if len(rows) > 1:
        rising = sum(c is not None and c.rho > 0 and c.p <= _CLEAR_P for c in found)
        return f"cost clearly rises for {rising} of {len(rows)} methods"
    (one,) = found
    if one is None:
        return "stress or cost does not vary"
    direction = "no clear trend" if one.p > _CLEAR_P else "cost rises" if one.rho > 0 else "cost falls"
    return f"{direction} (ρ = {one.rho:.2f}, {p_text(one.p, brief=True)})"  # noqa: RUF001


def _note(rows: list[GroupRow]) -> str:
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
    spread = (np.arange(len(points)) * 0.618034 % 1 - 0.5) * 0.07
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
