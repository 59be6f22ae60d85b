"""From a step frame to bytes: MessagePack with packed columns (ours), and the JSON that any client may write."""

import math
from typing import Any

import msgspec
import numpy as np
from springback.producers.column_reading import shown
from springback.producers.frame_parts import MAX_DISTINCT_TEXTS, StepFrame, TextColumn
from springback.producers.step_columns import STEP_COLUMNS, ColumnSpec, is_absent
from springback.producers.text_repair import without_lone_surrogates

_msgpack_encoder = msgspec.msgpack.Encoder()
_json_encoder = msgspec.json.Encoder()


def encode_msgpack(frame: StepFrame) -> bytes:
    """The frame as MessagePack: numeric columns as bins of little-endian float64 or int64, texts as strings and codes.

    More than 65,536 distinct strings in a column do not fit uint16 codes: it is written as a plain list.
    """
    return _msgpack_encoder.encode(_document(frame, _packed))


def encode_json(frame: StepFrame) -> bytes:
    """The frame as JSON: lists, null for an absent cell, and the strings "NaN", "Infinity", "-Infinity".

    JSON has no such numbers, and null would make a broken value pass for one that was left out.
    """
    return _json_encoder.encode(_document(frame, _listed))


def _document(frame: StepFrame, column_form: Any) -> dict[str, Any]:
    document: dict[str, Any] = {
        "schema_version": frame.schema_version,
        "producer": without_lone_surrogates(frame.producer),
        "session": without_lone_surrogates(frame.session),
        "episodes": [_repaired(header) for header in frame.episodes],
    }
    if frame.steps:
        document["steps"] = {
            spec.name: column_form(spec, frame.steps[spec.name]) for spec in STEP_COLUMNS if spec.name in frame.steps
        }
    if frame.ends:
        document["ends"] = frame.ends
    return document


def _repaired(header: msgspec.Struct) -> msgspec.Struct:
    broken = {
        name: repaired
        for name, value in msgspec.structs.asdict(header).items()
        if isinstance(value, str) and (repaired := without_lone_surrogates(value)) is not value
    }
    return msgspec.structs.replace(header, **broken) if broken else header


def _packed(spec: ColumnSpec, column: Any) -> Any:
    if isinstance(column, TextColumn):
        values = [without_lone_surrogates(text) for text in column.values]
        if len(values) > MAX_DISTINCT_TEXTS:
            return [values[code] for code in column.codes.tolist()]
        return [values, column.codes.astype("<u2", copy=False).tobytes()]
    return np.asarray(column, dtype="<i8" if spec.kind == "integer" else "<f8").tobytes()


def _listed(spec: ColumnSpec, column: Any) -> list[Any]:
    if isinstance(column, TextColumn):
        values = [without_lone_surrogates(text) for text in column.values]
        return [values[code] for code in column.codes.tolist()]
    if spec.kind == "integer":
        integers: list[Any] = np.asarray(column, dtype=np.int64).tolist()
        return integers
    numbers = np.asarray(column, dtype=np.float64)
    cells: list[Any] = numbers.tolist()
    if np.isfinite(numbers).all():
        return cells
    absent = is_absent(numbers).tolist()
    return [
        None if left_out else cell if math.isfinite(cell) else shown(cell)
        for cell, left_out in zip(cells, absent, strict=True)
    ]
