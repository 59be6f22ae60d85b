"""The fleet table's rows: which of them, in which order, and which page of them."""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from springback.dashboards.live_page.agent_memory import AgentMemory
from springback.dashboards.live_page.fleet_view import FleetView
from springback.sinks.fleet.fleet_state import WindowPlace, clean_group
from springback.stream_processors.metrics.spec import AgentStateName

URGENCY: tuple[AgentStateName, ...] = (
    "rebound",
    "stalled",
    "stale",
    "contested",
    "silent",
    "unknown",
    "calm",
    "ended",
)
"""The states, by how much they want to be looked at."""

_DIGITS = re.compile(r"([0-9]{1,18})")


class FleetRow(NamedTuple):
    """One agent. None is what is not known. `seen_s` is seconds since 1970. `window` is the one that it is in.

    `provisional` says that its family is still learning, so that the window that it is in counts for nothing.
    """

    token: str
    name: str
    state: AgentStateName
    family: str
    method: str
    version: str
    progress: float | None
    intensity: float | None
    cost: float
    departure_step: int | None
    window: WindowPlace | None
    seen_s: float | None
    provisional: bool


class RowOrder(NamedTuple):
    """By which column the rows are sorted."""

    column: str = "state"
    descending: bool = False


class FleetPage(NamedTuple):
    """A page of the table: its rows, the number of its first one (from 1; 0 without any), and of how many it is."""

    rows: Sequence[FleetRow]
    first: int
    total: int

    def told(self) -> str:
        """Which rows these are.

        >>> FleetPage([], 0, 0).told()
        '0 of 0'
        """
        if not self.rows:
            return f"0 of {self.total:,}"
        return f"{self.first:,}\N{EN DASH}{self.first + len(self.rows) - 1:,} of {self.total:,}"


def fleet_rows(view: FleetView, now_s: float) -> list[FleetRow]:
    """A row for each agent that is known."""
    return [_row(agent, view.state_of(agent, now_s)) for agent in view.agents()]


def count_states(rows: Sequence[FleetRow]) -> Counter[AgentStateName]:
    """How many agents are in each state."""
    return Counter(row.state for row in rows)


def filter_rows(rows: Sequence[FleetRow], states: Collection[AgentStateName], text: str) -> list[FleetRow]:
    """The rows in one of these states (any, where none is given) that have each word of the text somewhere."""
    words = text.casefold().split()
    return [
        row
        for row in rows
        if (not states or row.state in states)
        and all(any(word in field.casefold() for field in (row.name, row.family, row.method)) for word in words)
    ]


def sort_rows(rows: Sequence[FleetRow], order: RowOrder) -> list[FleetRow]:
    """The rows in order; what is not known comes last either way, and equals by name."""
    by_name = sorted(rows, key=lambda row: natural_order(row.name))
    key = _KEYS.get(order.column, _KEYS["state"])
    known = [row for row in by_name if key(row) is not None]
    unknown = [row for row in by_name if key(row) is None]
    return sorted(known, key=key, reverse=order.descending) + unknown


def natural_order(name: str) -> list[tuple[bool, int, str]]:
    """What names are sorted by, so that robot-9 comes before robot-10.

    >>> sorted(["robot-10", "robot-9", "Robot-1"], key=natural_order)
    ['Robot-1', 'robot-9', 'robot-10']
    """
    parts = _DIGITS.split(name.casefold())
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]


def page_of(rows: Sequence[FleetRow], page: int, size: int) -> FleetPage:
    """One page, counted from 1; the last one where there are fewer."""
    page = max(1, min(page, math.ceil(len(rows) / size)))
    start = (page - 1) * size
    chosen = rows[start : start + size]
    return FleetPage(chosen, start + 1 if chosen else 0, len(rows))


def _row(agent: AgentMemory, state: AgentStateName) -> FleetRow:
    traits, status, episode = agent.traits, agent.status, agent.episode
    opened = agent.open_window
    family, method, version = ("", "", "") if traits is None else clean_group(traits)
    return FleetRow(
        token=agent.token,
        name=agent.label,
        state=state,
        family=family,
        method=method,
        version=version,
        progress=None if episode is None else episode.progress,
        intensity=None if episode is None else episode.intensity,
        cost=agent.running_cost,
        departure_step=None if opened is None else opened[1].departure_step,
        window=None if opened is None else (opened[0].key, opened[1].number),
        seen_s=None if status is None else status.seen_s,
        provisional=agent.learning,
    )


_KEYS: dict[str, Callable[[FleetRow], Any]] = {
    "name": lambda row: natural_order(row.name),
    "state": lambda row: URGENCY.index(row.state),
    "family": lambda row: f"{row.family}\0{row.method}\0{row.version}" if row.family else None,
    "progress": lambda row: row.progress,
    "intensity": lambda row: row.intensity,
    "cost": lambda row: row.cost,
    "seen": lambda row: row.seen_s,
}
