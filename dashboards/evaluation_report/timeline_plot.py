"""Rebound windows on a timeline: an episode a row, its windows coloured by what raised the alarm."""

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
)
from springback.dashboards.evaluation_report.report_display import Chosen, count_text, own
from springback.dashboards.evaluation_report.report_numbers import ReportNumbers, Timeline, TimelineEpisode
from springback.stream_processors.metrics.figure_words import stress_text

_COLOURS = {"effort": SERIES[0], "delay": SERIES[1], "effort+delay": SERIES[3]}
_HATCHES = {"effort": "", "delay": "", "effort+delay": "////"}


def timeline_section(numbers: ReportNumbers, chosen: Chosen) -> PlotSection:
    """A panel for each group."""
    panels, missing = [], list(chosen.left_out)
    for row in chosen.groups:
        (lines,) = own(numbers.timelines, row)
        if lines.rows:
            panels.append(_panel(chosen.name(row), lines))
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


def _panel(name: str, lines: Timeline) -> Panel:
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
    heights: dict[str, list[int]] = {}
    for height, row in enumerate(rows):
        heights.setdefault(stress_text(None if row.stress is None else round(row.stress, 2)), []).append(height)
    return [sum(own_heights) / len(own_heights) for own_heights in heights.values()], list(heights)


def _legend() -> list[Patch | Line2D]:
    causes = [("effort", "effort"), ("delay", "delay"), ("effort+delay", "both")]
    patches: list[Patch | Line2D] = [
        Patch(facecolor=_COLOURS[cause], hatch=_HATCHES[cause], edgecolor=SURFACE, label=label)
        for cause, label in causes
    ]
    return [*patches, Line2D([], [], marker="x", color=MUTED, linestyle="", label="no success")]
