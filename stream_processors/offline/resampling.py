"""Bootstrap intervals over tasks: those of a report and of a comparison of versions, by one piece of code.

Episodes of one task belong together: a task that is hard clean is hard perturbed too. So whole tasks are drawn with
replacement, and a resample is a row of weights: how often each task was drawn. A statistic is worked out under all rows
at once. All of it is a function of values and seed; the order of the values plays no part.

Source: Efron's percentile interval; tasks as its units are ours.
"""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from springback.stream_processors.resilience.anchor import Floats

RESAMPLES = 2000
CONFIDENCE = 0.95
_BLOCK_CELLS = 4_000_000

WeightedStatistic = Callable[[Floats, Floats], Floats]
"""From values (n,) and their weights in each resample (b, n) to a figure of each resample (b,)."""


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A figure with its bootstrap interval; `low` and `high` are None where fewer than two tasks stand behind it."""

    value: float
    low: float | None
    high: float | None


class TaskDraws:
    """Tasks drawn with replacement, over and over, for samples that share them.

    A task is drawn for all samples that it occurs in at once. Those that occur in the same samples are drawn from by
    themselves, so that every resample has as many of them as there are.

    >>> draws = TaskDraws(["mug", "mug", "plate"], seed=0, resamples=3)
    >>> values = np.array([1.0, 3.0, 8.0])
    >>> draws.resample(lambda weights: weighted_mean(values, weights)).tolist()
    [4.0, 8.0, 4.0, 2.0]

    Args:
        samples: the task of each episode, sample by sample.
        seed: of the draws.
        resamples: how often the tasks are drawn.
    """

    def __init__(self, *samples: Sequence[str], seed: int, resamples: int = RESAMPLES) -> None:
        tasks = [set(sample) for sample in samples]
        number = {task: i for i, task in enumerate(sorted(set().union(*tasks)))}
        strata: dict[tuple[bool, ...], list[int]] = {}
        for task, i in number.items():
            strata.setdefault(tuple(task in own for own in tasks), []).append(i)
        self._numbers = [np.array([number[task] for task in sample], dtype=np.int64) for sample in samples]
        # The first row is the samples as they are. No task is drawn 65,536 times.
        self._counts = np.ones((1 + resamples, len(number)), dtype=np.uint16)
        chance = np.random.default_rng(seed)
        for own in (np.array(numbers) for _, numbers in sorted(strata.items())):
            for rows in _blocks(1, 1 + resamples, len(own)):
                shape = rows.stop - rows.start, len(own)
                # Each row counts in bins of its own, so that one bincount serves the block.
                drawn = chance.integers(0, len(own), shape) + np.arange(shape[0])[:, None] * len(own)
                self._counts[rows, own] = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(shape)

    @property
    def tasks(self) -> int:
        """How many tasks there are."""
        return self._counts.shape[1]

    def resample(self, statistic: Callable[[Floats], Floats], sample: int = 0) -> Floats:
        """A statistic of a sample as it is, and of all its resamples; a block of them at a time, to bound the memory.

        Args:
            statistic: from the weights of the episodes (b, n) to the statistic in each resample, (b,) or (b, d).
            sample: whose episodes these are.
        """
        tasks = self._numbers[sample]
        blocks = _blocks(0, len(self._counts), len(tasks))
        return np.concatenate([statistic(self._counts[rows][:, tasks].astype(np.float64)) for rows in blocks])


def bootstrap(
    values: Sequence[float],
    tasks: Sequence[str],
    statistic: WeightedStatistic,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Interval | None:
    """A figure of some values and its interval; None without values.

    >>> bootstrap([2.0, 2.0, 2.0], ["mug", "mug", "plate"], weighted_mean, seed=0)
    Interval(value=2.0, low=2.0, high=2.0)

    Args:
        values: the sample (n,).
        tasks: the task of each value.
        statistic: the figure.
        seed: of the draws.
        resamples: how many are drawn.
        confidence: share of the resamples that the interval holds.
    """
    if not values:
        return None
    pairs = sorted(zip(tasks, values, strict=True))
    sample = np.array([value for _, value in pairs], dtype=np.float64)
    draws = TaskDraws([task for task, _ in pairs], seed=seed, resamples=resamples)
    figures = draws.resample(lambda weights: statistic(sample, weights))
    low, high = percentile_interval(figures[1:], confidence) if draws.tasks > 1 else (None, None)
    return Interval(value=float(figures[0]), low=low, high=high)


def percentile_interval(figures: Floats, confidence: float = CONFIDENCE) -> tuple[float | None, float | None]:
    """The ends of the middle part of the resamples' figures, each of them one of the figures.

    Resamples without a figure (NaN) are left out; (None, None) if all are.
    """
    known = figures[~np.isnan(figures)]
    if not len(known):
        return None, None
    tail, once = (1.0 - confidence) / 2.0, np.ones((1, len(known)))
    return float(weighted_quantile(known, once, tail)[0]), float(weighted_quantile(known, once, 1.0 - tail)[0])


def weighted_mean(values: Floats, weights: Floats) -> Floats:
    """The mean of the values (n,) under each row of weights (b, n); NaN where all weights are 0. Shape: (b,)."""
    total = weights.sum(axis=1)
    mean: Floats = np.divide(weights @ values, total, out=np.full(len(weights), np.nan), where=total > 0)
    return mean


def weighted_quantile(values: Floats, weights: Floats, rank: float) -> Floats:
    """The smallest value whose rank reaches `rank`, as `quantiles.quantile` has it, under each row of weights.

    Shape: values (n,), weights (b, n), result (b,); NaN where all weights are 0.

    >>> weighted_quantile(np.array([4.0, 1.0, 3.0, 2.0]), np.array([[1.0, 1, 1, 1], [2, 0, 1, 0]]), 0.51).tolist()
    [3.0, 4.0]
    """
    ordered, reached = _accumulated(values, weights)
    # As in `quantile`, the rank is taken a hair low, against what floats make of it.
    return _first_at(ordered, reached, rank, -1e-9)


def weighted_median(values: Floats, weights: Floats) -> Floats:
    """The median under each row of weights: the mean of the two middle values where their number is even.

    Shape: values (n,), weights (b, n), result (b,); NaN where all weights are 0.
    """
    ordered, reached = _accumulated(values, weights)
    return (_first_at(ordered, reached, 0.5, -1e-9) + _first_at(ordered, reached, 0.5, 1e-9)) / 2.0


def weighted_maximum(values: Floats, weights: Floats) -> Floats:
    """The largest value that was drawn, under each row of weights; NaN where none was. Shape: (n,), (b, n), (b,)."""
    if not len(values):
        return np.full(len(weights), np.nan)
    largest = np.where(weights > 0, values, -np.inf).max(axis=1)
    return np.where(np.isneginf(largest), np.nan, largest)


def weighted_rank_correlation(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Spearman's rho of the pairs under each row of weights; NaN where x or y does not vary in it.

    Ties share the mean of their ranks, and so do the copies of a value that is drawn more than once.

    Shape: x and y (n,), weights (b, n), result (b,).

    >>> drawn = np.array([[1.0, 1, 1], [1, 2, 0]])
    >>> weighted_rank_correlation(np.array([1.0, 2, 3]), np.array([1.0, 3, 2]), drawn).tolist()
    [0.5, 1.0]
    """
    ranks = [_weighted_ranks(column, weights) for column in (x, y)]
    total = np.maximum(weights.sum(axis=1, keepdims=True), 1e-9)
    a, b = (rank - (weights * rank).sum(axis=1, keepdims=True) / total for rank in ranks)
    spread = np.sqrt((weights * a * a).sum(axis=1) * (weights * b * b).sum(axis=1))
    rho: Floats = np.divide(
        (weights * a * b).sum(axis=1), spread, out=np.full(len(weights), np.nan), where=spread > 1e-9
    )
    return rho


def _accumulated(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """The values in order, and the weights up to each of them. Shape: (n,), (b, n)."""
    order = np.argsort(values, kind="stable")
    return values[order], np.cumsum(weights[:, order], axis=1)


def _weighted_ranks(values: Floats, weights: Floats) -> Floats:
    """The mean rank of each value among the repeated ones. Shape: (n,), (b, n), (b, n)."""
    kinds, kind = np.unique(values, return_inverse=True)
    first = np.searchsorted(np.sort(kind), np.arange(len(kinds)))
    of_kind = np.add.reduceat(weights[:, np.argsort(kind, kind="stable")], first, axis=1)
    middle = np.cumsum(of_kind, axis=1) - of_kind / 2.0
    return np.asarray(middle[:, kind])


def _first_at(ordered: Floats, reached: Floats, rank: float, slack: float) -> Floats:
    """The first value by which the weights reach `rank` of their total and the slack; the largest at the latest."""
    if not len(ordered):
        return np.full(len(reached), np.nan)
    total = reached[:, -1]
    first = np.argmax(reached >= np.minimum(rank * total + slack, total)[:, None], axis=1)
    return np.where(total > 0, ordered[first], np.nan)


def _blocks(start: int, stop: int, width: int) -> list[slice]:
    """Rows in blocks that do not hold more than so many cells."""
    rows = max(1, _BLOCK_CELLS // max(width, 1))
    return [slice(first, min(first + rows, stop)) for first in range(start, stop, rows)]
