"""Rows of Parquet files, row group by row group; only the columns that the mapping reads."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from springback.producers.install_hints import MissingExtraError
from springback.producers.mapping.signal_mapping import TimedMessage
from springback.producers.recordings.opening import OpenRecording
from springback.producers.recordings.rows import row_message

try:
    import pyarrow  # type: ignore[import-untyped]
    import pyarrow.parquet  # type: ignore[import-untyped]
except ImportError as error:
    raise MissingExtraError(extra="recordings", cause=error) from error

_BATCH_ROWS: Final = 1024


def read_messages(recording: OpenRecording) -> Iterator[TimedMessage]:
    """The rows in order; a damaged row group is left out, and so is all of a file without its footer."""
    for number, row, share in file_rows(recording, recording.path):
        recording.read_share = share
        yield row_message(recording, number, row)


def file_rows(
    recording: OpenRecording, path: Path, also: frozenset[str] = frozenset()
) -> Iterator[tuple[int, dict[str, Any], float]]:
    """The rows of one file.

    Args:
        recording: the recording that it is a part of.
        path: the file.
        also: columns to read beyond those of the mapping.

    Yields:
        a row's number from 1, the row, and the share of the file that has been read with it.
    """
    number = 0
    try:
        with pyarrow.parquet.ParquetFile(path, memory_map=True) as file:
            wanted = recording.mapping.columns
            columns = None if wanted is None else [name for name in file.schema_arrow.names if name in wanted | also]
            total = file.metadata.num_rows
            for group in range(file.metadata.num_row_groups):
                start = number
                try:
                    for batch in file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=columns):
                        for row in _in_microseconds(batch).to_pylist():
                            number += 1
                            yield number, _plain(row), number / total
                except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:  # odd times
                    number = start + file.metadata.row_group(group).num_rows
                    recording.unreadable(start + 1, "damaged_rows", f"{path.name}: rows up to {number}: {_line(error)}")
    except (pyarrow.ArrowException, OSError) as error:
        recording.unreadable(number, "damaged_file", f"{path.name}: nothing of it can be read: {_line(error)}")


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _in_microseconds(batch: Any) -> Any:
    """The batch with times that Python can hold, which has none of nanoseconds."""
    for place, column in enumerate(batch.schema):
        kind = column.type
        if pyarrow.types.is_timestamp(kind) and kind.unit == "ns":
            kind = pyarrow.timestamp("us", kind.tz)
        elif pyarrow.types.is_duration(kind) and kind.unit == "ns":
            kind = pyarrow.duration("us")
        if kind != column.type:
            batch = batch.set_column(place, column.name, batch.column(place).cast(kind, safe=False))
    return batch


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """The row without cells that are null, as in the other formats of tables."""
    return {name: _plain_cell(value) for name, value in row.items() if value is not None}


def _plain_cell(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return (value if value.tzinfo else value.replace(tzinfo=datetime.timezone.utc)).timestamp()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    return float(value) if isinstance(value, decimal.Decimal) else value
