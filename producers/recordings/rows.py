"""Rows of CSV files and records of JSON Lines, plain or gzip; and how a row of any table becomes a message."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import Any, Final

from springback.producers.mapping.paths import MISSING
from springback.producers.mapping.signal_mapping import TimedMessage
from springback.producers.mapping.values import seconds_of, text_of
from springback.producers.recordings.opening import OpenRecording, json_value
from springback.producers.recordings.step_frames import READ_ERRORS, recording_lines

DELIMITERS: Final = ",;\t"
_LONGEST_LINE: Final = 1 << 20
_NUMBER: Final = re.compile(r"[+-]?(?:0|[1-9]\d*)?(?:\.\d*)?(?:[eE][+-]?\d+)?")
_NOT_FINITE: Final = {"nan", "inf", "+inf", "-inf", "infinity", "-infinity"}
_TRUTHS: Final = {"true": True, "false": False}


def row_message(recording: OpenRecording, number: int, row: Any) -> TimedMessage:
    """The message of a row: topic and time are where the mapping says; without a time, its number counts seconds."""
    mapping = recording.mapping
    topic = "" if mapping.record_topic is None else text_of(mapping.record_topic.read(row)) or ""
    own = mapping.header_time.read(row)
    own_s = None if own is MISSING else seconds_of(own, mapping.header_unit_s)
    recording.wants(topic)
    return TimedMessage(topic, float(number) if own_s is None else own_s, row)


def read_json_lines(recording: OpenRecording) -> Iterator[TimedMessage]:
    """The records in order, one JSON value of any shape a line; a line that is not JSON is left out."""
    for number, line in recording_lines(recording.stream, recording.source, recording.report):
        try:
            value = json_value(line)
        except ValueError as error:
            recording.unreadable(number, "not_json", str(error))
        else:
            yield row_message(recording, number, value)


def read_csv(recording: OpenRecording) -> Iterator[TimedMessage]:
    """The rows below the heading, in order; a row with more or fewer cells than the heading is left out."""
    lines = _lines(recording)
    heading = next(lines, "")
    delimiter = max(DELIMITERS, key=heading.count)
    names = [name.strip() for name in next(csv.reader([heading], delimiter=delimiter, skipinitialspace=True), [])]
    rows = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    while True:
        try:
            cells = next(rows, None)
        except csv.Error as error:
            recording.unreadable(rows.line_num + 1, "unreadable_row", str(error))
            continue
        if cells is None:
            return
        if len(cells) == len(names):
            values = ((name, cell_value(cell)) for name, cell in zip(names, cells))
            yield row_message(recording, rows.line_num, {name: value for name, value in values if value is not None})
        elif cells:
            told = f"{len(cells)}; the heading has {len(names)}"
            recording.unreadable(rows.line_num + 1, "wrong_number_of_cells", told)


def cell_value(cell: str) -> Any:
    """A cell as a number, a truth or a text; None where it is empty. `007` stays a text.

    >>> [cell_value(cell) for cell in ("0.5", "1e3", "007", "true", "", "nan", "dock")]
    [0.5, 1000.0, '007', True, None, nan, 'dock']
    """
    text = cell.strip()
    if not text:
        return None
    if any(character.isdigit() for character in text) and _NUMBER.fullmatch(text):
        return float(text) if {".", "e", "E"} & set(text) else int(text)
    if text.lower() in _NOT_FINITE:
        return float(text)
    return _TRUTHS.get(text.lower(), text)


def _lines(recording: OpenRecording) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        try:
            line = recording.stream.readline(_LONGEST_LINE)
        except READ_ERRORS as error:
            recording.unreadable(number, "damaged_gzip", f"nothing can be read from here on ({error})")
            return
        if not line:
            return
        yield line.decode("utf-8-sig" if number == 1 else "utf-8", errors="replace")
