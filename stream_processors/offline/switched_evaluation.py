"""What the stream must have found while it learned live: its frames, scored by the baselines that it switched to.

Live, what a step is scored by depends on when things were learned. The stream writes down each switch with the offset
from which on it counts (topic `baseline-switches`). With these its outputs are a function of its input again, and this
is that function: the same windows, episodes and contributions, whatever crashed or was rebalanced meanwhile.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import NamedTuple

from springback.stream_processors.intake.step_table import ArrivedFrame
from springback.stream_processors.intake.validation import tabulate
from springback.stream_processors.offline.evaluation import BATCH_FRAMES, Evaluation
from springback.stream_processors.resilience.baseline.estimates import MaterialisedBaseline, materialise
from springback.stream_processors.resilience.baseline.stage_baseline import EpisodeContribution, StageBaseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.stability.value_function import ValueModel
from springback.stream_processors.resilience.tracking.episode_tracker import EpisodeTracker
from springback.stream_processors.resilience.tracking.tracker_state import TrackerState


class PlacedFrame(NamedTuple):
    """A frame with its offset in its partition."""

    offset: int
    arrived: ArrivedFrame


def by_switch(
    frames: Iterable[PlacedFrame], switches: Sequence[tuple[int, StageBaseline]], config: ResilienceConfig
) -> Iterator[tuple[StageBaseline, Iterator[PlacedFrame]]]:
    """The frames of a partition in parts, each with the baseline that scored it; take a part in before the next one.

    Args:
        frames: the frames, in order of their offsets.
        switches: from which offset on which baseline counts, in order of these offsets. Below the first an empty one
            does.
        config: the settings of the workers.
    """
    places = [offset for offset, _ in switches]
    baselines = [StageBaseline(grid=config.grid), *(baseline for _, baseline in switches)]
    for place, part in groupby(frames, key=lambda frame: bisect_right(places, frame.offset)):
        yield baselines[place], part


def evaluate_switched(
    partitions: Mapping[int, Iterable[PlacedFrame]],
    switches: Mapping[int, Sequence[tuple[int, StageBaseline]]],
    config: ResilienceConfig,
    *,
    batch_frames: int = BATCH_FRAMES,
    model: ValueModel | None = None,
    bucket_of: Callable[[str], int] = lambda producer: 0,
) -> tuple[Evaluation, list[EpisodeContribution]]:
    """Evaluates the frames of a stream by the baselines that scored them there.

    Silence closes no episode here: what is still open at the end is closed as aborted.

    Args:
        partitions: the frames of each partition, in order of their offsets.
        switches: for each partition from which offset on which baseline counts, in order of these offsets. Steps below
            the first are not scored.
        config: the settings of the workers; advantages have their lag.
        batch_frames: frames taken at a time; changes no result.
        model: what values states; the mean returns by anchor if None.
        bucket_of: in which part of a partition's state a producer is; changes no result within the state's bounds.

    Returns:
        what the stream must have found, and what it must have learned from.
    """
    evaluation = Evaluation(config, StageBaseline(grid=config.grid))
    contributions: list[EpisodeContribution] = []
    tracker = EpisodeTracker(config, model)
    ready: dict[int, MaterialisedBaseline] = {}
    for number, frames in sorted(partitions.items()):
        buckets: dict[int, TrackerState] = {}
        for baseline, part in by_switch(frames, switches.get(number, ()), config):
            evaluation.baseline = baseline
            if id(baseline) not in ready:
                ready[id(baseline)] = materialise(baseline, config.baseline, config.window.fixed_bounds())
            while batch := [frame.arrived for frame in islice(part, batch_frames)]:
                table = tabulate(batch)
                states = [buckets.setdefault(bucket_of(a.frame.producer), TrackerState()) for a in batch]
                outputs = tracker.track(table, states, ready[id(baseline)])
                evaluation.take(outputs, table)
                contributions += outputs.contributions
        for state in buckets.values():
            evaluation.take(tracker.close_idle(state, now_s=float("inf")))
    return evaluation, contributions
