"""Where input goes that cannot be used: the dead-letter topic, with the reason and the place that it came from."""

from typing import Any

import msgspec

from springback.stream_processors.errors import StateFullError, TooCostlyError
from springback.stream_processors.exact.port import Output, StageEvent
from springback.stream_processors.topics import DEAD_LETTER

PROCESSING_ERROR = "processing_error"
WRONG_KEY = "wrong_key"
TOO_MANY_FAULTS = "too_many_faults"
TOO_COSTLY = "too_costly"
STATE_FULL = "state_full"
MOST_FAULTS = 100
"""Faulty rows, and other faulty parts, of a message that go to the dead letters one by one; with more it goes whole."""
_DETAIL_LENGTH = 512


def dead_message(event: StageEvent, reason: str, detail: str) -> Output:
    """A message that cannot be used at all, whole and as it came."""
    return Output(DEAD_LETTER, event.key, event.value, _headers(event, reason, detail))


def refused_message(event: StageEvent, error: Exception) -> Output:
    """A message that the stage passes over for an error: a fault of springback, unless it is one of its bounds."""
    if isinstance(error, TooCostlyError):
        return dead_message(event, TOO_COSTLY, str(error))
    if isinstance(error, StateFullError):
        return dead_message(event, STATE_FULL, str(error))
    return dead_message(event, PROCESSING_ERROR, repr(error))


def dead_row(event: StageEvent, row: dict[str, Any], reason: str, detail: str) -> Output:
    """A part of a message that was taken out alone, as JSON."""
    return Output(DEAD_LETTER, event.key, msgspec.json.encode(row), _headers(event, reason, detail))


def _headers(event: StageEvent, reason: str, detail: str) -> tuple[tuple[str, bytes], ...]:
    texts = {
        "reason": reason,
        "topic": event.topic,
        "partition": str(event.partition),
        "offset": str(event.offset),
        "detail": detail[:_DETAIL_LENGTH],
    }
    return tuple((name, text.encode("utf-8", "replace")) for name, text in texts.items())
