"""A link that has died and sends its last frame again and again, freshly stamped: it must not pass for calm."""

import pytest

from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.tracking.episode_tracker import EpisodeTracker
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


def repeated(row: Row, times: int, **by: float) -> list[Row]:
    """The row again and again; each time the columns named are raised by so much."""
    return [{**row, **{name: row[name] + n * step for name, step in by.items()}} for n in range(1, times + 1)]


def test_the_same_steps_with_fresh_stamps_are_copies_and_no_news() -> None:
    rows = nominal_rows(0, 8)
    frames = [frame_of(rows), *[frame_of([row]) for row in repeated(rows[-1], 60, time_s=10.0)]]
    arrivals = [START_S + 8 + 10 * n for n in range(61)]
    outputs, state = run_tracker(frames, CONFIG, BASELINE, arrivals=arrivals)
    agent = state.agents["robot-7"]
    assert (agent.counts.steps, agent.counts.duplicate_steps) == (8, 60)
    assert outputs.windows == []
    [summary] = EpisodeTracker(CONFIG).close_idle(state, arrivals[-1]).summaries
    assert (summary.outcome, summary.steps) == ("aborted", 8)


@pytest.mark.parametrize("frozen_at", [4, 12, 20])
def test_the_same_payload_under_new_step_numbers_is_a_standstill_that_costs_and_never_recovers(frozen_at: int) -> None:
    rows = nominal_rows(0, frozen_at)
    frozen = repeated(rows[-1], 40, time_s=1.0, step=1)
    outputs, state = run_tracker([frame_of(rows), *[frame_of([row]) for row in frozen]], CONFIG, BASELINE)
    [opened] = outputs.windows
    assert opened.state == "open"
    assert opened.alarm_step <= frozen_at + 10
    [closed] = EpisodeTracker(CONFIG).close_idle(state, START_S + 1e4).windows
    assert closed.state == "censored"
    assert closed.lost_cycles >= 30
