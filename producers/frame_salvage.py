"""Reads what can be read of a frame that is not clean: every fault costs the smallest part that it spoils (ours).

A row, a header, an end or an end's navigation fields are taken out alone; only a frame whose parts do not fit
together is lost whole.
"""

from typing import Any, TypeVar

import msgspec
from springback.producers.column_reading import read_column, shown
from springback.producers.errors import UnreadableFrameError
from springback.producers.frame_parts import (
    SCHEMA_VERSION,
    EpisodeEnd,
    EpisodeHeader,
    Identifier,
    NavigationOutcome,
    PartFault,
    StepColumn,
    StepFrame,
)
from springback.producers.step_columns import STEP_COLUMNS

T = TypeVar("T")
UNUSABLE_HEADER = EpisodeHeader(agent="", episode="", family="")


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
    )


def _identifier(document: dict[Any, Any], name: str) -> str:
    try:
        return msgspec.convert(document.get(name), Identifier)
    except msgspec.ValidationError as error:
        raise UnreadableFrameError(
            reason=f"bad_{name}", detail=f"{name} {shown(document.get(name))!r}: {error}"
        ) from error


def _entries(document: dict[Any, Any], name: str) -> list[Any]:
    entries = document.get(name)
    if entries is None:
        return []
    if not isinstance(entries, list):
        raise UnreadableFrameError(
            reason=f"bad_{name}", detail=f"{name}: got {type(entries).__name__}, expected an array"
        )
    return entries


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


def read_header(index: int, entry: object, faults: list[PartFault]) -> EpisodeHeader:
    """The header in a document; `UNUSABLE_HEADER` and a fault where it is none."""
    header = _convert("episodes", index, entry, EpisodeHeader, faults)
    return UNUSABLE_HEADER if header is None else header


def read_end(index: int, entry: object, faults: list[PartFault]) -> EpisodeEnd | None:
    """The end in a document; None and a fault where it is none. Broken navigation fields are left out of it."""
    if not isinstance(entry, dict) or entry.get("navigation") is None:
        return _convert("ends", index, entry, EpisodeEnd, faults)
    fields = {key: value for key, value in entry.items() if key != "navigation"}
    end = _convert("ends", index, fields, EpisodeEnd, faults)
    if end is None:
        return None
    # A broken distance must not cost the outcome: without its end the episode would count as aborted.
    navigation = _convert("navigation", index, entry["navigation"], NavigationOutcome, faults)
    return msgspec.structs.replace(end, navigation=navigation)


def _convert(part: Any, index: int, entry: object, kind: type[T], faults: list[PartFault]) -> T | None:
    try:
        return msgspec.convert(_tidied(entry) if isinstance(entry, dict) else entry, kind)
    except msgspec.ValidationError as error:
        values = entry if isinstance(entry, dict) else {"value": entry}
        faults.append(PartFault(part, index, f"invalid_{_SINGULAR[part]}", str(error), _shown_fields(values)))
        return None


_SINGULAR = {"episodes": "episode", "ends": "end", "navigation": "navigation"}


def _tidied(entry: dict[Any, Any]) -> dict[Any, Any]:
    """Null means left out, and 34.0 is as good an integer as 34."""
    return {
        key: int(value) if isinstance(value, float) and value.is_integer() else value
        for key, value in entry.items()
        if value is not None
    }


def _shown_fields(values: dict[Any, Any]) -> dict[str, Any]:
    return {str(shown(key)): shown(value) for key, value in list(values.items())[:32]}
