"""Statistics by resampling: bootstrap intervals over clusters of episodes, and the Mann-Whitney test. Pure numpy.

Episodes of one task belong together: a task that is hard clean is hard perturbed too. So what is drawn with replacement
is whole tasks, and a resample is a row of weights: how often each task was drawn. Statistics of all resamples are then
worked out at once from those weights. Everything is a function of its seed.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from springback.stream_processors.resilience.anchor import Floats, Ints

RESAMPLES = 2000
CONFIDENCE = 0.95
_BLOCK_CELLS = 4_000_000


class Interval(NamedTuple):
    """A percentile interval of a statistic; both ends belong to it."""

    low: float
    high: float


def bootstrap_interval(
    values: ArrayLike,
    statistic: Callable[[Floats, Floats], Floats] | None = None,
    *,
    clusters: Sequence[str] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Interval | None:
    """The bootstrap interval of a statistic of one sample; None where there is none.

    Args:
        values: the sample (n,).
        statistic: from values (n,) and weights (b, n) to the statistic of each resample (b,); the mean if None.
        clusters: what each value belongs to (its task): values of one cluster are drawn together.
        seed: of the draws.
        resamples: how many are drawn.
        confidence: share of the resamples that the interval holds.

    >>> bootstrap_interval([1.0, 1.0, 1.0])
    Interval(low=1.0, high=1.0)
    """
    sample = np.asarray(values, dtype=np.float64)
    if not len(sample):
        return None
    number, count = cluster_numbers(clusters if clusters is not None else [str(i) for i in range(len(sample))])
    weights = cluster_weights(np.zeros(count, dtype=np.int64), seed=seed, resamples=resamples)
    chosen = statistic or weighted_mean
    return percentile_interval(resampled(lambda own: chosen(sample, own), weights, number), confidence)


def resampled(statistic: Callable[[Floats], Floats], weights: Floats, number: Ints) -> Floats:
    """A statistic of every resample, a block of them at a time, so that large samples fit into memory.

    Args:
        statistic: from the values' weights (b, n) to the statistic of each resample, (b,) or (b, d).
        weights: of the clusters (resamples, k).
        number: the cluster of each value (n,).
    """
    rows = max(1, _BLOCK_CELLS // max(len(number), 1))
    blocks = [statistic(weights[start : start + rows, number]) for start in range(0, len(weights), rows)]
    return np.concatenate(blocks)


def cluster_numbers(clusters: Sequence[str]) -> tuple[Ints, int]:
    """Each cluster's number, counted from 0 in the order of their names, and how many there are."""
    number = {name: i for i, name in enumerate(sorted(set(clusters)))}
    return np.array([number[name] for name in clusters], dtype=np.int64), len(number)


def cluster_weights(strata: Ints, *, seed: int, resamples: int = RESAMPLES) -> Floats:
    """How often each cluster is drawn in each resample. Shape: strata (k,), result (resamples, k).

    Every stratum is drawn from by itself, as many times as it has clusters.
    """
    rng = np.random.default_rng(seed)
    weights = np.zeros((resamples, len(strata)))
    for stratum in np.unique(strata):
        own = np.flatnonzero(strata == stratum)
        weights[:, own] = rng.multinomial(len(own), np.full(len(own), 1.0 / len(own)), size=resamples)
    return weights


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
    if not len(values):
        return np.full(len(weights), np.nan)
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[:, order], axis=1)
    total = reached[:, -1]
    # As in `quantile`, the rank is taken a hair low, against what floats make of it.
    first = np.argmax(reached >= (rank * total - 1e-9)[:, None], axis=1)
    return np.where(total > 0, values[order][first], np.nan)


def weighted_maximum(values: Floats, weights: Floats) -> Floats:
    """The largest value that was drawn, under each row of weights; NaN where none was. Shape: (n,), (b, n), (b,)."""
    if not len(values):
        return np.full(len(weights), np.nan)
    largest = np.where(weights > 0, values, -np.inf).max(axis=1)
    return np.where(np.isneginf(largest), np.nan, largest)


def percentile_interval(statistics: Floats, confidence: float = CONFIDENCE) -> Interval | None:
    """The middle part of the resamples' statistics. Those that could not be taken (NaN) are left out; None if all."""
    known = statistics[~np.isnan(statistics)]
    if not len(known):
        return None
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(known, [tail, 1.0 - tail])
    return Interval(float(low), float(high))


def mann_whitney_p(first: ArrayLike, second: ArrayLike) -> float | None:
    """Two-sided p of the Mann-Whitney test that one sample tends to be larger; None where a sample is empty.

    By the normal approximation, with corrections for ties and continuity; 1 where all values are equal.

    >>> round(mann_whitney_p([1, 2, 3, 4, 5, 6, 7, 8], [11, 12, 13, 14, 15, 16, 17, 18]), 5)
    0.00094
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    n, m = len(a), len(b)
    if not n or not m:
        return None
    distinct, place, ties = np.unique(np.concatenate([a, b]), return_inverse=True, return_counts=True)
    if len(distinct) == 1:
        return 1.0
    middle_rank = np.cumsum(ties) - (ties - 1) / 2.0
    u = float(middle_rank[place[:n]].sum()) - n * (n + 1) / 2.0
    total = n + m
    variance = n * m / 12.0 * (total + 1 - float((ties.astype(np.float64) ** 3 - ties).sum()) / (total * (total - 1)))
    z = max(abs(u - n * m / 2.0) - 0.5, 0.0) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2.0))
