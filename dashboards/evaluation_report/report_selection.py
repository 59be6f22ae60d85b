"""Which groups are drawn, where there are more than a page can show; the tables hold all of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol, TypeVar

from springback.dashboards.evaluation_report.group_rows import GroupRow
from springback.dashboards.evaluation_report.plot_style import SERIES
from springback.dashboards.evaluation_report.readable_text import name_text

MOST_PANELS = 12
MOST_SERIES = len(SERIES)


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
