"""The way to one goal after another, as the distance to the present goal tells it. Pure; ours.

Tasks such as MultiON measure the distance to the goal that is sought now: it rises when that is found and the next one
takes its place. Which goals are still to come nobody says, so their number is taken from the last success; until there
was one, each goal found shows that there are more, and progress falls to the share that is done of those known.
"""

from __future__ import annotations

import math

FOUND_M = 1.5
"""Within this distance, m, a goal counts as found when the distance jumps: MultiON's own."""
JUMP_M = 0.5
"""How much farther than it moved an agent must be from a goal for that to be another one, m."""


class GoalLegs:
    """The legs of an episode's way, one to each goal.

    >>> legs = GoalLegs(4.0)
    >>> for distance_m in (2.0, 0.5, 8.0, 4.5):
    ...     legs.see(distance_m, 1.0)
    >>> legs.found, legs.length_m, legs.share()
    (1, 12.5, 0.75)

    Args:
        start_m: the distance to the first goal at the start, m; None where it is not known.
        expected: how many goals there are, as far as one knows.

    Attributes:
        found: how many goals were found and followed by another one.
        start_m: the distance to the present goal when it became that, m.
    """

    def __init__(self, start_m: float | None, expected: int = 1) -> None:
        self.found = 0
        self.start_m = start_m
        self._expected = expected
        self._before_m = 0.0
        self._now_m = start_m

    @property
    def total(self) -> int:
        """How many goals there are, as far as one knows."""
        return max(self._expected, self.found + 1)

    @property
    def length_m(self) -> float | None:
        """The least way to all goals that were sought, the present one too, m."""
        return None if self.start_m is None else self._before_m + self.start_m

    def see(self, distance_m: float | None, moved_m: float | None, *, same_goal: bool = False) -> None:
        """Takes in the distance to the present goal after a step.

        Args:
            distance_m: the distance, m; None where it is not measured.
            moved_m: how far the step has led, m; None where that is not known.
            same_goal: whether it is known to be the same goal, which was moved perhaps.
        """
        before_m, self._now_m = self._now_m, distance_m
        if distance_m is None or before_m is None or self.start_m is None or not math.isfinite(distance_m):
            return
        jumped = distance_m > before_m + (moved_m or 0.0) + JUMP_M
        if jumped and before_m <= FOUND_M and before_m < self.start_m and not same_goal:
            self.found += 1
            # What was left when the goal counted as found is no way that had to be gone.
            self._before_m += self.start_m - before_m
            self.start_m = distance_m + (moved_m or 0.0)  # the step has led there already

    def share(self) -> float | None:
        """The share of all goals' way that is done, each goal counting alike; None where it is not known."""
        leg = share_done(self._now_m, self.start_m)
        return leg if leg is None or self.total == 1 else (self.found + min(1.0, max(0.0, leg))) / self.total


def share_done(distance_m: float | None, start_m: float | None) -> float | None:
    """The share of a way that is done, below 0 where more is left than at its start; None where it is not known.

    Args:
        distance_m: what is left, m.
        start_m: what there was, m.
    """
    if distance_m is None or start_m is None:
        return None
    return float(distance_m <= 0.0) if start_m <= 0.0 else 1.0 - distance_m / start_m
