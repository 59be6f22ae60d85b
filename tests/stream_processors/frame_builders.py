"""Builders of headers, rows and frames, and a runner of the tracker: what a test leaves open is always the same."""

from collections.abc import Iterable, Sequence
from itertools import count, islice
from typing import Any

import msgspec
import numpy as np

from springback.producers.contract.columns import ABSENT
from springback.producers.contract.frame import EpisodeEnd, EpisodeHeader, Outcome, StepFrame, TextColumn
from springback.stream_processors.intake.step_table import ArrivedFrame
from springback.stream_processors.intake.validation import tabulate
from springback.stream_processors.resilience.baseline.estimates import MaterialisedBaseline, materialise
from springback.stream_processors.resilience.baseline.stage_baseline import StageBaseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.tracking.episode_tracker import EpisodeTracker, TrackerOutputs
from springback.stream_processors.resilience.tracking.tracker_state import OpenEpisode, TrackerState

START_S = 1_790_000_000.0
Row = dict[str, Any]
Part = tuple[EpisodeHeader, list[Row], Outcome | None]
"""An episode, or a piece of it: header, rows, and how it ends (None: not here)."""


def header_of(**fields: Any) -> EpisodeHeader:
    """The header of episode 1 of robot-7."""
    return EpisodeHeader(**{"agent": "robot-7", "episode": "1", "family": "navigation", **fields})


def nominal_rows(first: int, stop: int, total: int = 20, **changes: Any) -> list[Row]:
    """Steps first..stop-1 of an episode that comes evenly nearer its goal in `total` steps of one second."""
    return [
        {
            "step": step,
            "time_s": START_S + step,
            "cycle_time_s": 1.0,
            "progress": min(1.0, (step + 1) / total),
            "planning_s": 0.125,
            "perception_s": 0.0625,
            "travel": 0.25,
            "mode": "navigate",
            **changes,
        }
        for step in range(first, stop)
    ]


def frame_of_parts(parts: Sequence[Part], session: str = "boot", producer: str = "robot-7") -> StepFrame:
    """A frame of several episodes."""
    rows = [{"episode": number, **row} for number, part in enumerate(parts) for row in part[1]]
    steps: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        if name in ("mode", "action", "feedback"):
            steps[name] = TextColumn.of([row.get(name, "run" if name == "mode" else "") for row in rows])
        else:
            kind = np.int64 if name in {"episode", "step"} else np.float64
            steps[name] = np.array([row.get(name, ABSENT) for row in rows], dtype=kind)
    outcomes = enumerate(part[2] for part in parts)
    ends = tuple(EpisodeEnd(episode=number, outcome=outcome) for number, outcome in outcomes if outcome is not None)
    return StepFrame(producer=producer, session=session, episodes=tuple(p[0] for p in parts), steps=steps, ends=ends)


def frame_of(rows: list[Row], outcome: Outcome | None = None, session: str = "boot", **fields: Any) -> StepFrame:
    """A frame of one episode."""
    return frame_of_parts([(header_of(**fields), rows, outcome)], session)


def nothing_learned(config: ResilienceConfig) -> MaterialisedBaseline:
    """The blank baseline, which leaves every step unscored."""
    return ready(StageBaseline(grid=config.grid), config)


def ready(baseline: StageBaseline, config: ResilienceConfig) -> MaterialisedBaseline:
    """The baseline made ready for scoring."""
    return materialise(baseline, config.baseline, config.window.fixed_bounds())


def nominal_baseline(config: ResilienceConfig, references: int = 6, **changes: Any) -> StageBaseline:
    """What evenly run reference episodes teach; `changes` are to their rows."""
    frames = [
        frame_of(nominal_rows(0, 20, **changes), "success", episode=f"reference-{i}", reference=True)
        for i in range(references)
    ]
    baseline = StageBaseline(grid=config.grid)
    for contribution in run_tracker(frames, config, nothing_learned(config))[0].contributions:
        baseline.add(contribution, config.baseline)
    return baseline


def run_tracker(
    frames: Iterable[StepFrame],
    config: ResilienceConfig,
    baseline: MaterialisedBaseline,
    batches: Iterable[int] = (),
    state: TrackerState | None = None,
    store_between: bool = False,
    arrivals: Iterable[float] | None = None,
) -> tuple[TrackerOutputs, TrackerState]:
    """Track frames in batches of the sizes given, then one by one.

    Args:
        frames: what arrives.
        config: settings.
        baseline: what to score by.
        batches: sizes of the first batches.
        state: where to go on from.
        store_between: whether the state is encoded and decoded after each batch, as a restart would.
        arrivals: broker times; a second after another where not given.
    """
    tracker, state = EpisodeTracker(config), TrackerState() if state is None else state
    times = iter(arrivals) if arrivals is not None else (START_S + second for second in count())
    waiting = iter([ArrivedFrame(frame, time_s) for frame, time_s in zip(frames, times, strict=False)])
    sizes = iter(batches)
    total = TrackerOutputs()
    while batch := list(islice(waiting, next(sizes, 1))):
        add_outputs(total, tracker.track(tabulate(batch), [state] * len(batch), baseline))
        if store_between:
            state = msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=TrackerState)
    return total, state


def only_episode(state: TrackerState) -> OpenEpisode:
    """The one open episode of the one agent."""
    [agent] = state.agents.values()
    [episode] = agent.open.values()
    return episode


def add_outputs(total: TrackerOutputs, more: TrackerOutputs) -> None:
    """Append the outputs of a further batch."""
    total.begun += more.begun
    total.unused += more.unused
    total.windows += more.windows
    total.summaries += more.summaries
    total.statuses += more.statuses
    total.contributions += more.contributions
