"""Equation 10 worked by hand: what is withstood, what is dependable, and up to where anything was tested."""

import pytest

from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.families.stress_capacity import (
    StressCapacity,
    nearest_point,
    stress_capacity,
)
from springback.stream_processors.resilience.readings import ExtensibilityRatios, LevelState, StressMargin

GRID = AggregateConfig().grid


def curve_of(*levels: float | str | None) -> tuple[StressMargin, ...]:
    """A curve over the grid, by the margin of a level that is kept (0 or more) or broken, or by what a level is else.

    `undecided` has a margin of -0.1, `too_many` (episodes that break the contract) one of 0.1, `insufficient` one of
    0.3 in spite of it; None is without an episode.
    """
    states: dict[object, LevelState] = {"undecided": "undecided", "too_many": "undecided"}
    margins = {"undecided": -0.1, "too_many": 0.1, "insufficient": 0.3}
    found = []
    for stress, level in zip(GRID, levels, strict=False):
        margin = level if isinstance(level, float) else margins.get(level or "")
        kept: LevelState = "kept" if isinstance(level, float) and level >= 0 else "broken"
        state = kept if isinstance(level, float) else states.get(level, "insufficient")
        found.append(StressMargin(stress=stress, episodes=5, margin=margin, state=state, ratios=ExtensibilityRatios()))
    return tuple(found)


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        # Capacity, flag, dependable, tested up to, first breach.
        (curve_of(0.5, 0.04, -0.7, -0.8), StressCapacity(0.2, "ok", 0.2, 0.6, 0.4)),
        (curve_of(0.5, 0.5, 0.3, 0.2, 0.1, 0.0), StressCapacity(1.0, "ok", 1.0, 1.0, None)),  # exactly 0 still holds
        (curve_of(0.5), StressCapacity(0.0, "open", 0.0, 0.0, None)),  # only clean episodes: at least 0.0
        (curve_of(0.5, 0.4, 0.3), StressCapacity(0.4, "open", 0.4, 0.4, None)),
        (curve_of(-0.1, -0.2), StressCapacity(0.0, "none", None, 0.2, 0.0)),
        # Not monotone: the capacity is above a level that does not hold, what is dependable is not.
        (curve_of(0.5, -0.2, 0.3, -0.4), StressCapacity(0.4, "ok", 0.0, 0.6, 0.2)),
        (curve_of(0.5, -0.2, 0.3), StressCapacity(0.4, "open", 0.0, 0.4, 0.2)),
        (curve_of(-0.2, 0.3), StressCapacity(0.2, "open", None, 0.2, 0.0)),
        # Undecided levels are not withstood, and not dependable; their margin is below 0.
        (curve_of(0.5, "undecided", -0.4), StressCapacity(0.0, "ok", 0.0, 0.4, 0.2)),
        (curve_of("undecided"), StressCapacity(0.0, "none", None, 0.0, 0.0)),
        # So are those with a margin of 0 or more at which too many break the contract, but lambda* goes by the margin.
        (curve_of(0.5, "too_many", -0.4), StressCapacity(0.2, "ok", 0.0, 0.4, 0.4)),
        (curve_of(0.5, "too_many", 0.3), StressCapacity(0.4, "open", 0.0, 0.4, None)),
        (curve_of("too_many"), StressCapacity(0.0, "open", None, 0.0, None)),
        # Levels that cannot say anything are passed over.
        (curve_of(0.5, "insufficient", 0.3), StressCapacity(0.4, "open", 0.4, 0.4, None)),
        (curve_of(0.5, None, 0.3), StressCapacity(0.4, "open", 0.4, 0.4, None)),
        (curve_of(None, None, 0.3, None, None, -0.1), StressCapacity(0.4, "ok", 0.4, 1.0, 1.0)),
        (curve_of("insufficient", None), StressCapacity(None, "insufficient", None, None, None)),
        ((), StressCapacity(None, "insufficient", None, None, None)),
    ],
)
def test_capacity(curve: tuple[StressMargin, ...], expected: StressCapacity) -> None:
    assert stress_capacity(curve) == expected
    assert stress_capacity(curve[::-1]) == expected


def test_situation_2_a_capacity_that_is_the_highest_level_tried_says_so() -> None:
    # A demo that raises stress: 0.0 -> 0.2 -> 0.4, each of them "open", until a level does not hold.
    rising = [stress_capacity(curve_of(*[0.5] * tried)) for tried in range(1, 7)]
    assert [found.capacity for found in rising] == list(GRID)
    assert [found.flag for found in rising] == ["open"] * 5 + ["ok"]
    assert all(found.tested_up_to == found.capacity for found in rising)
    assert stress_capacity(curve_of(0.5, 0.5, -0.5)).flag == "ok"


@pytest.mark.parametrize(
    ("stress", "point"), [(0.0, 0.0), (0.09, 0.0), (0.11, 0.2), (0.2, 0.2), (0.5, 0.4), (0.51, 0.6), (1.0, 1.0)]
)
def test_nearest_point_of_the_grid(stress: float, point: float) -> None:
    assert nearest_point(stress, GRID) == point


def test_of_two_equally_near_the_lower() -> None:
    assert nearest_point(0.25, (0.0, 0.5, 1.0)) == 0.0
