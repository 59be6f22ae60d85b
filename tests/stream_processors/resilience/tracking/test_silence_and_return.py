"""An episode that silence has closed goes on when its steps come after all: what was delivered late is not lost."""

from typing import Any

import msgspec
import pytest

from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import EpisodeKey
from springback.stream_processors.resilience.tracking.episode_tracker import EpisodeTracker
from springback.stream_processors.resilience.tracking.tracker_state import TrackerState
from tests.stream_processors.frame_builders import (
    START_S,
    Row,
    frame_of,
    nominal_baseline,
    nominal_rows,
    ready,
    run_tracker,
)

CONFIG = ResilienceConfig()
BASELINE = ready(nominal_baseline(CONFIG), CONFIG)
LATER_S = START_S + 1000.0


def troubled(first: int, stop: int) -> list[Row]:
    """Rows of an episode whose steps 6 to 11 cost much."""
    return [row | ({"travel": 5.0, "risk": 2.0} if 6 <= row["step"] < 12 else {}) for row in nominal_rows(first, stop)]


def silent_after(rows: list[Row], **fields: Any) -> TrackerState:
    """The state after these steps and a long silence."""
    _, state = run_tracker([frame_of(rows, **fields)], CONFIG, BASELINE)
    outputs = EpisodeTracker(CONFIG).close_idle(state, LATER_S)
    assert [(s.outcome, s.revision) for s in outputs.summaries] == [("aborted", 0)]
    return state


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("cut", [3, 9, 15])
def test_an_outage_longer_than_the_idle_timeout_costs_nothing_that_was_delivered(cut: int, stored: bool) -> None:
    rows = troubled(0, 20)
    frames = [frame_of(rows[:cut], reference=True), frame_of(rows[cut:], "success", reference=True)]
    whole, _ = run_tracker(frames, CONFIG, BASELINE)
    state = silent_after(rows[:cut], reference=True)
    if stored:
        state = msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=TrackerState)
    outputs, state = run_tracker(frames[1:], CONFIG, BASELINE, state=state, arrivals=[LATER_S + 1])
    [summary], [expected] = outputs.summaries, whole.summaries
    assert (summary.outcome, summary.steps, summary.revision) == ("success", 20, 1)
    # The end says no time of its own.
    assert msgspec.structs.replace(summary, revision=0, ended_s=expected.ended_s) == expected
    wanted = [window for window in whole.windows if window.reentry_step >= cut]
    assert [msgspec.structs.replace(window, revision=0) for window in outputs.windows] == wanted
    assert {window.revision for window in outputs.windows} <= {1}
    assert outputs.contributions == whole.contributions
    assert [(b.key.episode, b.revision) for b in outputs.begun] == [("1", 1)]
    counts = state.agents["robot-7"].counts
    assert (counts.steps, counts.aborted_episodes, counts.reopened_episodes) == (20, 1, 1)
    assert outputs.unused == []


def test_an_end_alone_corrects_the_outcome() -> None:
    state = silent_after(nominal_rows(0, 20))
    outputs, state = run_tracker([frame_of([], "success")], CONFIG, BASELINE, state=state, arrivals=[LATER_S + 1])
    assert [(s.outcome, s.steps, s.revision) for s in outputs.summaries] == [("success", 20, 1)]
    agent = state.agents["robot-7"]
    assert (agent.open, agent.silent, agent.abandoned) == ({}, {}, False)
    again, _ = run_tracker([frame_of([], "success")], CONFIG, BASELINE, state=state, arrivals=[LATER_S + 2])
    assert again.summaries == []


def test_it_may_fall_silent_and_return_more_than_once() -> None:
    state = silent_after(nominal_rows(0, 5))
    found = []
    for number, (first, stop) in enumerate([(5, 9), (9, 14)], 1):
        now_s = LATER_S * number
        _, state = run_tracker(
            [frame_of(nominal_rows(first, stop))], CONFIG, BASELINE, state=state, arrivals=[now_s + 1]
        )
        found += EpisodeTracker(CONFIG).close_idle(state, now_s + 1000).summaries
    assert [(s.outcome, s.steps, s.revision) for s in found] == [("aborted", 9, 1), ("aborted", 14, 2)]
    assert len({s.identity for s in found}) == 2


def test_copies_of_a_silent_episode_do_not_make_it_go_on() -> None:
    state = silent_after(nominal_rows(0, 8))
    outputs, state = run_tracker([frame_of(nominal_rows(2, 8))], CONFIG, BASELINE, state=state, arrivals=[LATER_S + 1])
    assert outputs.begun == []
    assert [(u.reason, u.steps) for u in outputs.unused] == [("duplicate", 6)]
    assert state.agents["robot-7"].open == {}


def test_copies_come_before_what_is_new_in_any_batch() -> None:
    frames = [frame_of(nominal_rows(2, 8)), frame_of(nominal_rows(6, 20), "success"), frame_of(nominal_rows(0, 20))]
    for batches in ([1, 1, 1], [3]):
        state = silent_after(nominal_rows(0, 8))
        outputs, _ = run_tracker(frames, CONFIG, BASELINE, batches, state=state, arrivals=[LATER_S + 1] * 3)
        assert [(u.reason, u.steps) for u in outputs.unused] == [("duplicate", n) for n in (6, 2, 20)]
        assert [(s.outcome, s.steps) for s in outputs.summaries] == [("success", 20)]


def test_a_new_session_ends_for_good_what_silence_had_closed() -> None:
    state = silent_after(nominal_rows(0, 8))
    frames = [frame_of(nominal_rows(0, 3), session="reboot"), frame_of(nominal_rows(8, 20), "success")]
    outputs, state = run_tracker(frames, CONFIG, BASELINE, state=state, arrivals=[LATER_S + 1, LATER_S + 2])
    assert outputs.summaries == []
    assert [(u.reason, u.key, u.steps) for u in outputs.unused] == [
        ("old_session", EpisodeKey("robot-7", "boot", "1"), 12)
    ]


def test_only_so_many_are_kept_and_what_comes_of_others_is_told() -> None:
    config = ResilienceConfig(silent_episodes=1)
    frames = [frame_of(nominal_rows(0, 8), episode=name) for name in ("1", "2")]
    _, state = run_tracker(frames, config, BASELINE)
    EpisodeTracker(config).close_idle(state, LATER_S)
    assert list(state.agents["robot-7"].silent) == ["2"]
    rest = [frame_of(nominal_rows(8, 20), "success", episode=name) for name in ("1", "2")]
    outputs, _ = run_tracker(rest, config, BASELINE, state=state, arrivals=[LATER_S + 1, LATER_S + 2])
    assert [(s.key.episode, s.outcome) for s in outputs.summaries] == [("2", "success")]
    assert [(u.reason, u.key.episode, u.steps) for u in outputs.unused] == [("after_end", "1", 12)]
