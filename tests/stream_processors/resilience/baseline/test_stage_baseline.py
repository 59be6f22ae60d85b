"""What a baseline learns from contributions: each once, in any order, and nothing while frozen."""

from itertools import permutations
from typing import Any

import msgspec
import numpy as np
import pytest

from springback.stream_processors.resilience.anchor import N_SAMPLE, Floats
from springback.stream_processors.resilience.baseline.moments import Moments, merge_groups
from springback.stream_processors.resilience.baseline.stage_baseline import (
    BaselineConfig,
    CellKey,
    EpisodeContribution,
    FamilyBaseline,
    LargestSums,
    StageBaseline,
    merge_into_cells,
    sums_matrix,
)
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import EpisodeKey
from tests.stream_processors.frame_builders import nominal_baseline, ready

CONFIG = BaselineConfig()
CELLS: list[CellKey] = [("run", 0, 4), ("run", 1, 4), ("grip", 0, 4)]


def samples_of(seed: int, n: int = 6) -> Floats:
    return np.random.default_rng(seed).normal(5.0, 2.0, (n, N_SAMPLE))


def contribution(seed: int, family: str = "f", largest: LargestSums | None = None) -> EpisodeContribution:
    """Two samples to each of the three cells."""
    codes = np.array([0, 0, 1, 1, 2, 2])
    _, sums = merge_groups(codes, Moments.of_samples(samples_of(seed)))
    key = EpisodeKey("robot-7", "boot", str(seed))
    return EpisodeContribution(
        family=family, key=key, cells=tuple(CELLS), sums=sums.packed().tobytes(), largest=largest
    )


def test_cells_hold_the_sums_of_all_episodes() -> None:
    baseline = StageBaseline()
    for seed in range(4):
        assert baseline.add(contribution(seed), CONFIG) == set(CELLS)
    for number, cell in enumerate(CELLS):
        samples = np.concatenate([samples_of(seed)[2 * number : 2 * number + 2] for seed in range(4)])
        sums = Moments.unpacked(sums_matrix(baseline.families["f"].cells[cell]), N_SAMPLE)
        assert sums.n.tolist() == [8]
        np.testing.assert_allclose(sums.mean[0], samples.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(sums.covariance_sums()[0], np.cov(samples.T, bias=True) * 8, rtol=1e-10, atol=1e-10)
    assert baseline.families["f"].references == 4


def test_order_plays_no_part() -> None:
    outcomes = []
    for order in permutations(range(3)):
        baseline = StageBaseline()
        for seed in order:
            baseline.add(contribution(seed), CONFIG)
        outcomes.append(np.concatenate([sums_matrix(baseline.families["f"].cells[cell]) for cell in CELLS]))
    for outcome in outcomes[1:]:
        np.testing.assert_allclose(outcome, outcomes[0], rtol=1e-12, atol=1e-12)


def test_a_contribution_seen_twice_counts_once() -> None:
    baseline = StageBaseline()
    baseline.add(contribution(1, largest=LargestSums(1.0, 2.0, 3)), CONFIG)
    before = dict(baseline.families["f"].cells)
    assert baseline.add(contribution(1, largest=LargestSums(1.0, 2.0, 3)), CONFIG) == set()
    family = baseline.families["f"]
    assert family.cells == before
    assert (family.references, family.largest) == (1, [LargestSums(1.0, 2.0, 3)])


def test_only_so_many_contributions_are_remembered() -> None:
    config = BaselineConfig(contribution_memory=2)
    baseline = StageBaseline()
    for seed in range(3):
        baseline.add(contribution(seed), config)
    assert baseline.add(contribution(2), config) == set()
    assert baseline.add(contribution(1), config) == set()
    assert baseline.add(contribution(0), config) == set(CELLS)


def test_a_family_does_not_grow_beyond_its_bound() -> None:
    config = BaselineConfig(largest_family=3)
    baseline = StageBaseline()
    assert baseline.add(contribution(0), config) == set(CELLS)
    other = msgspec.structs.replace(contribution(1), cells=(("another", 0, 4), *CELLS[1:]))
    assert baseline.add(other, config) == set()
    assert baseline.families["f"].references == 1
    assert baseline.add(contribution(2), config) == set(CELLS)  # what it has goes on learning


def test_only_the_latest_largest_sums_are_kept() -> None:
    config = BaselineConfig(calibration_memory=2, calibration_episodes=2, learning_references=2)
    baseline = StageBaseline()
    for seed in range(3):
        baseline.add(contribution(seed, largest=LargestSums(float(seed), 0.0, 3)), config)
    baseline.add(contribution(3), config)  # one without
    family = baseline.families["f"]
    assert (family.references, [sums.effort for sums in family.largest]) == (4, [1.0, 2.0])


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        # A family would be learning for ever, and in no margin, without a word.
        ({"learning_references": 1025}, "learning_references is 1025, expected 0 to 1024 .calibration_memory."),
        ({"calibration_memory": 19}, "learning_references is 20, expected 0 to 19 .calibration_memory."),
        ({"calibration_memory": 9}, "calibration_episodes is 10, expected 1 to 9 .calibration_memory."),
        ({"calibration_episodes": 0}, "calibration_episodes is 0, expected 1 to 1024"),
        ({"calibration_share": 1.0}, "calibration_share is 1.0, expected a share from 0 to below 1"),
        ({"calibration_rank": 1.0}, "calibration_rank is 1.0, expected a share between 0 and 1"),
    ],
)
def test_settings_by_which_no_family_could_learn_enough_are_refused(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        BaselineConfig(**fields)


@pytest.mark.parametrize("n", [10, 11, 19, 20, 21, 40, 41, 45])
def test_learned_live_the_later_half_of_the_references_stands_behind_the_bounds(n: int) -> None:
    # The first ten are scored by nothing; the k-th after them by the k - 1 before. Of n references those count that
    # were scored by n/2 or more: with 20 the 11th to 20th, ten in all; with 21 the 12th to 21st, for the 11th was
    # scored by ten of now 21; with 40 the 21st to 40th, so that the family is learning no more.
    baseline = StageBaseline()
    for k in range(n):
        sums = LargestSums(float(k), 0.0, k) if k >= CONFIG.mature_episodes else None
        baseline.add(contribution(k, largest=sums), CONFIG)
    family = baseline.families["f"]
    assert [sums.references for sums in family.largest] == list(range(max(10, -(-n // 2)), n))
    assert family.counting_sums() == family.largest
    assert (len(family.largest) >= CONFIG.learning_references) == (n >= 40)


@pytest.mark.parametrize(("behind", "counts"), [(5, True), (4, False)])
def test_sums_count_as_long_as_half_of_the_references_scored_them(behind: int, counts: bool) -> None:
    # Of an import, whose sums all count, those stay that are by five of the ten references of now.
    baseline = StageBaseline()
    baseline.families["f"] = FamilyBaseline(references=9, largest=[LargestSums(1.0, 0.0, behind)] * 9)
    baseline.add(contribution(1), CONFIG)
    assert len(baseline.families["f"].largest) == (9 if counts else 0)


def test_many_references_at_once_leave_no_sums_behind() -> None:
    # All scored by the same ten, since they ended before anything was learned of them.
    baseline = StageBaseline()
    for k in range(60):
        baseline.add(contribution(k, largest=LargestSums(1.0, 0.0, 10) if k >= 10 else None), CONFIG)
    assert baseline.families["f"].largest == []


def test_a_frozen_baseline_ignores_contributions() -> None:
    baseline = StageBaseline()
    baseline.add(contribution(0), CONFIG)
    baseline.families["f"].frozen = True
    before = dict(baseline.families["f"].cells)
    assert baseline.add(contribution(1), CONFIG) == set()
    assert baseline.families["f"].cells == before
    assert baseline.families["f"].references == 1
    assert baseline.add(contribution(1, family="g"), CONFIG) == set(CELLS)  # other families go on learning


@pytest.mark.parametrize(("references", "frozen", "usable"), [(9, False, False), (10, False, True), (1, True, True)])
def test_a_family_is_scored_by_from_ten_references_on_or_frozen(references: int, frozen: bool, usable: bool) -> None:
    learned = StageBaseline(families={"f": FamilyBaseline(references=references, frozen=frozen)})
    assert ("f" in learned.mature(CONFIG).families) == usable


def test_merging_leaves_what_was_known_as_it_was() -> None:
    known = {CELLS[0]: contribution(0).sums[: 66 * 8]}
    before = dict(known)
    merged = merge_into_cells(known, [CELLS[0], CELLS[0], CELLS[1]], sums_matrix(contribution(1).sums))
    assert known == before
    assert sums_matrix(merged[CELLS[0]])[0, 0] == 6  # two known, two and two new
    assert set(merged) == set(CELLS[:2])


def test_bounds_of_a_family_come_with_its_baseline() -> None:
    config = ResilienceConfig(baseline=BaselineConfig(calibration_episodes=2))
    learned = nominal_baseline(config)
    learned.families["navigation"].largest = [LargestSums(6.0, 7.0, 4), LargestSums(8.0, 5.5, 4)]
    family = ready(learned, config).families["navigation"]
    assert family.bounds == (8.0, 7.0)
    assert (family.references, family.bound_references) == (6, 2)


SMALL = BaselineConfig(mature_episodes=10, calibration_episodes=10, learning_references=20)


@pytest.mark.parametrize(
    ("before", "now", "outgrows"),
    [
        ({"references": 100}, {"references": 109}, False),
        ({"references": 100}, {"references": 110}, True),
        ({"references": 10}, {"references": 11}, True),
        ({"references": 30}, {"references": 33}, True),
        ({"references": 100}, {"references": 99}, True),  # not what it has grown to
        ({"references": 100}, {"references": 101, "origin": "an import"}, True),
        ({"references": 100}, {"references": 100, "frozen": True}, True),
        ({"references": 100, "valued": 9}, {"references": 101, "valued": 10}, True),
        ({"references": 100, "stable": 9}, {"references": 101, "stable": 10}, True),
        ({"references": 100, "valued": 50}, {"references": 101, "valued": 51}, False),
        ({"references": 100, "bounds": 9}, {"references": 101, "bounds": 10}, True),
        ({"references": 100, "bounds": 19}, {"references": 101, "bounds": 20}, True),
        ({"references": 19}, {"references": 20}, True),
        ({"references": 100}, {"references": 100}, False),
    ],
)
def test_a_family_is_outgrown_by_a_tenth_or_by_what_may_be_used_of_it(
    before: dict[str, Any], now: dict[str, Any], outgrows: bool
) -> None:
    def family(references: int, bounds: int = 0, **fields: Any) -> FamilyBaseline:
        return FamilyBaseline(references=references, largest=[LargestSums(1.0, 1.0, 5)] * bounds, **fields)

    assert family(**now).outgrows(family(**before), SMALL) == outgrows
