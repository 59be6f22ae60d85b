"""What could be chance and what hardly is: the tests of a report and of a comparison of versions, by scipy.

The unit is the task. Runs of one task are alike, so a task has one value, the mean of its episodes, however often it
was run: counted one by one, repetitions would make chance look like a finding. Where both sides ran a task, its two
values are a pair, and tested as one (Wilcoxon's signed ranks). Beside it stands the paper's test (Mann and Whitney),
which is blind to pairs, and all there is where the sides share too few tasks.

An example: a second version takes longer at every one of six tasks, by 1 to 6 steps. Of the 2^6 ways to give the
differences their signs, only this one and its mirror image are as extreme, so p is 2/64:

>>> first = [("t1", 0, 10.0), ("t2", 0, 20.0), ("t3", 0, 30.0), ("t4", 0, 40.0), ("t5", 0, 50.0), ("t6", 0, 60.0)]
>>> second = [(task, level, value + place + 1) for place, (task, level, value) in enumerate(first)]
>>> found = compare_tasks(first, second)
>>> found.paired_tasks, found.higher, found.paired_p, found.p == found.paired_p
(6, 6, 0.03125, True)

Source: which values are tested, and the order of the corrections, are ours.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from statistics import fmean
from typing import Literal, NamedTuple, TypeVar

import msgspec
import numpy as np
from scipy import stats  # type: ignore[import-untyped]

from springback.stream_processors.resilience.anchor import Floats

LEAST_PAIRS = 6
"""Fewer pairs cannot reach a p of 0.05, whatever they are: of five, 2 of the 32 ways to give signs are most extreme."""
_MOST_LEVELS_EXACT = 7
_SAME = 1e-9  # a difference this small, as a share of the values, comes from the order in which floats were summed

Key = TypeVar("Key", bound=Hashable)
TaskValue = tuple[str, Hashable, float]
"""Task, stress level and value of one episode."""


class TaskComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Whether two sides differ, task by task. All p are two-sided; None where there is nothing to test.

    Attributes:
        first_tasks, second_tasks: how many tasks each side has a value of.
        paired_tasks: tasks that both have, at one stress level at least.
        higher, lower: of these, where the second side's value is the higher, and where it is the lower.
        paired_p: of Wilcoxon's signed-rank test over these tasks; those without a difference are left out of it.
        unpaired_p: of Mann and Whitney's test of the tasks' values, as if no two belonged together.
        superiority: the chance that a task's value of the second side is larger than one of the first, ties half.
        paired_p_holm, unpaired_p_holm: the same p, Holm-corrected over the families of one table.
    """

    first_tasks: int
    second_tasks: int
    paired_tasks: int
    higher: int
    lower: int
    paired_p: float | None
    unpaired_p: float | None
    superiority: float | None
    paired_p_holm: float | None = None
    unpaired_p_holm: float | None = None

    @property
    def paired(self) -> bool:
        """Whether the sides share enough tasks to go by the paired test."""
        return self.paired_tasks >= LEAST_PAIRS

    @property
    def p(self) -> float | None:
        """The p to go by: corrected where it has been."""
        if self.paired:
            return self.paired_p if self.paired_p_holm is None else self.paired_p_holm
        return self.unpaired_p if self.unpaired_p_holm is None else self.unpaired_p_holm


class RankComparison(NamedTuple):
    """Two samples compared by rank: the statistic of the second, the two-sided p, and the second's superiority."""

    u: float
    p: float
    superiority: float


class RankCorrelation(msgspec.Struct, frozen=True, kw_only=True):
    """Spearman's rank correlation, and what it is over.

    Over episodes it has an interval from resampling tasks, and no p: the runs of one task are not independent. Over
    level means, one value for each stress level, it has a p, exact for up to seven levels.

    Attributes:
        over: what a point is.
        points: how many there are.
        rho: from -1 to 1.
        low, high: the interval; p: two-sided; p_holm: Holm-corrected over the families of one table.
    """

    over: Literal["episodes", "level means"]
    points: int
    rho: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None


class Stratum(NamedTuple):
    """Counts of one stress level: how many of how many episodes of either version have a mark (were aborted)."""

    first_marked: int
    first: int
    second_marked: int
    second: int


def compare_tasks(first: Iterable[TaskValue], second: Iterable[TaskValue]) -> TaskComparison:
    """Tests whether two sides differ. The order of the episodes plays no part.

    A pair is a task's mean difference over the stress levels that both ran it at, so that a side that ran it under more
    stress is not worse for that; the unpaired test takes a task's mean over all its episodes.

    Args:
        first: the one side's episodes that have a value.
        second: those of the other side.
    """
    first, second = sorted(first, key=_order), sorted(second, key=_order)
    differences = _differences(first, second)
    means = [list(_means((task, value) for task, _, value in side).values()) for side in (first, second)]
    ranks = compare_ranks(*means)
    return TaskComparison(
        first_tasks=len(means[0]),
        second_tasks=len(means[1]),
        paired_tasks=len(differences),
        higher=sum(difference > 0 for difference in differences),
        lower=sum(difference < 0 for difference in differences),
        paired_p=signed_rank_p(differences),
        unpaired_p=None if ranks is None else ranks.p,
        superiority=None if ranks is None else ranks.superiority,
    )


def signed_rank_p(differences: Sequence[float]) -> float | None:
    """The two-sided p of Wilcoxon's signed-rank test; None without a pair, 1 where none differs.

    Pairs without a difference are left out (Wilcoxon's own way). Exact where scipy is: up to 50 without ties, 13 with.

    >>> signed_rank_p([1.0, 2.0, 3.0, -4.0]), signed_rank_p([0.0, 0.0]), signed_rank_p([])
    (0.875, 1.0, None)
    """
    if not differences:
        return None
    changed = sorted(difference for difference in differences if difference)
    return float(stats.wilcoxon(changed).pvalue) if changed else 1.0


def compare_ranks(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> RankComparison | None:
    """Whether two samples differ by rank (Mann and Whitney); None where one is empty. Exact for few without ties.

    >>> compare_ranks([1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0])
    RankComparison(u=12.0, p=0.05714285714285714, superiority=1.0)
    """
    if not len(first) or not len(second):
        return None
    pairs = len(first) * len(second)
    if len({*map(float, first), *map(float, second)}) == 1:  # scipy has no p for these
        return RankComparison(pairs / 2, 1.0, 0.5)
    found = stats.mannwhitneyu(sorted(second), sorted(first), alternative="two-sided")
    return RankComparison(float(found.statistic), float(found.pvalue), float(found.statistic) / pairs)


def correlate_levels(level_values: Iterable[tuple[float, float]]) -> RankCorrelation | None:
    """Spearman's rho of the means of stress levels; None with fewer than three levels, or where no mean differs.

    >>> correlate_levels([(0.0, 1.0), (0.0, 3.0), (0.2, 4.0), (0.4, 9.0)])
    RankCorrelation(over='level means', points=3, rho=1.0, low=None, high=None, p=0.3333333333333333, p_holm=None)

    Args:
        level_values: stress level and value of each episode.
    """
    means = _means(sorted(level_values))
    x, y = list(means), list(means.values())
    if len(x) < 3 or max(y) == min(y):
        return None
    found = stats.spearmanr(x, y)
    p = float(found.pvalue)
    if len(x) <= _MOST_LEVELS_EXACT:  # scipy's p is by a curve that asks for more points
        ranks = stats.zscore(stats.rankdata(y))  # rho is the correlation of ranks: only their pairing changes
        exact = stats.permutation_test(
            (stats.zscore(stats.rankdata(x)),),
            lambda x, axis: np.mean(x * ranks, axis=axis),
            permutation_type="pairings",
            vectorized=True,
        )
        p = float(exact.pvalue)
    return RankCorrelation(over="level means", points=len(x), rho=float(found.statistic), p=p)


def rise_p(strata: Iterable[Stratum]) -> float:
    """The one-sided p of a share of marked episodes that rose: Fisher's exact test, stratified by stress level.

    Given how many of a level's episodes are marked, chance alone decides which version they fell to; a version that was
    recorded under more stress is no worse for that. With one level it is Fisher's own test.

    Three of eight against none of eight: of the C(16, 3) = 560 ways in which three of the sixteen can be marked,
    C(8, 3) = 56 mark three of the second version's.

    >>> round(rise_p([Stratum(0, 8, 3, 8)]), 12)
    0.1
    """
    law, risen = np.ones(1), 0
    for first_marked, first, second_marked, second in strata:
        marked = stats.hypergeom(first + second, first_marked + second_marked, second)
        law = np.convolve(law, marked.pmf(np.arange(second + 1)))
        risen += second_marked
    return min(1.0, float(law[risen:].sum()))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """The p values, corrected for being several (Holm's step-down): chance makes even one small that seldom.

    The smallest of m is multiplied by m, the next by m - 1 and so on; none may come out below one before it, nor above
    1. What is None stays so, and counts for nothing.

    >>> holm([0.01, None, 0.04, 0.03, 0.5])
    [0.04, None, 0.09, 0.09, 0.5]
    """
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * p))
        corrected[place] = largest
    return corrected


def corrected(comparisons: Sequence[TaskComparison | None]) -> list[TaskComparison | None]:
    """The comparisons of several families with their p Holm-corrected, each of the two tests by itself.

    A family without pairs counts in the correction of the paired test all the same: it would have been looked at.
    """
    tested = [None if c is None or c.unpaired_p is None else c for c in comparisons]
    by_pairs = holm([None if c is None else 1.0 if c.paired_p is None else c.paired_p for c in tested])
    by_ranks = holm([None if c is None else c.unpaired_p for c in tested])
    return [
        comparison
        if comparison is None
        else msgspec.structs.replace(
            comparison, paired_p_holm=None if comparison.paired_p is None else paired, unpaired_p_holm=unpaired
        )
        for comparison, paired, unpaired in zip(comparisons, by_pairs, by_ranks, strict=True)
    ]


def _differences(first: Sequence[TaskValue], second: Sequence[TaskValue]) -> list[float]:
    """The second side's value less the first's of each task that both have; 0 where only rounding differs."""
    before, after = (_means(((task, level), value) for task, level, value in side) for side in (first, second))
    found: dict[str, list[float]] = defaultdict(list)
    for key in sorted(before.keys() & after.keys(), key=repr):
        found[key[0]].append(0.0 if math.isclose(before[key], after[key], rel_tol=_SAME) else after[key] - before[key])
    return [fmean(found[task]) for task in sorted(found)]


def _order(value: TaskValue) -> tuple[str, str, float]:
    return value[0], repr(value[1]), value[2]


def _means(pairs: Iterable[tuple[Key, float]]) -> dict[Key, float]:
    values: dict[Key, list[float]] = defaultdict(list)
    for key, value in pairs:
        values[key].append(value)
    return {key: fmean(own) for key, own in values.items()}
