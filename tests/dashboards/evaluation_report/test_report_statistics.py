"""The statistics of a report against independent computations, and what they make of nothing."""

import itertools
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.dashboards.evaluation_report.report_statistics import (
    bootstrap,
    compare_ranks,
    correlate_ranks,
    mean,
    median,
)

SAMPLES = st.lists(st.integers(0, 6).map(float), min_size=2, max_size=9)


@given(SAMPLES, SAMPLES)
def test_superiority_counts_the_pairs(first: list[float], second: list[float]) -> None:
    wins = [1.0 if b > a else 0.5 if b == a else 0.0 for a, b in itertools.product(first, second)]
    compared = compare_ranks(first, second)
    assert compared is not None
    assert compared.u == sum(wins)
    assert compared.superiority == pytest.approx(statistics.fmean(wins))
    assert 0 <= compared.p <= 1


def test_the_p_of_small_samples_is_exact() -> None:
    # 3 + 4 values without ties, fully apart: 2 of the C(7, 3) = 35 ways are as extreme.
    compared = compare_ranks([1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0])
    assert compared is not None
    assert compared.p == pytest.approx(2 / 35)
    assert compared.superiority == 1


def test_samples_that_never_vary_do_not_differ() -> None:
    compared = compare_ranks([2.0, 2.0], [2.0])
    assert compared is not None
    assert (compared.u, compared.p, compared.superiority) == (1.0, 1.0, 0.5)
    assert compare_ranks([], [1.0]) is None
    assert compare_ranks([1.0], []) is None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=12))
def test_rho_is_pearsons_of_the_mean_ranks(pairs: list[tuple[int, int]]) -> None:
    x, y = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    found = correlate_ranks(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert found is None
        return
    ranks = [[sum(other < v for other in own) + (own.count(v) + 1) / 2 for v in own] for own in (x, y)]
    assert found is not None
    assert found.rho == pytest.approx(np.asarray(np.corrcoef(ranks))[0, 1], abs=1e-9)


def test_rho_takes_three_pairs() -> None:
    assert correlate_ranks([1.0, 2.0], [1.0, 2.0]) is None


def test_the_interval_of_a_mean_is_near_the_normal_one() -> None:
    values = np.random.default_rng(1).normal(10.0, 2.0, 400).tolist()
    found = bootstrap(values, mean, seed=0)
    half = 1.96 * statistics.stdev(values) / 20
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert found.value == pytest.approx(statistics.fmean(values))
    assert found.low == pytest.approx(found.value - half, abs=0.03)
    assert found.high == pytest.approx(found.value + half, abs=0.03)


def test_the_interval_of_three_values_is_that_of_all_27_resamples() -> None:
    values = [0.0, 1.0, 5.0]
    every = sorted(statistics.median(drawn) for drawn in itertools.product(values, repeat=3))
    found = bootstrap(values, median, seed=0)
    assert found is not None
    # 7 of 27 medians are 0 and 7 are 5: both tails of 0.025 lie inside them.
    assert (found.low, found.value, found.high) == (every[0], 1.0, every[-1])


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20), st.randoms(use_true_random=False))
def test_order_changes_no_interval_and_the_seed_decides(values: list[float], shuffler: object) -> None:
    shuffled = list(values)
    shuffler.shuffle(shuffled)  # type: ignore[attr-defined]
    assert bootstrap(values, mean, seed=3, resamples=50) == bootstrap(shuffled, mean, seed=3, resamples=50)


def test_one_value_has_no_interval_and_none_no_figure() -> None:
    found = bootstrap([4.0], mean, seed=0)
    assert found is not None
    assert (found.value, found.low, found.high) == (4.0, None, None)
    assert bootstrap([], mean, seed=0) is None
