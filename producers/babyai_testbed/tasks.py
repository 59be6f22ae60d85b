"""The task families, and which of their tasks a run of the testbed plays.

A family holds BabyAI levels and gives an endless, reproducible sequence of tasks. A run plays every task clean first,
then again under rising stress.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from springback.producers.perturbations.severity import DISTURBANCES, DisturbanceName

STRESSES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True)
class Level:
    """A BabyAI level and the steps after which an episode of it is cut off: several times a usual clean run."""

    level_id: str
    step_limit: int


TASK_FAMILIES: dict[str, tuple[Level, ...]] = {
    "navigation": (
        Level("BabyAI-GoToObjMazeS5-v0", 150),
        Level("BabyAI-GoToObjMazeS4-v0", 100),
        Level("BabyAI-GoToSeqS5R2-v0", 100),
    ),
    "manipulation": (
        Level("BabyAI-UnblockPickup-v0", 250),
        Level("BabyAI-UnlockPickupDist-v0", 120),
        Level("BabyAI-BlockedUnlockPickup-v0", 140),
        Level("BabyAI-OpenTwoDoors-v0", 80),
    ),
    "transportation": (
        Level("BabyAI-PutNextS7N4-v0", 90),
        Level("BabyAI-PutNextS6N3-v0", 80),
        Level("BabyAI-MoveTwoAcrossS5N2-v0", 100),
    ),
    "composite": (
        Level("BabyAI-MiniBossLevel-v0", 220),
        Level("BabyAI-Synth-v0", 300),
    ),
}


@dataclass(frozen=True)
class Task:
    """One task: a level and the seed of its layout and mission. Its clean and its perturbed runs share `task_id`."""

    family: str
    level_id: str
    seed: int
    step_limit: int

    @property
    def task_id(self) -> str:
        """What this task is called in an episode's header."""
        return f"{self.level_id.removeprefix('BabyAI-').removesuffix('-v0')}-{self.seed}"


def task_sequence(family: str, seed: int = 0) -> Iterator[Task]:
    """Endless tasks of a family, its levels in turn; the same for the same seed.

    Raises:
        ValueError: there is no such family.

    >>> tasks = task_sequence("navigation", seed=1)
    >>> [next(tasks).level_id for _ in range(2)]
    ['BabyAI-GoToObjMazeS5-v0', 'BabyAI-GoToObjMazeS4-v0']
    """
    if family not in TASK_FAMILIES:
        message = f"there is no task family {family!r}; there are {', '.join(TASK_FAMILIES)}"
        raise ValueError(message)
    return _tasks(family, seed)


def _tasks(family: str, seed: int) -> Iterator[Task]:
    rng = np.random.default_rng([seed, *family.encode()])
    while True:
        for level in TASK_FAMILIES[family]:
            yield Task(family, level.level_id, int(rng.integers(2**31)), level.step_limit)


@dataclass(frozen=True)
class PlannedEpisode:
    """A task, and what is to disturb it; `disturbance` is None for a clean run."""

    task: Task
    stress: float
    disturbance: DisturbanceName | None


def plan_episodes(
    episodes: int,
    *,
    families: Sequence[str] = tuple(TASK_FAMILIES),
    stresses: Sequence[float] = STRESSES,
    seed: int = 0,
) -> Iterator[PlannedEpisode]:
    """So many episodes per family and stress: stress by stress, families in turn, disturbances in turn.

    Each stress plays the same tasks; a task gets another disturbance from one stress to the next.

    Raises:
        ValueError: there is no such family.

    >>> [(e.task.family, e.stress, e.disturbance) for e in plan_episodes(1, families=["navigation"], stresses=[0, 1])]
    [('navigation', 0, None), ('navigation', 1, 'mis-grounding')]
    """
    tasks = [list(islice(task_sequence(family, seed), episodes)) for family in families]
    for level, stress in enumerate(stresses):
        for number, in_turn in enumerate(zip(*tasks)):
            name = DISTURBANCES[(level + number) % len(DISTURBANCES)]
            for task in in_turn:
                yield PlannedEpisode(task, stress, name if stress > 0.0 else None)
