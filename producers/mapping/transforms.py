"""The transforms that a mapping may declare, each a function of one message's value; None stands for no value.

Those of a single number also work on each item of a list. Those with a memory (`make` gives a fresh one) remember only
messages of their episode. All of it is ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from springback.producers.emitter.measured_stress import linear_share
from springback.producers.mapping.distance import POSITION_JUMP, DistanceTravelled
from springback.producers.mapping.values import field_of, number_of, seconds_of, text_of, vector_of

if TYPE_CHECKING:
    from springback.producers.mapping.newest import Look

Function = Callable[[Any], Any]
OTHERWISE: Final = "*"
PROGRESS_STARTED_AGAIN: Final = "progress_started_again"
EXTENDED: Final = "extended"
NO_DIVISOR: Final = "no_divisor"
REMARKS: Final = {
    PROGRESS_STARTED_AGAIN: "what remains has jumped above all that remained before, so progress starts again",
    EXTENDED: "work was added to the episode under way",
    POSITION_JUMP: "the position has jumped, which is no way travelled",
    NO_DIVISOR: "what it is to be divided by is 0, or not known",
}
"""What a transform can have to say of a value, beside the result."""

JUMP: Final = 0.05
"""The share of the whole by which what remains must rise above all before to be called a jump, rather than noise."""


class Transform(NamedTuple):
    """One declared transform; `make` gives the function, with a memory of its own where it has one.

    One that divides by another field has no function of the value alone, but says where its `divisor` stands.
    """

    name: str
    make: Callable[[], Function]
    divisor: Look | None = None


def each_number(function: Callable[[float], float | None]) -> Function:
    """A function of a number as one of values: item by item in lists, and None for what is no finite number."""

    def apply(value: Any) -> Any:
        if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim):
            return [result for item in value if (result := apply(item)) is not None]
        number = number_of(value)
        result = None if number is None else function(number)
        return result if result is None or math.isfinite(result) else None

    return apply


def _over_list(function: Callable[[list[float]], float]) -> Function:
    def apply(value: Any) -> Any:
        if not isinstance(value, (list, tuple, np.ndarray)):
            return number_of(value)
        numbers = [number for item in value if (number := number_of(item)) is not None]
        return function(numbers) if numbers else None

    return apply


def _norm(value: Any) -> float | None:
    vector = vector_of(value)
    return None if vector is None else math.hypot(*vector)


def _path_length(value: Any) -> float | None:
    if not isinstance(value, (list, tuple, np.ndarray)):
        return None
    points = [point for item in value if (point := vector_of(item)) is not None]
    return sum(math.dist(a, b) for a, b in zip(points, points[1:]) if len(a) == len(b)) if points else None


def _yaw(value: Any) -> float | None:
    x, y, z, w = (number_of(field_of(value, axis)) for axis in "xyzw")
    if x is None or y is None or z is None or w is None:
        return None
    return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def _to_number(value: Any) -> float | None:
    try:
        return number_of(float(value)) if isinstance(value, str) else number_of(value)
    except ValueError:
        return None


def _count(value: Any) -> float | None:
    return float(len(value)) if isinstance(value, (list, tuple, Mapping, np.ndarray)) else None


def _item(place: int) -> Function:
    def pick(value: Any) -> Any:
        if not isinstance(value, (list, tuple, np.ndarray)):
            return value
        return value[place] if len(value) else None

    return pick


def _ratio_to_first() -> Function:
    first: float | None = None

    def ratio(value: float) -> float | None:
        nonlocal first
        if first is None and value != 0.0:
            first = value
        return None if first is None else value / first

    return each_number(ratio)


class _ProgressFromRemaining:
    """1 - remaining / the largest that remained since the goal was given.

    What remains may be of something old at first (the tail of the last goal's path), and jumps up when the way is
    planned anew or the next of several goals is begun: then progress starts again.
    """

    def __init__(self) -> None:
        self.remark: str | None = None
        self._largest: float | None = None
        self._progress = 0.0

    def __call__(self, value: Any) -> Any:
        return each_number(self._of)(value)

    def _of(self, value: float) -> float | None:
        self.remark = None
        if self._largest is None and value <= 0.0:
            return None
        if self._largest is not None and value > self._largest:
            jump = value > (1.0 + JUMP) * self._largest or self._progress > JUMP
            self.remark = PROGRESS_STARTED_AGAIN if jump else None
        self._largest = value if self._largest is None else max(self._largest, value)
        self._progress = min(max(1.0 - value / self._largest, 0.0), 1.0)
        return self._progress


class _ProgressFromQueue:
    """What is done of the largest total seen, where a number says how much there is still to do.

    What is taken from the queue is done; what is put into it is added to the total. Progress never goes back because
    of that.
    """

    def __init__(self) -> None:
        self.remark: str | None = None
        self._left: float | None = None
        self._total = self._progress = 0.0

    def __call__(self, value: Any) -> Any:
        return each_number(self._of)(value)

    def _of(self, value: float) -> float | None:
        self.remark = None
        if value < 0.0 or (self._left is None and value == 0.0):
            return None
        if self._left is None:
            self._total = value
        elif value > self._left:
            self._total += value - self._left
            self.remark = EXTENDED
        self._left = value
        self._progress = max(self._progress, 1.0 - value / self._total)
        return self._progress


def _since_first() -> Function:
    first: float | None = None

    def since(value: float) -> float:
        nonlocal first
        first = value if first is None else first
        return value - first

    return each_number(since)


def _difference() -> Function:
    last: float | None = None

    def difference(value: float) -> float:
        nonlocal last
        before, last = last, value
        return 0.0 if before is None else value - before

    return each_number(difference)


def _count_new() -> Function:
    last: float | None = None

    def increase(value: float) -> float:
        nonlocal last
        before, last = last, value
        if before is None:
            return 0.0
        return value - before if value >= before else max(value, 0.0)  # a counter that was reset

    return each_number(increase)


def _changes() -> Function:
    last: str | None = None

    def change(value: Any) -> float | None:
        nonlocal last
        text = text_of(value)
        if text is None:
            return None
        before, last = last, text
        return float(before is not None and before != text)

    return change


def _table(entries: Mapping[str, Any]) -> Function:
    def look_up(value: Any) -> Any:
        if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim):
            return [found for item in value if (found := look_up(item)) is not None]
        text = text_of(value)
        return entries.get(text, entries.get(OTHERWISE)) if text is not None else None

    return look_up


def _one_of(function: Function) -> Callable[[], Function]:
    return lambda: function


PLAIN: Final[dict[str, Callable[[], Function]]] = {
    "one_minus": _one_of(each_number(lambda value: 1.0 - value)),
    "invert": _one_of(each_number(lambda value: 1.0 / value if value else None)),
    "absolute": _one_of(each_number(abs)),
    "number": _one_of(_to_number),
    "seconds": _one_of(seconds_of),
    "norm": _one_of(_norm),
    "yaw": _one_of(_yaw),
    "path_length": _one_of(_path_length),
    "maximum": _one_of(_over_list(max)),
    "minimum": _one_of(_over_list(min)),
    "mean": _one_of(_over_list(lambda values: sum(values) / len(values))),
    "sum": _one_of(_over_list(sum)),
    "count": _one_of(_count),
    "first": _one_of(_item(0)),
    "last": _one_of(_item(-1)),
    "ratio_to_first": _ratio_to_first,
    "progress_from_remaining": _ProgressFromRemaining,
    "progress_from_queue": _ProgressFromQueue,
    "since_first": _since_first,
    "difference": _difference,
    "count_new": _count_new,
    "changes": _changes,
    "distance_travelled": DistanceTravelled,
}
"""Transforms without an argument."""

WITH_NUMBER: Final[dict[str, Callable[[float], Function]]] = {
    "scale": lambda factor: each_number(lambda value: value * factor),
    "offset": lambda addend: each_number(lambda value: value + addend),
    "threshold": lambda limit: each_number(lambda value: float(value >= limit)),
    "distance_travelled": DistanceTravelled,
}
"""Transforms with a number; `threshold` is 1 at the limit and above, else 0."""

ADDED_UP: Final = frozenset({"difference", "count_new", "changes", "distance_travelled"})
"""Those that give a change since the last message, so that the messages of one step are added up."""


def plain_transform(name: str) -> Transform:
    """The transform of this name that takes no argument."""
    return Transform(name, PLAIN[name])


def number_transform(name: str, argument: float) -> Transform:
    """The transform of this name with its number."""
    return Transform(name, lambda: WITH_NUMBER[name](argument))


def clip_transform(low: float, high: float) -> Transform:
    """Values below `low` become `low`, those above `high` become `high`."""
    return Transform("clip", _one_of(each_number(lambda value: min(max(value, low), high))))


def linear_transform(zero: float, one: float) -> Transform:
    """0 at one end of a scale and 1 at the other, in proportion between them, clipped; the ends may be in any order."""
    return Transform("linear", _one_of(each_number(lambda value: linear_share(value, zero, one))))


def quotient_transform(divisor: Look) -> Transform:
    """The value divided by what stands at another place, of the same message or of the newest of another topic."""
    return Transform("divide_by", _one_of(lambda value: None), divisor)


def table_transform(entries: Mapping[str, Any]) -> Transform:
    """Looks a text or number up; `*` stands for all others, and without it they have no value."""
    return Transform("table", _one_of(_table(entries)))
