"""The episode tracker on its boundaries: sessions, ends, gaps, copies and clocks, each test named for one."""

import pytest

from springback.producers.contract.frame import Outcome, StepFrame
from springback.stream_processors.intake.step_table import ArrivedFrame
from springback.stream_processors.intake.validation import tabulate
from springback.stream_processors.resilience.baseline.estimates import MaterialisedBaseline
from springback.stream_processors.resilience.baseline.stage_baseline import StageBaseline, sums_matrix
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import EpisodeKey
from springback.stream_processors.resilience.rebound.rebound_window import WindowConfig
from springback.stream_processors.resilience.tracking.episode_tracker import EpisodeTracker, TrackerOutputs
from springback.stream_processors.resilience.tracking.tracker_state import TrackerState
from tests.stream_processors.frame_builders import (
    START_S,
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

CONFIG = ResilienceConfig()


def disturbed_rows(first: int, stop: int) -> list[Row]:
    """Steps that go nowhere and cost much: both detectors alarm at once."""
    return nominal_rows(first, stop, progress=(first or 1) / 20, travel=5.0, risk=2.0)


def test_an_empty_batch_changes_nothing(baseline: MaterialisedBaseline) -> None:
    state = TrackerState()
    assert EpisodeTracker(CONFIG).track(tabulate([]), [], baseline) == TrackerOutputs()
    outputs, state = run_tracker([StepFrame(producer="p", session="s")], CONFIG, baseline, state=state)
    assert outputs == TrackerOutputs()
    assert state == TrackerState()


@pytest.mark.parametrize(
    ("outcome", "state"),
    [("success", "recovered"), ("failure", "unrecovered"), ("timeout", "unrecovered"), ("aborted", "censored")],
)
def test_an_end_inside_a_window_closes_it(outcome: Outcome, state: str, baseline: MaterialisedBaseline) -> None:
    rows = nominal_rows(0, 8) + disturbed_rows(8, 11)
    outputs, after = run_tracker([frame_of(rows, outcome)], CONFIG, baseline)
    assert [w.state for w in outputs.windows] == ["open", state]
    assert outputs.windows[-1].reentry_step == 10
    [summary] = outputs.summaries
    assert summary.outcome == outcome
    assert summary.recovery_cost == outputs.windows[-1].recovery_cost > 0
    assert summary.window_steps == outputs.windows[-1].length_steps
    assert summary.censored == (outcome == "aborted")
    assert after.agents["robot-7"].counts.aborted_episodes == (outcome == "aborted")


@pytest.mark.parametrize("outcome", ["failure", "timeout", "aborted"])
def test_only_a_success_teaches(outcome: Outcome) -> None:
    outputs, _ = run_tracker([frame_of(nominal_rows(0, 20), outcome, reference=True)], CONFIG, nothing_learned(CONFIG))
    assert outputs.contributions == []
    outputs, _ = run_tracker([frame_of(nominal_rows(0, 20), "success")], CONFIG, nothing_learned(CONFIG))
    assert outputs.contributions == []  # no reference


def test_a_family_without_baseline_is_unscored_and_its_cost_unknown(baseline: MaterialisedBaseline) -> None:
    outputs, state = run_tracker([frame_of(disturbed_rows(0, 5), family="unknown")], CONFIG, baseline)
    [status] = outputs.statuses
    [episode] = status.episodes
    assert (episode.steps, episode.unscored_steps, episode.intensity, episode.window) == (5, 5, None, None)
    outputs, _ = run_tracker([frame_of([], "failure", family="unknown")], CONFIG, baseline, state=state)
    [summary] = outputs.summaries
    assert (summary.recovery_cost, summary.steps, summary.unscored_steps, summary.windows) == (None, 5, 5, 0)


def test_unscored_steps_in_between_are_passed_over(baseline: MaterialisedBaseline) -> None:
    # The baseline goes away for steps 10 and 11 and comes back: lost cycles then compare step 12 with step 9, the two
    # calm steps before still count for the re-entry, and the window's sums leave the unscored steps out.
    rows = nominal_rows(0, 20)
    rows[6] |= {"travel": 5.0, "risk": 2.0}
    whole, _ = run_tracker([frame_of(rows[:10])], CONFIG, baseline)
    assert [w.state for w in whole.windows] == ["open", "recovered"]
    _, state = run_tracker([frame_of(rows[:9])], CONFIG, baseline)
    window = only_episode(state).detectors.window
    assert window is not None
    assert window.calm == 2
    _, state = run_tracker([frame_of(rows[9:11])], CONFIG, nothing_learned(CONFIG), state=state)
    episode = only_episode(state)
    assert (episode.unscored, episode.scored and episode.scored.step, episode.last_step) == (2, 8, 10)
    assert episode.detectors.window == window
    outputs, state = run_tracker([frame_of(rows[11:12])], CONFIG, baseline, state=state)
    [closed] = outputs.windows
    assert (closed.state, closed.reentry_step) == ("recovered", 7)
    assert closed.recovery_cost == whole.windows[-1].recovery_cost


def test_missing_steps_are_counted_and_their_cycles_lost(baseline: MaterialisedBaseline) -> None:
    # From step 4 to step 12 nothing arrives, and what is gained is one cycle's worth: of eight cycles, seven are lost.
    rows = [*nominal_rows(0, 5), *nominal_rows(12, 20)]
    for row in rows[5:]:
        row["progress"] = (row["step"] - 6) / 20
    config = ResilienceConfig(window=WindowConfig(delay_bound=5.0))
    outputs, state = run_tracker([frame_of(rows)], config, ready(nominal_baseline(config), config))
    assert only_episode(state).missing == 7
    assert state.agents["robot-7"].counts.missing_steps == 7
    opened, closed = outputs.windows
    assert (opened.cause, opened.departure_step, opened.alarm_step) == ("delay", 4, 12)
    # Length in steps counts the missing ones, for they were steps of the robot.
    assert (closed.state, closed.reentry_step, closed.length_steps) == ("recovered", 13, 10)
    assert closed.lost_cycles == pytest.approx(7, abs=0.2)


def test_a_cycle_time_is_not_derived_across_a_gap(baseline: MaterialisedBaseline) -> None:
    rows = [{key: value for key, value in row.items() if key != "cycle_time_s"} for row in nominal_rows(0, 6)]
    for missing, taught in ((None, 5), (3, 3)):
        # Without a cycle time a step teaches nothing: here the first, and the one after the gap.
        kept = [row for row in rows if row["step"] != missing]
        outputs, _ = run_tracker([frame_of(kept, "success", reference=True)], CONFIG, nothing_learned(CONFIG))
        [contribution] = outputs.contributions
        assert sums_matrix(contribution.sums)[:, 0].sum() == taught


def test_a_new_session_aborts_what_was_open(baseline: MaterialisedBaseline) -> None:
    frames = [
        frame_of(nominal_rows(0, 8) + disturbed_rows(8, 11)),
        frame_of(nominal_rows(0, 3), session="reboot"),
    ]
    for batches in ([1, 1], [2]):
        outputs, state = run_tracker(frames, CONFIG, baseline, batches)
        assert [(s.key, s.outcome) for s in outputs.summaries] == [(EpisodeKey("robot-7", "boot", "1"), "aborted")]
        assert [w.state for w in outputs.windows] == ["open", "censored"]
        assert only_episode(state).key == EpisodeKey("robot-7", "reboot", "1")
        assert state.agents["robot-7"].closed_sessions == ["boot"]


def test_steps_that_go_on_after_a_reboot_are_not_joined_to_those_before(baseline: MaterialisedBaseline) -> None:
    frames = [frame_of(nominal_rows(0, 8)), frame_of(nominal_rows(8, 20), "success", session="reboot")]
    outputs, _ = run_tracker(frames, CONFIG, baseline)
    assert [(s.key.session, s.outcome, s.steps) for s in outputs.summaries] == [
        ("boot", "aborted", 8),
        ("reboot", "success", 12),
    ]


def test_a_frame_of_an_old_session_is_dropped_and_counted(baseline: MaterialisedBaseline) -> None:
    frames = [
        frame_of(nominal_rows(0, 5)),
        frame_of(nominal_rows(0, 3), session="reboot"),
        frame_of(nominal_rows(5, 9), "success"),
        frame_of(nominal_rows(3, 6), session="reboot"),
    ]
    for batches in ([1] * 4, [4], [2, 2], [3, 1]):
        outputs, state = run_tracker(frames, CONFIG, baseline, batches)
        assert [s.outcome for s in outputs.summaries] == ["aborted"]
        assert only_episode(state).last_step == 5
        counts = state.agents["robot-7"].counts
        assert (counts.steps, counts.duplicate_steps, counts.old_session_steps) == (11, 0, 4)
        assert state.agents["robot-7"].session == "reboot"


def test_a_reordered_frame_is_dropped_and_its_steps_are_missing(baseline: MaterialisedBaseline) -> None:
    frames = [frame_of(nominal_rows(0, 4)), frame_of(nominal_rows(8, 12)), frame_of(nominal_rows(4, 8))]
    for batches in ([1] * 3, [3], [1, 2]):
        _, state = run_tracker(frames, CONFIG, baseline, batches)
        counts = state.agents["robot-7"].counts
        assert (counts.steps, counts.duplicate_steps, counts.overtaken_steps, counts.missing_steps) == (8, 0, 4, 4)


def test_a_repeated_step_inside_a_frame_is_dropped(baseline: MaterialisedBaseline) -> None:
    rows = nominal_rows(0, 4)
    _, state = run_tracker([frame_of([rows[0], rows[1], rows[1], rows[2], rows[2], rows[3]])], CONFIG, baseline)
    counts = state.agents["robot-7"].counts
    assert (counts.steps, counts.duplicate_steps, counts.missing_steps) == (4, 2, 0)


def test_rows_after_the_end_are_dropped(baseline: MaterialisedBaseline) -> None:
    frames = [frame_of(nominal_rows(0, 20), "success"), frame_of(nominal_rows(20, 22)), frame_of([], "failure")]
    for batches in ([1] * 3, [3]):
        outputs, state = run_tracker(frames, CONFIG, baseline, batches)
        assert [(s.outcome, s.steps) for s in outputs.summaries] == [("success", 20)]
        assert state.agents["robot-7"].open == {}
        assert state.agents["robot-7"].counts.after_end_steps == 2


def test_an_end_without_any_row_is_an_episode_without_steps(baseline: MaterialisedBaseline) -> None:
    outputs, _ = run_tracker([frame_of([], "failure", reference=True)], CONFIG, baseline)
    [summary] = outputs.summaries
    assert (summary.steps, summary.recovery_cost, summary.outcome) == (0, None, "failure")
    assert outputs.contributions == []
    assert run_tracker([frame_of([], "success", reference=True)], CONFIG, baseline)[0].contributions == []


def test_two_agents_in_one_frame_are_kept_apart(baseline: MaterialisedBaseline) -> None:
    one, two = header_of(agent="robot-1"), header_of(agent="robot-2")
    frames = [
        frame_of_parts([(one, nominal_rows(0, 8), None), (two, nominal_rows(0, 5), None)]),
        frame_of_parts([(two, nominal_rows(5, 20), "success"), (one, disturbed_rows(8, 12), "failure")]),
    ]
    for batches in ([1, 1], [2]):
        outputs, state = run_tracker(frames, CONFIG, baseline, batches)
        assert {s.key.agent: (s.outcome, s.steps, s.windows) for s in outputs.summaries} == {
            "robot-1": ("failure", 12, 1),
            "robot-2": ("success", 20, 0),
        }
        assert set(state.agents) == {"robot-1", "robot-2"}


def test_one_agent_may_run_two_episodes_at_once(baseline: MaterialisedBaseline) -> None:
    first, second = header_of(episode="1"), header_of(episode="2")
    outputs, state = run_tracker(
        [frame_of_parts([(first, nominal_rows(0, 8), None), (second, disturbed_rows(0, 8), None)])], CONFIG, baseline
    )
    assert {w.key.episode for w in outputs.windows} == {"2"}
    assert set(state.agents["robot-7"].open) == {"1", "2"}


def test_two_producers_with_the_same_names_are_kept_apart_in_one_batch(baseline: MaterialisedBaseline) -> None:
    frames = [frame_of(nominal_rows(0, 4)), frame_of(nominal_rows(0, 6))]
    states = [TrackerState(), TrackerState()]
    arrived = [ArrivedFrame(frame, START_S) for frame in frames]
    outputs = EpisodeTracker(CONFIG).track(tabulate(arrived), states, baseline)
    assert [only_episode(state).steps for state in states] == [4, 6]
    assert len(outputs.statuses) == 2


def test_an_episode_opened_again_after_it_was_forgotten_is_the_same_in_any_batch(
    baseline: MaterialisedBaseline,
) -> None:
    config = ResilienceConfig(remembered_episodes=1)
    frames = [
        frame_of(nominal_rows(0, 3), "failure"),
        frame_of(nominal_rows(0, 3), "failure", episode="2"),
        frame_of(nominal_rows(0, 5)),
    ]
    for batches in ([1] * 3, [3]):
        outputs, state = run_tracker(frames, config, baseline, batches)
        assert only_episode(state).steps == 5
        assert [s.steps for s in outputs.summaries] == [3, 3]


def test_one_episode_more_than_may_be_open_aborts_the_oldest(baseline: MaterialisedBaseline) -> None:
    config = ResilienceConfig(open_episodes=2)
    frames = [frame_of(nominal_rows(0, 3), episode=name) for name in ("1", "2", "3")]
    frames += [frame_of(nominal_rows(3, 6)), frame_of(nominal_rows(3, 6), episode="2")]
    for batches in ([1] * 5, [5], [2, 3]):
        outputs, state = run_tracker(frames, config, baseline, batches)
        assert [(s.key.episode, s.outcome, s.steps) for s in outputs.summaries] == [("1", "aborted", 3)]
        assert {name: episode.steps for name, episode in state.agents["robot-7"].open.items()} == {"2": 6, "3": 3}
        assert state.agents["robot-7"].counts.after_end_steps == 3


def test_a_baseline_that_changes_in_mid_episode_loses_no_cycles() -> None:
    # The references learned later take twice the steps: by them the work left is twice as much, from one step to the
    # next. Only cycles between steps by one and the same baseline can be lost.
    rows = nominal_rows(0, 20)
    short = nominal_baseline(CONFIG)
    long = StageBaseline(grid=CONFIG.grid)
    slow = [frame_of(nominal_rows(0, 40, total=40), "success", episode=f"slow-{i}", reference=True) for i in range(6)]
    for lesson in run_tracker(slow, CONFIG, nothing_learned(CONFIG))[0].contributions:
        long.add(lesson, CONFIG.baseline)
    _, state = run_tracker([frame_of(rows[:6], reference=True)], CONFIG, ready(short, CONFIG))
    _, state = run_tracker([frame_of(rows[6:7], reference=True)], CONFIG, ready(long, CONFIG), state=state)
    learning = only_episode(state).learning
    assert learning is not None
    assert learning.sums.largest_delay == 0.0
