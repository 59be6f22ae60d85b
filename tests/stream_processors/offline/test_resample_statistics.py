"""Resampling: against scipy, against plain loops, and by its properties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]

from springback.stream_processors.offline.resampling import (
    bootstrap_interval,
    cluster_numbers,
    cluster_weights,
    mann_whitney_p,
    percentile_interval,
    weighted_maximum,
    weighted_mean,
    weighted_quantile,
)
from springback.stream_processors.resilience.quantiles import quantile

SAMPLES = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=12)


@given(SAMPLES, SAMPLES)
def test_mann_whitney_is_that_of_scipy(first: list[float], second: list[float]) -> None:
    found = mann_whitney_p(first, second)
    expected = stats.mannwhitneyu(first, second, method="asymptotic").pvalue
    # scipy's answer for samples that are all one value is 1 too, or NaN in some versions.
    assert found == pytest.approx(1.0 if len({*first, *second}) == 1 else min(float(expected), 1.0))


def test_mann_whitney_of_nothing_is_none() -> None:
    assert mann_whitney_p([], [1.0]) is None
    assert mann_whitney_p([1.0], []) is None


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(-3, 3).map(float), st.integers(0, 3)), min_size=1, max_size=12),
    st.sampled_from([0.1, 0.5, 0.9, 0.95, 1.0]),
)
def test_weighted_statistics_are_those_of_the_repeated_values(drawn: list[tuple[float, int]], rank: float) -> None:
    values = np.array([value for value, _ in drawn])
    weights = np.array([[float(count) for _, count in drawn]])
    repeated = [value for value, count in drawn for _ in range(count)]
    results = (
        weighted_mean(values, weights)[0],
        weighted_quantile(values, weights, rank)[0],
        weighted_maximum(values, weights)[0],
    )
    if repeated:
        assert results == pytest.approx((np.mean(repeated), quantile(repeated, rank), max(repeated)))
    else:
        assert np.isnan(results).all()


def test_no_values_have_no_statistic() -> None:
    weights = np.zeros((2, 0))
    for found in (weighted_quantile(np.zeros(0), weights, 0.5), weighted_maximum(np.zeros(0), weights)):
        assert np.isnan(found).all()
    assert bootstrap_interval([]) is None
    assert percentile_interval(np.array([np.nan, np.nan])) is None


def test_an_interval_covers_the_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    covered = 0
    for seed in range(200):
        interval = bootstrap_interval(rng.exponential(size=60), seed=seed, resamples=400, confidence=0.9)
        assert interval is not None
        covered += interval.low <= 1.0 <= interval.high
    assert 0.8 < covered / 200 < 0.96


def test_values_of_a_cluster_are_drawn_together() -> None:
    rng = np.random.default_rng(5)
    of_cluster = np.repeat(rng.normal(size=20), 10)
    names = [str(i // 10) for i in range(200)]
    apart, together = bootstrap_interval(of_cluster), bootstrap_interval(of_cluster, clusters=names)
    assert apart is not None
    assert together is not None
    assert together.high - together.low > 2.0 * (apart.high - apart.low)


def test_each_stratum_keeps_its_size() -> None:
    strata = np.array([0, 0, 0, 1, 1, 2])
    weights = cluster_weights(strata, seed=1, resamples=50)
    assert weights.shape == (50, 6)
    assert (weights[:, :3].sum(axis=1) == 3).all()
    assert (weights[:, 3:5].sum(axis=1) == 2).all()
    assert (weights[:, 5] == 1).all()


def test_the_seed_decides() -> None:
    values = list(range(20))
    assert bootstrap_interval(values, seed=4) == bootstrap_interval(values, seed=4)
    assert bootstrap_interval(values, seed=4) != bootstrap_interval(values, seed=5)


def test_clusters_are_numbered_by_name() -> None:
    numbers, count = cluster_numbers(["b", "a", "b"])
    assert (numbers.tolist(), count) == ([1, 0, 1], 2)
