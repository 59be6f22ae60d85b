"""The time of an agent's messages within a session: rising, and of this century even where its clock is not.

Tells a clock that has jumped back from messages that are only late.

Puts recorded messages in the order of their times, as far as they are late by no more than a window.
"""

import heapq
import math
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

STRAGGLING: Final = 5.0


class TimeJumps:
    """The times of an agent's messages so far, by topic.

    A topic may lag behind the others, and a message may bear the time of something long ago, again and again (a map,
    a goal). Time has jumped back when a topic goes back behind itself by more than the tolerance, or behind all by more
    than `STRAGGLING` times that, with a time that is not the one that it had before.
    """

    def __init__(self) -> None:
        self._of_topic_s: dict[str, float] = {}
        self.latest_s = -math.inf

    def jumped_back(self, topic: str, time_s: float, tolerance_s: float) -> bool:
        """Whether a message of this time tells that time has jumped back."""
        own_s = self._of_topic_s.get(topic)
        if own_s is None or time_s == own_s:
            return False
        return time_s < own_s - tolerance_s or time_s < self.latest_s - STRAGGLING * tolerance_s

    def is_late(self, time_s: float, tolerance_s: float) -> bool:
        """Whether the message is later than the tolerance allows: old news, or the first of a jump."""
        return time_s < self.latest_s - tolerance_s

    def note(self, topic: str, time_s: float) -> None:
        """A message has come."""
        self._of_topic_s[topic] = time_s
        self.latest_s = max(self.latest_s, time_s)

    def forget(self) -> None:
        """Time begins anew."""
        self._of_topic_s.clear()
        self.latest_s = -math.inf


YEAR_2000_S: Final = 946_684_800.0
YEAR_2100_S: Final = 4_102_444_800.0
FIRST_SIMULATED_S: Final = YEAR_2000_S + 86_400.0
"""Where time begins for a recording that has no date at all."""


def plausible(time_s: float) -> bool:
    """Whether it can be a date."""
    return YEAR_2000_S <= time_s <= YEAR_2100_S


class SessionClock:
    """Places messages in time.

    A clock that counts from some zero (simulated time, a robot without a real-time clock) is moved so that it begins
    when its first message was received: differences stay what they were, and dates become possible ones. Until a first
    step was made, times of arrival are provisional: the first message with a time of its own may set the clock back.

    Attributes:
        now_s: the time of the latest message, s UTC epoch.
        has_stepped: whether steps have been made by it.
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
        """Whether the agent's own clock has told dates so far."""
        return self._by_header and plausible(self._jumps.latest_s)

    def begin(self) -> None:
        """Another episode of the same session may begin at an earlier time of the agent's clock."""
        self._floor_s = max(self._floor_s, self.now_s)
        self.now_s = -math.inf
        self._jumps.forget()

    def jumped_back(self, topic: str, header_s: float | None, receive_s: float, tolerance_s: float) -> bool:
        """Whether this message's time lies further back than can be lateness."""
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
