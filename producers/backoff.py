"""Pauses between tries at something that fails for now: a broker that is away, an endpoint that is overloaded."""

from __future__ import annotations

import math
from typing import NamedTuple


class Backoff(NamedTuple):
    """A pause that doubles with each failure in a row, up to a longest one.

    Attributes:
        first_s: the pause after the first failure, s.
        longest_s: no pause is longer than this, s; the spread comes on top.
        spread: the factors between which each pause is drawn, so that many clients do not come back at once.

    >>> backoff = Backoff(0.5, 3.0)
    >>> [backoff.pause_s(failures) for failures in (1, 2, 3, 4, 5000)]
    [0.5, 1.0, 2.0, 3.0, 3.0]
    >>> Backoff(2.0, spread=(0.5, 1.5)).pause_s(2, dice=0.25)
    3.0
    """

    first_s: float
    longest_s: float = math.inf
    spread: tuple[float, float] = (1.0, 1.0)

    def pause_s(self, failures: int, dice: float = 0.0) -> float:
        """The pause before the next try.

        Args:
            failures: how many tries have failed in a row, from 1.
            dice: where in the spread it lies, from 0 to 1; a new draw for each pause, such as `random.random()`.
        """
        least, most = self.spread
        doubled_s = self.first_s * 2.0 ** min(failures - 1, 100)
        return min(doubled_s, self.longest_s) * (least + (most - least) * dice)
