"""What a severity in [0, 1] does to an agent of the testbed, for each disturbance. All of it is ours.

Severity 0 is a clean run. Each parameter rises steadily with it, so that cost rises and success falls by degrees. What
an instruction in other words is stands in `paraphrase`.

>>> action_slip(0.8).probability
0.4
>>> moved_objects(0.0).events, moved_objects(0.8).events
(0, 5)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from springback.producers.perturbations.kinds import PerturbationKind

DisturbanceName = Literal["slip", "mis-grounding", "paraphrase", "moved"]
DISTURBANCES: tuple[DisturbanceName, ...] = get_args(DisturbanceName)
KIND_OF: dict[DisturbanceName, PerturbationKind] = {
    "slip": "physical",
    "mis-grounding": "semantic",
    "paraphrase": "semantic",
    "moved": "object_state",
}


@dataclass(frozen=True)
class ActionSlip:
    """Physical: an action has another effect, or none, with this probability per step."""

    probability: float


@dataclass(frozen=True)
class MovedObjects:
    """Object state: what the agent is after is moved, or a door is shut.

    Attributes:
        events: how many times at most.
        rate: probability per step that the next event comes.
        reach: how far an object is moved at most, cells walked.
    """

    events: int
    rate: float
    reach: int


@dataclass(frozen=True)
class WrongGrounding:
    """Semantic: for a while the agent takes a distractor for its target.

    Attributes:
        spells: how many times at most.
        rate: probability per step that the next spell begins.
        steps: how long a spell lasts, steps.
    """

    spells: int
    rate: float
    steps: int


def action_slip(severity: float) -> ActionSlip:
    """The slip of this severity.

    Raises:
        ValueError: the severity is outside [0, 1].
    """
    return ActionSlip(probability=0.5 * checked_severity(severity))


def moved_objects(severity: float) -> MovedObjects:
    """The moves of this severity.

    Raises:
        ValueError: the severity is outside [0, 1].
    """
    checked_severity(severity)
    return MovedObjects(events=math.ceil(6 * severity), rate=0.3 * severity, reach=2 + round(10 * severity))


def wrong_grounding(severity: float) -> WrongGrounding:
    """The wrong groundings of this severity.

    Raises:
        ValueError: the severity is outside [0, 1].
    """
    checked_severity(severity)
    return WrongGrounding(spells=math.ceil(4 * severity), rate=0.3 * severity, steps=3 + round(20 * severity))


def checked_severity(severity: float) -> float:
    """The severity, if it is one.

    Raises:
        ValueError: it is outside [0, 1], or no number.
    """
    if not 0.0 <= severity <= 1.0:
        message = f"a severity lies in [0, 1], got {severity!r}"
        raise ValueError(message)
    return severity
