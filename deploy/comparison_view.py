"""What `compare` prints: for each family its evidence, its metrics and why it passed or failed, within 80 columns."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from springback.deploy.table_views import shown_name
from springback.stream_processors.metrics.figure_words import stress_text

if TYPE_CHECKING:
    from springback.stream_processors.offline.comparison import GroupChange, VersionComparison
    from springback.stream_processors.offline.comparison_evidence import EpisodeCounts, Evidence
    from springback.stream_processors.offline.metric_changes import MetricChange
    from springback.stream_processors.offline.significance import TaskComparison

_COLUMNS = (
    ("metric", 14),
    ("before", 6),
    ("after", 6),
    ("change", 7),
    ("interval", 15),
    ("p\npair", 5),
    ("p\nrank", 5),
    ("may", 6),
    ("verdict", 7),
)
_METRIC_STYLES = {"breach": "bold red", "undetermined": "yellow", "ok": "", "unchecked": "dim"}
_METRIC_WORDS = {"breach": "BREACH", "undetermined": "unclear", "ok": "ok", "unchecked": "-"}
_FAMILY_STYLES = {"failed": "bold red", "unclear": "yellow", "passed": "bold green"}
_FAMILY_WORDS = {"failed": "FAILED", "unclear": "COULD NOT TELL", "passed": "passed"}
_NO_CHANGE = 1e-9  # a difference this small comes from the order in which floats were summed


def comparison_view(comparison: "VersionComparison") -> RenderableType:
    """The comparison, to print with rich. A dash stands for a figure or an allowance that there is not."""
    contract = comparison.contract
    title = f"Version {comparison.candidate_version} against {comparison.baseline_version}"
    legend = (
        f"interval: {100 * contract.confidence:g} % bootstrap interval of the change, over tasks\n"
        "p pair: Wilcoxon, over the tasks that both played; p rank: Mann-Whitney, as if\n"
        "no two tasks belonged together; both Holm-corrected over families\n"
        "may: by how much it may worsen; unclear: too little to decide by\n"
    )
    if contract.rule == "certain":
        legend += "BREACH: worse by more than that, and so is the whole interval"
    else:
        legend += "BREACH: worse by more than that"
    families = [part for group in comparison.groups for part in _family(group)]
    return Group(Text(title, style="bold"), *families, Text(f"\n{legend}", style="dim"))


def failure_lines(comparison: "VersionComparison") -> Iterator[str]:
    """What failed, a line each."""
    for finding in comparison.failures:
        yield f"failed  {shown_name(finding.family)} ({shown_name(finding.method)}): {finding.said}"


def _family(group: "GroupChange") -> Iterator[RenderableType]:
    yield Text.assemble(
        f"\n{shown_name(group.family)} · {shown_name(group.method)}: ",
        (_FAMILY_WORDS[group.verdict], _FAMILY_STYLES[group.verdict]),
    )
    for line in (*group.reasons, *_evidence(group.evidence)):
        yield Padding(Text(line), (0, 0, 0, 2), expand=False)
    known = [change for change in group.metrics if change.baseline is not None or change.candidate is not None]
    if known:
        yield _metrics(known)


def _evidence(evidence: "Evidence") -> Iterator[str]:
    for name, counts in (("before", evidence.baseline), ("after", evidence.candidate)):
        yield f"{name}: {_counts(counts)}"
    levels = "; ".join(
        f"{_level(level.stress)} {level.baseline.ended}, {level.candidate.ended}" for level in evidence.levels
    )
    yield f"ended before, after by stress: {levels}"
    yield f"tasks paired: {evidence.paired_tasks}"
    if evidence.bound_references is not None:
        yield (
            f"learning: {evidence.bound_references} of {evidence.bound_references_needed} references stand behind the "
            "alarm bounds; record more clean successes of the version before, or give --baseline-file"
        )
    apart = [_level(level.stress) for level in evidence.levels if not level.compared]
    if apart:
        yield f"left out of all metrics, for a version has none there that counts: {', '.join(apart)}"


def _counts(counts: "EpisodeCounts") -> str:
    return f"{counts.ended} ended, {counts.aborted} aborted, {counts.provisional} provisional"


def _level(stress: float | str) -> str:
    return stress if isinstance(stress, str) else f"λ={stress_text(stress)}"


def _metrics(changes: list["MetricChange"]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    for heading, width in _COLUMNS:
        table.add_column(
            heading, justify="left" if heading == "metric" else "right", no_wrap=heading != "metric", min_width=width
        )
    for change in changes:
        table.add_row(
            change.metric if change.stress is None else f"{change.metric} {_level(change.stress)}",
            _digits(change.baseline),
            _digits(change.candidate),
            _digits(change.difference, sign="+", width=7),
            "-" if change.low is None else f"{_digits(change.low, '+')} … {_digits(change.high, '+')}",
            *_p_values(change.tasks),
            _digits(change.allowance),
            _METRIC_WORDS[change.verdict],
            style=_METRIC_STYLES[change.verdict],
        )
    return table


def _p_values(tasks: "TaskComparison | None") -> tuple[str, str]:
    if tasks is None:
        return "-", "-"
    return _probability(tasks.paired_p_holm), _probability(tasks.unpaired_p_holm)


def _digits(value: float | None, sign: str = "", width: int = 6) -> str:
    """A figure with as many digits that count, up to three, as there is room for."""
    if value is None:
        return "-"
    if abs(value) < _NO_CHANGE:
        return f"{0:{sign}}"
    if abs(value) >= 1000:
        return f"{value:{sign}.0f}"
    fitting = (text for digits in (3, 2, 1) if len(text := f"{value:{sign}.{digits}g}") <= width)
    return next(fitting, f"{value:{sign}.0e}")


def _probability(value: float | None) -> str:
    if value is None:
        return "-"
    return "<.001" if value < 0.001 else f"{value:.3f}"
