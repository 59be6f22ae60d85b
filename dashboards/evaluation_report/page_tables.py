"""The tables of the page."""

from collections.abc import Callable, Sequence
from html import escape

from springback.dashboards.evaluation_report.group_rows import GroupRow, StressRow
from springback.dashboards.evaluation_report.report_display import (
    NO_VALUE,
    count_text,
    figure_text,
    name_text,
    own,
    p_text,
    share_text,
)
from springback.dashboards.evaluation_report.report_numbers import ReportNumbers
from springback.stream_processors.metrics.figure_words import (
    capacity_text,
    dependable_text,
    learning_text,
    stress_text,
    violations_of,
    within_noise,
)
from springback.stream_processors.metrics.glossary import WITHIN_NOISE
from springback.stream_processors.offline.resampling import Interval
from springback.stream_processors.offline.significance import RankCorrelation, TaskComparison
from springback.stream_processors.offline.tables import ResilienceJson

_NAMES = 2


def summary_table(numbers: ReportNumbers) -> str:
    """A row for each family, method and version."""
    headings = (
        "family",
        "method",
        "episodes",
        "success",
        "C_rec clean",
        "C_rec disturbed",
        "p, clean against disturbed",
    )
    capacity = ("ρ with stress", "dependable", "λ*", "first breach", "AUDC", "cliff")  # noqa: RUF001
    more = (*capacity, "β", "β 95 %", "β unpaired", "contract broken")
    rows = []
    for row in numbers.groups:
        known = own(numbers.evaluation.resilience, row)
        rows.append([*_names(row), *_summary(row, known[0] if known else None)])
    return _table([*headings, *more], rows)


def stress_table(rows: Sequence[StressRow]) -> str:
    """A row for each family, method, version and stress."""
    headings = ("family", "method", "λ", "episodes", "success", "C_rec mean", "C_rec median")
    more = ("stability loss ℓ", "lost cycles", "window steps", "M_f", "broke the contract")  # noqa: RUF001
    return _table([*headings, *more], [[*_names(row), *_stress(row)] for row in rows])


def navigation_table(resilience: Sequence[ResilienceJson]) -> str:
    """A row for each family, method, version and kind of attack; empty where no episode said how it navigated."""
    rows = [
        [
            *_names(row),
            escape(name_text(kind)),
            str(s.episodes),
            share_text(s.success_rate),
            figure_text(s.spl),
            figure_text(s.sel),
            share_text(s.goal_completion),
        ]
        for row in resilience
        for kind, s in row.navigation.items()
        if s.episodes
    ]
    headings = ("family", "method", "attack", "episodes", "SR", "SPL", "SEL", "goal completion")
    return _table(headings, rows) if rows else ""


def _names(row: GroupRow | StressRow | ResilienceJson) -> list[str]:
    return [
        escape(name_text(row.family)),
        f"{escape(name_text(row.method))}<small>{escape(name_text(row.version))}</small>",
    ]


def _summary(row: GroupRow, known: ResilienceJson | None) -> list[str]:
    learning = None if known is None else learning_text(known.bound_references, known.bound_references_needed)
    apart = [f"{row.provisional} provisional"] if row.provisional else []
    cells = [
        str(row.episodes) + _small("; ".join([*apart, *([learning] if learning else [])])),
        share_text(None if known is None else known.success_rate),
        _interval(row.clean_cost_mean, figure_text, f"n = {row.clean}"),
        _interval(row.disturbed_cost_mean, figure_text, f"n = {row.disturbed}"),
        _comparison(row.comparison),
        _correlations(row.correlation, row.level_correlation),
    ]
    if known is None:
        return [*cells, *[NO_VALUE] * 10]
    return [
        *cells,
        _bounded(dependable_text(known)),
        _capacity(row, known),
        figure_text(known.first_breach),
        _area(row),
        figure_text(row.cliff),
        figure_text(known.beta) + _small(WITHIN_NOISE if within_noise(known) else ""),
        *map(figure_text, (known.beta_p95, known.beta_unpaired)),
        f"{row.contract_broken} of {row.contract_held_to}" if row.contract_held_to else NO_VALUE,
    ]


def _comparison(found: TaskComparison | None) -> str:
    """The p to go by, and beside it what it is over and the other test's; all Holm-corrected."""
    if found is None or found.p is None:
        return NO_VALUE
    if not found.paired:
        return f"{p_text(found.p)}<small>Mann–Whitney; {count_text(found.paired_tasks, 'pair')}</small>"  # noqa: RUF001
    ranks = "" if found.unpaired_p_holm is None else f"; Mann–Whitney {p_text(found.unpaired_p_holm)}"  # noqa: RUF001
    return f"{p_text(found.p)}<small>Wilcoxon, {count_text(found.paired_tasks, 'pair')}{ranks}</small>"


def _correlations(episodes: RankCorrelation | None, levels: RankCorrelation | None) -> str:
    if episodes is None:
        return NO_VALUE
    interval = "" if episodes.low is None or episodes.high is None else f"{episodes.low:.2f} to {episodes.high:.2f}, "
    said = f"{episodes.rho:.2f}<small>{interval}over {count_text(episodes.points, 'episode')}</small>"
    if levels is not None and levels.p_holm is not None:
        said += f"<small>{levels.rho:.2f} over {levels.points} level means, {p_text(levels.p_holm)}</small>"
    return said


def _area(row: GroupRow) -> str:
    if row.audc is None:
        return NO_VALUE
    return f"{_interval(row.audc, figure_text)}<small>over λ {row.audc_from:g} to {row.audc_to:g}</small>"


def _capacity(row: GroupRow, known: ResilienceJson) -> str:
    text = _bounded(capacity_text(known.capacity, known.capacity_flag))
    found = row.capacity_interval
    return text if found is None else text + _small(f"{stress_text(found.low)} to {stress_text(found.high)}")


def _bounded(text: str) -> str:
    """A capacity, and below it that nothing above was tested."""
    shown, _, above = text.partition("; ")
    return (f'<span class="bad">{shown}</span>' if shown == "none" else shown) + _small(above)


def _small(text: str) -> str:
    return f"<small>{escape(text)}</small>" if text else ""


def _stress(row: StressRow) -> list[str]:
    apart = ((row.censored, "censored"), (row.provisional, "provisional"), (row.unscored, "unscored"))
    left_out = [f"{count} {what}" for count, what in apart if count]
    margin = figure_text(row.margin)
    if row.margin is not None:
        margin = f'<span class="bad">{margin}</span>' if row.state == "broken" else margin
        margin += f"<small>{row.state}</small>"
    return [
        stress_text(row.stress),
        f"{row.episodes}" + (f"<small>{', '.join(left_out)}</small>" if left_out else ""),
        _interval(row.success_rate, share_text),
        _interval(row.recovery_cost_mean, figure_text),
        _interval(row.recovery_cost_median, figure_text),
        _interval(row.stability_loss_mean, figure_text),
        figure_text(row.lost_cycles_mean),
        figure_text(row.window_length_mean),
        margin,
        _violations(row),
    ]


def _violations(row: StressRow) -> str:
    provisional = row.judged - row.counted
    told = violations_of(row.violations, row.judged, row.violation_low, row.violation_high, provisional)
    return told if row.judged else NO_VALUE


def _interval(interval: Interval | None, text: Callable[[float | None], str], otherwise: str = "") -> str:
    if interval is None:
        return NO_VALUE
    if interval.low is None or interval.high is None:
        return text(interval.value) + (f"<small>{otherwise}</small>" if otherwise else "")
    return f"{text(interval.value)}<small>{text(interval.low)} to {text(interval.high)}</small>"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are HTML already; the first ones are names, and the very first heads its row."""
    head = "".join(f"<th{_name(place)} scope=col>{heading}</th>" for place, heading in enumerate(headings))
    body = "\n".join(f"<tr>{''.join(_cell(place, cell) for place, cell in enumerate(row))}</tr>" for row in rows)
    table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
    return f'<div class="sheet" tabindex="0">{table}</div>'


def _cell(place: int, cell: str) -> str:
    return f"<th{_name(0)} scope=row>{cell}</th>" if place == 0 else f"<td{_name(place)}>{cell}</td>"


def _name(place: int) -> str:
    return ' class="name"' if place < _NAMES else ""
