"""Messages of PX4's ULog files, the logs of drones. A topic is `NAME/INSTANCE`, such as `battery_status/0`.

Times count from the autopilot's start. The topics that the mapping reads are held in memory as a whole, as numbers.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator
from typing import Any, Final

from springback.producers.install_hints import MissingExtraError
from springback.producers.mapping.signal_mapping import TimedMessage
from springback.producers.recordings.opening import OpenRecording

try:
    import pyulog  # type: ignore[import-untyped]
except ImportError as error:
    raise MissingExtraError(extra="ulog", cause=error) from error

_MOST_INSTANCES: Final = 10
_ITEM: Final = re.compile(r"(.*)\[(\d+)\]")
_BATCH_ROWS: Final = 1024


def read_messages(recording: OpenRecording) -> Iterator[TimedMessage]:
    """The messages of all topics in the order of their times; arrays in a message are lists again."""
    try:
        formats = _parse(recording, parse_header_only=True).message_formats
        log = _parse(recording, message_name_filter_list=[name for name in formats if _is_read(recording, name)])
    except Exception as error:  # pyulog raises whatever it stumbles over
        recording.unreadable(0, "damaged_file", f"nothing of it can be read: {type(error).__name__}: {error}")
        return
    if log.file_corruption:
        recording.unreadable(0, "damaged_parts", "parts of it are damaged; they are left out")
    if log.dropouts:
        lost_s = sum(dropout.duration for dropout in log.dropouts) / 1000
        recording.unreadable(0, "dropouts", f"the logger lost {len(log.dropouts)} stretches, {lost_s:.3g} s in all")
    wanted = [data for data in log.data_list if recording.wants(_topic(data))]
    total = sum(len(data.data["timestamp"]) for data in wanted)
    messages = heapq.merge(*map(_messages, wanted), key=lambda message: message.receive_s)
    for number, message in enumerate(messages, 1):
        recording.read_share = number / total
        yield message


def _parse(recording: OpenRecording, **options: Any) -> Any:
    with recording.path.open("rb") as file:  # given a name, pyulog leaves open a file that it cannot read
        return pyulog.ULog(file, **options)


def _is_read(recording: OpenRecording, name: str) -> bool:
    return any(recording.mapping.reads(f"{name}/{instance}") for instance in range(_MOST_INSTANCES))


def _topic(data: Any) -> str:
    return f"{data.name}/{data.multi_id}"


def _messages(data: Any) -> Iterator[TimedMessage]:
    topic, times_us = _topic(data), data.data["timestamp"]
    for start in range(0, len(times_us), _BATCH_ROWS):
        rows = slice(start, start + _BATCH_ROWS)
        columns = {name: column[rows].tolist() for name, column in data.data.items()}
        for place, time_us in enumerate(times_us[rows].tolist()):
            yield TimedMessage(topic, time_us * 1e-6, _value(columns, place))


def _value(columns: dict[str, list[Any]], place: int) -> dict[str, Any]:
    """One message: the columns `q[0]`, `q[1]` … come in order, and become the list `q`."""
    value: dict[str, Any] = {}
    for name, column in columns.items():
        item = _ITEM.fullmatch(name)
        if item is None:
            value[name] = column[place]
        else:
            value.setdefault(item[1], []).append(column[place])
    return value
