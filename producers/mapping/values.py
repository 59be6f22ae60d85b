"""Plain values out of what messages hold: texts, truths, numbers, vectors and instants; None for what is not usable."""

from __future__ import annotations

import datetime
import math
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from springback.producers.contract.columns import without_lone_surrogates

_EXTENDED_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d.\d\d(?::\d\d){1,2})(?:[.,](\d+))?(?:(Z)|([+-]\d\d)(?::?(\d\d))?)?"
)
"""A date and a time of day in ISO 8601's extended format. Until 3.11, Python reads no Z, no zone of hours alone, and no
fraction but one of 3 or 6 digits."""


def text_of(value: Any) -> str | None:
    """A scalar as the text that tables and comparisons know it by; None for anything else.

    Whole numbers have no point, truths are `true` and `false`, and bytes and lists of bytes (UUIDs) are hexadecimal.

    >>> text_of(4.0), text_of(True), text_of([0, 255]), text_of({})
    ('4', 'true', '00ff', None)
    """
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, bytes) and len(value) == 1:  # `byte` of ROS 2
        return str(value[0])
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, (list, tuple)) and value and all(type(item) is int and 0 <= item <= 255 for item in value):
        return bytes(value).hex()
    return None


def plain_text(value: Any) -> str | None:
    """A scalar as a text that is fit for UTF-8; None for anything else."""
    text = text_of(value)
    return None if text is None else without_lone_surrogates(text)


def truth_of(value: Any) -> bool | None:
    """A truth, given as one, as a number or as a text.

    >>> truth_of("true"), truth_of(0.0), truth_of("perhaps")
    (True, False, None)
    """
    return {"true": True, "1": True, "false": False, "0": False}.get(text_of(value) or "")


def number_of(value: Any) -> float | None:
    """The value as a finite number; None where it is not one. A truth counts as 0 or 1.

    >>> number_of(np.float32(0.5)), number_of(True), number_of(float("nan")), number_of("0.5")
    (0.5, 1.0, None, None)
    """
    if isinstance(value, (np.generic, np.ndarray)):
        if value.size != 1:
            return None
        value = value.item()
    if isinstance(value, bytes) and len(value) == 1:  # `byte` of ROS 2
        value = value[0]
    if not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def count_of(value: Any) -> int | None:
    """A whole number; None where it is not one.

    >>> count_of(3.0), count_of(3.5)
    (3, None)
    """
    number = number_of(value)
    return int(number) if number is not None and number.is_integer() else None


def vector_of(value: Any) -> tuple[float, ...] | None:
    """A position or vector, from a list of numbers or from fields x, y and z; None where a coordinate is not finite.

    >>> vector_of({"x": 1, "y": 2.5})
    (1.0, 2.5)
    """
    if isinstance(value, (list, tuple, np.ndarray)):
        items: Sequence[Any] = list(value)
    elif isinstance(value, Mapping):
        items = [value[axis] for axis in "xyz" if axis in value]
    else:
        items = [getattr(value, axis) for axis in "xyz" if hasattr(value, axis)]
    numbers = [number_of(item) for item in items]
    known = tuple(number for number in numbers if number is not None)
    return known if known and len(known) == len(numbers) else None


def field_of(value: Any, name: str) -> Any:
    """A field of a mapping or an object; None where there is no such field."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def seconds_of(value: Any, unit_s: float = 1.0) -> float | None:
    """A stamp or duration (sec and nanosec, nsec; secs and nsecs), an ISO 8601 time or a number, in seconds.

    A number is counted in units of `unit_s`; a time without a zone is UTC.

    >>> seconds_of({"sec": 3, "nanosec": 500_000_000}), seconds_of(1500, 1e-3)
    (3.5, 1.5)
    """
    for whole, part in (("sec", "nanosec"), ("secs", "nsecs"), ("sec", "nsec")):
        seconds, nanoseconds = number_of(field_of(value, whole)), number_of(field_of(value, part))
        if seconds is not None and nanoseconds is not None:
            return seconds + nanoseconds * 1e-9
    if isinstance(value, str):
        return _iso_seconds(value)
    number = number_of(value)
    return None if number is None else number * unit_s


def is_local_time(value: Any) -> bool:
    """Whether this is a date and a time of day without a zone, as a robot's wall clock has it.

    >>> [is_local_time(value) for value in ("2026-10-25T02:59:59.5", "2026-10-25T02:59:59+02:00", 5.0, "dock")]
    [True, False, False, False]
    """
    if not isinstance(value, str) or value.endswith(("Z", "z")):
        return False
    try:
        return _instant(value).tzinfo is None
    except ValueError:
        return False


def _instant(text: str) -> datetime.datetime:
    if sys.version_info < (3, 11) and (parts := _EXTENDED_TIME.fullmatch(text)) is not None:
        until, fraction, utc, hours, minutes = parts.groups()
        zone = "+00:00" if utc else f"{hours}:{minutes or '00'}" if hours else ""
        text = until + (f".{fraction:0<6.6}" if fraction else "") + zone
    return datetime.datetime.fromisoformat(text)


def _iso_seconds(text: str) -> float | None:
    try:
        instant = _instant(text)
    except ValueError:
        return None
    return (instant if instant.tzinfo else instant.replace(tzinfo=datetime.timezone.utc)).timestamp()
