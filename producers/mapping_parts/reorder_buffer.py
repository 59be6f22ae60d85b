"""Puts recorded messages in the order of their times, as far as they are late by no more than a window."""

import heapq
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

from springback.producers.mapping_parts.time_jumps import TimeJumps

Item = TypeVar("Item")

MOST_HELD: Final = 20_000


class ReorderBuffer(Generic[Item]):
    """A bounded window over the messages of one agent.

    Where time has jumped back, what was held goes first.

    Args:
        window_s: how late a message may be.
    """

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._held: list[tuple[float, int, Item]] = []
        self._jumps = TimeJumps()
        self._arrived = 0

    def add(self, topic: str, time_s: float | None, item: Item) -> Iterator[Item]:
        """Take a message, and give those that are due; one without a time comes with the latest that had one."""
        if time_s is None:
            time_s = self._jumps.latest_s
        elif self._jumps.jumped_back(topic, time_s, self._window_s):
            yield from self.flush()
        self._jumps.note(topic, time_s)
        self._arrived += 1
        heapq.heappush(self._held, (time_s, self._arrived, item))
        due_s = self._jumps.latest_s - self._window_s
        while self._held and (self._held[0][0] <= due_s or len(self._held) > MOST_HELD):
            yield heapq.heappop(self._held)[2]

    def flush(self) -> Iterator[Item]:
        """All that is held, in order."""
        while self._held:
            yield heapq.heappop(self._held)[2]
        self._jumps.forget()
