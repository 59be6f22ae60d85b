"""The episode tracker and time: broker's and agents' clocks, idle episodes, and how often a status is due."""

import math

import pytest

from springback.stream_processors.resilience.baseline.estimates import MaterialisedBaseline
from springback.stream_processors.resilience.baseline.stage_baseline import sums_matrix
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.tracking.episode_tracker import EpisodeTracker, TrackerOutputs
from springback.stream_processors.resilience.tracking.tracker_state import TrackerState
from tests.stream_processors.frame_builders import (
    START_S,
    Row,
    frame_of,
    frame_of_parts,
    header_of,
    nominal_rows,
    nothing_learned,
    run_tracker,
)

CONFIG = ResilienceConfig()


def without(rows: list[Row], *names: str) -> list[Row]:
    return [{key: value for key, value in row.items() if key not in names} for row in rows]


def test_silence_of_exactly_the_timeout_leaves_an_episode_open(baseline: MaterialisedBaseline) -> None:
    rows = nominal_rows(0, 8)
    rows[-1] |= {"travel": 5.0, "risk": 2.0}
    _, state = run_tracker([frame_of(rows)], CONFIG, baseline)
    tracker = EpisodeTracker(CONFIG)
    assert tracker.close_idle(state, START_S + CONFIG.idle_timeout_s) == TrackerOutputs()
    outputs = tracker.close_idle(state, math.nextafter(START_S + CONFIG.idle_timeout_s, math.inf))
    assert [(s.outcome, s.steps) for s in outputs.summaries] == [("aborted", 8)]
    assert [w.state for w in outputs.windows] == ["censored"]
    assert [s.episodes for s in outputs.statuses] == [()]
    assert tracker.close_idle(state, START_S + 1e6) == TrackerOutputs()


def test_an_agent_is_forgotten_after_a_week_of_silence_and_not_before(baseline: MaterialisedBaseline) -> None:
    tracker = EpisodeTracker(CONFIG)
    _, state = run_tracker([frame_of(nominal_rows(0, 20), "success")], CONFIG, baseline)
    week_later = START_S + CONFIG.forget_agent_s
    assert tracker.close_idle(state, week_later) == TrackerOutputs()
    assert set(state.agents) == {"robot-7"}
    assert tracker.close_idle(state, week_later + 1) == TrackerOutputs()
    assert state == TrackerState()


def test_an_agent_whose_episode_is_open_is_closed_and_reported_before_it_is_forgotten(
    baseline: MaterialisedBaseline,
) -> None:
    tracker = EpisodeTracker(CONFIG)
    _, state = run_tracker([frame_of(nominal_rows(0, 8))], CONFIG, baseline)
    outputs = tracker.close_idle(state, START_S + 1e7)
    assert ([s.outcome for s in outputs.summaries], len(outputs.statuses)) == (["aborted"], 1)
    assert tracker.close_idle(state, START_S + 1e7) == TrackerOutputs()
    assert state == TrackerState()


def test_a_link_that_repeats_its_last_frame_for_ever_is_silence(baseline: MaterialisedBaseline) -> None:
    frames = [frame_of(nominal_rows(0, 8)), *[frame_of(nominal_rows(4, 8))] * 5]
    arrivals = [START_S + 100 * i for i in range(6)]
    _, state = run_tracker(frames, CONFIG, baseline, arrivals=arrivals)
    assert state.agents["robot-7"].seen_s == START_S + 500
    outputs = EpisodeTracker(CONFIG).close_idle(state, START_S + 500)
    assert [s.outcome for s in outputs.summaries] == ["aborted"]


def test_a_status_comes_at_most_once_a_second_and_the_last_is_made_up_for(baseline: MaterialisedBaseline) -> None:
    frames = [frame_of(nominal_rows(i, i + 1)) for i in range(20)]
    arrivals = [START_S + 0.25 * i for i in range(20)]
    outputs, state = run_tracker(frames, CONFIG, baseline, arrivals=arrivals)
    assert [status.seen_s - START_S for status in outputs.statuses] == [0.0, 1.0, 2.0, 3.0, 4.0]
    late = EpisodeTracker(CONFIG).close_idle(state, START_S + 5.0)
    assert [(s.seen_s - START_S, s.episodes[0].step) for s in late.statuses] == [(4.75, 19)]
    assert EpisodeTracker(CONFIG).close_idle(state, START_S + 60.0).statuses == []


def test_a_broker_clock_that_steps_back_brings_no_second_status(baseline: MaterialisedBaseline) -> None:
    frames = [frame_of(nominal_rows(i, i + 1)) for i in range(3)]
    outputs, state = run_tracker(frames, CONFIG, baseline, arrivals=[START_S, START_S - 50, START_S + 0.5])
    assert len(outputs.statuses) == 1
    assert state.agents["robot-7"].seen_s == START_S + 0.5


def test_an_agent_clock_that_jumps_back_gives_no_cycle_time_and_is_counted(baseline: MaterialisedBaseline) -> None:
    rows = without(nominal_rows(0, 10), "cycle_time_s")
    for row in rows[5:]:
        row["time_s"] -= 100.0
    outputs, state = run_tracker([frame_of(rows, "success", reference=True)], CONFIG, nothing_learned(CONFIG))
    counts = state.agents["robot-7"].counts
    assert (counts.steps, counts.clock_resets, counts.duplicate_steps) == (10, 1, 0)
    [contribution] = outputs.contributions
    # The first step and the one at the jump have no cycle time; after the jump the clock counts again.
    assert sums_matrix(contribution.sums)[:, 0].sum() == 8
    outputs, _ = run_tracker([frame_of(rows)], CONFIG, baseline)
    assert outputs.windows == []  # a clock that jumps is no trouble of the robot


def test_two_steps_at_one_instant_have_no_cycle_time_and_are_no_reset(baseline: MaterialisedBaseline) -> None:
    rows = without(nominal_rows(0, 4), "cycle_time_s")
    rows[2]["time_s"] = rows[1]["time_s"]
    outputs, state = run_tracker([frame_of(rows, "success")], CONFIG, baseline)
    assert state.agents["robot-7"].counts.clock_resets == 0
    assert outputs.summaries[0].steps == 4


def test_rows_on_the_brokers_time_count_in_cycles(baseline: MaterialisedBaseline) -> None:
    # Neither time nor cycle time: a frame of several rows counts a second a row, so a window is as long as its steps.
    rows = nominal_rows(0, 6) + nominal_rows(6, 9, travel=5.0, risk=2.0)
    outputs, state = run_tracker([frame_of(without(rows, "time_s", "cycle_time_s"), "failure")], CONFIG, baseline)
    assert outputs.windows[-1].length_s == outputs.windows[-1].length_steps == 3
    assert outputs.windows[-1].departure_time_s == START_S
    assert state.agents["robot-7"].clock_skew_s is None
    assert outputs.statuses[0].clock_skew_s == 0.0


def test_times_before_2000_are_replaced_and_counted_once_per_new_row(baseline: MaterialisedBaseline) -> None:
    rows = nominal_rows(0, 6)
    for row in rows[:4]:
        row["time_s"] = 12.0
    _, state = run_tracker([frame_of(rows)], CONFIG, baseline)
    assert state.agents["robot-7"].counts.replaced_times == 4


def test_frames_of_one_row_equal_one_frame(baseline: MaterialisedBaseline) -> None:
    rows = nominal_rows(0, 6) + nominal_rows(6, 9, travel=5.0) + nominal_rows(9, 20)
    for row in rows:
        row["progress"] = min(row["progress"], 1.0)
    whole, _ = run_tracker([frame_of(rows, "success")], CONFIG, baseline)
    singles, _ = run_tracker([*[frame_of([row]) for row in rows], frame_of([], "success")], CONFIG, baseline)
    assert singles.windows == whole.windows
    assert whole.windows
    assert singles.summaries[0].recovery_cost == whole.summaries[0].recovery_cost


def test_the_skew_of_an_agents_clock_is_followed_slowly(baseline: MaterialisedBaseline) -> None:
    frames = [frame_of(nominal_rows(i, i + 1)) for i in range(3)]
    _, state = run_tracker(frames, CONFIG, baseline, arrivals=[START_S - 5, START_S + 1 - 5, START_S + 2 - 15])
    assert state.agents["robot-7"].clock_skew_s == pytest.approx(5.0 + 0.1 * (15.0 - 5.0))


def test_an_episode_starts_with_its_first_step_by_the_agents_clock(baseline: MaterialisedBaseline) -> None:
    frames = [frame_of(nominal_rows(0, 4)), frame_of(nominal_rows(4, 6), "success")]
    outputs, _ = run_tracker(frames, CONFIG, baseline, [2], arrivals=[START_S + 60, START_S + 61])
    [summary] = outputs.summaries
    assert summary.started_s == START_S
    assert summary.ended_s == START_S + 61  # nobody said when: the broker's


def test_agents_share_no_clock(baseline: MaterialisedBaseline) -> None:
    ahead = nominal_rows(0, 2)
    for row in ahead:
        row["time_s"] += 30.0
    parts = [(header_of(agent="a"), nominal_rows(0, 2), None), (header_of(agent="b"), ahead, None)]
    _, state = run_tracker([frame_of_parts(parts)], CONFIG, baseline, state=TrackerState())
    skews = [state.agents[name].clock_skew_s for name in ("a", "b")]
    assert skews == [1.0, 31.0]


def test_a_clock_that_steps_back_and_forth_freezes_nothing(baseline: MaterialisedBaseline) -> None:
    rows = without(nominal_rows(0, 20), "cycle_time_s")
    for number, row in enumerate(rows):
        row["time_s"] += (0.0, 5.0, 0.0, -5.0)[number // 3 % 4]
    outputs, state = run_tracker(
        [frame_of([row]) for row in rows[:-1]] + [frame_of(rows[-1:], "success")], CONFIG, baseline
    )
    counts = state.agents["robot-7"].counts
    assert (counts.steps, counts.duplicate_steps, counts.replaced_times) == (20, 0, 0)
    assert counts.clock_resets == 3  # forth at steps 3, 12 and 15, back at 6, 9 and 18
    [summary] = outputs.summaries
    assert (summary.outcome, summary.steps, summary.unscored_steps) == ("success", 20, 0)
    assert summary.lost_cycles >= 0.0


def test_a_clock_that_falls_to_zero_in_mid_episode_is_replaced_and_scoring_goes_on(
    baseline: MaterialisedBaseline,
) -> None:
    rows = without(nominal_rows(0, 20), "cycle_time_s")
    for row in rows[10:]:
        row["time_s"] -= START_S + 10
    outputs, state = run_tracker([frame_of([row]) for row in rows], CONFIG, baseline)
    assert outputs.windows == []
    counts = state.agents["robot-7"].counts
    assert (counts.steps, counts.replaced_times) == (20, 10)
    [closed] = EpisodeTracker(CONFIG).close_idle(state, START_S + 1e4).summaries
    assert (closed.steps, closed.unscored_steps) == (20, 0)
