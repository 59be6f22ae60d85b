"""The task families: which BabyAI levels they hold, and endless reproducible sequences of tasks."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Level:
    """A BabyAI level and the steps after which an episode of it is cut off: several times a usual clean run."""

    level_id: str
    step_limit: int


FAMILIES: dict[str, tuple[Level, ...]] = {
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


@dataclass(frozen=True, slots=True)
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
    if family not in FAMILIES:
        message = f"there is no task family {family!r}; there are {', '.join(FAMILIES)}"
        raise ValueError(message)
    return _tasks(family, seed)


def _tasks(family: str, seed: int) -> Iterator[Task]:
    rng = np.random.default_rng([seed, *family.encode()])
    while True:
        for level in FAMILIES[family]:
            yield Task(family, level.level_id, int(rng.integers(2**31)), level.step_limit)
