"""The signature of each method as a radar: the further out, the better.

Rebound windows on a timeline: an episode a row, its windows coloured by what raised the alarm.
"""

import math

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from springback.dashboards.evaluation_report.plot_style import (
    GRID,
    INK,
    MUTED,
    SERIES,
    SURFACE,
    Panel,
    PlotSection,
    draw,
    series_style,
)
from springback.dashboards.evaluation_report.report_numbers import (
    ALL_FAMILIES,
    AXES,
    ReportNumbers,
    SignatureRow,
    Timeline,
    TimelineEpisode,
)
from springback.dashboards.evaluation_report.report_selection import (
    MOST_PANELS,
    MOST_SERIES,
    Chosen,
    count_text,
    method_name,
    name_text,
    own,
)

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

    note = "Numbers are the mean's scores." + (f" Unknown: {', '.join(unknown)}." if unknown else "")
    if len(families) > MOST_SERIES:
        note += f" Lines are drawn for {MOST_SERIES} families of {len(families)}."
    return Panel(method_name(mean), draw(plot, height=3.3 if len(families) > 1 else 2.9, polar=True), note)


def _outline(axes: Axes, angles: list[float], row: SignatureRow, **style: object) -> None:
    known = [(angle, score) for angle, score in zip(angles, row.scores(), strict=True) if score is not None]
    closed = [*known, *known[:1]]
    axes.plot([a for a, _ in closed], [s for _, s in closed], markersize=3.5, **style)  # type: ignore[arg-type]


_COLOURS = {"effort": SERIES[0], "delay": SERIES[1], "effort+delay": SERIES[3]}
_HATCHES = {"effort": "", "delay": "", "effort+delay": "////"}


def timeline_section(numbers: ReportNumbers, chosen: Chosen) -> PlotSection:
    """A panel for each group."""
    panels, missing = [], list(chosen.left_out)
    for row in chosen.groups:
        (lines,) = own(numbers.timelines, row)
        if lines.rows:
            panels.append(_timeline_panel(chosen.name(row), lines))
        else:
            missing.append(f"{chosen.name(row)}: no rebound window in {count_text(lines.episodes, 'episode')}.")
    return PlotSection(
        "When were agents out of their normal course?",
        "Each line is an episode from its first step to its last, the calmest stress on top; bars are rebound windows, "
        "from departure to re-entry. An effort alarm means steps that took more than is normal; a delay alarm, cycles "
        "that brought the task no nearer. A cross at the end is an episode that did not succeed.",
        panels,
        missing,
    )


def _timeline_panel(name: str, lines: Timeline) -> Panel:
    def plot(axes: Axes) -> None:
        for height, row in enumerate(lines.rows):
            _row(axes, height, row)
        axes.set_ylim(len(lines.rows) - 0.4, -0.6)
        axes.set_yticks(*_stress_ticks(lines.rows))
        axes.set_ylabel("stress λ of the episode")
        axes.set_xlim(0, max(row.steps for row in lines.rows) * 1.03)
        axes.set_xlabel("step")
        axes.grid(visible=False, axis="y")
        axes.legend(handles=_legend(), loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=4, columnspacing=1.0)

    shown = len(lines.rows)
    note = "" if shown == lines.with_windows else f"{shown} of these are shown, spread evenly over stress."
    title = f"{name}: windows in {lines.with_windows} of {count_text(lines.episodes, 'episode')}"
    return Panel(title, draw(plot, height=1.3 + 0.13 * max(shown, 4)), note)


def _row(axes: Axes, height: int, row: TimelineEpisode) -> None:
    axes.plot([0, row.steps], [height, height], color=GRID, linewidth=2.4, solid_capstyle="butt", zorder=1)
    for window in row.windows:
        axes.barh(
            height,
            window.reentry_step + 1 - window.departure_step,
            left=window.departure_step,
            height=0.72,
            color=_COLOURS[window.cause],
            hatch=_HATCHES[window.cause],
            edgecolor=SURFACE,
            linewidth=0.6,
        )
    if row.outcome != "success":
        axes.plot([row.steps], [height], "x", color=INK, markersize=5, markeredgewidth=1.4)


def _stress_ticks(rows: list[TimelineEpisode]) -> tuple[list[float], list[str]]:
    """A label for each stress, at the middle of its rows."""
    heights: dict[float, list[int]] = {}
    for height, row in enumerate(rows):
        heights.setdefault(round(row.stress, 2), []).append(height)
    return [sum(own_heights) / len(own_heights) for own_heights in heights.values()], [f"{s:g}" for s in heights]


def _legend() -> list[Patch | Line2D]:
    causes = [("effort", "effort"), ("delay", "delay"), ("effort+delay", "both")]
    patches: list[Patch | Line2D] = [
        Patch(facecolor=_COLOURS[cause], hatch=_HATCHES[cause], edgecolor=SURFACE, label=label)
        for cause, label in causes
    ]
    return [*patches, Line2D([], [], marker="x", color=MUTED, linestyle="", label="no success")]
