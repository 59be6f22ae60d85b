"""How a report shows its numbers: names and figures as people read them, and which groups are drawn.

Names come from producers, so they may hold anything. Where there are more groups than a page can show, plots show the
largest; the tables hold all of them.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Protocol, TypeVar

from springback.dashboards.evaluation_report.group_rows import GroupRow
from springback.dashboards.evaluation_report.plot_style import SERIES

NO_VALUE = "-"
MOST_PANELS = 12
MOST_SERIES = len(SERIES)
_LONGEST = 48
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


class Grouped(Protocol):
    """What belongs to one family, method and version."""

    @property
    def family(self) -> str:
        """Task family."""

    @property
    def method(self) -> str:
        """Method."""

    @property
    def version(self) -> str:
        """Version of the method."""


OfGroup = TypeVar("OfGroup", bound=Grouped)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The groups that plots show, by family, and what to say of the others."""

    groups: Sequence[GroupRow]
    left_out: Sequence[str]
    one_method: bool

    @property
    def families(self) -> dict[str, list[GroupRow]]:
        """The groups of each family."""
        return {family: list(rows) for family, rows in groupby(self.groups, lambda row: row.family)}

    def name(self, row: Grouped) -> str:
        """What a group is called in a title: its method goes without saying where there is but one."""
        return name_text(row.family) if self.one_method else f"{name_text(row.family)} · {method_name(row)}"


def choose(groups: Sequence[GroupRow]) -> Chosen:
    """The groups with the most episodes, in the order of their names."""
    largest = sorted(groups, key=lambda row: -row.episodes)[:MOST_PANELS]
    kept = [row for row in groups if row in largest]
    left_out = []
    if len(kept) < len(groups):
        left_out = [f"Shown are the {len(kept)} groups with the most episodes of {len(groups)}; the tables hold all."]
    return Chosen(kept, left_out, len({(row.method, row.version) for row in groups}) == 1)


def own(rows: Iterable[OfGroup], group: Grouped) -> list[OfGroup]:
    """Those of the rows that belong to a group."""
    wanted = identity(group)
    return [row for row in rows if identity(row) == wanted]


def identity(row: Grouped) -> tuple[str, str, str]:
    """Family, method and version."""
    return row.family, row.method, row.version


def method_name(row: Grouped) -> str:
    """What a method and its version are called in a legend."""
    return f"{name_text(row.method, 24)} {name_text(row.version, 12)}"


def name_text(name: str, longest: int = _LONGEST) -> str:
    r"""A name to show: control, direction and broken characters made visible, and cut where it is too long.

    >>> name_text("a\x00b\u202ec")
    'a\ufffdb\ufffdc'
    >>> name_text("x" * 100, longest=5)
    'xxxx…'
    """
    shown = visible_text(name[: longest + 1].replace("\n", "\ufffd"))
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def visible_text(text: str) -> str:
    """A text of several lines with its control, direction and broken characters made visible."""
    return "".join(
        "\ufffd" if unicodedata.category(letter) in _UNSEEN and letter != "\n" else letter for letter in text
    )


def figure_text(value: float | None) -> str:
    """A figure with three digits that count; a dash where there is none.

    >>> [figure_text(value) for value in (0.12345, 12.345, 1234.5, 0.0, None)]
    ['0.123', '12.3', '1234', '0', '-']
    """
    if value is None:
        return NO_VALUE
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def share_text(value: float | None) -> str:
    """A share as a percentage."""
    return NO_VALUE if value is None else f"{value:.0%}"


def p_text(p: float, *, brief: bool = False) -> str:
    """A p-value as it is read: below a bound where it is tiny; `brief` sets that bound high.

    >>> [p_text(p) for p in (0.5, 0.0123, 0.00012, 3e-17)]
    ['p = 0.50', 'p = 0.012', 'p = 1e-04', 'p < 1e-15']
    """
    least = 0.001 if brief else 1e-15
    if p < least:
        return f"p < {least:g}"
    if p < 0.001:
        return f"p = {p:.0e}"
    return f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def count_text(count: int, one: str, many: str | None = None) -> str:
    """A count with its noun.

    >>> count_text(1, "episode"), count_text(2, "episode")
    ('1 episode', '2 episodes')
    """
    return f"{count} {one if count == 1 else many or one + 's'}"


def counts_text(counts: Sequence[tuple[float, int]]) -> str:
    """How many episodes there are at each stress.

    >>> counts_text([(0.0, 8), (0.2, 8)]), counts_text([(0.0, 8), (0.2, 3)]), counts_text([])
    ('n = 8 at each λ', 'n = 8 at λ 0, 3 at 0.2', 'n = 0')
    """
    if not counts:
        return "n = 0"
    if len({count for _, count in counts}) == 1:
        return f"n = {counts[0][1]} at each λ"
    (first, count), *others = counts
    return ", ".join([f"n = {count} at λ {first:g}", *(f"{many} at {stress:g}" for stress, many in others)])


def time_text(seconds: float | None) -> str:
    """A time in UTC, to the minute; a dash where there is none.

    >>> time_text(1790000000.5), time_text(None)
    ('2026-09-21 14:13 UTC', '-')
    """
    return NO_VALUE if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
