"""Stretches of an episode that were not seen: in its midst a gap, at its beginning a joined episode."""

import itertools

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.producers.contract.frame import StepFrame
from springback.stream_processors.offline.evaluation import evaluate_frames
from springback.stream_processors.resilience.baseline.estimates import MaterialisedBaseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.rebound.rebound_window import WindowConfig
from tests.stream_processors.frame_builders import (
    Row,
    frame_of,
    frame_of_parts,
    header_of,
    nominal_baseline,
    nominal_rows,
    nothing_learned,
    only_episode,
    ready,
    run_tracker,
)
from tests.stream_processors.random_episodes import (
    by_seed,
    cut_into_frames,
    random_episodes,
    seeds,
    with_bad_samples,
)

CONFIG = ResilienceConfig()


def behind_a_gap(rows: list[Row], first: int, missing: int) -> list[Row]:
    """The rows with so many steps missing before the one at `first`."""
    moved = [dict(row) for row in rows]
    for row in moved[first:]:
        row["step"] += missing
    return moved


def hard_from(first: int, stop: int, rows: list[Row]) -> list[Row]:
    for row in rows[first:stop]:
        row |= {"travel": 5.0, "risk": 2.0}
    return rows


# With 20 steps to a task no more than 20 cycles are left: max(64, W*_rem) is 64.
@pytest.mark.parametrize(("missing", "gap"), [(64, False), (65, True), (1_790_000_000, True)])
def test_more_than_64_missing_steps_are_a_gap(missing: int, gap: bool, baseline: MaterialisedBaseline) -> None:
    rows = behind_a_gap(nominal_rows(0, 20), 6, missing)
    outputs, _ = run_tracker([frame_of(rows, "failure")], CONFIG, baseline)
    [summary] = outputs.summaries
    assert (summary.gap, summary.missing_steps) == (gap, missing)


def test_what_lies_behind_a_gap_is_judged_from_its_own_first_step(baseline: MaterialisedBaseline) -> None:
    # Three steps stand still. Both gains lag by their whole mean of 0.05, z = 0.05/0.0525 each, so that g^rec is
    # sqrt(2 z^2/0.05)/sqrt(3) = 3.478. The sum of effort stands at 3 * 2.678 = 8.03, one more would raise the alarm.
    rows = nominal_rows(0, 20)
    for row in rows[5:8]:
        row["progress"] = rows[4]["progress"]
    for row in rows[8:]:
        row["progress"] -= 0.15
    rows[8]["progress"] = rows[4]["progress"]  # and one more does
    whole, _ = run_tracker([frame_of(rows[:9])], CONFIG, baseline)
    assert [w.alarm_step for w in whole.windows] == [8]
    rows = behind_a_gap(rows, 8, 70)
    _, state = run_tracker([frame_of(rows[:8])], CONFIG, baseline)
    before = only_episode(state).detectors
    assert before.effort == pytest.approx(8.03, abs=0.01)
    assert before.delay > 0
    outputs, state = run_tracker([frame_of(rows[8:9])], CONFIG, baseline, state=state)
    behind = only_episode(state).detectors
    assert behind.effort == pytest.approx(2.678, abs=1e-3)
    assert behind.delay == 0.0
    for candidate in (behind.effort_candidate, behind.delay_candidate):
        assert candidate is not None
        assert candidate.departure_step == rows[8]["step"]
    assert outputs.windows == []


@pytest.mark.parametrize("cuts", [[], [8], [9], [10], [6, 12]])
def test_a_gap_closes_an_open_window_as_censored_before_it(cuts: list[int], baseline: MaterialisedBaseline) -> None:
    rows = hard_from(6, 9, nominal_rows(0, 20))
    rows = behind_a_gap(rows, 9, 100)
    edges = [0, *cuts, 20]
    frames = [frame_of(rows[a:b]) for a, b in itertools.pairwise(edges)]
    outputs, _ = run_tracker([*frames, frame_of([], "success")], CONFIG, baseline)
    assert [(w.state, w.number, w.departure_step, w.reentry_step) for w in outputs.windows] == [
        ("open", 0, 6, 6),
        ("censored", 0, 6, 8),
    ]
    [summary] = outputs.summaries
    assert (summary.outcome, summary.gap, summary.windows) == ("success", True, 1)
    assert summary.recovery_cost == outputs.windows[-1].recovery_cost
    # Steps 6 to 8 count for 10 each; at step 6 fourteen cycles are left.
    assert summary.recovery_cost == pytest.approx(30 / 14, rel=1e-3)


def test_behind_a_gap_a_new_window_has_the_next_number(baseline: MaterialisedBaseline) -> None:
    rows = behind_a_gap(hard_from(6, 12, nominal_rows(0, 20)), 9, 100)
    outputs, _ = run_tracker([frame_of(rows, "success")], CONFIG, baseline)
    assert [(w.state, w.number, w.departure_step) for w in outputs.windows] == [
        ("open", 0, 6),
        ("censored", 0, 6),
        ("open", 1, 109),
        ("recovered", 1, 109),
    ]


@pytest.mark.parametrize(("missing", "gap"), [(180, False), (200, True)])
def test_where_more_than_64_cycles_are_left_so_many_must_be_missing(missing: int, gap: bool) -> None:
    # Tasks of 200 steps; after step 5 about 195 cycles are left.
    learned = [
        frame_of(nominal_rows(0, 200, total=200), "success", episode=f"r{i}", task=f"r{i}", reference=True)
        for i in range(6)
    ]
    rows = behind_a_gap(nominal_rows(0, 30, total=200), 6, missing)
    evaluation = evaluate_frames([*learned, frame_of(rows, "failure", episode="far")], CONFIG)
    [far] = [summary for summary in evaluation.summaries if summary.key.episode == "far"]
    assert far.gap == gap


def test_the_length_of_a_gap_is_a_setting(baseline: MaterialisedBaseline) -> None:
    rows = behind_a_gap(nominal_rows(0, 20), 6, 40)
    short = ResilienceConfig(window=WindowConfig(gap_steps=30))
    for config, gap in ((CONFIG, False), (short, True)):
        outputs, _ = run_tracker([frame_of(rows, "failure")], config, baseline)
        assert outputs.summaries[0].gap == gap


def test_an_unscored_episode_says_gap_too() -> None:
    rows = behind_a_gap(nominal_rows(0, 20), 6, 65)
    outputs, _ = run_tracker([frame_of(rows[:6]), frame_of(rows[6:], "failure")], CONFIG, nothing_learned(CONFIG))
    assert outputs.summaries[0].gap


def test_sums_of_an_episode_with_a_gap_calibrate_nothing() -> None:
    # It is a success and teaches its cells: fewer steps are missing than came.
    learned = ready(nominal_baseline(CONFIG, references=6), CONFIG)
    rows = behind_a_gap(nominal_rows(0, 100, total=20), 60, 70)
    outputs, _ = run_tracker([frame_of(rows, "success", reference=True)], CONFIG, learned)
    [lesson] = outputs.contributions
    assert lesson.largest is None
    whole, _ = run_tracker([frame_of(nominal_rows(0, 20), "success", reference=True)], CONFIG, learned)
    assert whole.contributions[0].largest is not None


@pytest.mark.parametrize(("first", "joined"), [(0, False), (1, True), (7, True)])
def test_an_episode_whose_first_step_is_not_0_was_joined_and_is_scored_but_teaches_nothing(
    first: int, joined: bool, baseline: MaterialisedBaseline
) -> None:
    outputs, _ = run_tracker([frame_of(nominal_rows(first, 20), "success", reference=True)], CONFIG, baseline)
    [summary] = outputs.summaries
    assert (summary.joined, summary.unscored_steps, summary.gap) == (joined, 0, False)
    assert len(outputs.contributions) == (not joined)


def test_steps_missing_at_the_beginning_are_no_gap_however_many(baseline: MaterialisedBaseline) -> None:
    outputs, _ = run_tracker([frame_of(behind_a_gap(nominal_rows(0, 20), 0, 500), "success")], CONFIG, baseline)
    assert (outputs.summaries[0].joined, outputs.summaries[0].gap) == (True, False)


@pytest.mark.parametrize("batches", [[1, 1], [2]])
def test_a_frame_that_names_the_episode_before_its_steps_says_its_start(
    batches: list[int], baseline: MaterialisedBaseline
) -> None:
    frames = [frame_of([], reference=True), frame_of(nominal_rows(2, 20), "success", reference=True)]
    outputs, _ = run_tracker(frames, CONFIG, baseline, batches)
    assert not outputs.summaries[0].joined
    assert len(outputs.contributions) == 1


@pytest.mark.parametrize("together", [True, False])
def test_a_first_step_that_cannot_be_used_was_seen_all_the_same(together: bool, baseline: MaterialisedBaseline) -> None:
    rows = nominal_rows(0, 20)
    rows[0]["planning_s"] = float("nan")
    rows[0]["travel"] = float("inf")
    frames = [frame_of(rows, "success", reference=True)]
    if not together:
        frames = [frame_of(rows[:1], reference=True), frame_of(rows[1:], "success", reference=True)]
    outputs, _ = run_tracker(frames, CONFIG, baseline)
    assert not outputs.summaries[0].joined
    assert len(outputs.contributions) == 1


def test_another_episodes_rejected_start_is_not_this_ones(baseline: MaterialisedBaseline) -> None:
    broken = nominal_rows(0, 1, travel=float("inf"))
    parts = [
        (header_of(episode="other"), broken, None),
        (header_of(reference=True), nominal_rows(3, 20), "success"),
    ]
    outputs, _ = run_tracker([frame_of_parts(parts)], CONFIG, baseline)  # type: ignore[arg-type]
    assert outputs.summaries[0].joined
    assert outputs.contributions == []


@pytest.mark.parametrize("place", [7, -1, 2**60])
def test_a_rejected_start_of_no_episode_is_nobodys(place: int, baseline: MaterialisedBaseline) -> None:
    frame = frame_of([*nominal_rows(0, 1), *nominal_rows(3, 20)], "success", reference=True)
    frame.steps["episode"][0] = place  # type: ignore[index]
    outputs, _ = run_tracker([frame], CONFIG, baseline)
    assert outputs.summaries[0].joined


def test_an_episode_goes_on_as_begun_after_a_restart(baseline: MaterialisedBaseline) -> None:
    frames = [frame_of(nominal_rows(0, 5), reference=True), frame_of(nominal_rows(5, 20), "success", reference=True)]
    outputs, _ = run_tracker(frames, CONFIG, baseline, store_between=True)
    assert not outputs.summaries[0].joined


@by_seed(12)
@given(seed=seeds, batches=st.lists(st.integers(1, 40), max_size=12))
def test_gaps_and_bad_samples_are_the_same_however_the_frames_are_cut(seed: int, batches: list[int]) -> None:
    parts = with_bad_samples(random_episodes(seed), seed)
    frames: list[StepFrame] = cut_into_frames(parts, seed)
    learned = ready(evaluate_frames(frames, CONFIG).baseline, CONFIG)
    at_once, state_at_once = run_tracker(frames, CONFIG, learned, [len(frames)])
    cut, state = run_tracker(frames, CONFIG, learned, batches, store_between=True)
    by_episode = [
        {s.key: (s, [w for w in found.windows if w.key == s.key]) for s in found.summaries} for found in (at_once, cut)
    ]
    assert by_episode[0] == by_episode[1]
    for agent in [*state.agents.values(), *state_at_once.agents.values()]:
        agent.reported_s, agent.changed = 0.0, False
    assert msgspec.msgpack.encode(state) == msgspec.msgpack.encode(state_at_once)
    assert np.isfinite([s.recovery_cost for s in at_once.summaries if s.recovery_cost is not None]).all()
