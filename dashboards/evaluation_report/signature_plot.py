"""The signature of each method as a radar: the further out, the better."""

import math

from matplotlib.axes import Axes
from springback.dashboards.evaluation_report.method_signature import ALL_FAMILIES, AXES, SignatureRow
from springback.dashboards.evaluation_report.plot_style import INK, SERIES, Panel, PlotSection, draw, series_style
from springback.dashboards.evaluation_report.readable_text import name_text
from springback.dashboards.evaluation_report.report_numbers import ReportNumbers
from springback.dashboards.evaluation_report.report_selection import MOST_PANELS, MOST_SERIES, method_name

_LEAST_AXES = 3


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
            panels.append(_panel(mean, families, unknown))
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


def _panel(mean: SignatureRow, families: list[SignatureRow], unknown: list[str]) -> Panel:
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

    note = "Numbers are the mean's scores." + (f" Unknown: {', '.join(unknown)}." if unknown else "")
    if len(families) > MOST_SERIES:
        note += f" Lines are drawn for {MOST_SERIES} families of {len(families)}."
    return Panel(method_name(mean), draw(plot, height=3.3 if len(families) > 1 else 2.9, polar=True), note)


def _outline(axes: Axes, angles: list[float], row: SignatureRow, **style: object) -> None:
    known = [(angle, score) for angle, score in zip(angles, row.scores(), strict=True) if score is not None]
    closed = [*known, *known[:1]]
    axes.plot([a for a, _ in closed], [s for _, s in closed], markersize=3.5, **style)  # type: ignore[arg-type]
