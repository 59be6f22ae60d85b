"""Up to which stress a family, method and version holds (equation 10), and whether the live stress is beyond it."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from springback.stream_processors.resilience.family_readings import CapacityFlag, StressMargin
from springback.stream_processors.resilience.quantiles import quantile


class StressCapacity(NamedTuple):
    """What a stress-response curve comes to; see `FamilyReading` for the three fields."""

    capacity: float | None
    flag: CapacityFlag
    first_breach: float | None


class BreachState(msgspec.Struct, kw_only=True):
    """Whether the live stress is beyond what the group withstands, with hysteresis (ours).

    Attributes:
        active: whether a breach is on.
        streak: evaluations in a row that say otherwise than `active`.
        beginnings: how many breaches have begun.
    """

    active: bool = False
    streak: int = 0
    beginnings: int = 0

    def advance(self, beyond: bool, needed: int) -> bool:
        """Take in an evaluation; `needed` in a row begin or end a breach. Returns whether this one did."""
        self.streak = self.streak + 1 if beyond != self.active else 0
        if self.streak < needed:
            return False
        self.active, self.streak = beyond, 0
        self.beginnings += beyond
        return True

    def end(self) -> bool:
        """Nothing runs any more. Returns whether that ended a breach."""
        if not self.active:
            return False
        self.active, self.streak = False, 0
        return True


def nearest_point(stress: float, grid: Sequence[float]) -> float:
    """The point of the stress grid that an episode's severity goes to: the nearest, of two equally near the lower.

    >>> nearest_point(0.29, (0.0, 0.2, 0.4)), nearest_point(0.31, (0.0, 0.2, 0.4)), nearest_point(0.5, (0.0, 1.0))
    (0.2, 0.4, 0.0)
    """
    return min(grid, key=lambda point: (abs(point - stress), point))


def stress_capacity(curve: Iterable[StressMargin]) -> StressCapacity:
    """lambda*_f: the largest stress of a sufficient bin whose margin is not negative; 0 where none is.

    Source: equation 10; the flag, the first breach and what is sufficient are ours.
    """
    deciding = [(point.stress, point.margin) for point in curve if point.sufficient and point.margin is not None]
    if not deciding:
        return StressCapacity(None, "insufficient", None)
    held = [stress for stress, margin in deciding if margin >= 0]
    broken = [stress for stress, margin in deciding if margin < 0]
    return StressCapacity(max(held, default=0.0), "ok" if held else "none", min(broken, default=None))


def live_stress(stresses: Sequence[float], rank: float) -> float | None:
    """lambda_now: the quantile of stress over the active episodes; None without one. Source: ours."""
    return quantile(stresses, rank) if stresses else None


def beyond_capacity(live: float, curve: Sequence[StressMargin], capacity: StressCapacity) -> bool | None:
    """Whether the live stress is above the capacity, or in a bin with a negative margin.

    None where that bin, or every bin, has too few episodes to say. Source: ours.
    """
    nearest = nearest_point(live, [point.stress for point in curve])
    point = next(point for point in curve if point.stress == nearest)
    if capacity.capacity is None or not point.sufficient or point.margin is None:
        return None
    return live > capacity.capacity or point.margin < 0
