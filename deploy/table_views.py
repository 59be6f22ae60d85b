"""The tables of `evaluate` and of `compare`, as people read them on a terminal, within 80 columns."""

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from springback.stream_processors.offline.comparison import Breach, GroupChange, MetricChange, VersionComparison
    from springback.stream_processors.offline.tables import FamilyRow, ResilienceJson

_STATES = ("recovered", "unrecovered", "censored")
_CAUSES = ("effort", "delay", "effort+delay")
# Heading and least width of each column: the blocks of several families stand under one another.
_FAMILY_COLUMNS = (
    ("λ", 3),
    ("n", 7),
    ("SR", 4),
    ("windows\nrec/unr/cen", 11),
    ("cause\neff/del/both", 12),
    ("C_rec\nmean", 7),
    ("C_rec\nmedian", 6),
    ("lost\ncycles", 6),
    ("window\nlength", 6),
)
_FAMILY_LEGEND = """\
n: episodes; n(-k): k of them count in no cost, for want of a baseline or an end
SR: success rate   C_rec: recovery cost of an episode   lost cycles: per episode
windows: recovered/unrecovered/censored; cause: effort/delay/both; length: steps"""
_RESILIENCE_LEGEND = """\
λ*: largest stress at which the contract is kept   breach: smallest at which not
β: largest change of the stability loss per magnitude of a perturbation, over
pairs of clean and perturbed runs of one task; 95 %: the quantile over them
n: episodes that were seen to end"""
_VERSION_COLUMNS = (
    ("before", 7),
    ("after", 7),
    ("change", 7),
    ("interval", 16),
    ("p", 5),
    ("allowed", 7),
    ("verdict", 7),
)
_VERDICT_STYLES = {"breach": "bold red", "undetermined": "yellow", "ok": "", "unchecked": "dim"}
_VERDICT_WORDS = {"breach": "BREACH", "undetermined": "unclear", "ok": "ok", "unchecked": "-"}
_NO_CHANGE = 1e-9  # a difference this small comes from the order in which floats were summed


def family_table_view(
    rows: Iterable["FamilyRow"], title: str = "Resilience by family, method and stress"
) -> RenderableType:
    """The rows, to print with rich. A dash stands for a figure that there is not."""
    blocks = [_family_block(*group, list(own)) for group, own in groupby(rows, lambda row: (row.family, row.method))]
    return Group(Text(title, style="bold"), *blocks, Text(_FAMILY_LEGEND, style="dim"))


def resilience_table_view(rows: Iterable["ResilienceJson"], title: str = "\nWhat families withstand") -> RenderableType:
    """A row for each family, method and version, to print with rich."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for heading in ("family", "method", "version"):
        table.add_column(heading, overflow="ellipsis", no_wrap=True, max_width=15)
    for heading in ("β", "β 95 %", "λ*", "first\nbreach", "n", "pairs"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            Text(row.family),
            Text(row.method),
            Text(row.version),
            _figure(row.beta),
            _figure(row.beta_p95),
            "too few" if row.capacity is None else "none" if row.capacity_flag == "none" else f"{row.capacity:.1f}",
            "-" if row.first_breach is None else f"{row.first_breach:.1f}",
            str(row.episodes),
            str(row.pairs),
        )
    return Group(Text(title, style="bold"), table, Text(_RESILIENCE_LEGEND, style="dim"))


def _family_block(family: str, method: str, rows: list["FamilyRow"]) -> Table:
    title = Text(f"\n{_shown(family)} · {_shown(method)}", style="table.title")
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for heading, width in _FAMILY_COLUMNS:
        table.add_column(heading, justify="right", no_wrap=True, min_width=width)
    for row in rows:
        table.add_row(
            "undeclared" if row.stress is None else f"{row.stress:.1f}",
            _episodes(row),
            "-" if row.success_rate is None else f"{row.success_rate:.0%}",
            "/".join(str(row.windows_by_state.get(state, 0)) for state in _STATES),
            "/".join(str(row.windows_by_cause.get(cause, 0)) for cause in _CAUSES),
            _figure(row.recovery_cost_mean),
            _figure(row.recovery_cost_median),
            _figure(row.lost_cycles_mean),
            _figure(row.window_length_mean),
        )
    return table


def _shown(name: str) -> str:
    """A name from outside, without characters that would control the terminal."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in name)


def _episodes(row: "FamilyRow") -> str:
    left_out = row.censored + row.unscored
    return f"{row.episodes}(-{left_out})" if left_out else str(row.episodes)


def _figure(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2f}"


def version_table_view(comparison: "VersionComparison") -> RenderableType:
    """The comparison, to print with rich. A dash stands for a figure or an allowance that there is not."""
    contract = comparison.contract
    title = f"Version {comparison.candidate_version} against {comparison.baseline_version}"
    legend = (
        f"interval: {contract.confidence:.0%} bootstrap interval of the change, over tasks; p: Mann-Whitney\n"
        "allowed: by how much it may worsen; unclear: too little to decide by\n"
    )
    if contract.rule == "certain":
        legend += "BREACH: worse by more than that, and so is the whole interval"
    else:
        legend += "BREACH: worse by more than that"
    return Group(
        Text(title, style="bold"), *(_version_block(group) for group in comparison.groups), Text(legend, style="dim")
    )


def breach_line(breach: "Breach", comparison: "VersionComparison") -> str:
    """One breach in one line: what got worse, from what to what, and what was allowed."""
    change = next(
        change
        for group in comparison.groups
        if (group.family, group.method) == (breach.family, breach.method)
        for change in group.metrics
        if (change.metric, change.stress) == (breach.metric, breach.stress)
    )
    return (
        f"breach  {breach.family} ({breach.method}): {_metric_name(change)} {_digits(change.baseline)} -> "
        f"{_digits(change.candidate)}; it may worsen by {_digits(change.allowance)}"
    )


def _version_block(group: "GroupChange") -> Table:
    episodes = (
        f"{group.baseline_episodes} and {group.candidate_episodes} episodes, {group.common_tasks} tasks in common"
    )
    title = f"\n{group.family} · {group.method}: {episodes}"
    if group.left_out_stresses:
        levels = ", ".join(f"{stress:.1f}" for stress in group.left_out_stresses)
        title += f"\nleft out, for only one version was played there: λ {levels}"
    table = Table(title=title, title_justify="left", title_style="", box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    table.add_column("metric", no_wrap=True, min_width=14)
    for heading, width in _VERSION_COLUMNS:
        table.add_column(heading, justify="right", no_wrap=True, min_width=width)
    for change in group.metrics:
        table.add_row(
            _metric_name(change),
            _digits(change.baseline),
            _digits(change.candidate),
            _digits(change.difference, sign="+"),
            "-" if change.low is None else f"{_digits(change.low, '+', 2)} … {_digits(change.high, '+', 2)}",
            "-" if change.p_value is None else _probability(change.p_value),
            _digits(change.allowance),
            _VERDICT_WORDS[change.verdict],
            style=_VERDICT_STYLES[change.verdict],
        )
    return table


def _metric_name(change: "MetricChange") -> str:
    return change.metric if change.stress is None else f"{change.metric} λ={change.stress:.1f}"


def _digits(value: float | None, sign: str = "", digits: int = 3) -> str:
    if value is None:
        return "-"
    if abs(value) < _NO_CHANGE:
        return f"{0:{sign}}"
    return f"{value:{sign}.0f}" if abs(value) >= 1000 else f"{value:{sign}.{digits}g}"


def _probability(value: float) -> str:
    return "<.001" if value < 0.001 else f"{value:.3f}"
