"""The same reducers without Kafka: offline evaluation of recordings, and the oracle that the stream is tested against.

Offline, with no baseline given, the baseline is learned from all reference successes first, then the references are
scored by it to calibrate the alarm bounds, and only then is everything scored: the order of episodes plays no part.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from producers.frame_validation import tabulate
from producers.step_frame import StepFrame
from producers.step_table import ArrivedFrame, RejectedRow
from stream_processors.resilience.episode_tracker import EpisodeTracker, TrackerOutputs
from stream_processors.resilience.materialised_baseline import MaterialisedBaseline, materialise
from stream_processors.resilience.readings import AgentStatus, EpisodeSummary, WindowReading
from stream_processors.resilience.resilience_config import ResilienceConfig
from stream_processors.resilience.stage_baseline import EpisodeContribution, StageBaseline
from stream_processors.resilience.tracker_state import TrackerState

BATCH_FRAMES = 512
YEAR_2000_S, YEAR_2100_S = 946_684_800.0, 4_102_444_800.0


@dataclass(slots=True)
class Evaluation:
    """What a recording comes to. `windows` holds the closed ones alone, in the order in which they closed.

    `statuses` holds the last one of each agent. What the recording leaves open is closed as aborted at its end.
    """

    baseline: StageBaseline
    summaries: list[EpisodeSummary] = field(default_factory=list)
    windows: list[WindowReading] = field(default_factory=list)
    statuses: list[AgentStatus] = field(default_factory=list)
    rejected: list[RejectedRow] = field(default_factory=list)


def evaluate(
    frames: Iterable[StepFrame],
    config: ResilienceConfig,
    baseline: StageBaseline | None = None,
    batch_frames: int = BATCH_FRAMES,
) -> Evaluation:
    """Run the reducers over recorded frames.

    Args:
        frames: the recording; gone through three times where the baseline is learned from it.
        config: settings of the core.
        baseline: what to score by; None learns it from the recording itself.
        batch_frames: frames taken at a time; changes no result.

    Raises:
        TypeError: the baseline is to be learned from an iterator, which can be gone through only once.
    """
    learned = learn_baseline(frames, config, batch_frames) if baseline is None else baseline
    ready = materialise(learned, config.baseline, config.window.fixed_bounds())
    evaluation = Evaluation(learned)
    latest: dict[tuple[str, str], AgentStatus] = {}
    for outputs, rejected in run(frames, ready, config, batch_frames):
        evaluation.summaries += outputs.summaries
        evaluation.windows += [window for window in outputs.windows if window.state != "open"]
        latest |= {(status.producer, status.agent): status for status in outputs.statuses}
        evaluation.rejected += rejected
    evaluation.statuses = list(latest.values())
    return evaluation


def learn_baseline(
    frames: Iterable[StepFrame], config: ResilienceConfig, batch_frames: int = BATCH_FRAMES
) -> StageBaseline:
    """The baseline that the recording's own reference successes teach, with their largest sums by it.

    Raises:
        TypeError: `frames` is an iterator, which can be gone through only once.
    """
    if iter(frames) is frames:
        message = f"got a {type(frames).__name__}, but the frames are gone through more than once: pass a list of them"
        raise TypeError(message)
    unscored = materialise(StageBaseline(grid=config.grid), config.baseline, config.window.fixed_bounds())
    first = _learned(run(frames, unscored, config, batch_frames), config)
    ready = materialise(first, config.baseline, config.window.fixed_bounds())
    return _learned(run(frames, ready, config, batch_frames), config)


def run(
    frames: Iterable[StepFrame], baseline: MaterialisedBaseline, config: ResilienceConfig, batch_frames: int
) -> Iterator[tuple[TrackerOutputs, list[RejectedRow]]]:
    """Track all frames with one fixed baseline, batch by batch; what is still open at the end is closed as aborted."""
    tracker, state = EpisodeTracker(config), TrackerState()
    arrived = _arrivals(frames)
    while batch := list(islice(arrived, batch_frames)):
        table = tabulate(batch)
        yield tracker.track(table, [state] * len(batch), baseline), table.rejected
    yield tracker.close_idle(state, now_s=float("inf")), []


def _learned(
    results: Iterable[tuple[TrackerOutputs, Sequence[RejectedRow]]], config: ResilienceConfig
) -> StageBaseline:
    contributions: list[EpisodeContribution] = []
    for outputs, _ in results:
        contributions += outputs.contributions
    baseline = StageBaseline(grid=config.grid)
    for contribution in contributions:
        baseline.add(contribution, config.baseline)
    return baseline


def _arrivals(frames: Iterable[StepFrame]) -> Iterator[ArrivedFrame]:
    """The frames as if each had reached the broker at the time of its last step, where that can be a time at all."""
    now_s = YEAR_2000_S
    for frame in frames:
        times = frame.steps.get("time_s")
        if isinstance(times, np.ndarray) and len(times) and YEAR_2000_S <= times[-1] <= YEAR_2100_S:
            now_s = float(times[-1])
        yield ArrivedFrame(frame, now_s)
