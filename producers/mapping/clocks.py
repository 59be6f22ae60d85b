"""The times of one agent's messages: late or jumped back, in order again, and on one rising clock for each session.

Robots' clocks do everything: topics lag behind each other, simulated time starts at zero and is reset, a bag is played
in a loop, a message bears the time of something long ago. Time is an argument here and never read. All of it is ours.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

from springback.producers.contract.columns import EARLIEST_TIME_S, YEAR_2100_S

FIRST_SIMULATED_S: Final = EARLIEST_TIME_S + 86_400.0
"""Where time begins for a recording that has no date at all."""

HOUR_S: Final = 3600.0
HOUR_TOLERANCE_S: Final = 60.0
"""How far from a whole hour a wall clock's jump may be that is one from or to summer time, s."""

STRAGGLING: Final = 5.0
MOST_HELD: Final = 20_000

Item = TypeVar("Item")


def plausible(time_s: float) -> bool:
    """Whether it can be a date, s UTC epoch."""
    return EARLIEST_TIME_S <= time_s <= YEAR_2100_S


class TimeJumps:
    """The times of an agent's messages so far, by topic, which tell a clock that has jumped back from late messages.

    A topic may lag behind the others, and a message may bear the time of something long ago, again and again (a map,
    a goal). Time has jumped back when a topic goes back behind itself by more than the tolerance, or behind all others
    by more than `STRAGGLING` times that, with a time that differs from the topic's last one.
    """

    def __init__(self) -> None:
        self._of_topic_s: dict[str, float] = {}
        self.latest_s = -math.inf

    def jumped_back(self, topic: str, time_s: float, tolerance_s: float) -> bool:
        """Whether a message of this time shows that time has jumped back."""
        own_s = self._of_topic_s.get(topic)
        if own_s is None or time_s == own_s:
            return False
        return time_s < own_s - tolerance_s or time_s < self.latest_s - STRAGGLING * tolerance_s

    def is_late(self, time_s: float, tolerance_s: float) -> bool:
        """Whether the message is later than the tolerance allows: old news, or the first of a jump."""
        return time_s < self.latest_s - tolerance_s

    def note(self, topic: str, time_s: float) -> None:
        """Takes notice of a message's time."""
        self._of_topic_s[topic] = time_s
        self.latest_s = max(self.latest_s, time_s)

    def forget(self) -> None:
        """Starts afresh, as time does."""
        self._of_topic_s.clear()
        self.latest_s = -math.inf


class LocalHours:
    """Keeps an agent's local times rising by what has passed in the nights in which an hour comes twice, or never.

    Times without a zone are taken for UTC. Where such a time goes back by an hour from one message of a topic to the
    next, though next to nothing has passed, summer time has ended: all later times are an hour more. Where it goes
    ahead by one, it has begun.

    >>> hours = LocalHours()
    >>> [hours.settled("state", local_s, received_s) for local_s, received_s in ((7199, 10), (3600, 11), (3601, 12))]
    [7199, 7200.0, 7201.0]
    """

    def __init__(self) -> None:
        self._shift_s = 0.0
        self._of_topic: dict[str, tuple[float, float, float]] = {}

    def settled(self, topic: str, local_s: float, receive_s: float) -> float:
        """The time of a message, on the clock that its topic's first one began.

        Args:
            topic: the message's.
            local_s: its own time, without a zone.
            receive_s: when it was received; for what was not, such as a row of a table, its own time again.
        """
        before = self._of_topic.get(topic)
        # A topic that is new goes by the clock of the others.
        shift_s = self._shift_s
        if before is not None:
            last_s, last_received_s, shift_s = before
            passed_s = 0.0 if receive_s == local_s else receive_s - last_received_s
            jump_s = local_s - last_s - passed_s
            if abs(jump_s + HOUR_S) <= HOUR_TOLERANCE_S:
                shift_s += HOUR_S
            elif receive_s != local_s and abs(jump_s - HOUR_S) <= HOUR_TOLERANCE_S:
                shift_s -= HOUR_S
        self._of_topic[topic] = local_s, receive_s, shift_s
        self._shift_s = shift_s
        return local_s + shift_s if shift_s else local_s


class SessionClock:
    """Places messages in time, on a clock that rises and gives possible dates even where the agent's own does not.

    A clock that counts from some zero (simulated time, a robot without a real-time clock) is moved so that it begins
    when its first message was received: differences stay what they were, and dates become possible ones. Until the
    first step is made, times of arrival are provisional: a first message with a time of its own may set the clock back.

    Attributes:
        now_s: the time of the latest message, s UTC epoch.
        has_stepped: whether any step has been timed by it.
    """

    def __init__(self) -> None:
        self.now_s = -math.inf
        self.has_stepped = False
        self._jumps = TimeJumps()
        self._shift_s = 0.0
        self._floor_s = -math.inf
        self._by_header = False

    @property
    def is_dated(self) -> bool:
        """Whether the agent's own clock has given dates so far."""
        return self._by_header and plausible(self._jumps.latest_s)

    def begin(self) -> None:
        """Allows another episode of the same session to begin at an earlier time of the agent's clock."""
        self._floor_s = max(self._floor_s, self.now_s)
        self.now_s = -math.inf
        self._jumps.forget()

    def jumped_back(self, topic: str, header_s: float | None, receive_s: float, tolerance_s: float) -> bool:
        """Whether this message's time lies too far back to be mere lateness."""
        raw_s = self._raw(header_s, receive_s)
        return self._keeps_clock(header_s) and self._jumps.jumped_back(topic, raw_s, tolerance_s)

    def is_late(self, header_s: float | None, receive_s: float, tolerance_s: float) -> bool:
        """Whether this message is later than the tolerance allows."""
        return self._keeps_clock(header_s) and self._jumps.is_late(self._raw(header_s, receive_s), tolerance_s)

    def place(self, topic: str, header_s: float | None, receive_s: float) -> float:
        """The time of this message, s UTC epoch; never before that of the one before, once there are steps."""
        raw_s = self._raw(header_s, receive_s)
        latest_s = self._jumps.latest_s
        if not self._keeps_clock(header_s) and not self.has_stepped:
            self.now_s = self._floor_s
        if latest_s == -math.inf or not self._keeps_clock(header_s) or plausible(raw_s) > plausible(latest_s):
            first_s = receive_s if plausible(receive_s) else FIRST_SIMULATED_S
            self._shift_s = 0.0 if plausible(raw_s) else max(first_s, self._floor_s, self.now_s) - raw_s
            self._jumps.forget()
        self._by_header = self._by_header or header_s is not None
        self._jumps.note(topic, raw_s)
        self.now_s = max(self.now_s, raw_s + self._shift_s)
        return self.now_s

    def _raw(self, header_s: float | None, receive_s: float) -> float:
        if header_s is not None:
            return header_s
        # Among messages with times of their own, one without is as old as the last that had one.
        return self._jumps.latest_s if self._by_header and self._jumps.latest_s > -math.inf else receive_s

    def _keeps_clock(self, header_s: float | None) -> bool:
        return self._by_header or header_s is None


class ReorderBuffer(Generic[Item]):
    """A bounded window over the recorded messages of one agent, which puts them in the order of their times.

    Where time has jumped back, what was held goes first.

    Args:
        window_s: how late a message may be, s.
    """

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._held: list[tuple[float, int, Item]] = []
        self._jumps = TimeJumps()
        self._arrived = 0

    def add(self, topic: str, time_s: float | None, item: Item) -> Iterator[Item]:
        """Takes a message and yields those that are due; one without a time comes with the latest that had one."""
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
        """Yields all that is held, in order."""
        while self._held:
            yield heapq.heappop(self._held)[2]
        self._jumps.forget()
