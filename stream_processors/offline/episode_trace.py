"""One episode step by step, as the stream took it in: its steps out of the frames, and what the core makes of them.

The steps go through the tracker of the stream, by the baselines that scored them there (see `switched_evaluation`), so
that g, the sums of the detectors and the windows are those that the stream found, as far as all steps are there.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from springback.producers.contract.frame import StepColumn, StepFrame, TextColumn
from springback.stream_processors.intake.validation import tabulate
from springback.stream_processors.offline.evaluation import BATCH_FRAMES
from springback.stream_processors.offline.switched_evaluation import PlacedFrame, by_switch
from springback.stream_processors.resilience.baseline.estimates import materialise
from springback.stream_processors.resilience.baseline.stage_baseline import StageBaseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import EpisodeKey, EpisodeSummary, WindowReading
from springback.stream_processors.resilience.stability.value_function import ValueModel
from springback.stream_processors.resilience.tracking.episode_tracker import EpisodeTracker
from springback.stream_processors.resilience.tracking.step_trace import StepTrace, TracedStep
from springback.stream_processors.resilience.tracking.tracker_state import TrackerState


@dataclass
class EpisodeTrace:
    """What an episode comes to, step by step.

    Attributes:
        steps: the steps that were taken in, in their order.
        windows: its rebound windows by number, each as it closed or, where it has not, as it opened.
        summary: the episode at its end; None while it is open.
    """

    steps: list[TracedStep] = field(default_factory=list)
    windows: dict[int, WindowReading] = field(default_factory=dict)
    summary: EpisodeSummary | None = None


def only_episode(frame: StepFrame, key: EpisodeKey) -> StepFrame | None:
    """The part of a frame that is of one episode: a frame that a recording may hold; None where it has nothing of it.

    Rows that could not be read are left out.
    """
    if frame.session != key.session:
        return None
    of = [n for n, header in enumerate(frame.episodes) if (header.agent, header.episode) == (key.agent, key.episode)]
    if not of:
        return None
    unread = {fault.index for fault in frame.faults if fault.part == "steps"}
    own: Any = frame.steps.get("episode", ())
    rows = [row for row in np.flatnonzero(np.isin(own, of)).tolist() if row not in unread]
    steps: dict[str, StepColumn] = {}
    if rows:
        at = np.array(rows, dtype=np.int64)
        steps = {name: _rows_of(column, at) for name, column in frame.steps.items()}
        steps["episode"] = np.zeros(len(rows), dtype=np.int64)
    ends = tuple(msgspec.structs.replace(end, episode=0) for end in frame.ends if end.episode in of)
    header = frame.episodes[of[-1]]
    return StepFrame(producer=frame.producer, session=frame.session, episodes=(header,), steps=steps, ends=ends)


def trace_episode(
    key: EpisodeKey,
    frames: Iterable[PlacedFrame],
    switches: Sequence[tuple[int, StageBaseline]],
    config: ResilienceConfig,
    model: ValueModel | None = None,
) -> EpisodeTrace:
    """Takes an episode in step by step.

    Args:
        key: the episode.
        frames: those that have something of it, with their offsets in their partition, in order; parts will do.
        switches: from which offset of the partition on which baseline counts, in order of these offsets. Steps below
            the first are not scored.
        config: the settings of the workers.
        model: what values states; the mean returns by anchor if None.
    """
    found, trace = EpisodeTrace(), StepTrace(key)
    tracker, state = EpisodeTracker(config, model), TrackerState()
    for baseline, part in by_switch(frames, switches, config):
        ready = materialise(baseline, config.baseline, config.window.fixed_bounds())
        while batch := [frame.arrived for frame in islice(part, BATCH_FRAMES)]:
            outputs = tracker.track(tabulate(batch), [state] * len(batch), ready, trace)
            found.windows |= {window.number: window for window in outputs.windows if window.key == key}
            found.summary = next((s for s in outputs.summaries if s.key == key), found.summary)
    found.steps = trace.steps
    return found


def _rows_of(column: Any, rows: Any) -> StepColumn:
    if isinstance(column, TextColumn):
        return TextColumn.of([column.values[code] for code in column.codes[rows].tolist()])
    taken: StepColumn = column[rows]
    return taken
