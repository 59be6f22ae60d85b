"""What is read off a stress-response curve: areas and cliffs worked out by hand, and their bounds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.stream_processors.offline.stress_response import capacities, cliff, degradation_areas

GRID = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]


def area(margins: list[float], stresses: list[float]) -> float:
    return float(degradation_areas(np.array([margins]), stresses)[0])


def test_the_area_by_hand() -> None:
    """M + 1 is 1.5, 1.0, 0.5 at 0, 0.4, 1: 0.4 (1.5 + 1) / 2 + 0.6 (1 + 0.5) / 2 = 0.5 + 0.45, over a width of 1."""
    assert area([0.5, 0.0, -0.5], [0.0, 0.4, 1.0]) == pytest.approx(0.95)


def test_what_all_failed_has_no_area_and_what_is_just_kept_has_one() -> None:
    assert area([-1.0] * 6, GRID) == 0.0
    assert area([0.0] * 6, GRID) == pytest.approx(1.0)


def test_the_area_is_by_the_width_of_what_was_tested() -> None:
    """Two levels of six: the same height gives the same figure, which is why the levels are said beside it."""
    assert area([0.2, 0.2], [0.4, 0.6]) == pytest.approx(1.2)


def test_one_level_or_a_gap_has_no_area() -> None:
    assert math.isnan(area([0.5], [0.0]))
    assert math.isnan(area([0.5, math.nan, 0.1], [0.0, 0.2, 0.4]))


def test_a_fall_of_just_one_per_unit_is_no_cliff_and_more_is() -> None:
    assert cliff([0.5, 0.3, 0.1], [0.0, 0.2, 0.4]) is None
    assert cliff([0.5, 0.3, 0.0], [0.0, 0.2, 0.4]) == 0.4


def test_the_fall_is_from_the_level_before_that_is_known() -> None:
    """0.5 over a gap of 0.6 is no cliff, where over 0.2 it would be."""
    assert cliff([0.5, 0.0], [0.0, 0.6]) is None
    assert cliff([0.5, 0.0], [0.4, 0.6]) == 0.6


def test_of_two_cliffs_the_first_counts_and_a_rise_is_none() -> None:
    assert cliff([0.5, -0.2, 0.5, -0.2], [0.0, 0.2, 0.4, 0.6]) == 0.2
    assert cliff([-0.9, 0.5], [0.0, 0.2]) is None
    assert cliff([], []) is None


@given(st.lists(st.floats(-1.0, 0.5), min_size=6, max_size=6), st.integers(0, 5), st.floats(0, 1))
def test_a_worse_margin_never_enlarges_the_area_nor_the_capacity(margins: list[float], place: int, loss: float) -> None:
    worse = [margin - loss * (i == place) for i, margin in enumerate(margins)]
    assert 0.0 <= area(worse, GRID) <= area(margins, GRID) + 1e-12 <= 1.5 + 2e-12
    before, after = capacities(np.array([margins, worse]), GRID)
    assert after <= before


def test_no_margin_known_is_no_capacity() -> None:
    found = capacities(np.array([[math.nan, math.nan], [math.nan, 0.1], [math.nan, -0.1]]), [0.0, 0.2])
    assert np.isnan(found[0])
    assert found[1:].tolist() == [0.2, 0.0]
