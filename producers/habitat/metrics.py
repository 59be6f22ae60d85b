"""Reads habitat-lab's metrics as they come: numpy scalars, dicts, images, NaN, and whatever a measure may hold.

A measure that is missing, or whose value is no single number (an image, a tuple, a text, a string of keyframes), is
passed over. NaN and infinity are kept apart from that: an infinite distance says that the goal cannot be reached, and
nothing may be learned from such an episode.

>>> reading = read_metrics({"distance_to_goal": np.float32(2.5), "collisions": {"count": 3, "is_collision": True}})
>>> reading.distance_m, reading.collided, reading.success
(2.5, True, None)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import msgspec
import numpy as np

DISTANCE_KEYS = ("distance_to_multi_goal", "distance_to_goal", "dist_to_goal", "distance_to_curr_goal")
"""Of several goals in turn the way to all that are left goes first; that to the present one will do."""
DISTANCE_GAIN_KEY = "distance_to_goal_reward"
OBJECT_DISTANCE_KEY = "object_to_goal_distance"
SHARE_KEY = "task_percent_complete"
PART_KEYS = ("pddl_stage_goals", "composite_stage_goals", "obj_at_goal")
SUCCESS_KEYS = (
    "success",
    "task_state_success",
    "pddl_success",
    "composite_success",
    "nav_seek_success",
    "nav_to_obj_success",
    "pick_success",
    "place_success",
    "art_obj_success",
    "rearrange_reach_success",
    "spl",
)
COLLISION_TOTALS = {"collisions": "count", "robot_collisions": "total_collisions"}
FORCE_KEYS = ("articulated_agent_force", "robot_force")
BROKEN_RULE_KEYS = ("did_violate_hold_constraint", "force_terminate")
STOP_KEY = "does_want_terminate"


class HabitatReading(msgspec.Struct, frozen=True, kw_only=True):
    """How signals are read from what Habitat says; the defaults know habitat-lab's own tasks and PARTNR's. Ours.

    Attributes:
        progress: reads the progress, in [0, 1], from the metrics; None takes the task's own measures, see
            `signals`.
        goals: how many goals follow one another in an episode, where only the distance to the present one is measured;
            None takes as many as the last success had, and one before there was any.
        success_measure: the metric that says success, where it is none of `SUCCESS_KEYS`.
        clearance_m: how near an obstacle is a risk, m; 0 leaves clearance out.
        collision_risk: the risk load of a collision.
        force_unit_n: the force on the robot that counts as a risk load of 1, N.
        success_distance_m: within this distance, m, a stop is a success: for a bare simulator, and for the follower
            that tells the fewest actions.
        forward_m, turn_deg: how far an action moves or turns the agent, m and degrees, where the fewest actions must be
            estimated because there is no simulator to ask.
        simulated_time: whether a cycle lasts as long as the simulator's clock says, in place of the computer's.
        mode: says the mode of an action's name; None takes `signals.mode_of`.
    """

    progress: Callable[[Mapping[str, Any]], Any] | None = None
    goals: int | None = None
    success_measure: str | None = None
    clearance_m: float = 0.3
    collision_risk: float = 2.0
    force_unit_n: float = 1000.0
    success_distance_m: float = 0.2
    forward_m: float = 0.25
    turn_deg: float = 10.0
    simulated_time: bool = False
    mode: Callable[[str], str] | None = None


DEFAULT_READING = HabitatReading()


class TaskReading(msgspec.Struct, frozen=True, kw_only=True):
    """What the metrics after one step say; None where they say nothing. Numbers may be NaN or infinite.

    Attributes:
        distance_m: distance to the goal, m.
        distance_gain_m: how much of it the step took off, m.
        object_distance_m: sum of the objects' distances to their goals, m.
        progress: what the caller's own reading says.
        share: the share of the task that is done, as one number.
        parts_met, parts_total: sub-goals that hold, and all of them.
        success: whether the task counts as solved.
        spl: success weighted by path length.
        collided: whether the step collided.
        collisions: collisions of the episode so far.
        force_n: force summed up over the episode so far, N.
        broken_rules: constraints that are violated at this step.
        stopped: whether the agent asked for the end.
    """

    distance_m: float | None = None
    distance_gain_m: float | None = None
    object_distance_m: float | None = None
    progress: float | None = None
    share: float | None = None
    parts_met: int | None = None
    parts_total: int | None = None
    success: bool | None = None
    spl: float | None = None
    collided: bool | None = None
    collisions: float | None = None
    force_n: float | None = None
    broken_rules: int = 0
    stopped: bool = False


def read_metrics(metrics: Any, reading: HabitatReading = DEFAULT_READING) -> TaskReading:
    """Reads one step's metrics: `env.get_metrics()`, or a Gym-style step's info. No mapping reads like an empty one."""
    found: Mapping[str, Any] = metrics if isinstance(metrics, Mapping) else {}
    parts = [is_true(value) for key in PART_KEYS for value in _values(found.get(key))]
    keys = SUCCESS_KEYS if reading.success_measure is None else (reading.success_measure,)
    success = next((number for key in keys if _is_finite(number := single_number(found.get(key)))), None)
    objects = [
        number for value in _values(found.get(OBJECT_DISTANCE_KEY)) if (number := single_number(value)) is not None
    ]
    return TaskReading(
        distance_m=next(
            (number for key in DISTANCE_KEYS if (number := single_number(found.get(key))) is not None), None
        ),
        distance_gain_m=_finite(single_number(found.get(DISTANCE_GAIN_KEY))),
        object_distance_m=math.fsum(objects) if objects and all(map(math.isfinite, objects)) else _worst(objects),
        progress=None if reading.progress is None else single_number(reading.progress(found)),
        share=single_number(found.get(SHARE_KEY)),
        parts_met=sum(parts) if parts else None,
        parts_total=len(parts) or None,
        success=None if success is None else success > 0,
        spl=_finite(single_number(found.get("spl"))),
        collided=_collided(found.get("collisions")),
        collisions=_collisions(found),
        force_n=_force(found),
        broken_rules=sum(is_true(found.get(key)) for key in BROKEN_RULE_KEYS),
        stopped=is_true(found.get(STOP_KEY)),
    )


def single_number(value: Any) -> float | None:
    """The value as a plain number, NaN and infinities included; None where it is no single number.

    >>> single_number(np.array(0.5)), single_number(np.float32(2)), single_number(True), single_number(float("inf"))
    (0.5, 2.0, 1.0, inf)
    >>> [single_number(value) for value in ({"count": 1}, "", np.zeros((2, 2)), (1, 2), None, 1j)]
    [None, None, None, None, None, None]
    """
    if isinstance(value, (np.ndarray, np.generic)):
        if value.size != 1:
            return None
        value = value.item()
    if not isinstance(value, Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf  # an integer beyond all floats, of either sign: broken in any case


def is_true(value: Any) -> bool:
    """Whether the value is a number that says yes.

    >>> is_true(np.bool_(True)), is_true(0.0), is_true(float("nan")), is_true(None)
    (True, False, False, False)
    """
    number = single_number(value)
    return number is not None and number > 0


def _values(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, Mapping) else []


def _is_finite(number: float | None) -> bool:
    return number is not None and math.isfinite(number)


def _finite(number: float | None) -> float | None:
    return number if _is_finite(number) else None


def _worst(numbers: list[float]) -> float | None:
    return next((number for number in numbers if not math.isfinite(number)), None)


def _collided(value: Any) -> bool | None:
    if isinstance(value, Mapping) and single_number(value.get("is_collision")) is not None:
        return is_true(value["is_collision"])
    return None


def _collisions(metrics: Mapping[str, Any]) -> float | None:
    for key, total in COLLISION_TOTALS.items():
        value = metrics.get(key)
        number = single_number(value.get(total) if isinstance(value, Mapping) else value)
        if _is_finite(number):
            return number
    return None


def _force(metrics: Mapping[str, Any]) -> float | None:
    for key in FORCE_KEYS:
        value = metrics.get(key)
        number = single_number(value.get("accum") if isinstance(value, Mapping) else value)
        if _is_finite(number):
            return number
    return None
