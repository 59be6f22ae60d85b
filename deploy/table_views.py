"""The tables of `evaluate`, as people read them on a terminal, within 80 columns."""

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
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
    title = Text(f"\n{shown_name(family)} · {shown_name(method)}", style="table.title")
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


def shown_name(name: str) -> str:
    """A name from outside, without characters that would control the terminal."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in name)


def _episodes(row: "FamilyRow") -> str:
    left_out = row.censored + row.unscored
    return f"{row.episodes}(-{left_out})" if left_out else str(row.episodes)


def _figure(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2f}"
