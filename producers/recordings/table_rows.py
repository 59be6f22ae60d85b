"""What rows of tables and records have in common: each is a message of its own."""

from typing import Any

from springback.producers.mapping.paths import MISSING, seconds_of, text_of
from springback.producers.mapping.timed_message import TimedMessage
from springback.producers.recordings.opening import OpenRecording


def row_message(recording: OpenRecording, number: int, row: Any) -> TimedMessage:
    """The message of a row: topic and time are where the mapping says; without a time, its number counts seconds."""
    mapping = recording.mapping
    topic = "" if mapping.record_topic is None else text_of(mapping.record_topic.read(row)) or ""
    own = mapping.header_time.read(row)
    own_s = None if own is MISSING else seconds_of(own, mapping.header_unit_s)
    recording.wants(topic)
    return TimedMessage(topic, float(number) if own_s is None else own_s, row)
