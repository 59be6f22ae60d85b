"""Steps that are not taken in are told apart: copies, late ones, and others under ids that were used before."""

import pytest

from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.tracking.episode_tracker import TrackerOutputs
from springback.stream_processors.resilience.tracking.seen_steps import MOST_SKIPPED
from tests.stream_processors.frame_builders import Row, frame_of, nominal_baseline, nominal_rows, ready, run_tracker

CONFIG = ResilienceConfig()
BASELINE = ready(nominal_baseline(CONFIG), CONFIG)


def told(outputs: TrackerOutputs) -> list[tuple[str, str, int, int, int]]:
    """What was not used: the reason, the session, how many steps, the lowest and the highest."""
    return [(u.reason, u.key.session, u.steps, u.lowest, u.highest) for u in outputs.unused]


def run_again(rows: list[Row], more_travel: float = 0.01) -> list[Row]:
    """The same step numbers an hour later, with a little more effort."""
    return [{**row, "time_s": row["time_s"] + 3600.0, "travel": row["travel"] + more_travel} for row in rows]


@pytest.mark.parametrize("batches", [[1] * 9, [9], [2, 3, 4]])
def test_a_step_that_a_later_one_overtook_is_late_and_its_copy_is_a_copy(batches: list[int]) -> None:
    frames = [frame_of(nominal_rows(*steps)) for steps in ((0, 4), (8, 12), (4, 8), (4, 8), (2, 6))]
    outputs, state = run_tracker(frames, CONFIG, BASELINE, batches)
    assert told(outputs) == [
        ("overtaken", "boot", 4, 4, 7),
        ("duplicate", "boot", 4, 4, 7),
        ("duplicate", "boot", 4, 2, 5),
    ]
    counts = state.agents["robot-7"].counts
    assert (counts.steps, counts.overtaken_steps, counts.duplicate_steps) == (8, 4, 8)


def test_a_beginning_that_comes_late_is_late() -> None:
    outputs, _ = run_tracker([frame_of(nominal_rows(3, 6)), frame_of(nominal_rows(0, 5))], CONFIG, BASELINE)
    assert told(outputs) == [("overtaken", "boot", 3, 0, 2), ("duplicate", "boot", 2, 3, 4)]


def test_of_many_stretches_that_are_missing_the_oldest_are_forgotten() -> None:
    every_other = frame_of(nominal_rows(0, 200, total=200)[::2])
    outputs, state = run_tracker([every_other, frame_of(nominal_rows(0, 200, total=200)[1::2])], CONFIG, BASELINE)
    # Step 199 lies above the last one seen, so that it is taken in.
    assert told(outputs) == [
        ("duplicate", "boot", 99 - MOST_SKIPPED, 1, 197 - 2 * MOST_SKIPPED),
        ("overtaken", "boot", MOST_SKIPPED, 199 - 2 * MOST_SKIPPED, 197),
    ]
    assert state.agents["robot-7"].counts.steps == 101


@pytest.mark.parametrize("more_travel", [0.0, 0.01])
@pytest.mark.parametrize("batches", [[1] * 6, [6], [2, 2, 2]])
def test_a_session_that_comes_again_with_other_content_is_not_a_copy(batches: list[int], more_travel: float) -> None:
    # A simulation that is started again may say the same, but at another time.
    first = [frame_of(nominal_rows(0, 12)), frame_of(nominal_rows(12, 20), "success")]
    second = run_again(nominal_rows(0, 24), more_travel)
    frames = [*first, frame_of(second[:12]), frame_of(second[12:], "success"), *first]
    outputs, state = run_tracker(frames, CONFIG, BASELINE, batches)
    assert told(outputs) == [
        ("session_again", "boot", 12, 0, 11),
        ("session_again", "boot", 8, 12, 19),
        ("after_end", "boot", 4, 20, 23),
        ("duplicate", "boot", 12, 0, 11),
        ("duplicate", "boot", 8, 12, 19),
    ]
    assert [summary.steps for summary in outputs.summaries] == [20]
    counts = state.agents["robot-7"].counts
    assert (counts.session_again_steps, counts.after_end_steps, counts.duplicate_steps) == (20, 4, 20)


def test_a_program_that_is_started_again_in_the_midst_of_an_episode_is_told() -> None:
    frames = [frame_of(nominal_rows(0, 8)), frame_of(run_again(nominal_rows(0, 6)))]
    outputs, _ = run_tracker(frames, CONFIG, BASELINE)
    assert told(outputs) == [("session_again", "boot", 6, 0, 5)]


def test_a_producer_without_a_clock_that_is_started_again_is_told_by_what_it_says() -> None:
    rows = [{name: value for name, value in row.items() if name != "time_s"} for row in nominal_rows(0, 8)]
    other = [{**row, "travel": 0.3} for row in rows]
    frames = [frame_of(rows, "success"), frame_of(rows), frame_of(other)]
    outputs, _ = run_tracker(frames, CONFIG, BASELINE)
    assert told(outputs) == [("duplicate", "boot", 8, 0, 7), ("session_again", "boot", 8, 0, 7)]


@pytest.mark.parametrize("batches", [[1] * 6, [6], [3, 3]])
def test_two_sessions_that_alternate_are_contested(batches: list[int]) -> None:
    # Each program goes on by its own numbers; the one that began later holds the agent.
    frames = [
        frame_of(nominal_rows(0, 4)),
        frame_of(nominal_rows(4, 6), session="other"),
        frame_of(nominal_rows(6, 9)),
        frame_of(nominal_rows(9, 11), session="other"),
    ]
    outputs, state = run_tracker(frames, CONFIG, BASELINE, batches, arrivals=[10.0, 11.0, 12.0, 13.0])
    assert told(outputs) == [("old_session", "boot", 3, 6, 8)]
    agent = state.agents["robot-7"]
    assert (agent.contested_s, agent.counts.old_session_steps, agent.counts.steps) == (12.0, 3, 8)


def test_the_late_rest_of_a_session_that_is_over_contests_nothing() -> None:
    frames = [
        frame_of(nominal_rows(0, 4)),
        frame_of(nominal_rows(20, 24, total=40), session="reboot"),
        frame_of(nominal_rows(4, 9)),
        frame_of(nominal_rows(0, 4)),
    ]
    outputs, state = run_tracker(frames, CONFIG, BASELINE)
    assert told(outputs) == [("old_session", "boot", 5, 4, 8), ("duplicate", "boot", 4, 0, 3)]
    assert state.agents["robot-7"].contested_s is None
