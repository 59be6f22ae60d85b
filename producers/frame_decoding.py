"""From bytes to a step frame: the fast way for clean frames. Whatever is odd goes to `frame_salvage`."""

import json
from typing import Any

import msgspec
import numpy as np
from springback.producers.column_reading import MAX_FRAME_ROWS, packed_numbers, packed_text
from springback.producers.errors import UnreadableFrameError
from springback.producers.frame_parts import (
    SCHEMA_VERSION,
    EpisodeEnd,
    EpisodeHeader,
    Identifier,
    StepColumn,
    StepFrame,
    TextColumn,
)
from springback.producers.frame_salvage import salvage_frame
from springback.producers.step_columns import ABSENT, STEP_COLUMNS, ColumnSpec
from springback.producers.text_repair import without_lone_surrogates

MAX_FRAME_BYTES = 32 * 1024 * 1024

_MSGPACK_STARTS = frozenset([*range(0x80, 0x90), 0xDE, 0xDF])
_JSON_STARTS = frozenset(b"{[ \t\r\n\xef")
_JSON_CELLS = {"integer": list[int], "number": list[float | None], "text": list[str | None]}
_MSGPACK_CELLS = {
    "integer": bytes | list[int],
    "number": bytes | list[float | None],
    "text": list[Any],
}


class _OddFrameError(Exception):
    """The fast way does not apply."""


def _wire_decoder(cells: dict[str, Any], encoding: Any) -> Any:
    steps = msgspec.defstruct("Steps", [(spec.name, cells[spec.kind] | None, None) for spec in STEP_COLUMNS])
    wire = msgspec.defstruct(
        "WireFrame",
        [
            ("schema_version", Any),
            ("producer", Identifier),
            ("session", Identifier),
            ("episodes", tuple[EpisodeHeader, ...], ()),
            ("steps", steps | None, None),
            ("ends", tuple[EpisodeEnd, ...], ()),
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
    except (msgspec.MsgspecError, RecursionError, OverflowError, _OddFrameError):
        return salvage_frame(document(data))


def _clean_frame(wire: Any) -> StepFrame:
    if type(wire.schema_version) is not int or wire.schema_version != SCHEMA_VERSION:
        raise _OddFrameError
    return StepFrame(
        producer=wire.producer,
        session=wire.session,
        episodes=wire.episodes,
        steps={} if wire.steps is None else _clean_columns(wire.steps),
        ends=wire.ends,
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
    except msgspec.MsgspecError as error:
        raise UnreadableFrameError(reason="not_msgpack", detail=f"{error}; expected a MessagePack map") from error


def _json_document(data: bytes) -> object:
    """By the standard library, which takes the NaN and Infinity that Python clients write; a bad row is then a row."""
    text = data.decode("utf-8-sig", errors="replace")
    try:
        document = json.loads(text)
        return _repaired(document) if "\\u" in text else document
    except RecursionError as error:
        raise UnreadableFrameError(reason="too_deep", detail="nested too deeply to be a step frame") from error
    except ValueError as error:
        raise UnreadableFrameError(reason="not_json", detail=f"{error}; expected a JSON object") from error


def _repaired(value: Any) -> Any:
    if isinstance(value, str):
        return without_lone_surrogates(value)
    if isinstance(value, list):
        return [_repaired(item) for item in value]
    if isinstance(value, dict):
        return {_repaired(key): _repaired(item) for key, item in value.items()}
    return value
