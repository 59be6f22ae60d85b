"""Tests by task, a share that rose, and Holm's correction: by hand, by counting arrangements, and against scipy."""

import itertools
import math
import random
import statistics
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]

from springback.stream_processors.offline.significance import (
    LEAST_PAIRS,
    Stratum,
    TaskComparison,
    TaskValue,
    compare_ranks,
    compare_tasks,
    corrected,
    correlate_levels,
    holm,
    rise_p,
    signed_rank_p,
)
from tests.examples import examples

SAMPLES = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=9)


def ranks_of(values: Sequence[float]) -> list[float]:
    """Mean ranks, from 1."""
    return [sum(other < v for other in values) + (list(values).count(v) + 1) / 2 for v in values]


def p_of_all_signs(differences: Sequence[float]) -> float:
    """Wilcoxon's two-sided p by its definition: every way to give the differences that are not 0 their signs."""
    changed = [d for d in differences if d]
    ranks = ranks_of([abs(d) for d in changed])
    middle = sum(ranks) / 2

    def off(signs: Sequence[bool]) -> float:
        return abs(sum(rank for rank, up in zip(ranks, signs, strict=True) if up) - middle)

    seen = off([d > 0 for d in changed])
    every = [off(signs) for signs in itertools.product((True, False), repeat=len(changed))]
    return statistics.fmean(found >= seen - 1e-9 for found in every)


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2 / 64),  # all ranks up: this one and its mirror image
        ([1.0, 2.0, 3.0, 4.0, 5.0, -6.0], 28 / 64),  # 6 of 21 down: 14 of the 64 subsets of 1…6 sum to 6 or less
        ([-1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 4 / 64),  # 1 of 21 down: {} and {1} are the subsets that sum to 1 or less
        ([0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0], 2 / 32),  # zeros are left out, five ties all up
        ([2.0], 1.0),
    ],
)
def test_signed_ranks_by_hand(differences: list[float], p: float) -> None:
    assert p_of_all_signs(differences) == pytest.approx(p)
    assert signed_rank_p(differences) == pytest.approx(p)


@settings(max_examples=examples(80))
@given(st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=9))
def test_signed_ranks_of_few_pairs_count_all_signs(differences: list[float]) -> None:
    """With ties and zeros too, where books give a normal approximation."""
    expected = p_of_all_signs(differences) if any(differences) else 1.0
    assert signed_rank_p(differences) == pytest.approx(expected)


def test_pairs_find_what_is_hidden_by_how_different_tasks_are() -> None:
    """Situation 7: twins. Tasks cost from 10 to 400, and each costs 1 to 8 more when disturbed.

    By pairs all eight go up: p = 2 / 2^8. A test that is blind to pairs sees two samples that lie over each other: as
    often as not a disturbed task is dearer than another one clean.
    """
    clean = [(f"t{i}", 0, 10.0 + 55 * i) for i in range(8)]
    disturbed = [(task, 0, value + 1 + i) for i, (task, _, value) in enumerate(clean)]
    found = compare_tasks(clean, disturbed)
    assert (found.paired_tasks, found.higher, found.lower) == (8, 8, 0)
    assert found.paired_p == pytest.approx(2 / 256)
    assert found.unpaired_p is not None
    assert found.unpaired_p > 0.7
    assert found.paired
    assert found.p == found.paired_p


def test_runs_of_one_task_are_one_value() -> None:
    """Situation 7: fifty runs of three tasks are no more evidence than one run of each."""
    rng = np.random.default_rng(1)
    once = [("a", 0, 1.0), ("b", 0, 2.0), ("c", 0, 3.0)], [("a", 0, 2.0), ("b", 0, 4.0), ("c", 0, 6.0)]
    noise = rng.normal(size=50)
    noise -= noise.mean()
    often = [[(task, 0, value + 0.01 * e) for task, _, value in side for e in noise] for side in once]
    few, many = compare_tasks(*once), compare_tasks(*often)
    assert (many.first_tasks, many.second_tasks, many.paired_tasks) == (3, 3, 3)
    # Three of three up: 2 of the 2^3 ways to give signs.
    assert many.paired_p == few.paired_p == 0.25
    assert many.unpaired_p == pytest.approx(few.unpaired_p, abs=0.2)
    assert many.unpaired_p is not None
    assert many.unpaired_p > 0.2


def test_a_pair_is_of_one_stress_level() -> None:
    """The second side ran half of its tasks under more stress, where all is dearer; where both ran, nothing changed."""
    first: list[TaskValue] = [(f"t{i}", level, 10.0 * level) for i in range(6) for level in (0, 1)]
    second: list[TaskValue] = [
        (f"t{i}", level, 10.0 * level) for i in range(6) for level in ((1, 2) if i < 3 else (0, 1))
    ]
    found = compare_tasks(first, second)
    assert (found.paired_tasks, found.higher, found.lower, found.paired_p) == (6, 0, 0, 1.0)


def test_too_few_pairs_go_by_ranks() -> None:
    pairs = LEAST_PAIRS - 1
    assert 2 / 2**pairs > 0.05 >= 2 / 2**LEAST_PAIRS
    first = [(f"t{i}", 0, float(i)) for i in range(8)]
    second = [(f"t{i + 8 - pairs}", 0, float(i) + 100) for i in range(8)]
    found = compare_tasks(first, second)
    assert found.paired_tasks == pairs
    assert not found.paired
    assert found.p == found.unpaired_p == pytest.approx(2 / math.comb(16, 8))


def test_sides_without_a_task_in_common_have_no_pairs_and_empty_ones_no_test() -> None:
    found = compare_tasks([("a", 0, 1.0)], [("b", 0, 2.0)])
    assert (found.paired_tasks, found.paired_p, found.unpaired_p) == (0, None, 1.0)
    empty = compare_tasks([("a", 0, 1.0)], [])
    assert (empty.paired_p, empty.unpaired_p, empty.superiority, empty.p) == (None, None, None, None)


@settings(max_examples=examples(40))
@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 1), st.floats(-10, 10)), max_size=12),
    st.lists(st.tuples(st.sampled_from("bcde"), st.integers(0, 1), st.floats(-10, 10)), max_size=12),
    st.randoms(use_true_random=False),
)
def test_order_changes_no_p_and_sides_can_be_changed(
    first: list[TaskValue], second: list[TaskValue], shuffler: random.Random
) -> None:
    shuffled = [list(first), list(second)]
    for side in shuffled:
        shuffler.shuffle(side)
    one, other = compare_tasks(first, second), compare_tasks(*shuffled)
    assert one == other
    back = compare_tasks(second, first)
    assert (back.higher, back.lower) == (one.lower, one.higher)
    for p, q in ((one.paired_p, back.paired_p), (one.unpaired_p, back.unpaired_p)):
        assert p is None or p == pytest.approx(q)


@settings(max_examples=examples(50))
@given(SAMPLES, SAMPLES)
def test_superiority_counts_the_pairs(first: list[float], second: list[float]) -> None:
    wins = [1.0 if b > a else 0.5 if b == a else 0.0 for a, b in itertools.product(first, second)]
    compared = compare_ranks(first, second)
    assert compared is not None
    assert compared.u == sum(wins)
    assert compared.superiority == pytest.approx(statistics.fmean(wins))
    assert 0 <= compared.p <= 1


@pytest.mark.parametrize("second", [[4.0, 5.0, 6.0, 7.0], [2.5, 0.5, 6.0, 7.0], [0.1, 1.5, 3.5, 2.2]])
def test_the_p_of_small_samples_without_ties_counts_all_arrangements(second: list[float]) -> None:
    first = [1.0, 2.0, 3.0]

    def off(chosen: Sequence[float], others: Sequence[float]) -> float:
        return abs(sum(b > a for a in chosen for b in others) - len(first) * len(second) / 2)

    every = [*first, *second]
    arranged = [off(chosen, [v for v in every if v not in chosen]) for chosen in itertools.combinations(every, 3)]
    compared = compare_ranks(first, np.array(second))
    assert compared is not None
    assert compared.p == pytest.approx(np.mean([found >= off(first, second) for found in arranged]))


def test_samples_that_never_vary_do_not_differ() -> None:
    compared = compare_ranks([2.0, 2.0], [2.0])
    assert compared is not None
    assert (compared.u, compared.p, compared.superiority) == (1.0, 1.0, 0.5)
    assert compare_ranks([], [1.0]) is None
    assert compare_ranks([1.0], []) is None


def test_rho_of_level_means_says_what_it_is_over_and_counts_every_order() -> None:
    """Situation 7. Twenty episodes at each of four levels are four points, whose means rise all along.

    Of the 4! = 24 orders two are as extreme, all up and all down: p = 2/24, not the 1e-30 of eighty episodes.
    """
    rng = np.random.default_rng(5)
    values = [(stress, 10 * stress + float(e)) for stress in (0.0, 0.2, 0.4, 0.6) for e in rng.uniform(0, 1, size=20)]
    found = correlate_levels(values)
    assert found is not None
    assert (found.over, found.points, found.rho, found.low) == ("level means", 4, 1.0, None)
    assert found.p == pytest.approx(2 / 24)
    assert correlate_levels(values[::-1]) == found


def test_rho_takes_three_levels_that_differ() -> None:
    assert correlate_levels([(0.0, 1.0), (0.2, 2.0), (0.2, 3.0)]) is None
    assert correlate_levels([(0.0, 1.0), (0.2, 1.0), (0.4, 1.0)]) is None


def test_many_levels_have_the_p_of_scipy() -> None:
    x, y = [i / 9 for i in range(10)], [3.0, 1.0, 4.0, 1.5, 5.0, 9.0, 2.0, 6.0, 5.5, 3.5]
    found = correlate_levels(zip(x, y, strict=True))
    expected = stats.spearmanr(x, y)
    assert found is not None
    assert (found.rho, found.p) == pytest.approx((expected.statistic, expected.pvalue))


@settings(max_examples=examples(60))
@given(st.integers(1, 12), st.integers(1, 12), st.data())
def test_a_share_that_rose_at_one_level_is_fishers_exact_test(first: int, second: int, data: st.DataObject) -> None:
    marked, risen = data.draw(st.integers(0, first)), data.draw(st.integers(0, second))
    table = [[risen, second - risen], [marked, first - marked]]
    expected = stats.fisher_exact(table, alternative="greater").pvalue
    assert rise_p([Stratum(marked, first, risen, second)]) == pytest.approx(expected)


def test_a_share_that_rose_at_two_levels_by_hand() -> None:
    """One of two at either level, all of the second version's.

    At each, the one that is marked is the second's by chance 1/2, so both are by 1/4. Pooled it would be 1 of the
    C(4, 2) = 6 ways to mark two of four, which claims more than is known.
    """
    assert rise_p([Stratum(0, 1, 1, 1), Stratum(0, 1, 1, 1)]) == pytest.approx(1 / 4)
    assert rise_p([Stratum(0, 2, 2, 2)]) == pytest.approx(1 / 6)


def test_another_mix_of_stress_is_no_rise() -> None:
    """Either version aborts a tenth at stress 0 and four fifths at stress 1; the second ran more of the latter."""
    levels = [Stratum(9, 90, 1, 10), Stratum(8, 10, 72, 90)]
    assert rise_p(levels) > 0.5
    pooled = Stratum(*(sum(column) for column in zip(*levels, strict=True)))
    assert rise_p([pooled]) < 1e-9


def test_nothing_cannot_rise() -> None:
    assert rise_p([]) == 1.0
    assert rise_p([Stratum(0, 5, 0, 7)]) == 1.0
    assert rise_p([Stratum(5, 5, 7, 7)]) == 1.0


def test_holm_by_hand() -> None:
    """The example of Holm's step-down: 0.01 * 4, 0.02 * 3, 0.03 * 2 and 0.05 * 1, none below one before it."""
    assert holm([0.03, 0.01, 0.05, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.2, 0.4]) == pytest.approx([0.4, 0.4])
    assert holm([0.9, None, 0.8]) == [1.0, None, 1.0]
    assert holm([]) == []


@settings(max_examples=examples(80))
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_rejects_as_its_steps_do_and_less_than_benjamini_hochberg(p_values: list[float]) -> None:
    found = [p for p in holm(p_values) if p is not None]
    assert all(one >= p for one, p in zip(found, p_values, strict=True))
    assert max(found) <= 1.0
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    for level in (0.01, 0.05, 0.2):
        rejected = set()
        for rank, place in enumerate(order):
            if p_values[place] * (len(p_values) - rank) > level:
                break
            rejected.add(place)
        assert {place for place, p in enumerate(found) if p <= level} == rejected
    false_discoveries = stats.false_discovery_control(p_values)
    assert all(one >= other - 1e-12 for one, other in zip(found, false_discoveries, strict=True))


def test_families_are_corrected_for_each_test_by_itself() -> None:
    """Three families; the third has no pairs, and counts as one that was looked at: 0.01 * 3, 0.04 * 2."""
    made = TaskComparison(
        first_tasks=9, second_tasks=9, paired_tasks=9, higher=0, lower=0, paired_p=0.01, unpaired_p=0.2, superiority=0.5
    )
    second = msgspec.structs.replace(made, paired_p=0.04, unpaired_p=0.02)
    third = msgspec.structs.replace(made, paired_tasks=0, paired_p=None, unpaired_p=0.03)
    found = corrected([made, None, second, third])
    assert [None if c is None else c.paired_p_holm for c in found] == [
        pytest.approx(0.03),
        None,
        pytest.approx(0.08),
        None,
    ]
    ranks = [c.unpaired_p_holm for c in found if c is not None]
    assert ranks == pytest.approx([0.2, 0.06, 0.06])
    assert [c.p for c in found if c is not None] == pytest.approx([0.03, 0.08, 0.06])
