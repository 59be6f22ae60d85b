"""Reads what can be read of a frame that is not clean: every fault costs the smallest part that it spoils (ours).

A cell that makes no sense costs its row; a header, an end or an end's navigation fields are taken out alone. Only a
frame whose parts do not fit together, or with a column that is none, is lost whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import numpy as np

from springback.producers.contract.columns import (
    ABSENT,
    LARGEST_INTEGER,
    LARGEST_LOAD,
    STEP_COLUMNS,
    ColumnSpec,
    rounded_back,
)
from springback.producers.contract.fault_words import shown, shown_fields, told, without_rounding
from springback.producers.contract.frame import (
    SCHEMA_VERSION,
    Count,
    EpisodeEnd,
    EpisodeHeader,
    Identifier,
    NavigationOutcome,
    NonNegative,
    PartFault,
    StepColumn,
    StepFrame,
    TextColumn,
)
from springback.producers.errors import UnreadableFrameError

T = TypeVar("T")

MAX_FRAME_ROWS = 100_000
MAX_FRAME_EPISODES = 2048
"""Headers in a frame, and ends in one: each costs a reader far more than a row does (ours)."""
MOST_SHOWN = 1000
"""Faults of a frame of which it is kept what arrived: to show 300,000 bad cells takes seconds."""
UNUSABLE_HEADER = EpisodeHeader(agent="", episode="", family="")
_MAGNITUDE: Any = NonNegative
_NOT_FINITE = {"NaN", "Infinity", "-Infinity"}
_SINGULAR = {
    "episodes": "episode",
    "ends": "end",
    "navigation": "navigation",
    "realised_magnitude": "realised_magnitude",
    "extended": "extended",
}


def salvage_frame(document: object) -> StepFrame:
    """The frame in a decoded document of any shape, with what could not be read in `faults`.

    Raises:
        UnreadableFrameError: nothing of it can be used.
    """
    if not isinstance(document, dict):
        message = f"got {type(document).__name__}, expected an object with schema_version, producer and session"
        raise UnreadableFrameError(reason="not_an_object", detail=message)
    version = _tidied(document).get("schema_version")
    if type(version) is not int or version != SCHEMA_VERSION:
        message = f"schema_version {shown(version)!r}, this reader knows {SCHEMA_VERSION}"
        raise UnreadableFrameError(reason="unsupported_schema_version", detail=message)
    faults: list[PartFault] = []
    return StepFrame(
        producer=_identifier(document, "producer"),
        session=_identifier(document, "session"),
        episodes=tuple(read_header(i, entry, faults) for i, entry in enumerate(_entries(document, "episodes"))),
        steps=_columns(document.get("steps"), faults),
        ends=tuple(
            end for i, entry in enumerate(_entries(document, "ends")) if (end := read_end(i, entry, faults)) is not None
        ),
        faults=tuple(faults),
        lost_steps=_count(document, "lost_steps"),
        lost_ends=_count(document, "lost_ends"),
    )


def _identifier(document: dict[Any, Any], name: str) -> str:
    try:
        return msgspec.convert(document.get(name), Identifier)
    except msgspec.ValidationError as error:
        raise UnreadableFrameError(
            reason=f"bad_{name}", detail=f"{name} {shown(document.get(name))!r}: {error}"
        ) from error


def _count(document: dict[Any, Any], name: str) -> int:
    """A count that is a remark, for whose sake no frame is refused: 0 where it is none."""
    try:
        return msgspec.convert(document.get(name, 0), Count)
    except msgspec.ValidationError:
        return 0


def _entries(document: dict[Any, Any], name: str) -> list[Any]:
    entries = document.get(name)
    if entries is None:
        return []
    if not isinstance(entries, list):
        raise UnreadableFrameError(
            reason=f"bad_{name}", detail=f"{name}: got {type(entries).__name__}, expected an array"
        )
    if len(entries) > MAX_FRAME_EPISODES:
        message = f"{len(entries)} {name}, at most {MAX_FRAME_EPISODES} are taken; send smaller frames"
        raise UnreadableFrameError(reason=f"too_many_{name}", detail=message)
    return entries


def read_header(index: int, entry: object, faults: list[PartFault]) -> EpisodeHeader:
    """The header in a document; `UNUSABLE_HEADER` and a fault where it is none."""
    header = _convert("episodes", index, entry, EpisodeHeader, faults)
    return UNUSABLE_HEADER if header is None else header


def read_end(index: int, entry: object, faults: list[PartFault]) -> EpisodeEnd | None:
    """The end in a document; None and a fault where it is none.

    What else it says and is broken (navigation fields, a magnitude, `extended`) is left out of it: it must not cost the
    outcome, for without its end the episode would count as aborted.
    """
    if not isinstance(entry, dict):
        return _convert("ends", index, entry, EpisodeEnd, faults)
    fields = {key: value for key, value in entry.items() if key not in ("navigation", "realised_magnitude", "extended")}
    end = _convert("ends", index, fields, EpisodeEnd, faults)
    if end is None:
        return None
    navigation = magnitude = None
    if entry.get("navigation") is not None:
        navigation = _convert("navigation", index, entry["navigation"], NavigationOutcome, faults)
    if entry.get("realised_magnitude") is not None:
        magnitude = _convert("realised_magnitude", index, entry["realised_magnitude"], _MAGNITUDE, faults)
    extended = _convert("extended", index, entry.get("extended", False), bool, faults) or False
    return msgspec.structs.replace(end, navigation=navigation, realised_magnitude=magnitude, extended=extended)


def _convert(part: Any, index: int, entry: object, kind: type[T], faults: list[PartFault]) -> T | None:
    values = _tidied(entry) if isinstance(entry, dict) else entry
    is_struct = isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    if isinstance(values, dict) and is_struct:
        values = without_rounding(kind, values)
    elif isinstance(values, float):
        values = rounded_back(values, 0.0, LARGEST_LOAD)
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        field, detail = told(kind, entry, error)
        arrived = shown_fields(entry if isinstance(entry, dict) else {"value": entry})
        if not is_struct:
            field, detail = part, f"{part}: {detail}"
        faults.append(PartFault(part, index, f"invalid_{_SINGULAR[part]}", detail, arrived, field))
        return None


def _tidied(entry: dict[Any, Any]) -> dict[Any, Any]:
    """Null means left out, and 34.0 is as good an integer as 34."""
    return {
        key: int(value) if isinstance(value, float) and value.is_integer() else value
        for key, value in entry.items()
        if value is not None
    }


def _columns(steps: object, faults: list[PartFault]) -> dict[str, StepColumn]:
    if steps is None:
        return {}
    if not isinstance(steps, dict):
        raise UnreadableFrameError(
            reason="bad_steps", detail=f"steps: got {type(steps).__name__}, expected an object of columns"
        )
    columns = {
        spec.name: read_column(spec, steps[spec.name], faults)
        for spec in STEP_COLUMNS
        if steps.get(spec.name) is not None
    }
    _check_table(columns)
    return columns


def _check_table(columns: dict[str, StepColumn]) -> None:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise UnreadableFrameError(
            reason="unequal_columns", detail=f"steps: lengths {lengths}, expected one length for all"
        )
    missing = [spec.name for spec in STEP_COLUMNS if spec.required and spec.name not in columns]
    if missing and any(lengths.values()):
        raise UnreadableFrameError(
            reason="missing_column", detail=f"steps: {', '.join(missing)} not there; every row needs them"
        )


def read_column(spec: ColumnSpec, cells: object, faults: list[PartFault]) -> StepColumn:
    """The column in its in-memory form; cells that cannot be read are added to `faults` and hold a placeholder.

    Raises:
        UnreadableFrameError: this is no column.
    """
    _check_length(spec, cells)
    if spec.kind != "text" and isinstance(cells, bytes):
        return packed_numbers(spec, cells)
    if isinstance(cells, list):
        if spec.kind == "number":
            return np.array(_read_numbers(spec, cells, faults), dtype=np.float64)
        if spec.kind == "integer":
            return np.array(_read_cells(spec, cells, _integer_cell, 0, faults), dtype=np.int64)
        if len(cells) == 2 and isinstance(cells[0], list) and isinstance(cells[1], bytes):
            return packed_text(spec, cells[0], cells[1])
        return TextColumn.of(_read_cells(spec, cells, _text_cell, str(spec.default), faults))
    raise _bad_column(spec, f"got {type(cells).__name__}, expected an array")


def packed_numbers(spec: ColumnSpec, data: bytes) -> StepColumn:
    """A numeric column from its packed form, without a copy.

    Raises:
        UnreadableFrameError: the length is no multiple of 8 bytes.
    """
    if len(data) % 8:
        raise _bad_column(spec, f"{len(data)} packed bytes are no multiple of 8")
    return np.frombuffer(data, dtype="<i8" if spec.kind == "integer" else "<f8")


def packed_text(spec: ColumnSpec, values: list[Any], data: bytes) -> TextColumn:
    """A text column from its packed form.

    Raises:
        UnreadableFrameError: a string is none, the length is odd, or an index has no string.
    """
    if not all(type(value) is str for value in values):
        raise _bad_column(spec, "not all of its distinct strings are strings")
    if len(data) % 2:
        raise _bad_column(spec, f"{len(data)} packed bytes are no multiple of 2")
    codes = np.frombuffer(data, dtype="<u2")
    if len(codes) and int(codes.max()) >= len(values):
        raise _bad_column(spec, f"index {codes.max()} into {len(values)} strings")
    return TextColumn(values, codes)


def _check_length(spec: ColumnSpec, cells: object) -> None:
    rows = len(cells) // 8 if isinstance(cells, bytes) else len(cells) if isinstance(cells, list) else 0
    if rows > MAX_FRAME_ROWS:
        message = f"{rows} rows in steps.{spec.name}, at most {MAX_FRAME_ROWS} are taken; send smaller frames"
        raise UnreadableFrameError(reason="too_many_rows", detail=message)


def _read_numbers(spec: ColumnSpec, cells: list[Any], faults: list[PartFault]) -> list[float]:
    try:
        return msgspec.convert(cells, list[float])
    except msgspec.ValidationError:
        return _read_cells(spec, cells, _number_cell, ABSENT, faults)


def _read_cells(
    spec: ColumnSpec, cells: list[Any], read: Callable[[ColumnSpec, Any], T], placeholder: T, faults: list[PartFault]
) -> list[T]:
    column: list[T] = []
    for row, cell in enumerate(cells):
        try:
            column.append(read(spec, cell))
        except _CellError as error:
            detail, values = f"{spec.name}: expected {error.expected}", {}
            if len(faults) < MOST_SHOWN:
                detail = f"{spec.name}: got {shown(cell)!r}, expected {error.expected}"
                values = {spec.name: shown(cell)}
            faults.append(PartFault("steps", row, error.reason, detail, values, spec.name))
            column.append(placeholder)
    return column


class _CellError(Exception):
    """A cell that cannot be read: its reason and what was expected."""

    def __init__(self, *, reason: str, expected: str) -> None:
        super().__init__(reason, expected)
        self.reason = reason
        self.expected = expected


def _number_cell(spec: ColumnSpec, cell: object) -> float:
    if cell is None:
        return ABSENT
    if isinstance(cell, float):
        return cell
    if isinstance(cell, int) and not isinstance(cell, bool):
        try:
            return float(cell)
        except OverflowError as error:
            raise _CellError(reason="out_of_range", expected="a number that a float64 holds") from error
    if isinstance(cell, str) and cell in _NOT_FINITE:
        return float(cell)
    raise _CellError(reason="wrong_type", expected="a number")


def _integer_cell(spec: ColumnSpec, cell: object) -> int:
    if cell is None:
        raise _CellError(reason="missing", expected="an integer: every row needs one")
    if isinstance(cell, float) and not np.isfinite(cell):
        raise _CellError(reason="not_finite", expected="an integer")
    if isinstance(cell, bool) or not (isinstance(cell, int) or (isinstance(cell, float) and cell.is_integer())):
        raise _CellError(reason="wrong_type", expected="an integer")
    if abs(cell) > LARGEST_INTEGER:
        raise _CellError(reason="out_of_range", expected="an integer of at most 2^53")
    return int(cell)


def _text_cell(spec: ColumnSpec, cell: object) -> str:
    if cell is None:
        return str(spec.default)
    if not isinstance(cell, str):
        raise _CellError(reason="wrong_type", expected="a text")
    return cell


def _bad_column(spec: ColumnSpec, problem: str) -> UnreadableFrameError:
    return UnreadableFrameError(reason="bad_column", detail=f"steps.{spec.name}: {problem}")
