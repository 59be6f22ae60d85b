"""Makes a recording of the testbed: a file of step frames that `evaluate` and `replay` take."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from springback.producers.babyai_testbed.play import DEFAULT_START_S, play
from springback.producers.babyai_testbed.simulated_time import CostModel, SimulatedClock
from springback.producers.babyai_testbed.tasks import STRESSES, TASK_FAMILIES, plan_episodes
from springback.producers.emitter.new_recording import NewRecording

BETWEEN_EPISODES_S = 5.0


@dataclass(frozen=True)
class TestbedRecording:
    """What a recording holds."""

    __test__ = False

    path: Path
    episodes: int
    successes: int
    steps: int


def record(
    path: str | os.PathLike[str],
    *,
    episodes: int = 20,
    families: Sequence[str] = tuple(TASK_FAMILIES),
    stresses: Sequence[float] = STRESSES,
    seed: int = 0,
    start_s: float = DEFAULT_START_S,
    frame_steps: int = 64,
    version: str | None = None,
    costs: CostModel | None = None,
) -> TestbedRecording:
    """Plays so many episodes per family and stress into a file; the same arguments make the same frames.

    There is one agent per family, and they take turns by whole episodes on one simulated clock.

    Args:
        path: the file to make, JSON Lines, compressed when its name ends in `.gz`.
        episodes: tasks per family; each is played once at every stress.
        families: names out of `TASK_FAMILIES`.
        stresses: severities in [0, 1]; 0 is clean.
        seed: of the sequences of tasks.
        start_s: simulated instant of the first step, s UTC epoch.
        frame_steps: steps per frame at most; an episode's end begins a new frame too.
        version: of the agents; minigrid's if None.
        costs: what their planning and looking take.

    Raises:
        FileExistsError: there is such a file already.
        ValueError: there is no such family, or a stress is outside [0, 1].
        PublishError: the file could not be written.
    """
    recording = NewRecording(path, producer="babyai-testbed", seed=seed, frame_steps=frame_steps)
    clock = SimulatedClock(start_s)
    played = successes = steps = 0
    with recording.emitter(clock) as emitter:
        for episode in plan_episodes(episodes, families=families, stresses=stresses, seed=seed):
            for step in play(
                episode.task,
                emitter,
                episode=str(played),
                agent=f"babyai-{episode.task.family}",
                stress=episode.stress,
                disturbance=episode.disturbance,
                clock=clock,
                costs=costs,
                version=version,
            ):
                steps += 1
                successes += step.outcome == "success"
                if step.outcome is not None or (step.step + 1) % frame_steps == 0:
                    recording.cut(emitter)
            played += 1
            clock.advance(BETWEEN_EPISODES_S)
    return TestbedRecording(recording.path, played, successes, steps)
