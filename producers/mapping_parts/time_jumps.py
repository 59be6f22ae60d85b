"""Tells a clock that has jumped back from messages that are only late."""

import math
from typing import Final

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
