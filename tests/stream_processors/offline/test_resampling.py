"""Resampling: against scipy, against every possible draw, and by its properties."""

import itertools
import random
import statistics
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]

from springback.stream_processors.offline.resampling import (
    Interval,
    TaskDraws,
    WeightedStatistic,
    bootstrap,
    percentile_interval,
    weighted_maximum,
    weighted_mean,
    weighted_median,
    weighted_quantile,
    weighted_rank_correlation,
)
from springback.stream_processors.resilience.anchor import Floats
from springback.stream_processors.resilience.quantiles import quantile
from tests.examples import examples


def apart(count: int) -> list[str]:
    return [f"t{i:03}" for i in range(count)]


def ends(found: Interval | None) -> tuple[float, float]:
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


@settings(max_examples=examples(60))
@given(
    st.lists(st.tuples(st.integers(-3, 3).map(float), st.integers(0, 3)), min_size=1, max_size=12),
    st.sampled_from([0.1, 0.5, 0.9, 0.95, 1.0]),
)
def test_weighted_statistics_are_those_of_the_repeated_values(drawn: list[tuple[float, int]], rank: float) -> None:
    values = np.array([value for value, _ in drawn])
    weights = np.array([[float(count) for _, count in drawn]])
    repeated = [value for value, count in drawn for _ in range(count)]
    results = [
        weighted_mean(values, weights)[0],
        weighted_quantile(values, weights, rank)[0],
        weighted_median(values, weights)[0],
        weighted_maximum(values, weights)[0],
    ]
    if repeated:
        expected = [np.mean(repeated), quantile(repeated, rank), statistics.median(repeated), max(repeated)]
        assert results == pytest.approx(expected)
    else:
        assert np.isnan(results).all()


def test_no_values_have_no_statistic() -> None:
    weights = np.zeros((2, 0))
    for found in (
        weighted_quantile(np.zeros(0), weights, 0.5),
        weighted_median(np.zeros(0), weights),
        weighted_maximum(np.zeros(0), weights),
    ):
        assert np.isnan(found).all()
    assert bootstrap([], [], weighted_mean, seed=0) is None
    assert percentile_interval(np.array([np.nan, np.nan])) == (None, None)


def test_values_of_one_task_have_no_interval() -> None:
    assert bootstrap([4.0, 6.0], ["mug", "mug"], weighted_mean, seed=0) == Interval(value=5.0, low=None, high=None)


def test_an_interval_covers_the_mean_as_often_as_it_says() -> None:
    """Of tasks of unequal sizes, whose episodes are alike: drawn one by one they would cover it far less often."""
    rng = np.random.default_rng(3)
    covered, covered_apart = 0, 0
    for seed in range(150):
        tasks = np.repeat(np.arange(40), rng.integers(1, 9, size=40))
        values = (rng.normal(size=40)[tasks] + 0.2 * rng.normal(size=len(tasks))).tolist()
        for names in (tasks.astype(str).tolist(), apart(len(tasks))):
            low, high = ends(bootstrap(values, names, weighted_mean, seed=seed, resamples=200, confidence=0.9))
            if len(set(names)) == 40:
                covered += low <= 0.0 <= high
            else:
                covered_apart += low <= 0.0 <= high
    assert 0.82 < covered / 150 < 0.96
    assert covered_apart / 150 < 0.7


def test_without_tasks_in_common_it_is_the_percentile_interval_of_scipy() -> None:
    values = np.random.default_rng(1).exponential(size=80)
    chance = np.random.default_rng(2)
    expected = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=chance)
    found = ends(bootstrap(values.tolist(), apart(80), weighted_mean, seed=0, resamples=20_000))
    assert found == pytest.approx(tuple(expected.confidence_interval), abs=0.01)


PLAIN: dict[WeightedStatistic, Callable[[list[float]], float]] = {
    weighted_mean: statistics.fmean,
    weighted_median: statistics.median,
    weighted_maximum: max,
}


@pytest.mark.parametrize("statistic", PLAIN)
def test_the_interval_of_three_tasks_is_that_of_all_27_draws(statistic: WeightedStatistic) -> None:
    of_task = {"mug": [0.0, 7.0], "plate": [1.0], "sink": [5.0, 2.0, 4.0]}
    plain = PLAIN[statistic]
    every = [
        plain([value for task in drawn for value in of_task[task]]) for drawn in itertools.product(of_task, repeat=3)
    ]
    pairs = [(value, task) for task, values in of_task.items() for value in values]
    found = bootstrap([v for v, _ in pairs], [t for _, t in pairs], statistic, seed=0, resamples=20_000)
    assert found is not None
    assert found.value == pytest.approx(plain([value for value, _ in pairs]))
    # The tails of 0.025 lie inside the most extreme of the 27.
    assert ends(found) == pytest.approx((min(every), max(every)))


@settings(max_examples=examples(25))
@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.sampled_from("abcdef")), min_size=2, max_size=20),
    st.randoms(use_true_random=False),
)
def test_order_changes_no_interval(pairs: list[tuple[float, str]], shuffler: random.Random) -> None:
    shuffled = list(pairs)
    shuffler.shuffle(shuffled)
    one, other = (
        bootstrap([value for value, _ in some], [task for _, task in some], weighted_mean, seed=3, resamples=50)
        for some in (pairs, shuffled)
    )
    assert one == other


def test_the_seed_decides() -> None:
    values = [float(value) for value in range(20)]
    same, again, other = (bootstrap(values, apart(20), weighted_mean, seed=seed) for seed in (4, 4, 5))
    assert same == again
    assert same != other


def counts_of(draws: TaskDraws, tasks: Sequence[str], sample: int) -> dict[str, list[float]]:
    """How often each task of a sample is drawn, resample by resample."""
    found = draws.resample(lambda weights: weights, sample)
    return {task: found[:, i].tolist() for i, task in enumerate(tasks)}


def test_samples_share_the_draws_of_their_common_tasks_and_keep_their_sizes() -> None:
    first, second = ["a", "b", "c", "d", "e"], ["d", "e", "f", "c", "g"]
    draws = TaskDraws(first, second, seed=1, resamples=50)
    own, other = counts_of(draws, first, 0), counts_of(draws, second, 1)
    assert draws.tasks == 7
    for task in ("c", "d", "e"):
        assert own[task] == other[task]
    for stratum, counts in (("ab", own), ("cde", own), ("fg", other)):
        sums = np.sum([counts[task] for task in stratum], axis=0)
        assert sums.tolist() == [len(stratum)] * 51
    assert {counts[0] for counts in own.values()} == {1.0}
    assert len(set(own["a"])) > 1


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks, values = apart(7), np.arange(7.0)

    def means() -> Floats:
        return TaskDraws(tasks, seed=2, resamples=40).resample(lambda weights: weighted_mean(values, weights))

    whole = means()
    monkeypatch.setattr("springback.stream_processors.offline.resampling._BLOCK_CELLS", 20)
    assert means().tolist() == pytest.approx(whole.tolist())


def mean_ranks(values: list[float]) -> list[float]:
    return [sum(other < v for other in values) + (values.count(v) + 1) / 2 for v in values]


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=10))
def test_weighted_rho_is_pearsons_of_the_mean_ranks_of_the_repeated_pairs(drawn: list[tuple[int, int, int]]) -> None:
    x, y = (np.array([pair[i] for pair in drawn], dtype=np.float64) for i in (0, 1))
    found = weighted_rank_correlation(x, y, np.array([[float(count) for _, _, count in drawn]]))[0]
    repeated = [(float(a), float(b)) for a, b, count in drawn for _ in range(count)]
    ranks = [mean_ranks([pair[i] for pair in repeated]) for i in (0, 1)]
    if any(len(set(own)) < 2 for own in ranks):
        assert np.isnan(found)
    else:
        assert found == pytest.approx(np.asarray(np.corrcoef(ranks))[0, 1], abs=1e-9)


def test_the_interval_of_rho_is_that_of_tasks_not_of_episodes() -> None:
    """Ten runs of each of four tasks are four points, not forty: the interval must stay wide.

    The runs are copies, so that it is the interval of the four pairs themselves.
    """
    x, y, tasks = [0.0, 1.0, 2.0, 3.0], [1.0, 0.0, 3.0, 2.0], apart(4)
    once = np.repeat(x, 1), np.repeat(y, 1), tasks
    often = np.repeat(x, 10), np.repeat(y, 10), [task for task in tasks for _ in range(10)]
    found = []
    for a, b, names in (once, often):
        rho = TaskDraws(names, seed=0).resample(partial(weighted_rank_correlation, a, b))
        found.append(percentile_interval(rho[1:]))
    assert found[0] == pytest.approx(found[1])
    assert found[0][0] is not None
    assert found[0][0] < 0
    assert found[0][1] == pytest.approx(1.0)
