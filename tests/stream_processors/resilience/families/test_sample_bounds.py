"""What so many episodes allow to be said, against scipy's own and by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]

from springback.stream_processors.resilience.families.sample_bounds import favourable_rank, wilson_interval


@pytest.mark.parametrize(
    ("count", "rank"),
    # 0.9^1 = 0.9 is short of 0.95; 1 - 0.1^2 = 0.99. Of five, P(X >= 3) = 0.9914 and P(X >= 4) = 0.9185. Of twenty,
    # P(X >= 16) = P(Bin(20, 0.1) <= 4) = 0.9568 and P(X >= 17) = 0.8670.
    [(1, 0), (2, 1), (5, 3), (20, 16)],
)
def test_favourable_rank_by_hand(count: int, rank: int) -> None:
    assert favourable_rank(count, 0.9) == rank


@given(st.integers(1, 400), st.floats(0.01, 0.99))
def test_favourable_rank_is_the_largest_that_is_likely_enough(count: int, rank: float) -> None:
    found = favourable_rank(count, rank)
    assert found == 0 or stats.binom.sf(found - 1, count, rank) >= 0.95 - 2e-9
    assert found == count or stats.binom.sf(found, count, rank) < 0.95


def test_wilson_by_hand() -> None:
    # 2 of 5, z = 1.96: middle (0.4 + 0.3841)/1.7683 = 0.4434, half 1.96 sqrt(0.048 + 0.0384)/1.7683 = 0.3258.
    assert wilson_interval(2, 5) == pytest.approx((0.1176, 0.7693), abs=1e-4)
    assert wilson_interval(0, 7)[0] == 0.0
    assert wilson_interval(7, 7)[1] == 1.0


@given(st.integers(1, 500), st.data())
def test_wilson_is_scipys(count: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, count))
    expected = stats.binomtest(hits, count).proportion_ci(method="wilson")
    assert wilson_interval(hits, count) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize(("hits", "count"), [(0, 0), (3, 2), (-1, 2)])
def test_what_is_no_share(hits: int, count: int) -> None:
    with pytest.raises(ValueError, match="expected at least one trial"):
        wilson_interval(hits, count)
    assert math.isfinite(wilson_interval(1, 2)[0])
