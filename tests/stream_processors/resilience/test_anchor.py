"""Cycle times and anchor bins on their boundaries."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.stream_processors.resilience.anchor import AnchorGrid, cycle_times

NAN = math.nan


@given(share=st.floats(0, 1), p_bins=st.integers(1, 50), q_bins=st.integers(1, 50))
def test_every_share_has_a_bin_and_more_progress_no_lower_one(share: float, p_bins: int, q_bins: int) -> None:
    grid = AnchorGrid(p_bins, q_bins)
    shares = np.array([0.0, share, 1.0])
    p, q = grid.progress_bin(shares).tolist(), grid.residual_bin(shares).tolist()
    assert p == [0, min(math.floor(p_bins * share), p_bins - 1), p_bins - 1]
    assert q == [q_bins - 1, min(math.floor(q_bins * (1 - share)), q_bins - 1), 0]


@pytest.mark.parametrize(("progress", "bin_"), [(0.1, 1), (np.nextafter(0.1, 0), 0), (0.9, 9), (1.0, 9)])
def test_a_bin_begins_at_its_lower_edge(progress: float, bin_: int) -> None:
    assert AnchorGrid().progress_bin(np.array([progress])).tolist() == [bin_]


@pytest.mark.parametrize(
    ("given_s", "time_s", "before_s", "comparable", "expected_s", "reset"),
    [
        (0.5, 10.0, 9.0, True, 0.5, False),  # given: taken as it is
        (NAN, 10.0, 9.0, True, 1.0, False),
        (NAN, 10.0, 9.0, False, NAN, False),  # a gap, or a clock that is not the producer's
        (NAN, 10.0, 10.0, True, NAN, False),  # no time at all went by: no cycle time, no reset
        (NAN, 10.0, 11.0, True, NAN, True),
        (0.5, 10.0, 11.0, True, 0.5, True),  # the clock ran backwards, the cycle time is known all the same
        (NAN, 10.0, 11.0, False, NAN, False),
    ],
)
def test_cycle_times(
    given_s: float, time_s: float, before_s: float, comparable: bool, expected_s: float, reset: bool
) -> None:
    found, resets = cycle_times(np.array([given_s]), np.array([time_s]), np.array([before_s]), np.array([comparable]))
    np.testing.assert_array_equal(found, [expected_s])
    assert resets.tolist() == [reset]
