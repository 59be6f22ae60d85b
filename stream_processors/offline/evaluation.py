"""The same reducers without Kafka: offline evaluation of recordings, and the oracle that the stream is tested against.

Offline, with no baseline given, the reference successes are gone through three times before anything is scored: they
teach the cells, then, scored by those, alarm bounds and returns, and then, with values, the stability covariance. So
the order of episodes plays no part. Advantages are exact to the episode's end, where the stream takes a fixed lag.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import msgspec
import numpy as np

from springback.producers.contract.frame import StepFrame
from springback.stream_processors.intake.step_table import ArrivedFrame, RejectedRow
from springback.stream_processors.intake.validation import tabulate
from springback.stream_processors.resilience.baseline.estimates import MaterialisedBaseline, materialise
from springback.stream_processors.resilience.baseline.stage_baseline import EpisodeContribution, StageBaseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import AgentStatus, EpisodeBegun, EpisodeSummary, WindowReading
from springback.stream_processors.resilience.stability.value_function import ValueModel
from springback.stream_processors.resilience.tracking.episode_tracker import EpisodeTracker, TrackerOutputs
from springback.stream_processors.resilience.tracking.tracker_state import TrackerState

BATCH_FRAMES = 512
LEARNING_PASSES = 3
YEAR_2000_S, YEAR_2100_S = 946_684_800.0, 4_102_444_800.0


@dataclass(slots=True)
class Evaluation:
    """What a recording comes to. `windows` holds the closed ones alone, in the order in which they closed.

    `statuses` holds the last one of each agent. What the recording leaves open is closed as aborted at its end.
    """

    baseline: StageBaseline
    begun: list[EpisodeBegun] = field(default_factory=list)
    summaries: list[EpisodeSummary] = field(default_factory=list)
    windows: list[WindowReading] = field(default_factory=list)
    statuses: list[AgentStatus] = field(default_factory=list)
    rejected: list[RejectedRow] = field(default_factory=list)


def evaluate(
    frames: Iterable[StepFrame],
    config: ResilienceConfig,
    baseline: StageBaseline | None = None,
    batch_frames: int = BATCH_FRAMES,
    model: ValueModel | None = None,
    *,
    lagged: bool = False,
) -> Evaluation:
    """Run the reducers over recorded frames.

    Args:
        frames: the recording; gone through four times where the baseline is learned from it.
        config: settings of the core.
        baseline: what to score by; None learns it from the recording itself.
        batch_frames: frames taken at a time; changes no result.
        model: values states; None for the mean returns by anchor.
        lagged: take advantages with the stream's lag instead of exactly.

    Raises:
        TypeError: the baseline is to be learned from an iterator, which can be gone through only once.
    """
    learned = learn_baseline(frames, config, batch_frames, model) if baseline is None else baseline
    ready = materialise(learned, config.baseline, config.window.fixed_bounds())
    evaluation = Evaluation(learned)
    scoring = config if lagged else exact(config)
    latest: dict[tuple[str, str], AgentStatus] = {}
    for outputs, rejected in run(frames, ready, scoring, batch_frames, model):
        evaluation.begun += outputs.begun
        evaluation.summaries += outputs.summaries
        evaluation.windows += [window for window in outputs.windows if window.state != "open"]
        latest |= {(status.producer, status.agent): status for status in outputs.statuses}
        evaluation.rejected += rejected
    evaluation.statuses = list(latest.values())
    return evaluation


def exact(config: ResilienceConfig) -> ResilienceConfig:
    """The same settings, with advantages exact to the episode's end."""
    return msgspec.structs.replace(config, stability=msgspec.structs.replace(config.stability, lag=0))


def learn_baseline(
    frames: Iterable[StepFrame],
    config: ResilienceConfig,
    batch_frames: int = BATCH_FRAMES,
    model: ValueModel | None = None,
) -> StageBaseline:
    """The baseline that the recording's own reference successes teach, with their largest sums by it.

    Raises:
        TypeError: `frames` is an iterator, which can be gone through only once.
    """
    if iter(frames) is frames:
        message = f"got a {type(frames).__name__}, but the frames are gone through more than once: pass a list of them"
        raise TypeError(message)
    learned = StageBaseline(grid=config.grid)
    for _ in range(LEARNING_PASSES):
        ready = materialise(learned, config.baseline, config.window.fixed_bounds())
        learned = _learned(run(frames, ready, exact(config), batch_frames, model), config)
    return learned


def run(
    frames: Iterable[StepFrame],
    baseline: MaterialisedBaseline,
    config: ResilienceConfig,
    batch_frames: int = BATCH_FRAMES,
    model: ValueModel | None = None,
) -> Iterator[tuple[TrackerOutputs, list[RejectedRow]]]:
    """Track all frames with one fixed baseline, batch by batch; what is still open at the end is closed as aborted."""
    tracker, state = EpisodeTracker(config, model), TrackerState()
    arrived = arrivals(frames)
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


def arrivals(frames: Iterable[StepFrame]) -> Iterator[ArrivedFrame]:
    """The frames as if each had reached the broker at the time of its last step, where that can be a time at all."""
    now_s = YEAR_2000_S
    for frame in frames:
        times = frame.steps.get("time_s")
        if isinstance(times, np.ndarray) and len(times) and YEAR_2000_S <= times[-1] <= YEAR_2100_S:
            now_s = float(times[-1])
        yield ArrivedFrame(frame, now_s)
