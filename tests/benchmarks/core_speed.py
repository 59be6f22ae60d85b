"""Rows per second of what the worker computes, in memory and without Kafka, against copying the same rows."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from springback.producers.contract.codec import decode_frame, encode_msgpack
from springback.stream_processors.intake.step_table import ArrivedFrame, StepTable
from springback.stream_processors.intake.validation import tabulate
from springback.stream_processors.resilience.baseline.estimates import MaterialisedBaseline, materialise
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.tracking.episode_tracker import EpisodeTracker
from springback.stream_processors.resilience.tracking.tracker_state import TrackerState
from tests.benchmarks.fleet_frames import fleet_baseline, fleet_frames

BATCH_FRAMES: Final = 500
COPY: Final = "copy of the columns"
PARTS: Final = ("decode and tabulate", "track", COPY)
_BROKER_TIME_S = 1_700_100_000.0


@dataclass(frozen=True, slots=True)
class CoreRun:
    """One pass of one part over the frames."""

    part: str
    size: int
    rows: int
    seconds: float

    @property
    def rows_per_s(self) -> float:
        """Speed in rows."""
        return self.rows / self.seconds


@dataclass(frozen=True, slots=True)
class CorePlan:
    """What to run: `repeats` passes over so many frames of each size."""

    sizes: tuple[int, ...]
    repeats: int
    agents: int
    frames: int

    def runs(self) -> int:
        """How many runs there will be."""
        return len(self.sizes) * self.repeats * len(PARTS)


def core_runs(plan: CorePlan, announce: Callable[[str], None]) -> Iterator[CoreRun]:
    """Run the plan.

    Args:
        plan: what to run.
        announce: told what is done next.
    """
    config = ResilienceConfig()
    baseline = materialise(fleet_baseline(), config.baseline, config.window.fixed_bounds())
    for size in plan.sizes:
        encoded = [encode_msgpack(frame) for frame in fleet_frames(plan.agents, plan.frames // plan.agents, size)]
        for repeat in range(plan.repeats):
            announce(f"core, frames of {size}, {repeat + 1} of {plan.repeats}")
            seconds = _pass(encoded, config, baseline)
            for part, spent in zip(PARTS, seconds, strict=True):
                yield CoreRun(part, size, len(encoded) * size, spent)


def _pass(encoded: Sequence[bytes], config: ResilienceConfig, baseline: MaterialisedBaseline) -> tuple[float, ...]:
    """Processor seconds spent on each part. They take turns batch by batch, so that all see the same machine."""
    tracker, state = EpisodeTracker(config), TrackerState()
    total = [0.0] * len(PARTS)
    for start in range(0, len(encoded), BATCH_FRAMES):
        batch = encoded[start : start + BATCH_FRAMES]
        times = [time.process_time()]
        table = tabulate([ArrivedFrame(decode_frame(data), _BROKER_TIME_S) for data in batch])
        times.append(time.process_time())
        tracker.track(table, [state] * len(batch), baseline)
        times.append(time.process_time())
        columns = [column for name in StepTable.__slots__ if isinstance(column := getattr(table, name), np.ndarray)]
        times.append(time.process_time())
        for column in columns:
            column.copy()
        times.append(time.process_time())
        spent = np.diff(times)
        for place, seconds in enumerate((spent[0], spent[1], spent[3])):
            total[place] += float(seconds)
    return tuple(total)
