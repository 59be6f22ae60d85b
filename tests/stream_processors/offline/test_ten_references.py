"""Ten references: what a family is judged by while few clean episodes have taught it, and that it says so.

The working, by hand. Nine references are nominal, 20 steps of 1 s; the tenth plans long in steps 6 to 11. Its fold's
baseline holds nominal ones alone, whose covariances are 0 (Sigma + eta I = 0.05 I), so that planning for
0.125 + z 0.13125 s with z = 2.5 sqrt(0.15) makes g^rec 2.5 (epsilon is 0.05 * 0.125). Its sum of effort rises to
6 * (2.5 - 0.8) = 10.2. The nine lose no cycle and exceed nothing, whether the tenth is among those that score them or
not: their sums are 0. Of ten sums the 0.95 quantile is the largest (rank 9.5, so the tenth): the bounds are 10.2 for
effort and the floor of 5 for delay. By the baseline that it has taught itself the tenth is less of a surprise: its mean
and its variance are in every cell that it went through, and its own sum is less than half of that.
"""

from math import sqrt

import msgspec
import pytest

from springback.producers.contract.frame import StepFrame
from springback.stream_processors.offline.evaluation import Evaluation, evaluate_frames, fold_of, learn_baseline
from springback.stream_processors.resilience.baseline.estimates import AlarmBounds
from springback.stream_processors.resilience.baseline.stage_baseline import BaselineConfig, StageBaseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.rebound.rebound_window import WindowConfig
from tests.stream_processors.frame_builders import Row, frame_of, nominal_rows, ready, run_tracker

CONFIG = ResilienceConfig()
LONG = 0.125 + 2.5 * sqrt(0.15) * 0.13125
TASKS = [f"task-{number}" for number in range(10)]


def long_planning(steps: range) -> list[Row]:
    rows = nominal_rows(0, 20)
    for row in rows[steps.start : steps.stop]:
        row["planning_s"] = LONG
    return rows


def reference(rows: list[Row], task: str) -> StepFrame:
    return frame_of(rows, "success", episode=task, task=task, reference=True)


TEN = [reference(nominal_rows(0, 20), task) for task in TASKS[:9]] + [reference(long_planning(range(6, 12)), TASKS[9])]
ANOTHER = frame_of(long_planning(range(6, 13)), "success", episode="another")
"""A clean episode with the tenth's habit, a step more of it."""


def bounds_of(evaluation: Evaluation, config: ResilienceConfig = CONFIG) -> AlarmBounds:
    return ready(evaluation.baseline, config).families["navigation"].bounds


def test_ten_references_are_bounded_by_references_that_they_are_not_among() -> None:
    assert len({fold_of(task) for task in TASKS}) > 1
    evaluation = evaluate_frames([*TEN, ANOTHER], CONFIG)
    assert bounds_of(evaluation) == pytest.approx((10.2, 5.0), rel=1e-9)
    assert not [w for w in evaluation.windows if w.key.episode == "another"]
    counts = {fold: sum(fold_of(task) == fold for task in TASKS) for fold in range(5)}
    sums = evaluation.baseline.families["navigation"].largest
    assert [s.references for s in sums] == [10 - counts[fold_of(task)] for task in TASKS]


def test_by_the_sums_of_episodes_that_taught_the_baseline_every_other_clean_one_would_alarm() -> None:
    # As it was: each reference scored by the baseline of all ten. The bound is the tenth's own sum by that baseline,
    # and whoever goes one step beyond it has a window.
    learned = learn_baseline(TEN, CONFIG)
    scored, _ = run_tracker(TEN, CONFIG, ready(learned, CONFIG))
    in_sample = [lesson.largest for lesson in scored.contributions if lesson.largest is not None]
    top = max(sums.effort for sums in in_sample)
    assert 0 < top < 10.2 / 2
    low = msgspec.structs.replace(CONFIG, baseline=BaselineConfig(calibration_floor=1.0))
    as_it_was = StageBaseline(families={"navigation": learned.families["navigation"]}, grid=learned.grid)
    as_it_was.families["navigation"].largest = [msgspec.structs.replace(sums, references=10) for sums in in_sample]
    assert [w.key.episode for w in evaluate_frames([ANOTHER], low, as_it_was).windows] == ["another"]


def test_a_fold_of_more_than_half_of_the_references_counts_all_the_same() -> None:
    # Offline all references are there at once: however unevenly their tasks fall, each is scored by the other folds.
    crowded = [task for task in (f"task-{number}" for number in range(100)) if fold_of(task) == 0][:8]
    apart = [task for task in TASKS if fold_of(task) != 0][:2]
    family = learn_baseline([reference(nominal_rows(0, 20), task) for task in [*crowded, *apart]], CONFIG).families
    assert sorted(sums.references for sums in family["navigation"].largest)[:8] == [2] * 8
    assert len(family["navigation"].counting_sums()) == 10


def test_nine_references_leave_the_bounds_fixed() -> None:
    assert bounds_of(evaluate_frames(TEN[:9], CONFIG)) == (9.0, 10.0)
    assert bounds_of(evaluate_frames([*TEN[:8], TEN[9]], CONFIG)) == (9.0, 10.0)


def hard(name: str) -> StepFrame:
    rows = nominal_rows(0, 20)
    for row in rows[8:12]:
        row |= {"travel": 5.0, "risk": 2.0}
    return frame_of(rows, "failure", episode=name)


@pytest.mark.parametrize(("references", "provisional"), [(10, True), (19, True), (20, False)])
def test_a_family_is_learning_until_20_references_stand_behind_its_bounds(references: int, provisional: bool) -> None:
    clean = [reference(nominal_rows(0, 20), f"task-{i}") for i in range(references)]
    evaluation = evaluate_frames([*clean, hard("hurt")], CONFIG)
    [window] = evaluation.windows
    assert window.provisional == provisional
    for summary in evaluation.summaries:
        assert (summary.provisional, summary.bound_references, summary.bound_references_needed) == (
            provisional,
            references,
            20,
        )


def test_live_a_family_is_learning_until_its_fortieth_reference() -> None:
    # Each reference is scored by the k before it, the first ten by nothing. Of the k those count that were scored by
    # half of them: the ones from max(10, k/2) on.
    learned = StageBaseline(grid=CONFIG.grid)
    for k in range(42):
        usable = ready(learned.mature(CONFIG.baseline), CONFIG)
        outputs, _ = run_tracker([reference(nominal_rows(0, 20), f"task-{k}")], CONFIG, usable)
        [summary], [lesson] = outputs.summaries, outputs.contributions
        counting = max(0, k - max(10, (k + 1) // 2))
        assert (summary.bound_references, summary.provisional) == (counting, k < 40)
        assert (lesson.largest.references if lesson.largest else 0) == (k if k >= 10 else 0)
        learned.add(lesson, CONFIG.baseline)


def test_an_unscored_family_is_learning_with_nothing_behind_it() -> None:
    [summary] = evaluate_frames([hard("hurt")], CONFIG).summaries
    assert (summary.provisional, summary.bound_references, summary.recovery_cost) == (True, 0, None)


@pytest.mark.parametrize("window", [WindowConfig(bounds="fixed"), WindowConfig(detector="threshold")])
@pytest.mark.parametrize(("references", "provisional"), [(19, True), (20, False)])
def test_fixed_bounds_and_a_threshold_rest_on_the_references_of_the_baseline(
    window: WindowConfig, references: int, provisional: bool
) -> None:
    # None of them has sums that count: what alarms are held against is what the baseline holds.
    config = ResilienceConfig(window=window)
    learned = learn_baseline([reference(nominal_rows(0, 20), f"task-{i}") for i in range(references)], config)
    learned.families["navigation"].largest = []
    [summary] = evaluate_frames([hard("hurt")], config, learned).summaries
    assert (summary.provisional, summary.bound_references) == (provisional, references)


def test_how_many_references_a_family_learns_from_is_a_setting() -> None:
    config = ResilienceConfig(baseline=BaselineConfig(learning_references=6))
    clean = [reference(nominal_rows(0, 20), f"task-{i}") for i in range(6)]
    [window] = evaluate_frames([*clean, hard("hurt")], config).windows
    assert not window.provisional


def test_a_window_that_opened_while_its_family_was_learning_stays_provisional() -> None:
    clean = [reference(nominal_rows(0, 20), f"task-{i}") for i in range(20)]
    before, after = learn_baseline(clean[:12], CONFIG), learn_baseline(clean, CONFIG)
    frames = [frame_of(hard_rows) for hard_rows in (rows_of_hurt()[:9], rows_of_hurt()[9:10])]
    opened, state = run_tracker(frames, CONFIG, ready(before, CONFIG))
    assert [(w.state, w.provisional) for w in opened.windows] == [("open", True)]
    status = opened.statuses[-1].episodes[0]
    assert status.window is not None
    assert status.window.provisional
    rest, _ = run_tracker([frame_of(rows_of_hurt()[10:], "failure")], CONFIG, ready(after, CONFIG), state=state)
    assert [(w.state, w.provisional) for w in rest.windows] == [("recovered", True)]
    # Twenty stand behind the bounds by now, but its cost was found under those of twelve.
    assert [(s.provisional, s.bound_references) for s in rest.summaries] == [(True, 20)]


def rows_of_hurt() -> list[Row]:
    rows = nominal_rows(0, 20)
    for row in rows[8:12]:
        row |= {"travel": 5.0, "risk": 2.0}
    return rows


def test_a_family_of_one_task_is_dealt_episode_by_episode() -> None:
    same = [
        frame_of(nominal_rows(0, 20), "success", episode=str(number), task="patrol", reference=True)
        for number in range(20)
    ]
    family = learn_baseline(same, CONFIG).families["navigation"]
    assert len(family.counting_sums()) == 20
    assert all(10 <= sums.references < 20 for sums in family.largest)


def test_a_fleet_without_clean_runs_is_folded_by_its_successes() -> None:
    config = ResilienceConfig(learn_from="success")
    successes = [
        frame_of(rows, "success", episode=task, task=task)
        for task, rows in zip(TASKS, [*[nominal_rows(0, 20)] * 9, long_planning(range(6, 12))], strict=True)
    ]
    evaluation = evaluate_frames(successes, config)
    assert bounds_of(evaluation, config) == pytest.approx((10.2, 5.0), rel=1e-9)
    assert {summary.bound_references for summary in evaluation.summaries} == {10}


def test_a_single_reference_has_none_to_be_scored_by() -> None:
    family = learn_baseline(TEN[:1], CONFIG).families["navigation"]
    assert (family.references, family.largest) == (1, [])


def test_families_are_folded_apart() -> None:
    # Planning takes forty times as long in one of them: were they folded together, it would exceed the other's.
    two = [
        frame_of(
            nominal_rows(0, 20, planning_s=planning_s),
            "success",
            episode=f"{family}-{task}",
            task=task,
            family=family,
            reference=True,
        )
        for family, planning_s in (("a", 0.125), ("b", 5.0))
        for task in TASKS
    ]
    learned = learn_baseline(two, CONFIG)
    assert set(learned.families) == {"a", "b"}
    for family in learned.families.values():
        assert len(family.largest) == 10
        assert max(max(sums.effort, sums.delay) for sums in family.largest) == pytest.approx(0.0, abs=1e-9)
