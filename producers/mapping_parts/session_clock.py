"""The time of an agent's messages within a session: rising, and of this century even where its clock is not."""

import math
from typing import Final

from springback.producers.mapping_parts.time_jumps import TimeJumps

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
