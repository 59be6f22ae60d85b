"""The tables of `evaluate`, as people read them on a terminal, within 80 columns."""

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from springback.stream_processors.metrics.figure_words import (
    NOT_TESTED_ABOVE,
    UNDECLARED,
    aborted_sentences,
    beta_sentences,
    capacity_sentence,
    capacity_text,
    dependable_text,
    learning_sentences,
    short,
    stress_text,
    undeclared_sentence,
    violated_sentences,
)
from springback.stream_processors.metrics.glossary import meaning

if TYPE_CHECKING:
    from springback.stream_processors.offline.tables import FamilyRow, ResilienceJson
    from springback.stream_processors.resilience.readings import WindowReading

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
_UNDECLARED_LEGEND = "\nλ -: the stress is undeclared, which is not 0"
_RESILIENCE_WORDS = ("kept", "dependable capacity", "λ*", "first breach", "β")


def family_table_view(
    rows: Iterable["FamilyRow"], title: str = "Resilience by family, method and stress"
) -> RenderableType:
    """The rows, to print with rich. A dash stands for a figure that there is not."""
    rows = list(rows)
    blocks = [_family_block(*group, list(own)) for group, own in groupby(rows, lambda row: (row.family, row.method))]
    legend = _FAMILY_LEGEND + (_UNDECLARED_LEGEND if any(row.stress is None for row in rows) else "")
    return Group(Text(title, style="bold"), *blocks, Text(legend, style="dim"))


def resilience_table_view(rows: Iterable["ResilienceJson"], title: str = "\nWhat families withstand") -> RenderableType:
    """A row for each family, method and version, and below what stands behind it, to print with rich."""
    rows = list(rows)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for heading, width in (("family", 15), ("method", 15), ("version", 9)):
        table.add_column(heading, overflow="ellipsis", no_wrap=True, max_width=width)
    for heading in ("β", "β 95 %", "depend-\nable", "λ*", "first\nbreach"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            Text(shown_name(row.family)),
            Text(shown_name(row.method)),
            Text(shown_name(row.version)),
            _figure(row.beta),
            _figure(row.beta_p95),
            short(dependable_text(row)),
            short(capacity_text(row.capacity, row.capacity_flag)),
            "-" if row.first_breach is None else stress_text(row.first_breach),
        )
    notes = [Text(f"{_group(row)}: {' '.join(_resilience_sentences(row))}\n") for row in rows]
    words = [f"{word}: {meaning(word)}" for word in _RESILIENCE_WORDS]
    legend = "\n".join([*words, f"≥: at least; {NOT_TESTED_ABOVE}   β 95 %: the 0.95 quantile over the pairs"])
    return Group(Text(title, style="bold"), table, *notes, Text(legend, style="dim"))


def _group(row: "ResilienceJson") -> str:
    return f"{shown_name(row.family)} · {shown_name(row.method)} {shown_name(row.version)}, {row.episodes:,} episodes"


def _resilience_sentences(row: "ResilienceJson") -> list[str]:
    told = [capacity_sentence(row)]
    if row.undeclared is not None and row.undeclared.judged:
        told.append(undeclared_sentence(row.undeclared))
    told += violated_sentences(row)
    told += aborted_sentences(row.censored, row.episodes)
    told += learning_sentences(row.bound_references, row.bound_references_needed, row.provisional)
    return told + beta_sentences(row)


def window_sentence(window: "WindowReading") -> str:
    """What a closed window cost, whose it was and where in its episode, in a line."""
    stress = window.traits.stress
    level = f"stress {UNDECLARED}" if stress is None else f"λ {stress_text(stress)}"
    return (
        f"recovery cost {_figure(window.recovery_cost)} in {window.length_steps} steps from step "
        f"{window.departure_step} on ({window.cause}, {window.state}): agent {shown_name(window.key.agent)}, episode "
        f"{shown_name(window.key.episode)}, family {shown_name(window.traits.family)}, {level}"
    )


def _family_block(family: str, method: str, rows: list["FamilyRow"]) -> Table:
    title = Text(f"\n{shown_name(family)} · {shown_name(method)}", style="table.title")
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for heading, width in _FAMILY_COLUMNS:
        table.add_column(heading, justify="right", no_wrap=True, min_width=width)
    for row in rows:
        table.add_row(
            "-" if row.stress is None else f"{row.stress:.1f}",
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
