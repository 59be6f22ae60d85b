"""How a fault is put into words: the field, what arrived there, and what was expected; and what is no fault at all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, get_args

import msgspec
import numpy as np

from springback.producers.contract.columns import (
    LARGEST_INTEGER,
    LARGEST_LOAD,
    LARGEST_NUMBER,
    rounded_back,
    without_lone_surrogates,
)
from springback.producers.contract.frame import Outcome

_SHOWN_TEXT: Final = 300
_FIELD_AT: Final = re.compile(r"at `\$\.(\w+)")
_MISSING: Final = re.compile(r"missing required field `(\w+)`")


def told(kind: Any, value: object, error: msgspec.ValidationError) -> tuple[str, str]:
    """The field of a part of a frame that is at fault, empty where it is the whole, and the fault in words.

    Args:
        kind: what it should be: a struct, or the type of a single value.
        value: what arrived.
        error: what msgspec says of it.

    >>> from springback.producers.contract.frame import EpisodeEnd
    >>> arrived = {"episode": 0, "outcome": "SUCCEEDED"}
    >>> try:
    ...     msgspec.convert(arrived, EpisodeEnd)
    ... except msgspec.ValidationError as error:
    ...     print(told(EpisodeEnd, arrived, error)[1])
    outcome: got 'SUCCEEDED', expected success, failure, timeout or aborted
    """
    said = str(error)
    if (missing := _MISSING.search(said)) is not None:
        return missing[1], f"{missing[1]}: not there, and it is required"
    at = _FIELD_AT.search(said)
    if at is None or not isinstance(value, Mapping):
        return "", f"got {shown(value)!r}, expected {_expected(msgspec.inspect.type_info(kind))}"
    cell, wanted = value.get(at[1]), _fields(kind)[at[1]]
    return at[1], f"{at[1]}: got {shown(cell)!r}, expected {_expected(wanted)}{percent_hint(cell, _limits(wanted)[1])}"


def percent_hint(value: object, maximum: float | None) -> str:
    """What a number says that looks like a percentage where a share was expected."""
    looks = isinstance(value, (int, float)) and not isinstance(value, bool) and maximum == 1.0 and 1.0 < value <= 100.0
    return "; a percentage is to be divided by 100" if looks else ""


def without_rounding(kind: Any, values: dict[Any, Any]) -> dict[Any, Any]:
    """The fields of a struct, those that lie past a bound by rounding alone put back to it."""
    for name, wanted in _fields(kind).items():
        value = values.get(name)
        if isinstance(value, float) and (limits := _limits(wanted)) != (None, None):
            values[name] = rounded_back(value, *limits)
    return values


@lru_cache
def _fields(kind: Any) -> dict[str, msgspec.inspect.Type]:
    return {field.name: _plain(field.type) for field in msgspec.inspect.type_info(kind).fields}  # type: ignore[attr-defined]


def _plain(kind: Any) -> Any:
    """The type without what may be left out, and without its description."""
    if isinstance(kind, msgspec.inspect.UnionType):
        return _plain(next(each for each in kind.types if not isinstance(each, msgspec.inspect.NoneType)))
    return _plain(kind.type) if isinstance(kind, msgspec.inspect.Metadata) else kind


def _limits(kind: Any) -> tuple[float | None, float | None]:
    return (kind.ge, kind.le) if isinstance(kind, msgspec.inspect.FloatType) else (None, None)


def _expected(kind: Any) -> str:
    kind = _plain(kind)
    if isinstance(kind, msgspec.inspect.LiteralType):
        known = get_args(Outcome)
        *others, last = [word for word in known if word in kind.values] or list(map(str, kind.values))
        return f"{', '.join(others)} or {last}" if others else last
    if isinstance(kind, (msgspec.inspect.FloatType, msgspec.inspect.IntType)):
        noun = "an integer" if isinstance(kind, msgspec.inspect.IntType) else "a number"
        lowest = kind.gt if kind.ge is None else kind.ge
        if lowest is None or lowest == -LARGEST_NUMBER:
            return f"{noun}, finite" if noun == "a number" else noun
        if kind.le in (None, LARGEST_LOAD, LARGEST_INTEGER):
            return f"{noun} of {lowest:g} or more" if kind.gt is None else f"{noun} above {lowest:g}"
        return f"{noun} from {lowest:g} to {kind.le:g}"
    if isinstance(kind, msgspec.inspect.BoolType):
        return "true or false, without quotes"
    if isinstance(kind, msgspec.inspect.StrType):
        return f"a text of {kind.min_length or 0} to {kind.max_length} characters"
    return "an object"


def shown(value: object) -> Any:
    """The value as JSON can carry it, shortened: numbers stay, texts are cut, containers become their kind."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        value = float(value)  # a subclass may show itself otherwise
        return value if np.isfinite(value) else {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if isinstance(value, int):
        return value if abs(value) <= LARGEST_INTEGER else f"<integer of {value.bit_length()} bits>"
    if isinstance(value, str):
        return without_lone_surrogates(value)[:_SHOWN_TEXT]
    return f"<{type(value).__name__}>"


def shown_fields(values: Mapping[Any, Any]) -> dict[str, Any]:
    """The first fields of a mapping, as JSON can carry them."""
    return {str(shown(key)): shown(value) for key, value in list(values.items())[:32]}
