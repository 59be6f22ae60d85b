"""Which episodes a run of the testbed plays, in order: every task clean first, then again under rising stress."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from springback.producers.babyai_testbed.task_families import FAMILIES, Task, task_sequence
from springback.producers.perturbations.severity import PERTURBATION_KINDS, PerturbationKind

STRESSES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True, slots=True)
class PlannedEpisode:
    """A task, and what is to disturb it; `perturbation` is None for a clean run."""

    task: Task
    stress: float
    perturbation: PerturbationKind | None


def plan_episodes(
    episodes: int, *, families: Sequence[str] = tuple(FAMILIES), stresses: Sequence[float] = STRESSES, seed: int = 0
) -> Iterator[PlannedEpisode]:
    """So many episodes per family and stress: stress by stress, families in turn, perturbations in turn.

    Each stress plays the same tasks; a task gets another kind of perturbation from one stress to the next.

    Raises:
        ValueError: there is no such family.

    >>> [(e.task.family, e.stress, e.perturbation) for e in plan_episodes(1, families=["navigation"], stresses=[0, 1])]
    [('navigation', 0, None), ('navigation', 1, 'object_state')]
    """
    tasks = [list(islice(task_sequence(family, seed), episodes)) for family in families]
    for level, stress in enumerate(stresses):
        for number, in_turn in enumerate(zip(*tasks, strict=True)):
            kind = PERTURBATION_KINDS[(level + number) % len(PERTURBATION_KINDS)]
            for task in in_turn:
                yield PlannedEpisode(task, stress, kind if stress > 0.0 else None)
