"""The statistics of a report: bootstrap intervals, and two tests by rank.

All of them are functions of their values alone: the order in which the values come plays no part, and chance is seeded
by the caller.
"""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy import stats  # type: ignore[import-untyped]

CONFIDENCE = 0.95
RESAMPLES = 2000
_DRAWS_AT_A_TIME = 1_000_000

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Floats]
"""Takes resamples as rows, and gives one figure a row."""


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A figure with its bootstrap interval; `low` and `high` are None where fewer than two values stand behind it."""

    value: float
    low: float | None
    high: float | None


class RankComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two samples compared by rank (Mann and Whitney, two-sided).

    Attributes:
        u: the statistic of the second sample.
        p: how often samples of one and the same kind would differ at least as much.
        superiority: the chance that a value of the second sample is the larger one, ties counting half.
    """

    u: float
    p: float
    superiority: float


class RankCorrelation(msgspec.Struct, frozen=True, kw_only=True):
    """Spearman's rank correlation, with its two-sided p."""

    rho: float
    p: float


def mean(resamples: Floats) -> Floats:
    """The mean of each row."""
    return np.asarray(resamples.mean(axis=1))


def median(resamples: Floats) -> Floats:
    """The median of each row."""
    return np.asarray(np.median(resamples, axis=1))


def bootstrap(values: Sequence[float], statistic: Statistic, seed: int, resamples: int = RESAMPLES) -> Interval | None:
    """A figure and its percentile bootstrap interval; None without values. The same values have the same interval.

    Source: Efron's percentile interval at 0.95.
    """
    if not values:
        return None
    data = np.sort(np.asarray(values, dtype=np.float64))
    (value,) = statistic(data[np.newaxis, :])
    if len(data) < 2:
        return Interval(value=float(value), low=None, high=None)
    chance, rows = np.random.default_rng(seed), max(1, _DRAWS_AT_A_TIME // len(data))
    figures = np.concatenate(
        [
            statistic(data[chance.integers(0, len(data), (min(rows, resamples - first), len(data)))])
            for first in range(0, resamples, rows)
        ]
    )
    low, high = np.quantile(figures, _tails())
    return Interval(value=float(value), low=float(low), high=float(high))


def percentile_interval(figures: Floats) -> tuple[float, float]:
    """The values between which CONFIDENCE of the figures lie; each is one of the figures."""
    low, high = np.quantile(figures, _tails(), method="inverted_cdf")
    return float(low), float(high)


def compare_ranks(first: Sequence[float], second: Sequence[float]) -> RankComparison | None:
    """Whether two samples differ; None where one of them is empty."""
    if not first or not second:
        return None
    pairs = len(first) * len(second)
    if min(*first, *second) == max(*first, *second):
        return RankComparison(u=pairs / 2, p=1.0, superiority=0.5)
    found = stats.mannwhitneyu(sorted(second), sorted(first), alternative="two-sided")
    return RankComparison(u=float(found.statistic), p=float(found.pvalue), superiority=float(found.statistic) / pairs)


def correlate_ranks(x: Sequence[float], y: Sequence[float]) -> RankCorrelation | None:
    """Spearman's rho of pairs; None with fewer than three of them, or where x or y never varies."""
    if len(x) < 3 or min(x) == max(x) or min(y) == max(y):
        return None
    pairs = np.asarray(sorted(zip(x, y, strict=True)))
    found = stats.spearmanr(pairs[:, 0], pairs[:, 1])
    return RankCorrelation(rho=float(found.statistic), p=float(found.pvalue))


def _tails() -> tuple[float, float]:
    return (1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2
