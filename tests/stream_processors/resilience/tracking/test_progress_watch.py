"""When an agent last got on, as its statuses tell it: by the broker's clock, whatever the agent says."""

import pytest

from springback.producers.contract.frame import StepFrame
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import AgentStatus
from springback.stream_processors.resilience.tracking.episode_tracker import EpisodeTracker, agent_status
from springback.stream_processors.resilience.tracking.tracker_state import TrackerState
from tests.stream_processors.frame_builders import START_S, frame_of, nothing_learned, run_tracker

CONFIG = ResilienceConfig()
BASELINE = nothing_learned(CONFIG)


def after(frames: list[StepFrame], arrivals: list[float], state: TrackerState | None = None) -> TrackerState:
    """The state after frames that arrived so many seconds after the start."""
    _, state = run_tracker(frames, CONFIG, BASELINE, arrivals=[START_S + at for at in arrivals], state=state)
    return state


def told(state: TrackerState) -> AgentStatus:
    [agent] = state.agents.values()
    return agent_status(agent)


def times(state: TrackerState) -> tuple[float, float, float]:
    """Last event, last new step, last progress: seconds after the start."""
    status = told(state)
    assert status.step_s is not None
    assert status.progress_s is not None
    return status.seen_s - START_S, status.step_s - START_S, status.progress_s - START_S


def steps(first: int, *progress: float) -> StepFrame:
    return frame_of([{"step": first + n, "progress": value} for n, value in enumerate(progress)])


def test_progress_is_a_rise_above_all_before_and_copies_are_nothing_new() -> None:
    state = after([steps(0, 0.5)], [0])
    assert times(state) == (0, 0, 0)
    after([steps(1, 0.25), steps(2, 0.5)], [10, 20], state)
    assert times(state) == (20, 20, 0)
    after([steps(3, 0.5, 0.75, 0.5)], [30], state)
    assert times(state) == (30, 30, 30)
    after([steps(3, 0.5, 0.75, 0.5)], [40], state)
    assert times(state) == (40, 30, 30)


@pytest.mark.parametrize("sizes", [[6], [1, 5], [3, 3], [1] * 6])
def test_how_frames_were_gathered_into_batches_changes_nothing(sizes: list[int]) -> None:
    frames = [steps(number, value) for number, value in enumerate((0.0, 0.5, 0.25, 0.5, 0.75, 0.5))]
    arrivals = [START_S + 10 * n for n in range(6)]
    _, state = run_tracker(frames, CONFIG, BASELINE, sizes, store_between=True, arrivals=arrivals)
    assert times(state) == (50, 50, 40)


def test_a_beginning_and_an_end_are_progress() -> None:
    state = after([steps(0, 0.5)], [0])
    after([frame_of([{"step": 0, "progress": 0.0}], episode="2")], [10], state)
    assert times(state) == (10, 10, 10)
    after([frame_of([], episode="2", outcome="failure")], [20], state)
    assert times(state) == (20, 10, 20)


def test_what_silence_closed_is_abandoned_until_something_new_comes() -> None:
    def closed() -> TrackerState:
        state = after([steps(0, 0.5)], [0])
        assert not told(state).abandoned
        EpisodeTracker(CONFIG).close_idle(state, START_S + 301)
        assert told(state).abandoned
        assert told(state).episodes == ()
        return state

    assert told(after([steps(0, 0.5)], [310], closed())).abandoned
    assert not told(after([frame_of([{"step": 0, "progress": 0.0}], episode="2")], [310], closed())).abandoned
    assert not told(after([frame_of([], outcome="success")], [310], closed())).abandoned


@pytest.mark.parametrize("sizes", [[5], [2, 3], [1] * 5])
@pytest.mark.parametrize(
    ("progress", "unmoved"),
    [
        ((0.0, 0.0, 0.0, 0.0), True),
        ((0.25, 0.25, 0.25, 0.25), True),
        ((1.0, 1.0, 1.0, 1.0), True),
        ((0.0, 0.0, 0.0, 1.0), False),
        ((1.0, 0.5, 1.0, 1.0), False),
        ((0.25, 0.25, 0.2, 0.25), False),
    ],
)
def test_a_summary_says_whether_progress_ever_moved(
    progress: tuple[float, ...], unmoved: bool, sizes: list[int]
) -> None:
    frames = [*(steps(number, value) for number, value in enumerate(progress)), frame_of([], outcome="success")]
    outputs, _ = run_tracker(frames, CONFIG, BASELINE, sizes, store_between=True)
    assert [summary.unmoved for summary in outputs.summaries] == [unmoved]


def test_one_step_moves_nothing_and_proves_nothing() -> None:
    outputs, _ = run_tracker([steps(0, 1.0), frame_of([], outcome="success")], CONFIG, BASELINE)
    assert [summary.unmoved for summary in outputs.summaries] == [False]


def test_of_steps_from_before_it_was_kept_nothing_is_said() -> None:
    state = after([steps(0, 0.5)], [0])
    [agent] = state.agents.values()
    agent.open["1"].progress_span = None
    outputs, _ = run_tracker([steps(1, 0.5), frame_of([], outcome="success")], CONFIG, BASELINE, state=state)
    assert [summary.unmoved for summary in outputs.summaries] == [False]
