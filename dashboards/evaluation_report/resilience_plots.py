"""What methods withstand, and what they are good at: the stress-response curve of each family, and signatures.

The curve says whether a family's level is kept or broken at each stress, and what of it is dependable. A signature
is a radar: the further out, the better.
"""

import math

from matplotlib.axes import Axes

from springback.dashboards.evaluation_report.group_rows import GroupRow
from springback.dashboards.evaluation_report.plot_style import (
    INK,
    MUTED,
    SERIES,
    SURFACE,
    Panel,
    PlotSection,
    count_ticks,
    draw,
    legend_above,
    series_style,
    stress_axis,
    tell,
)
from springback.dashboards.evaluation_report.report_display import (
    MOST_PANELS,
    MOST_SERIES,
    Chosen,
    counts_text,
    method_name,
    name_text,
    own,
)
from springback.dashboards.evaluation_report.report_numbers import ALL_FAMILIES, AXES, ReportNumbers, SignatureRow
from springback.stream_processors.metrics.figure_words import (
    NOT_TESTED_ABOVE,
    capacity_text,
    dependable_text,
    stress_text,
    undeclared_sentence,
    violation_text,
)
from springback.stream_processors.offline.tables import ResilienceJson

_LEFT = ("axes fraction", "data")
_POINTS = "offset points"
_FEW_CURVES = 2
_LEAST_AXES = 3


def stress_response_section(numbers: ReportNumbers, chosen: Chosen) -> PlotSection:
    """A panel for each family, with its methods in it."""
    panels, missing = [], list(chosen.left_out)
    for family, rows in chosen.families.items():
        known = [(row, curve) for row in rows for curve in own(numbers.evaluation.resilience, row)]
        curves = [(row, curve) for row, curve in known if any(m.margin is not None for m in curve.margins)]
        missing += [
            f"{name_text(family)}, {method_name(row)}: {undeclared_sentence(curve.undeclared)}"
            for row, curve in known
            if curve.undeclared is not None and curve.undeclared.judged
        ]
        if curves:
            panels.append(_stress_panel(family, curves[:MOST_SERIES]))
        else:
            missing.append(f"{name_text(family)}: no declared stress has an episode that a margin could be found of.")
    return PlotSection(
        "How much stress does a family withstand?",
        "In the shaded part below 0 a level is not kept. M_f is the mean of the two worst ratios of what was reached "
        "to what is asked, less 1. The dashed line is what is dependable: up to there every tested level is kept. The "
        "bar at the bottom is the bootstrap interval of λ*. Half-filled marks are undecided: negative by so few "
        "episodes that it may be chance, or not negative though surely more than one episode in ten breaks the "
        "contract. Hollow ones have too few episodes to decide anything.",
        panels,
        missing,
    )


def _stress_panel(family: str, curves: list[tuple[GroupRow, ResilienceJson]]) -> Panel:
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
        grid = sorted({margin.stress for _, curve in curves for margin in curve.margins})
        stress_axis(axes, grid)
        if len(curves) == 1:
            known_counts = {margin.stress: margin.episodes for margin in curves[0][1].margins}
            count_ticks(axes, grid, [f"{point:g}" for point in grid], [known_counts[point] for point in grid])
        axes.set_ylabel("margin M_f (ratio units)")
        axes.annotate("not kept", (0, 0), (3, -11), xycoords=_LEFT, textcoords=_POINTS, color=MUTED)
        if len(curves) > 1:
            legend_above(axes)

    few = len(curves) <= _FEW_CURVES
    title = (
        "; ".join(_finding(curve, row if len(curves) > 1 else None) for row, curve in curves) if few else _range(curves)
    )
    return Panel(
        f"{name_text(family)}: {title}",
        draw(plot),
        "; ".join(_note(row, curve, len(curves) > 1) for row, curve in curves),
    )


def _finding(curve: ResilienceJson, row: GroupRow | None) -> str:
    of = "" if row is None else f"{method_name(row)} "
    if curve.tested_up_to is None:
        return f"{of}has too few episodes to tell"
    if curve.dependable is None:
        return f"{of}not kept even at its lowest tested level"
    if curve.dependable >= 1:
        return f"{of}kept at all stress"
    above = f"; {NOT_TESTED_ABOVE}" if curve.dependable >= curve.tested_up_to else ""
    upto = f"up to {stress_text(curve.dependable)}" if curve.dependable else "without stress"
    return f"{of}kept {upto}{above}"


def _range(curves: list[tuple[GroupRow, ResilienceJson]]) -> str:
    known = [curve.dependable or 0.0 for _, curve in curves if curve.tested_up_to is not None]
    if not known:
        return "too few episodes to tell"
    return f"dependable is {stress_text(min(known))} of the weakest method, {stress_text(max(known))} of the strongest"


def _note(row: GroupRow, curve: ResilienceJson, several: bool) -> str:
    parts = [f"{method_name(row)}: dependable {dependable_text(curve)}"]
    parts.append(f"λ* {capacity_text(curve.capacity, curve.capacity_flag)}")
    if row.capacity_interval is not None:
        parts.append(f"interval {row.capacity_interval.low:g} to {row.capacity_interval.high:g}")
    if curve.first_breach is not None:
        parts.append(f"first breach {stress_text(curve.first_breach)}")
    if row.audc is not None:
        parts.append(f"AUDC {row.audc.value:.2f} over λ {row.audc_from:g} to {row.audc_to:g}")
    if row.cliff is not None:
        parts.append(f"cliff at {row.cliff:g}")
    if several:
        parts.append(counts_text([(margin.stress, margin.episodes) for margin in curve.margins if margin.episodes]))
    return ", ".join(parts)


def _curve(axes: Axes, number: int, row: GroupRow, curve: ResilienceJson) -> None:
    style = series_style(number)
    known = [(level, level.margin) for level in curve.margins if level.margin is not None]
    axes.plot([lv.stress for lv, _ in known], [m for _, m in known], color=style["color"], label=method_name(row))
    for level, margin in known:
        (mark,) = axes.plot(
            [level.stress],
            [margin],
            **style,
            markersize=7,
            markeredgewidth=1.6,
            markerfacecolor=SURFACE if level.state == "insufficient" else style["color"],
            markerfacecoloralt=SURFACE,
            fillstyle="bottom" if level.state == "undecided" else "full",
        )
        said = f"{method_name(row)}, λ {stress_text(level.stress)}: M {margin:.3g}, {level.state}, n = {level.episodes}"
        tell(mark, [f"{said}; broke the contract: {violation_text(level)}"])


def _capacity(axes: Axes, number: int, row: GroupRow, curve: ResilienceJson, height: float) -> None:
    colour = SERIES[number % len(SERIES)]
    if curve.dependable is not None:
        axes.axvline(curve.dependable, color=colour, linewidth=1.4, linestyle=(0, (4, 3)))
    interval = row.capacity_interval
    if interval is not None:
        axes.plot([interval.low, interval.high], [height] * 2, color=colour, linewidth=5, solid_capstyle="round")


def signature_section(numbers: ReportNumbers) -> PlotSection:
    """A panel for each method and version: the mean over its families, and the families themselves."""
    means = [row for row in numbers.signatures if row.family == ALL_FAMILIES]
    panels, missing = [], []
    for mean in means[:MOST_PANELS]:
        families = [
            row
            for row in numbers.signatures
            if (row.method, row.version) == (mean.method, mean.version) and row.family != ALL_FAMILIES
        ]
        unknown = [AXES[name][0] for name in AXES if getattr(mean, name) is None]
        if len(AXES) - len(unknown) >= _LEAST_AXES:
            panels.append(_signature_panel(mean, families, unknown))
        else:
            missing.append(f"{method_name(mean)}: unknown are {', '.join(unknown)}; they take disturbed episodes.")
    if len(means) > MOST_PANELS:
        missing.append(f"Shown are the first {MOST_PANELS} methods of {len(means)}; the tables hold all.")
    return PlotSection(
        "What is each method good at?",
        "The outer ring (1) is the best there is, the centre (0) the worst; the filled shape is the mean over the "
        "families, thin lines are the families. The scales do not depend on what is compared.",
        panels,
        missing,
        list(AXES.values()),
    )


def _signature_panel(mean: SignatureRow, families: list[SignatureRow], unknown: list[str]) -> Panel:
    def plot(axes: Axes) -> None:
        angles = [2 * math.pi * number / len(AXES) for number in range(len(AXES))]
        axes.set_theta_zero_location("N")  # type: ignore[attr-defined]
        axes.set_theta_direction(-1)  # type: ignore[attr-defined]
        if len(families) > 1:
            for number, row in enumerate(families[:MOST_SERIES]):
                _outline(axes, angles, row, label=name_text(row.family, 24), linewidth=1.1, **series_style(number))
        _outline(axes, angles, mean, label="mean", linewidth=2.4, color=INK, marker="")
        known = [(a, s) for a, s in zip(angles, mean.scores(), strict=True) if s is not None]
        axes.fill([a for a, _ in known], [s for _, s in known], color=SERIES[5], alpha=0.25)
        labels = [
            f"{label.replace(' ', chr(10))}\n{'unknown' if score is None else format(score, '.2f')}"
            for (label, _), score in zip(AXES.values(), mean.scores(), strict=True)
        ]
        axes.set_xticks(angles, labels)
        axes.tick_params(axis="x", pad=4)
        for angle, label in zip(angles, axes.get_xticklabels(), strict=True):
            side = math.sin(angle)
            label.set_horizontalalignment("center" if abs(side) < 0.1 else "left" if side > 0 else "right")
        axes.set_ylim(0, 1)
        axes.set_yticks([0.25, 0.5, 0.75, 1.0], [""] * 4)
        if len(families) > 1:
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3)

    counted = f"n = {mean.disturbed} disturbed and {mean.clean} clean episodes."
    note = f"{counted} Numbers are the mean's scores." + (f" Unknown: {', '.join(unknown)}." if unknown else "")
    if len(families) > MOST_SERIES:
        note += f" Lines are drawn for {MOST_SERIES} families of {len(families)}."
    return Panel(method_name(mean), draw(plot, height=3.3 if len(families) > 1 else 2.9, polar=True), note)


def _outline(axes: Axes, angles: list[float], row: SignatureRow, **style: object) -> None:
    known = [(angle, score) for angle, score in zip(angles, row.scores(), strict=True) if score is not None]
    closed = [*known, *known[:1]]
    (line,) = axes.plot([a for a, _ in closed], [s for _, s in closed], markersize=3.5, **style)  # type: ignore[arg-type]
    if style.get("marker"):
        names = [label for (label, _), score in zip(AXES.values(), row.scores(), strict=True) if score is not None]
        of = f"{name_text(row.family)}, n = {row.disturbed} disturbed"
        tell(line, [f"{of}: {name} {score:.2f}" for name, (_, score) in zip([*names, *names[:1]], closed, strict=True)])
