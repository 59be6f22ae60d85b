"""Rebound windows on a timeline: an episode a row, all that had a window, its windows drawn by what raised the alarm.

An effort alarm is a bar in the upper half of its line, a delay alarm one in the lower half, both fill it: so they are
told apart without colours too. Where scripts run, a page of them is shown at a time.
"""

from html import escape

from springback.dashboards.evaluation_report.page_tables import marked, sheet
from springback.dashboards.evaluation_report.report_display import (
    Chosen,
    count_text,
    figure_text,
    name_text,
    time_text,
)
from springback.dashboards.evaluation_report.report_numbers import (
    ReportNumbers,
    Timeline,
    TimelineEpisode,
    TimelineWindow,
)
from springback.stream_processors.metrics.figure_words import stress_text

HEADING = "When were agents out of their normal course?"
ROWS_OF_A_PAGE = 25
MOST_ROWS = 20_000
"""Beyond so many lines a page would be too much for a browser; the tables hold all."""
_HEIGHT = 10
_CAUSES = {"effort": ("effort", 1, 4), "delay": ("delay", 5, 4), "effort+delay": ("both", 1, 8)}
"""The class of a window's bar, its top and its height, by cause."""
_LEGEND = "".join(
    f'<li><svg class="key" viewBox="0 0 16 {_HEIGHT}" aria-hidden="true">'
    f'<rect class="course" x="0" y="4.5" width="16" height="1"/>'
    f'<rect class="{kind}" x="3" y="{top}" width="10" height="{height}"/></svg> {said}</li>'
    for (kind, top, height), said in zip(
        _CAUSES.values(),
        (
            "effort: steps that took more than is normal",
            "delay: cycles that brought the task no nearer",
            "both alarms",
        ),
        strict=True,
    )
)


def timeline_tables(numbers: ReportNumbers, chosen: Chosen) -> str:
    """A table for each group."""
    parts = [
        f'<h2 id="timelines">{HEADING}</h2>',
        '<p class="quiet">Each line is an episode from its first step to its last; bars are rebound windows, from '
        "departure to re-entry. Shown are all episodes that had a window.</p>",
        f'<ul class="legend quiet">{_LEGEND}</ul>',
    ]
    left = MOST_ROWS
    for lines in numbers.timelines:
        name = chosen.name(lines)
        of = count_text(lines.episodes, "episode")
        if not lines.rows:
            parts.append(f"<p>{escape(name)}: no rebound window in {of}.</p>")
            continue
        shown, left = lines.rows[:left], left - len(lines.rows[:left])
        parts.append(f"<h3>{escape(name)}: windows in {lines.with_windows} of {of}</h3>")
        if len(shown) < len(lines.rows):
            parts.append(f"<p>Shown are {len(shown)} of them, the calmest first; windows.csv has all.</p>")
        if shown:
            parts.append(_table(name, lines, shown))
    if not numbers.timelines:
        parts.append("<p>Nothing to draw: there is no episode.</p>")
    return "\n".join(parts)


def _table(name: str, lines: Timeline, shown: list[TimelineEpisode]) -> str:
    longest = max(row.steps for row in lines.rows)
    scale = "".join(f"<span>{round(longest * part / 4)}</span>" for part in range(5))
    headings = ("episode", "agent", "λ", "run", "began (UTC)", "outcome", "steps", "C_rec")
    bars = f'<span class="scale" aria-hidden="true">{scale}</span>'
    rows = [
        [
            escape(name_text(row.episode)),
            escape(name_text(row.agent)),
            stress_text(None if row.stress is None else round(row.stress, 2)),
            row.run,
            time_text(row.started_s).removesuffix(" UTC"),
            marked(row.outcome, bad=row.outcome != "success"),
            str(row.steps),
            figure_text(row.recovery_cost),
            _line(row, longest),
        ]
        for row in shown
    ]
    label = f"Rebound windows of {name}"
    return sheet(
        [*headings, f"windows by step{bars}"], rows, label, texts=(0, 1, 3, 4, 5), page=ROWS_OF_A_PAGE, plain_last=True
    )


def _line(row: TimelineEpisode, longest: int) -> str:
    bars = "".join(_bar(window) for window in row.windows)
    course = f'<rect class="course" x="0" y="4.5" width="{row.steps}" height="1"/>'
    said = "; ".join(_told(window) for window in row.windows)
    return (
        f'<svg class="line" viewBox="0 0 {longest} {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(said)}">{course}{bars}</svg>'
    )


def _bar(window: TimelineWindow) -> str:
    kind, top, height = _CAUSES[window.cause]
    width = window.reentry_step + 1 - window.departure_step
    return (
        f'<rect class="{kind}" x="{window.departure_step}" y="{top}" width="{width}" height="{height}">'
        f"<title>{escape(_told(window))}</title></rect>"
    )


def _told(window: TimelineWindow) -> str:
    return (
        f"{window.cause}, steps {window.departure_step} to {window.reentry_step}, {window.state}: "
        f"C_rec {figure_text(window.recovery_cost)}, lost cycles {figure_text(window.lost_cycles)}"
    )
