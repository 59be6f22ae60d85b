"""Plain values out of what messages hold: numbers, vectors, instants; None where there is none that is finite."""

import datetime
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def number_of(value: Any) -> float | None:
    """The value as a finite number; None where it is none. A truth counts 0 or 1.

    >>> number_of(np.float32(0.5)), number_of(True), number_of(float("nan")), number_of("0.5")
    (0.5, 1.0, None, None)
    """
    if isinstance(value, np.generic | np.ndarray):
        if value.size != 1:
            return None
        value = value.item()
    if isinstance(value, bytes) and len(value) == 1:  # `byte` of ROS 2
        value = value[0]
    if not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def vector_of(value: Any) -> tuple[float, ...] | None:
    """A position or vector, of a list of numbers or of fields x, y and z; None where a coordinate is not finite.

    >>> vector_of({"x": 1, "y": 2.5})
    (1.0, 2.5)
    """
    if isinstance(value, list | tuple | np.ndarray):
        items: Sequence[Any] = list(value)
    elif isinstance(value, Mapping):
        items = [value[axis] for axis in "xyz" if axis in value]
    else:
        items = [getattr(value, axis) for axis in "xyz" if hasattr(value, axis)]
    numbers = [number_of(item) for item in items]
    known = tuple(number for number in numbers if number is not None)
    return known if known and len(known) == len(numbers) else None


def named_of(value: Any, name: str) -> Any:
    """A field of a mapping or an object; None where it has none."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def seconds_of(value: Any, unit_s: float = 1.0) -> float | None:
    """A stamp or duration (sec and nanosec, nsec; secs and nsecs), an ISO 8601 time or a number, in seconds.

    A number counts `unit_s`; a time without a zone is UTC.

    >>> seconds_of({"sec": 3, "nanosec": 500_000_000}), seconds_of(1500, 1e-3)
    (3.5, 1.5)
    """
    for whole, part in (("sec", "nanosec"), ("secs", "nsecs"), ("sec", "nsec")):
        seconds, nanoseconds = number_of(named_of(value, whole)), number_of(named_of(value, part))
        if seconds is not None and nanoseconds is not None:
            return seconds + nanoseconds * 1e-9
    if isinstance(value, str):
        return _iso_seconds(value)
    number = number_of(value)
    return None if number is None else number * unit_s


def _iso_seconds(text: str) -> float | None:
    try:
        instant = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return (instant if instant.tzinfo else instant.replace(tzinfo=datetime.UTC)).timestamp()
