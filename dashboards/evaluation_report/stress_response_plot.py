"""The stress-response curve: how far a family's contract is kept or broken at each stress, with the stress capacity."""

from matplotlib.axes import Axes

from springback.dashboards.evaluation_report.group_rows import GroupRow
from springback.dashboards.evaluation_report.plot_style import (
    INK,
    MUTED,
    SERIES,
    SURFACE,
    Panel,
    PlotSection,
    draw,
    legend_above,
    series_style,
    stress_axis,
)
from springback.dashboards.evaluation_report.report_numbers import ReportNumbers
from springback.dashboards.evaluation_report.report_selection import MOST_SERIES, Chosen, method_name, name_text, own
from springback.stream_processors.offline.tables import ResilienceJson

_LEFT = ("axes fraction", "data")
_POINTS = "offset points"
_FEW_CURVES = 2


def stress_response_section(numbers: ReportNumbers, chosen: Chosen) -> PlotSection:
    """A panel for each family, with its methods in it."""
    panels, missing = [], list(chosen.left_out)
    for family, rows in chosen.families.items():
        curves = [(row, curve) for row in rows for curve in own(numbers.evaluation.resilience, row)]
        curves = [(row, curve) for row, curve in curves if any(m.margin is not None for m in curve.margins)]
        if curves:
            panels.append(_panel(family, curves[:MOST_SERIES]))
        else:
            missing.append(f"{name_text(family)}: no stress has an episode that a margin could be found of.")
    return PlotSection(
        "How much stress does a family withstand?",
        "Above 0 the contract is kept, in the shaded part below it is broken. M_f is the mean of the three worst "
        "ratios of what was reached to what is asked, less 1. The dashed line is the stress capacity λ*, the largest "
        "stress at which the contract is kept; the bar at the bottom is its bootstrap interval. Hollow marks have too "
        "few episodes to decide anything.",
        panels,
        missing,
    )


def _panel(family: str, curves: list[tuple[GroupRow, ResilienceJson]]) -> Panel:
    margins = [m.margin for _, curve in curves for m in curve.margins if m.margin is not None]
    top, bottom = max(0.5, *margins), min(-0.5, *margins)
    room = (top - bottom) * 0.14

    def plot(axes: Axes) -> None:
        axes.axhspan(bottom - 10 * room, 0, color=MUTED, alpha=0.14, linewidth=0)
        axes.axhline(0, color=INK, linewidth=1)
        for number, (row, curve) in enumerate(curves):
            _curve(axes, number, row, curve)
            _capacity(axes, number, row, curve, bottom - room * (0.6 + 0.5 * number))
        axes.set_ylim(bottom - room * (1.1 + 0.5 * len(curves)), top + room)
        stress_axis(axes, sorted({margin.stress for _, curve in curves for margin in curve.margins}))
        axes.set_ylabel("margin M_f (ratio units)")
        axes.annotate("kept", (0, 0), (3, 3), xycoords=_LEFT, textcoords=_POINTS, color=MUTED)
        axes.annotate("broken", (0, 0), (3, -11), xycoords=_LEFT, textcoords=_POINTS, color=MUTED)
        if len(curves) > 1:
            legend_above(axes)

    few = len(curves) <= _FEW_CURVES
    title = (
        "; ".join(_finding(curve, row if len(curves) > 1 else None) for row, curve in curves) if few else _range(curves)
    )
    return Panel(f"{name_text(family)}: {title}", draw(plot), "; ".join(_note(row, curve) for row, curve in curves))


def _finding(curve: ResilienceJson, row: GroupRow | None) -> str:
    of = "" if row is None else f"{method_name(row)} "
    if curve.capacity_flag == "none":
        return f"{of}keeps its contract at no stress"
    if curve.capacity is None:
        return f"{of}has too few episodes to tell"
    if curve.capacity >= max(margin.stress for margin in curve.margins):
        return f"{of}withstands all stress tried"
    return f"{of}withstands stress up to {curve.capacity:g}"


def _range(curves: list[tuple[GroupRow, ResilienceJson]]) -> str:
    known = [curve.capacity for _, curve in curves if curve.capacity is not None]
    if not known:
        return "too few episodes to tell"
    return f"methods withstand stress up to {min(known):g} at the least, {max(known):g} at the most"


def _note(row: GroupRow, curve: ResilienceJson) -> str:
    parts = [f"{method_name(row)}: λ* = {'unknown' if curve.capacity is None else format(curve.capacity, 'g')}"]
    if row.capacity_interval is not None:
        parts.append(f"interval {row.capacity_interval.low:g} to {row.capacity_interval.high:g}")
    parts.append(f"first breach {'none' if curve.first_breach is None else format(curve.first_breach, 'g')}")
    return ", ".join(parts)


def _curve(axes: Axes, number: int, row: GroupRow, curve: ResilienceJson) -> None:
    style = series_style(number)
    known = [(margin.stress, margin.margin, margin.sufficient) for margin in curve.margins if margin.margin is not None]
    axes.plot([s for s, _, _ in known], [m for _, m, _ in known], color=style["color"], label=method_name(row))
    for stress, margin, sufficient in known:
        axes.plot(
            [stress],
            [margin],
            **style,
            markersize=7,
            markeredgewidth=1.6,
            markerfacecolor=style["color"] if sufficient else SURFACE,
        )


def _capacity(axes: Axes, number: int, row: GroupRow, curve: ResilienceJson, height: float) -> None:
    colour = SERIES[number % len(SERIES)]
    if curve.capacity is not None and curve.capacity_flag == "ok":
        axes.axvline(curve.capacity, color=colour, linewidth=1.4, linestyle=(0, (4, 3)))
        axes.annotate("λ*", (curve.capacity, 1), (3, -9), xycoords=("data", "axes fraction"), textcoords=_POINTS)
    interval = row.capacity_interval
    if interval is not None:
        axes.plot([interval.low, interval.high], [height] * 2, color=colour, linewidth=5, solid_capstyle="round")
