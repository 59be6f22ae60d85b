"""The tables of the page. No row holds both clean and disturbed episodes, and each says how many it is of."""

from collections.abc import Callable, Sequence
from html import escape

from springback.dashboards.evaluation_report.group_rows import GroupRow, RunFigures, StressRow
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
from springback.dashboards.evaluation_report.report_origin import ContractRow
from springback.stream_processors.metrics.figure_words import (
    capacity_text,
    dependable_text,
    learning_text,
    stress_text,
    violation_text,
    within_noise,
)
from springback.stream_processors.metrics.glossary import WITHIN_NOISE
from springback.stream_processors.offline.resampling import Interval
from springback.stream_processors.offline.significance import RankCorrelation, TaskComparison
from springback.stream_processors.offline.tables import ResilienceJson

_NAMES = (0, 1)
NO_ATTACK = "none"
_ALL_ATTACKS = "all"
_PARTS = ("progress", "propositions", "recovery", "stability", "safety")
_PART_WORDS = {
    "progress": "final progress, at least",
    "propositions": "goal propositions, at least",
    "recovery": "recovery cost C_rec, at most",
    "stability": "stability loss, at most",
    "safety": "violations, at most",
}
_FIGURES = ("success", "C_rec mean", "C_rec median", "stability loss", "lost cycles", "windows", "window steps")


def outcome_table(rows: Sequence[RunFigures]) -> str:
    """A row for each family, method, version and way that its episodes ran."""
    headings = ("family", "method", "run", "episodes", *_FIGURES, "broke the contract")
    cells = [[*_names(row), row.run, *_figures(row)] for row in rows]
    return sheet(headings, cells, "Outcome and cost, clean and disturbed", texts=(0, 1, 2))


def stress_table(rows: Sequence[StressRow]) -> str:
    """The same by stress."""
    headings = ("family", "method", "λ", "run", "episodes", *_FIGURES, "broke the contract")
    cells = [[*_names(row), stress_text(row.stress), row.run, *_figures(row)] for row in rows]
    return sheet(headings, cells, "By family, method and stress", texts=(0, 1, 3))


def comparison_table(rows: Sequence[GroupRow]) -> str:
    """A row for each family, method and version: its disturbed against its clean episodes, and cost against stress."""
    headings = (
        *("family", "method", "n clean", "n disturbed", "C_rec clean", "C_rec disturbed"),
        *("p, clean against disturbed", "ρ with stress"),  # noqa: RUF001
    )
    cells = [
        [
            *_names(row),
            str(row.clean),
            str(row.disturbed),
            _interval(row.clean_cost_mean, figure_text),
            _interval(row.disturbed_cost_mean, figure_text),
            _comparison(row.comparison),
            _correlations(row.correlation, row.level_correlation),
        ]
        for row in rows
    ]
    return sheet(headings, cells, "Disturbed against clean")


def capacity_table(numbers: ReportNumbers) -> str:
    """A row for each family, method and version: what it withstands, and of how many episodes and pairs."""
    headings = ("family", "method", "episodes", "dependable", "λ*", "first breach", "AUDC", "cliff")
    more = ("pairs", "β", "β 95 %", "β unpaired", "contract")
    cells = []
    for row in numbers.groups:
        known = own(numbers.evaluation.resilience, row)
        cells.append([*_names(row), *(_withstands(row, known[0]) if known else [str(row.episodes), *[NO_VALUE] * 10])])
    return sheet([*headings, *more], cells, "What families withstand")


def level_table(resilience: Sequence[ResilienceJson]) -> str:
    """A row for each stress level that has episodes: what it shows, and the entries of its margin."""
    headings = ("family", "method", "λ", "n", "state", "M", "M⁺", *_PARTS, "broke the contract")
    cells = [
        [
            *_names(row),
            stress_text(stress),
            str(level.episodes) + _small(f"{level.provisional} provisional" if level.provisional else ""),
            marked(level.state, bad=level.state == "broken"),
            _signed(level.margin),
            _signed(level.favourable_margin),
            *(_entry(getattr(level, part)) for part in _PARTS),
            violation_text(level),
        ]
        for row in resilience
        for stress, level in row.levels
        if level.judged
    ]
    return sheet(headings, cells, "What each stress level shows", texts=(0, 1, 4))


def contract_table(rows: Sequence[ContractRow]) -> str:
    """A row for each part of each family's contract: what was asked, what it came to, and on what evidence."""
    headings = ("family", "an episode's", "asked", "held to", "found from", "clean episodes behind it")
    cells = [
        [
            escape(name_text(row.family)),
            _PART_WORDS[row.part],
            "auto" if row.asked is None else figure_text(row.asked),
            "unmeasured, left out" if row.threshold is None else figure_text(row.threshold),
            escape(_found_from(row)),
            str(row.references),
        ]
        for row in rows
    ]
    return sheet(headings, cells, "The contract, and what its thresholds rest on", texts=(0, 1, 4))


def breach_table(rows: Sequence[RunFigures]) -> str:
    """A row for each family, method, version and way that its episodes ran: which parts of the contract they broke."""
    headings = ("family", "method", "run", "judged", "broke it", *_PARTS)
    cells = [
        [
            *_names(row),
            row.run,
            str(row.contract_held_to),
            _count(row.contract_broken),
            *(_count(getattr(row, f"broken_{part}")) for part in _PARTS),
        ]
        for row in rows
    ]
    return sheet(headings, cells, "Which parts of the contract were broken", texts=(0, 1, 2))


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
        if s.episodes and kind != _ALL_ATTACKS
    ]
    headings = ("family", "method", "attack", "episodes", "SR", "SPL", "SEL", "goal completion")
    return sheet(headings, rows, "Navigation by attack", texts=(0, 1, 2)) if rows else ""


def attacked(resilience: Sequence[ResilienceJson]) -> bool:
    """Whether any episode that said how it navigated was under attack."""
    kinds = {kind for row in resilience for kind, scores in row.navigation.items() if scores.episodes}
    return bool(kinds - {NO_ATTACK, _ALL_ATTACKS})


def sheet(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    label: str,
    *,
    texts: Sequence[int] = _NAMES,
    page: int | None = None,
    plain_last: bool = False,
) -> str:
    """A table that its reader may sort, where scripts run, and that scrolls by itself where it is too wide.

    Args:
        headings: HTML.
        rows: cells that are HTML already; the first one heads its row.
        label: what it holds, as plain text.
        texts: which columns hold words, from 0.
        page: rows shown at a time, where scripts run; all if None.
        plain_last: whether the last column is a drawing, which nothing can be sorted by.
    """
    last = len(headings) - 1
    head = "".join(
        f"<th{_name(place, texts)}{' data-drawing' if plain_last and place == last else ''} scope=col>{heading}</th>"
        for place, heading in enumerate(headings)
    )
    body = "\n".join(f"<tr>{''.join(_cell(place, cell, texts) for place, cell in enumerate(row))}</tr>" for row in rows)
    pages = "" if page is None else f' data-page="{page}"'
    table = f"<table{pages}>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
    tall = " tall" if page is not None else ""
    return f'<div class="sheet{tall}" tabindex="0" role="region" aria-label="{escape(label)}">{table}</div>'


def marked(text: str, *, bad: bool) -> str:
    """HTML that says `text`, in the colour of what is bad where it is."""
    return f'<span class="bad">{escape(text)}</span>' if bad else escape(text)


def _cell(place: int, cell: str, texts: Sequence[int]) -> str:
    return f"<th{_name(0, texts)} scope=row>{cell}</th>" if place == 0 else f"<td{_name(place, texts)}>{cell}</td>"


def _name(place: int, texts: Sequence[int]) -> str:
    return ' class="name"' if place in texts else ""


def _names(row: GroupRow | RunFigures | ResilienceJson) -> list[str]:
    return [
        escape(name_text(row.family)),
        f"{escape(name_text(row.method))}<small>{escape(name_text(row.version))}</small>",
    ]


def _figures(row: RunFigures) -> list[str]:
    apart = ((row.censored, "censored"), (row.provisional, "provisional"), (row.unscored, "unscored"))
    told = [count_text(row.tasks, "task"), *(f"{count} {what}" for count, what in apart if count)]
    return [
        f"{row.episodes}{_small(', '.join(told))}",
        _interval(row.success_rate, share_text),
        _interval(row.recovery_cost_mean, figure_text),
        _interval(row.recovery_cost_median, figure_text),
        _interval(row.stability_loss_mean, figure_text),
        figure_text(row.lost_cycles_mean),
        str(row.windows),
        figure_text(row.window_length_mean),
        f"{row.contract_broken} of {row.contract_held_to}" if row.contract_held_to else NO_VALUE,
    ]


def _withstands(row: GroupRow, known: ResilienceJson) -> list[str]:
    learning = learning_text(known.bound_references, known.bound_references_needed)
    apart = [f"{row.provisional} provisional"] if row.provisional else []
    violated = {True: marked("violated", bad=True), False: "not violated", None: "not known"}
    return [
        str(row.episodes) + _small("; ".join([*apart, *([learning] if learning else [])])),
        _bounded(dependable_text(known)),
        _capacity(row, known),
        figure_text(known.first_breach),
        _area(row),
        figure_text(row.cliff),
        str(known.pairs),
        figure_text(known.beta) + _small(WITHIN_NOISE if within_noise(known) else ""),
        *map(figure_text, (known.beta_p95, known.beta_unpaired)),
        violated[known.contract_violated],
    ]


def _signed(margin: float | None) -> str:
    return marked(figure_text(margin), bad=margin is not None and margin < 0)


def _entry(ratio: float | None) -> str:
    return "unmeasured" if ratio is None else marked(f"{ratio:.2f}", bad=ratio < 1)


def _count(count: int) -> str:
    return marked(str(count), bad=count > 0)


def _found_from(row: ContractRow) -> str:
    if row.asked is not None:
        return "the settings"
    if row.usual is None:
        return "nothing yet: no clean episode has measured it" if row.threshold is None else "the most that auto asks"
    bounds = f"at least {row.least:g}" if row.most is None else f"from {row.least:g} to {row.most:g}"
    return f"{row.factor:g} × {row.usual:.3g}, the {row.rank:g} quantile of clean episodes, {bounds}"  # noqa: RUF001


def _comparison(found: TaskComparison | None) -> str:
    """The p to go by, and beside it what it is over and the other test's; all Holm-corrected."""
    if found is None or found.p is None:
        return NO_VALUE
    if not found.paired:
        return f"{p_text(found.p)}<small class=long>Mann–Whitney; {count_text(found.paired_tasks, 'pair')}</small>"  # noqa: RUF001
    ranks = "" if found.unpaired_p_holm is None else f"; Mann–Whitney {p_text(found.unpaired_p_holm)}"  # noqa: RUF001
    return f"{p_text(found.p)}<small class=long>Wilcoxon, {count_text(found.paired_tasks, 'pair')}{ranks}</small>"


def _correlations(episodes: RankCorrelation | None, levels: RankCorrelation | None) -> str:
    if episodes is None:
        return NO_VALUE
    interval = "" if episodes.low is None or episodes.high is None else f"{episodes.low:.2f} to {episodes.high:.2f}, "
    said = f"{episodes.rho:.2f}<small class=long>{interval}over {count_text(episodes.points, 'episode')}</small>"
    if levels is not None and levels.p_holm is not None:
        said += f"<small class=long>{levels.rho:.2f} over {levels.points} level means, {p_text(levels.p_holm)}</small>"
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
    return marked(shown, bad=shown == "none") + _small(above)


def _small(text: str) -> str:
    return f"<small>{escape(text)}</small>" if text else ""


def _interval(interval: Interval | None, text: Callable[[float | None], str]) -> str:
    if interval is None:
        return NO_VALUE
    if interval.low is None or interval.high is None:
        return text(interval.value)
    return f"{text(interval.value)}<small>{text(interval.low)} to {text(interval.high)}</small>"
