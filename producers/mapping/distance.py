"""The distance between positions that follow each other, without what is a jump of the position and no way travelled.

Odometry starts again at 0, a localisation finds itself, a map is changed, a simulation puts its robot back: none of it
is travel, and one such sample would outweigh a whole episode. What is a jump is ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from springback.producers.mapping.values import field_of, vector_of

POSITION_JUMP: Final = "position_jump"

USUAL: Final = 5
"""From so many distances on it is known what is usual between two messages."""
MANY_TIMES: Final = 50.0
"""So many times the largest distance before is a jump; to the origin itself a tenth of that."""
LEAST_JUMP: Final = 1.0
"""What is no longer than this, in the unit of the positions, is a jump only where `at_most` says so."""


class DistanceTravelled:
    """The distance from the position before, 0 at the first, and across a jump.

    A jump is a way longer than `at_most`; a position of another map or frame (of other texts beside its coordinates),
    or after one that says it is not initialised; a way of more than 50 times the largest before, or 5 times where it
    ends at the origin itself; and the first way from an origin at which more than one message had stood.

    Args:
        at_most: the longest way that there can be between two messages, in the unit of the positions.

    Attributes:
        remark: `position_jump` after a jump, else None.

    >>> distance = DistanceTravelled()
    >>> [distance({"x": x, "y": 0.0}) for x in (7.0, 7.5, 8.0, 0.0, 0.5)]
    [0.0, 0.5, 0.5, 0.0, 0.5]
    """

    def __init__(self, at_most: float = math.inf) -> None:
        self.remark: str | None = None
        self._at_most = at_most
        self._last: tuple[float, ...] | None = None
        self._frame: frozenset[tuple[str, str]] = frozenset()
        self._largest = 0.0
        self._ways = 0
        self._at_origin = 0

    def __call__(self, value: Any) -> float | None:
        """The distance; None where the value is no position."""
        self.remark = None
        position = vector_of(value)
        if position is None:
            return None
        frame = _frame_of(value)
        before, self._last = self._last, position
        other_frame, self._frame = frame != self._frame, frame
        if field_of(value, "positionInitialized") is False:
            self._last = None
            return 0.0
        stood, origin = self._at_origin, not any(position)
        self._at_origin = stood + 1 if origin else 0
        if before is None or len(before) != len(position):
            return 0.0
        way = math.dist(before, position)
        if other_frame or way > self._at_most or self._is_unusual(way, origin, stood):
            self.remark = POSITION_JUMP
            return 0.0
        self._largest = max(self._largest, way)
        self._ways += way > 0.0
        return way

    def _is_unusual(self, way: float, to_origin: bool, stood_at_origin: int) -> bool:
        if way <= LEAST_JUMP:
            return False
        if stood_at_origin > 1:
            return True
        return self._ways >= (1 if to_origin else USUAL) and way > self._largest * MANY_TIMES / (10 if to_origin else 1)


def _frame_of(value: Any) -> frozenset[tuple[str, str]]:
    """What a position says in words beside its coordinates: its map, its frame of reference."""
    if not isinstance(value, Mapping):
        return frozenset()
    return frozenset((str(name), text) for name, text in value.items() if isinstance(text, str))
