"""Rows of CSV files with a heading, plain or gzip."""

import csv
import re
from collections.abc import Iterator
from typing import Any, Final

from springback.producers.mapping.timed_message import TimedMessage
from springback.producers.recordings.opening import READ_ERRORS, OpenRecording
from springback.producers.recordings.table_rows import row_message

DELIMITERS: Final = ",;\t"
_LONGEST_LINE: Final = 1 << 20
_NUMBER: Final = re.compile(r"[+-]?(?:0|[1-9]\d*)?(?:\.\d*)?(?:[eE][+-]?\d+)?")
_NOT_FINITE: Final = {"nan", "inf", "+inf", "-inf", "infinity", "-infinity"}
_TRUTHS: Final = {"true": True, "false": False}


def read_messages(recording: OpenRecording) -> Iterator[TimedMessage]:
    """The rows in order. Cells that look like numbers are numbers, empty ones are not there, `007` stays a text."""
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
            row = {
                name: value for name, cell in zip(names, cells, strict=True) if (value := cell_value(cell)) is not None
            }
            yield row_message(recording, rows.line_num, row)
        elif cells:
            recording.unreadable(
                rows.line_num + 1, "wrong_number_of_cells", f"{len(cells)}; the heading has {len(names)}"
            )


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


def cell_value(cell: str) -> Any:
    """A cell as a number, a truth or a text; None where it is empty.

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
