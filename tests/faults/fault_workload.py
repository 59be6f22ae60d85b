"""What a fleet of a faulted run does: episodes of several families, agents and stresses, a function of a seed alone.

Each agent's episodes go on without end, so that a run lasts as long as its faults do. Clean runs of a task and stressed
ones of the same task follow each other, so that pairs are found; one row in a hundred is one that a worker must refuse.
"""

import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from springback.producers.contract.frame import StepFrame
from springback.stream_processors.offline.evaluation import learn_baseline
from springback.stream_processors.resilience.baseline.stage_baseline import StageBaseline
from springback.stream_processors.resilience.config import ResilienceConfig
from tests.stream_processors.frame_builders import Row, frame_of_parts, header_of
from tests.stream_processors.random_episodes import random_rows

FAMILIES = ("navigation", "transportation", "assembly", "sorting", "inspection", "cleaning", "search", "docking")
"""So many that none gets more reference episodes in a run than a quantile sketch holds exactly (`SKETCH_K`)."""
_METHODS = (("reflexion", "1.4.0"), ("plain", "2.0.0"))
_STRESSES = (0.2, 0.4, 0.6, 0.8, None)
_KINDS = (("physical", "slip"), ("cognitive", "stale_map"))
_OUTCOMES = ("success", "success", "failure", "timeout")
_REFERENCE_SHARE = 0.5
_BAD_ROWS = 0.01
_REFERENCES = 25


class PlayedEpisode(NamedTuple):
    """An episode as an agent is to report it: the traits of its header, its steps' signals, and how it ends."""

    family: str
    traits: dict[str, Any]
    rows: list[Row]
    outcome: str
    navigation: dict[str, Any] | None


def episodes_of(seed: int, agent: str) -> Iterator[PlayedEpisode]:
    """The episodes of one agent, without end.

    Args:
        seed: the run's.
        agent: the agent's id.
    """
    rng = np.random.default_rng([seed, zlib.crc32(agent.encode())])
    number = 0
    while True:
        yield _episode(rng, f"{agent}-task-{number // 3}", clean=rng.random() < _REFERENCE_SHARE)
        number += 1


def _episode(rng: np.random.Generator, task: str, *, clean: bool) -> PlayedEpisode:
    family = FAMILIES[zlib.crc32(task.encode()) % len(FAMILIES)]
    method, version = _METHODS[int(rng.integers(len(_METHODS)))]
    traits: dict[str, Any] = {"task": task, "method": method, "version": version, "reference": clean}
    outcome = "success"
    if not clean:
        stress = _STRESSES[int(rng.integers(len(_STRESSES)))]
        kind, name = _KINDS[int(rng.integers(len(_KINDS)))]
        traits |= {"stress": stress, "perturbation": kind, "perturbation_name": name, "magnitude": stress or 0.0}
        outcome = _OUTCOMES[int(rng.integers(len(_OUTCOMES)))]
    rows = random_rows(rng, disturbed=not clean)
    for row in rows:
        del row["time_s"]  # the agent's own clock says when
        if rng.random() < _BAD_ROWS:
            row["progress"] = 1.7
    navigation = None
    if family == "navigation":
        shortest = float(rng.uniform(2, 9))
        navigation = {"shortest_path": shortest, "path": shortest * float(rng.uniform(1, 2)), "goals_total": 2}
        navigation["goals_met"] = 2 if outcome == "success" else 1
    return PlayedEpisode(family, traits, rows, outcome, navigation)


def frozen_baseline(seed: int, config: ResilienceConfig) -> StageBaseline:
    """What clean episodes of the same families teach: to score by in a run that learns nothing."""
    rng = np.random.default_rng([seed, 1])
    frames: list[StepFrame] = []
    for family in FAMILIES:
        for number in range(_REFERENCES):
            task = f"reference-{number}"
            header = header_of(agent=f"{family}-{number}", episode="0", family=family, task=task, reference=True)
            frames.append(frame_of_parts([(header, random_rows(rng, disturbed=False), "success")]))
    return learn_baseline(frames, config)
