"""Equation 6 worked by hand, and what a bounded memory lets go."""

import pytest

from springback.stream_processors.resilience.families.stability_beta import (
    MAGNITUDE_MEMORY,
    REPEAT_MEMORY,
    PerturbedLoss,
    StabilityPairs,
)
from springback.stream_processors.resilience.quantiles import quantile

Run = tuple[str, float | None, float, str]
"""Task, loss (None: a reference that was not measured), magnitude (0: a reference), kind."""


def pairs_of(*runs: Run, memory: int = 1024, kinds: int = 16) -> StabilityPairs:
    pairs = StabilityPairs()
    for task, loss, magnitude, kind in runs:
        if kind == "reference":
            pairs.add_reference(task, loss, memory)
        elif loss is not None:
            pairs.add_perturbed(task, PerturbedLoss(loss, magnitude, kind), memory, kinds)
    return pairs


def reference(task: str, loss: float | None) -> Run:
    return task, loss, 0.0, "reference"


HAND_WORKED: list[Run] = [
    reference("mug", 1.0),
    reference("mug", 3.0),  # the mean of mug's references is 2
    ("mug", 2.5, 0.5, "physical"),  # |2.5 - 2|/0.5 = 1
    ("mug", 1.0, 0.2, "semantic"),  # |1 - 2|/0.2 = 5
    reference("door", 4.0),
    ("door", 4.6, 0.4, "physical"),  # 0.6/0.4 = 1.5
    ("alone", 9.0, 1.0, "physical"),  # no reference
    reference("clean", 2.0),  # nothing perturbed
]


@pytest.mark.parametrize("runs", [HAND_WORKED, HAND_WORKED[::-1], HAND_WORKED[4:] + HAND_WORKED[:4]])
def test_beta_in_any_order(runs: list[Run]) -> None:
    found = pairs_of(*runs).figures()
    assert found.beta == pytest.approx(5.0)
    assert found.beta_by_kind == pytest.approx({"physical": 1.5, "semantic": 5.0})
    assert (found.pairs, found.tasks_let_go, found.unpaired) == (3, 0, {"no_twin": 1})
    # The largest ratio, 5, is by the difference |1 - 2| = 1; the two clean runs of the mug differ by 2.
    assert found.beta_difference == pytest.approx(1.0)
    assert found.stability_repeatability == pytest.approx(2.0)
    # The mean of all references is (1 + 3 + 4 + 2)/4 = 2.5: |9 - 2.5|/1 = 6.5 against |1 - 2.5|/0.2 = 7.5.
    assert found.beta_unpaired == pytest.approx(7.5)


def test_the_upper_quantile_is_not_the_largest() -> None:
    # 40 pairs with ratios 1 … 40: the smallest value whose rank reaches 0.95 is the 38th.
    runs = [run for i in range(1, 41) for run in (reference(str(i), 0.0), (str(i), float(i), 1.0, "physical"))]
    found = pairs_of(*runs).figures()
    assert found.beta == pytest.approx(40.0)
    assert found.beta_p95 == pytest.approx(38.0)


def test_without_pairs_there_is_no_beta() -> None:
    found = pairs_of(reference("mug", 1.0), ("door", 2.0, 0.5, "physical")).figures()
    assert (found.beta, found.beta_p95, found.beta_by_kind, found.pairs) == (None, None, {}, 0)
    assert (found.beta_difference, found.stability_repeatability) == (None, None)
    assert found.beta_unpaired == pytest.approx(2.0)
    assert pairs_of().figures().beta_unpaired is None


def test_without_a_magnitude_it_is_no_pair() -> None:
    pairs = pairs_of(reference("mug", 1.0), ("mug", 2.0, 0.0, "physical"))
    assert (pairs.figures().pairs, pairs.figures().unpaired, pairs.waiting) == (0, {"no_magnitude": 1}, 0)


def test_settled_pairs_stay_and_unpaired_tasks_are_let_go() -> None:
    runs: list[Run] = [reference("a", 1.0), ("a", 3.0, 1.0, "physical"), ("b", 3.0, 1.0, "physical")]
    runs += [reference("c", 1.0), reference("d", 1.0), reference("e", 1.0)]
    pairs = pairs_of(*runs, memory=2)
    # Room for two: a (paired), b (no reference) and c (nothing perturbed) have gone.
    assert len(pairs.tasks) == 2
    found = pairs.figures()
    assert found.beta == pytest.approx(2.0)
    assert found.beta_p95 == found.beta
    assert (found.pairs, found.tasks_let_go, found.unpaired) == (1, 2, {"let_go": 1})
    assert pairs.waiting == 0


def test_one_task_for_everything_stays_bounded_and_keeps_its_references() -> None:
    runs: list[Run] = [reference("only", 1.0)]
    runs += [("only", 1.0 + i, 1.0, "physical") for i in range(1, 101)]
    pairs = pairs_of(*runs, memory=10)
    assert pairs.waiting <= 10
    found = pairs.figures()
    assert (found.pairs, found.tasks_let_go) == (100, 0)
    assert found.beta == pytest.approx(100.0)
    assert found.beta_p95 == pytest.approx(quantile([float(i) for i in range(1, 101)], 0.95))


def test_perturbed_runs_without_a_reference_are_let_go_with_their_task() -> None:
    pairs = pairs_of(*[("only", 1.0, 1.0, "physical")] * 11, memory=10)
    assert (pairs.waiting, len(pairs.tasks), pairs.figures().tasks_let_go) == (0, 0, 1)
    assert pairs.figures().unpaired == {"let_go": 11}


def test_situation_6_what_found_no_pair_is_counted_by_reason() -> None:
    pairs = pairs_of(
        reference("mug", 1.0),
        ("mug", 2.0, 1.0, "physical"),  # a pair
        ("mug", 2.0, 0.0, "physical"),  # nothing to divide by
        reference("door", None),
        ("door", 2.0, 1.0, "physical"),  # its twin was not measured
        ("door", 2.5, 1.0, "physical"),
        ("cup", 2.0, 1.0, "physical"),  # another version has a twin of it
        ("box", 2.0, 1.0, "physical"),  # nobody has
    )
    pairs.count_unpaired("unmeasured")
    (cup, _) = pairs.lonely()
    found = pairs.figures(elsewhere={cup})
    assert found.pairs == 1
    assert found.unpaired == {
        "no_magnitude": 1, "no_twin": 1, "other_version": 1, "twin_unmeasured": 2, "unmeasured": 1,
    }  # fmt: skip
    # A twin that comes later makes pairs of those that waited.
    pairs.add_reference("box", 1.0, 1024)
    pairs.add_reference("door", 2.0, 1024)
    assert pairs.figures(elsewhere={cup}).unpaired == {"no_magnitude": 1, "other_version": 1, "unmeasured": 1}
    assert pairs.figures().pairs == 4


def test_situation_6_a_difference_within_the_noise_of_clean_runs_can_be_told() -> None:
    # Twenty tasks of three clean runs that lose 1.0, 1.1 and 1.4: differences 0.1, 0.3 and 0.4 of each, 60 in all. The
    # 0.95 quantile is the 57th, 0.4. A slip of magnitude 0.01 that brings a loss 0.3 above the mean gives a beta of 30.
    runs = [reference(str(task), loss) for task in range(20) for loss in (1.0, 1.1, 1.4)]
    found = pairs_of(*runs, ("3", 3.5 / 3 + 0.3, 0.01, "physical")).figures()
    assert found.beta == pytest.approx(30.0)
    assert found.stability_repeatability == pytest.approx(0.4)
    assert found.beta_difference == pytest.approx(0.3)


def test_clean_runs_of_one_task_are_compared_with_the_latest_alone() -> None:
    pairs = pairs_of(*[reference("only", float(i)) for i in range(100)])
    (losses,) = pairs.tasks.values()
    assert losses.recent == [float(i) for i in range(100 - REPEAT_MEMORY, 100)]
    # Each is compared with the eight before it: 0 + 1 + … + 8, then 8 each.
    assert len(pairs.repeats) == sum(range(9)) + 91 * 8
    assert pairs.figures().stability_repeatability == pytest.approx(8.0)


def test_kinds_are_bounded() -> None:
    runs: list[Run] = [reference("mug", 1.0)]
    runs += [("mug", 2.0 + i, 1.0, f"kind-{i}") for i in range(5)]
    assert pairs_of(*runs, kinds=2).figures().beta_by_kind == pytest.approx(
        {"kind-0": 1.0, "kind-1": 2.0, "other": 5.0}
    )


def test_magnitudes_are_bounded_and_the_largest_ratio_stays() -> None:
    runs: list[Run] = [reference("mug", 1.0), ("mug", 501.0, 0.5, "physical")]
    runs += [("mug", 2.0, 1.0 + i / 1000, "physical") for i in range(3 * MAGNITUDE_MEMORY)]
    pairs = pairs_of(*runs)
    assert len(pairs.extremes) == MAGNITUDE_MEMORY
    assert pairs.figures().beta_unpaired == pytest.approx(1000.0)
