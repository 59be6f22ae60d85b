"""The wire contract: one Kafka message is a `StepFrame`, a columnar batch of steps of one producer.

Frames are self-describing: each carries the headers of the episodes that its steps belong to, so a worker that joins
late understands the first frame that it sees. Our emitter writes MessagePack (`encode_msgpack`); any other client may
write the same structure as JSON; `decode_frame` tells them apart by the first byte. It reads clean frames the fast
way, and leaves whatever is odd to `salvage`. Whether the values make sense is checked by the worker.

Unknown fields are ignored, and missing optional ones take their defaults. The message's key is the producer's id, so
that the steps of one producer stay in order on one partition.

>>> import numpy as np
>>> header = EpisodeHeader(agent="robot-7", episode="12", family="transportation")
>>> steps = {"episode": np.array([0, 0]), "step": np.array([17, 18]), "progress": np.array([0.41, 0.43])}
>>> frame = StepFrame(producer="robot-7", session="2026-11-30T08:00:00Z-3f2a", episodes=(header,), steps=steps)
>>> decode_frame(encode_msgpack(frame)).steps["step"].tolist()
[17, 18]
>>> encode_json(frame)[:60]
b'{"schema_version":1,"producer":"robot-7","session":"2026-11-'
"""

from __future__ import annotations

import json
import math
from typing import Any, Optional, Union

import msgspec
import numpy as np

from springback.producers.contract.columns import ABSENT, STEP_COLUMNS, ColumnSpec, is_absent, without_lone_surrogates
from springback.producers.contract.fault_words import shown
from springback.producers.contract.frame import (
    MAX_DISTINCT_TEXTS,
    SCHEMA_VERSION,
    Count,
    EpisodeEnd,
    EpisodeHeader,
    Identifier,
    StepColumn,
    StepFrame,
    TextColumn,
)
from springback.producers.contract.salvage import (
    MAX_FRAME_EPISODES,
    MAX_FRAME_ROWS,
    packed_numbers,
    packed_text,
    salvage_frame,
)
from springback.producers.errors import UnreadableFrameError

MAX_FRAME_BYTES = 32 * 1024 * 1024
_MSGPACK_STARTS = frozenset([*range(0x80, 0x90), 0xDE, 0xDF])
_JSON_STARTS = frozenset(b"{[ \t\r\n\xef")
_JSON_CELLS = {"integer": list[int], "number": list[Optional[float]], "text": list[Optional[str]]}
_MSGPACK_CELLS = {"integer": Union[bytes, list[int]], "number": Union[bytes, list[Optional[float]]], "text": list[Any]}

# Until msgspec 0.20, the newest for Python 3.9, a text that is not UTF-8 has an error of its own.
_NOT_DECODED = (msgspec.MsgspecError, UnicodeDecodeError)

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
        "episodes": [_repaired_header(header) for header in frame.episodes],
    }
    if frame.steps:
        document["steps"] = {
            spec.name: column_form(spec, frame.steps[spec.name]) for spec in STEP_COLUMNS if spec.name in frame.steps
        }
    if frame.ends:
        document["ends"] = frame.ends
    if frame.lost_steps:
        document["lost_steps"] = frame.lost_steps
    if frame.lost_ends:
        document["lost_ends"] = frame.lost_ends
    return document


def _repaired_header(header: msgspec.Struct) -> msgspec.Struct:
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
    return [None if left_out else cell if math.isfinite(cell) else shown(cell) for cell, left_out in zip(cells, absent)]


class _OddFrameError(Exception):
    """The fast way does not apply."""


def _wire_decoder(cells: dict[str, Any], encoding: Any) -> Any:
    steps = msgspec.defstruct("Steps", [(spec.name, Optional[cells[spec.kind]], None) for spec in STEP_COLUMNS])
    wire = msgspec.defstruct(
        "WireFrame",
        [
            ("schema_version", Any),
            ("producer", Identifier),
            ("session", Identifier),
            ("episodes", tuple[EpisodeHeader, ...], ()),
            ("steps", Optional[steps], None),
            ("ends", tuple[EpisodeEnd, ...], ()),
            ("lost_steps", Count, 0),
            ("lost_ends", Count, 0),
        ],
    )
    return encoding.Decoder(wire)


_json_decoder = _wire_decoder(_JSON_CELLS, msgspec.json)
_msgpack_decoder = _wire_decoder(_MSGPACK_CELLS, msgspec.msgpack)


def decode_frame(data: bytes) -> StepFrame:
    """The step frame in a message, MessagePack or JSON, told apart by the first byte.

    Raises:
        UnreadableFrameError: the bytes are no frame that can be used; `reason` says why. Nothing else is raised,
            whatever arrives.
    """
    if not data:
        raise UnreadableFrameError(reason="empty", detail="no bytes; expected a step frame as JSON or MessagePack")
    if len(data) > MAX_FRAME_BYTES:
        message = f"{len(data)} bytes, at most {MAX_FRAME_BYTES} are taken; send smaller frames"
        raise UnreadableFrameError(reason="too_large", detail=message)
    if data[0] in _MSGPACK_STARTS:
        decoder, document = _msgpack_decoder, _msgpack_document
    elif data[0] in _JSON_STARTS:
        decoder, document = _json_decoder, _json_document
    else:
        message = f"first byte 0x{data[0]:02x} begins neither a JSON object nor a MessagePack map"
        raise UnreadableFrameError(reason="unknown_encoding", detail=message)
    try:
        return _clean_frame(decoder.decode(data))
    except (*_NOT_DECODED, RecursionError, OverflowError, _OddFrameError):
        return salvage_frame(document(data))


def decode_document(data: bytes) -> object:
    """What a message holds, whatever that is: for those who look at what a frame has and the contract does not.

    Raises:
        UnreadableFrameError: it is neither MessagePack nor JSON.
    """
    if data[:1] and data[0] in _MSGPACK_STARTS:
        return _msgpack_document(data)
    try:
        return msgspec.json.decode(data)
    except (*_NOT_DECODED, RecursionError):
        return _json_document(data)


def _clean_frame(wire: Any) -> StepFrame:
    if type(wire.schema_version) is not int or wire.schema_version != SCHEMA_VERSION:
        raise _OddFrameError
    if max(len(wire.episodes), len(wire.ends)) > MAX_FRAME_EPISODES:
        raise _OddFrameError
    return StepFrame(
        producer=wire.producer,
        session=wire.session,
        episodes=wire.episodes,
        steps={} if wire.steps is None else _clean_columns(wire.steps),
        ends=wire.ends,
        lost_steps=wire.lost_steps,
        lost_ends=wire.lost_ends,
    )


def _clean_columns(steps: Any) -> dict[str, StepColumn]:
    columns: dict[str, StepColumn] = {}
    rows = -1
    for spec in STEP_COLUMNS:
        cells = getattr(steps, spec.name)
        if cells is None:
            if spec.required:
                raise _OddFrameError
            continue
        column = _clean_text(spec, cells) if spec.kind == "text" else _clean_numbers(spec, cells)
        if len(column) != rows:
            if rows >= 0:
                raise _OddFrameError
            rows = len(column)
        columns[spec.name] = column
    if rows > MAX_FRAME_ROWS:
        raise _OddFrameError
    return columns


def _clean_numbers(spec: ColumnSpec, cells: Any) -> StepColumn:
    if type(cells) is bytes:
        return packed_numbers(spec, cells)
    if spec.kind == "integer":
        return np.array(cells, dtype=np.int64)
    return np.array([ABSENT if cell is None else cell for cell in cells] if None in cells else cells, np.float64)


def _clean_text(spec: ColumnSpec, cells: list[Any]) -> TextColumn:
    if len(cells) == 2 and type(cells[0]) is list and type(cells[1]) is bytes:
        return packed_text(spec, cells[0], cells[1])
    if not all(type(cell) is str for cell in cells):
        cells = [spec.default if cell is None else cell for cell in cells]
        if not all(type(cell) is str for cell in cells):
            raise _OddFrameError
    return TextColumn.of(cells)


def _msgpack_document(data: bytes) -> object:
    try:
        return msgspec.msgpack.decode(data)
    except RecursionError as error:
        raise UnreadableFrameError(reason="too_deep", detail="nested too deeply to be a step frame") from error
    except _NOT_DECODED as error:
        raise UnreadableFrameError(reason="not_msgpack", detail=f"{error}; expected a MessagePack map") from error


def _json_document(data: bytes) -> object:
    """By the standard library, which takes the NaN and Infinity that Python clients write: they cost only their row."""
    text = data.decode("utf-8-sig", errors="replace")
    try:
        document = json.loads(text)
        return _repaired_document(document) if "\\u" in text else document
    except RecursionError as error:
        raise UnreadableFrameError(reason="too_deep", detail="nested too deeply to be a step frame") from error
    except ValueError as error:
        raise UnreadableFrameError(reason="not_json", detail=f"{error}; expected a JSON object") from error


def _repaired_document(value: Any) -> Any:
    if isinstance(value, str):
        return without_lone_surrogates(value)
    if isinstance(value, list):
        return [_repaired_document(item) for item in value]
    if isinstance(value, dict):
        return {_repaired_document(key): _repaired_document(item) for key, item in value.items()}
    return value
