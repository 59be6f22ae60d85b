"""The JSON Schema of the JSON form of a step frame, for clients that do not use our emitter.

It is built from what the code itself checks: the table of `columns` and the structs of `frame`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from springback.producers.contract.columns import LARGEST_INTEGER, LARGEST_NUMBER, STEP_COLUMNS, ColumnSpec
from springback.producers.contract.frame import MAX_IDENTIFIER, SCHEMA_VERSION, EpisodeEnd, EpisodeHeader
from springback.producers.contract.salvage import MAX_FRAME_EPISODES, MAX_FRAME_ROWS

SCHEMA_ID = f"urn:springback:step-frame:v{SCHEMA_VERSION}"


def frame_schema() -> dict[str, Any]:
    """The schema, JSON Schema 2020-12.

    It says what a wholly valid frame is. The reader forgives more: of a frame with a bad row it takes the others, and
    fields that it does not know it ignores.

    >>> frame_schema()["required"]
    ['schema_version', 'producer', 'session']
    """
    references, components = msgspec.json.schema_components([EpisodeHeader, EpisodeEnd], ref_template="#/$defs/{name}")
    header, end = references
    identifier = {"type": "string", "minLength": 1, "maxLength": MAX_IDENTIFIER}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "StepFrame",
        "description": "A columnar batch of steps of one producer, with the episodes they belong to and their ends. "
        "In MessagePack the names are the same; a numeric column may be a bin of little-endian float64 (int64 for "
        "episode and step), a text column a pair of the distinct strings and a bin of uint16 indices.",
        "type": "object",
        "properties": {
            "schema_version": {"const": SCHEMA_VERSION},
            "producer": identifier | {"description": "id of the producer; also the key of the Kafka message"},
            "session": identifier | {"description": "id of this start of the producer's process"},
            "episodes": {
                "type": "array",
                "items": header,
                "maxItems": MAX_FRAME_EPISODES,
                "description": "headers of all episodes named below",
            },
            "steps": _steps_schema(),
            "ends": {
                "type": "array",
                "items": end,
                "maxItems": MAX_FRAME_EPISODES,
                "description": "ends; each follows all steps of its episode",
            },
            "lost_steps": _lost("steps"),
            "lost_ends": _lost("ends"),
        },
        "required": ["schema_version", "producer", "session"],
        "$defs": components,
    }


def _lost(what: str) -> dict[str, Any]:
    said = f"how many {what} of this session the producer has dropped until now"
    return {"type": "integer", "minimum": 0, "maximum": LARGEST_INTEGER, "default": 0, "description": said}


def _steps_schema() -> dict[str, Any]:
    required = [spec.name for spec in STEP_COLUMNS if spec.required]
    return {
        "type": "object",
        "description": "columns, all of one length; row i of each makes step i",
        "properties": {spec.name: _column_schema(spec) for spec in STEP_COLUMNS},
        "anyOf": [{"required": required}, {"maxProperties": 0}],
    }


def _column_schema(spec: ColumnSpec) -> dict[str, Any]:
    if spec.kind == "text":
        cell: dict[str, Any] = {"type": "string", "maxLength": int(spec.maximum)}
    else:
        limit = int if spec.kind == "integer" else float
        cell = {"type": spec.kind}
        if spec.maximum < LARGEST_NUMBER:
            cell |= {"minimum": limit(spec.minimum), "maximum": limit(spec.maximum)}
    if not spec.required:
        cell["type"] = [cell["type"], "null"]
    if spec.default is not None:
        cell["default"] = spec.default
    unit = "" if spec.unit == "1" else f" ({spec.unit})"
    return {"type": "array", "items": cell, "maxItems": MAX_FRAME_ROWS, "description": spec.description + unit}
