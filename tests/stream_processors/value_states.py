"""Builders of states and trajectories for value models."""

import numpy as np

from springback.stream_processors.offline.value_fitting import RewardTrajectory
from springback.stream_processors.resilience.anchor import Floats
from springback.stream_processors.resilience.stability.value_function import StateFeatures

FAMILIES = ["navigation", "manipulation"]
MODES = ["explore", "navigate", "plan"]


def random_states(rng: np.random.Generator, count: int) -> StateFeatures:
    """States of any family and mode, with excesses over several orders of magnitude."""
    return StateFeatures(
        families=FAMILIES,
        modes=MODES,
        family=rng.integers(0, len(FAMILIES), count),
        mode=rng.integers(0, len(MODES), count),
        progress=rng.uniform(size=count),
        propositions=rng.uniform(size=count),
        excess=np.maximum(rng.normal(size=(count, 7)), 0.0) * 10.0 ** rng.integers(-2, 3, (count, 7)),
        cell=rng.integers(0, 100, count),
    )


def known_value(progress: Floats, family: int, discount: float = 0.9) -> Floats:
    """What is left of a walk of ten steps, each rewarded with 1 (navigation) or 3 (manipulation)."""
    left = np.round(10.0 * (1.0 - progress))
    return (3.0 if family else 1.0) * (1.0 - discount**left) / (1.0 - discount)


def walk(family: int, rng: np.random.Generator) -> RewardTrajectory:
    """A walk of ten steps from progress 0 on, with rewards of a family's own and some noise in what plays no part."""
    count = 10
    states = random_states(rng, count)._replace(
        family=np.full(count, family), progress=np.arange(count) / count, propositions=np.zeros(count)
    )
    return RewardTrajectory(states, np.full(count, 3.0 if family else 1.0), success=True)


def walks(seed: int, count: int = 60) -> list[RewardTrajectory]:
    """Walks of both families in turn."""
    rng = np.random.default_rng(seed)
    return [walk(i % 2, rng) for i in range(count)]
