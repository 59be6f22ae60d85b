"""Tells a message that has been here before, as far as that can be told."""

import math
from typing import Final

from springback.producers.mapping_parts.field_path import text_of
from springback.producers.mapping_parts.message_routes import Route
from springback.producers.mapping_parts.timed_message import TimedMessage
from springback.producers.signal_mapping import SignalMapping

MOST_REMEMBERED: Final = 256


class Repetitions:
    """The latest messages of one agent, by the id that the mapping names, or by their time and what is read of them.

    Args:
        mapping: which field is the id.
    """

    def __init__(self, mapping: SignalMapping) -> None:
        self._path = mapping.message_id
        self._reorder_s = mapping.reorder_s
        self._recent: dict[tuple[str, str, float | None], None] = {}
        self._latest_s = -math.inf

    def seen(self, message: TimedMessage, route: Route, own_s: float | None) -> bool:
        """Whether it is a repetition; else it is remembered. One without a time, an id or a mark (DUP) never is.

        Args:
            message: the message.
            route: of its topic.
            own_s: the time that the message itself gives, whichever clock the mapping goes by.
        """
        if own_s is not None:
            if own_s < self._latest_s - self._reorder_s:
                self._recent.clear()  # a recording that is played in a loop says all of it again
                self._latest_s = own_s
            self._latest_s = max(self._latest_s, own_s)
        known = None if self._path is None else text_of(self._path.read(message.value))
        if known is None:
            if not message.redelivered and own_s is None:
                return False
            known = route.fingerprint(message.value)
        key = (message.topic, known, own_s)
        if key in self._recent:
            return True
        self._recent[key] = None
        if len(self._recent) > MOST_REMEMBERED:
            del self._recent[next(iter(self._recent))]
        return False
