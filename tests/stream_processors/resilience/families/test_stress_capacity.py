"""Equation 10 worked by hand, and the boundaries of the live breach."""

import pytest

from springback.stream_processors.resilience.families.stress_capacity import (
    BreachState,
    StressCapacity,
    beyond_capacity,
    live_stress,
    nearest_point,
    stress_capacity,
)
from springback.stream_processors.resilience.readings import ExtensibilityRatios, StressMargin

GRID = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def curve_of(*margins: float | None, thin: tuple[float, ...] = ()) -> tuple[StressMargin, ...]:
    """A curve over the grid; where the margin is None the bin is empty, where the stress is in `thin` insufficient."""
    return tuple(
        StressMargin(
            stress=stress,
            episodes=0 if margin is None else 4 if stress in thin else 5,
            margin=margin,
            state="insufficient" if margin is None or stress in thin else "kept" if margin >= 0 else "broken",
            ratios=ExtensibilityRatios(),
        )
        for stress, margin in zip(GRID, margins, strict=False)
    )


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        (curve_of(1.1, 0.04, -0.7, -0.8), StressCapacity(0.2, "ok", 0.4)),
        (curve_of(1.1, 0.5, 0.3, 0.2, 0.1, 0.0), StressCapacity(1.0, "ok", None)),  # exactly 0 still holds
        (curve_of(0.5), StressCapacity(0.0, "ok", None)),
        (curve_of(-0.1, -0.2), StressCapacity(0.0, "none", 0.0)),
        (curve_of(0.5, -0.2, 0.3, -0.4), StressCapacity(0.4, "ok", 0.2)),  # not monotone: first breach below capacity
        (curve_of(0.5, -0.2, 0.3, thin=(0.2,)), StressCapacity(0.4, "ok", None)),
        (curve_of(0.5, None, 0.3), StressCapacity(0.4, "ok", None)),
        (curve_of(0.5, 0.2, thin=(0.0, 0.2)), StressCapacity(None, "insufficient", None)),
        ((), StressCapacity(None, "insufficient", None)),
    ],
)
def test_capacity_and_first_breach(curve: tuple[StressMargin, ...], expected: StressCapacity) -> None:
    assert stress_capacity(curve) == expected


@pytest.mark.parametrize(
    ("stress", "point"), [(0.0, 0.0), (0.09, 0.0), (0.11, 0.2), (0.2, 0.2), (0.5, 0.4), (0.51, 0.6), (1.0, 1.0)]
)
def test_nearest_point_of_the_grid(stress: float, point: float) -> None:
    assert nearest_point(stress, GRID) == point


def test_of_two_equally_near_the_lower() -> None:
    assert nearest_point(0.25, (0.0, 0.5, 1.0)) == 0.0


def test_live_stress_is_the_quantile_of_the_active() -> None:
    assert live_stress([], 0.9) is None
    assert live_stress([0.4], 0.9) == 0.4
    # Ten values: the ninth.
    assert live_stress([i / 10 for i in range(10)], 0.9) == 0.8


@pytest.mark.parametrize(
    ("live", "curve", "expected"),
    [
        (0.2, curve_of(1.0, 0.1, -0.2), False),
        (0.4, curve_of(1.0, 0.1, -0.2), True),
        (0.25, curve_of(1.0, 0.1, -0.2), True),  # in the bin that holds, but above the capacity
        (0.2, curve_of(1.0, -0.1, 0.2), True),  # below the capacity, but in a bin that does not hold
        (0.0, curve_of(0.0), False),
        (0.0, curve_of(-0.1), True),
        (0.4, curve_of(1.0, 0.1, -0.2, thin=(0.4,)), None),  # its bin says nothing yet
        (0.4, curve_of(1.0, 0.1, None), None),
        (0.0, curve_of(1.0, thin=(0.0,)), None),
    ],
)
def test_beyond_capacity(live: float, curve: tuple[StressMargin, ...], expected: bool | None) -> None:
    assert beyond_capacity(live, curve, stress_capacity(curve)) is expected


def test_a_breach_begins_and_ends_by_evaluations_in_a_row() -> None:
    breach = BreachState()
    said = [True, True, False, True, True, True, True, False, False, True, False, False, False, False]
    changed = [breach.advance(beyond, 3) for beyond in said]
    assert [i for i, change in enumerate(changed) if change] == [5, 12]
    assert (breach.active, breach.beginnings) == (False, 1)


def test_a_breach_ends_where_nothing_runs() -> None:
    breach = BreachState()
    assert not breach.end()
    assert breach.advance(True, 1)
    assert breach.end()
    assert (breach.active, breach.beginnings) == (False, 1)
