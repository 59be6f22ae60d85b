"""The comparison of two versions as people read it on a terminal: a block for each family and method, in 80 columns."""

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from springback.stream_processors.offline.comparison import Breach, GroupChange, MetricChange, VersionComparison

# Heading and least width of each column: the blocks of several families stand under one another.
_COLUMNS = (
    ("before", 7),
    ("after", 7),
    ("change", 7),
    ("interval", 16),
    ("p", 5),
    ("allowed", 7),
    ("verdict", 7),
)
_STYLES = {"breach": "bold red", "undetermined": "yellow", "ok": "", "unchecked": "dim"}
# What floats make of a sum that is taken in another order is no change.
_NOTHING = 1e-9
_WORDS = {"breach": "BREACH", "undetermined": "unclear", "ok": "ok", "unchecked": "-"}


def version_table_view(comparison: VersionComparison) -> RenderableType:
    """The comparison, to print with rich. A dash says that there was nothing to take a figure of, or no allowance."""
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
    return Group(Text(title, style="bold"), *(_block(group) for group in comparison.groups), Text(legend, style="dim"))


def breach_line(breach: Breach, comparison: VersionComparison) -> str:
    """One breach in one line: what got worse, from what to what, and by how much it was allowed to."""
    change = next(
        change
        for group in comparison.groups
        if (group.family, group.method) == (breach.family, breach.method)
        for change in group.metrics
        if (change.metric, change.stress) == (breach.metric, breach.stress)
    )
    return (
        f"breach  {breach.family} ({breach.method}): {_name(change)} {_figure(change.baseline)} -> "
        f"{_figure(change.candidate)}; it may worsen by {_figure(change.allowance)}"
    )


def _block(group: GroupChange) -> Table:
    episodes = (
        f"{group.baseline_episodes} and {group.candidate_episodes} episodes, {group.common_tasks} tasks in common"
    )
    title = f"\n{group.family} · {group.method}: {episodes}"
    if group.left_out_stresses:
        levels = ", ".join(f"{stress:.1f}" for stress in group.left_out_stresses)
        title += f"\nleft out, for only one version was played there: λ {levels}"
    table = Table(title=title, title_justify="left", title_style="", box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    table.add_column("metric", no_wrap=True, min_width=14)
    for heading, width in _COLUMNS:
        table.add_column(heading, justify="right", no_wrap=True, min_width=width)
    for change in group.metrics:
        table.add_row(
            _name(change),
            _figure(change.baseline),
            _figure(change.candidate),
            _figure(change.difference, sign="+"),
            "-" if change.low is None else f"{_figure(change.low, '+', 2)} … {_figure(change.high, '+', 2)}",
            "-" if change.p_value is None else _probability(change.p_value),
            _figure(change.allowance),
            _WORDS[change.verdict],
            style=_STYLES[change.verdict],
        )
    return table


def _name(change: MetricChange) -> str:
    return change.metric if change.stress is None else f"{change.metric} λ={change.stress:.1f}"


def _figure(value: float | None, sign: str = "", digits: int = 3) -> str:
    if value is None:
        return "-"
    if abs(value) < _NOTHING:
        return f"{0:{sign}}"
    return f"{value:{sign}.0f}" if abs(value) >= 1000 else f"{value:{sign}.{digits}g}"


def _probability(value: float) -> str:
    return "<.001" if value < 0.001 else f"{value:.3f}"
