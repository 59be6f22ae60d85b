"""From Habitat's actions and metrics to the signals of an episode, step by step. Pure: no clock, no simulator; ours.

- **progress**: the caller's own reading, else the task's share (PARTNR's percent complete), else the share of its
  sub-goals (with the way of the objects to their places where that is measured), else 1 - distance / the
  start's distance (of several goals in turn the share of all of them, see `goals`), else the success measure.
- **propositions**: the share of the task or of its sub-goals; success where it has none.
- **violation**: 1 per collision, and 1 per constraint that is violated. **risk**: max(0, c - clearance) / c
  with c = `clearance_m`, `collision_risk` per collision, and the force that the step has added, in `force_unit_n`.
- **travel**: the way that the action led. **retries**: 1 for an action that collided, or that left the pose as it was
  though it is one that moves.
- **the fewest actions** (for success weighted by episode length): as many as the simulator's own greedy follower takes,
  where it can be asked; else an *estimate*, the way over the length of a step, rounded up, and the turns to face the
  goal, where its bearing is known. Told only of episodes whose actions all were single moves, turns, looks and stops.
- **action** and **mode**: the action's name, and the mode of execution that its words stand for.

A distance or a share that is NaN, infinite or negative at the start, or at two steps in a row, or no progress at all,
makes the whole episode unfit, from that step on: see `EpisodeSignals.fault`. One that is alone so, or of a step that
succeeds, is taken to be what it was before, and counted.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np

from springback.producers.habitat.goals import GoalLegs, share_done
from springback.producers.habitat.metrics import HabitatReading, TaskReading

NAVIGATION_ACTIONS = ("stop", "move_forward", "turn_left", "turn_right", "look_up", "look_down")
"""The order in which habitat-lab's own navigation tasks number their actions."""

NO_PROGRESS = "nothing says the progress"

_CHECKED = {
    "distance_m": "the distance to the goal",
    "object_distance_m": "the objects' distance to their goals",
    "share": "the task's share",
    "progress": "the progress",
}

UNMOVED = 1e-6
"""A pose that changes by less, in m or in a quaternion's part, has not changed."""

_MODE_OF_WORD = {
    **dict.fromkeys(("stop", "done"), "stop"),
    **dict.fromkeys(
        ("pick", "place", "arm", "grip", "grasp", "open", "close", "pour", "clean", "fill", "power"), "manipulate"
    ),
    **dict.fromkeys(("look", "find", "perceive"), "perceive"),
    **dict.fromkeys(("talk", "say", "communicate"), "communicate"),
    **dict.fromkeys(("wait", "empty", "noop"), "wait"),
    **dict.fromkeys(("turn", "left", "right", "rotate"), "turn"),
    **dict.fromkeys(("move", "forward", "backward", "navigate", "nav", "base", "velocity", "explore"), "navigate"),
}

_ORDER = tuple(dict.fromkeys(_MODE_OF_WORD.values()))


@dataclass(frozen=True)
class ActionWord:
    """An action in words.

    Attributes:
        name: its name; empty where it has none, as a vector of joint speeds.
        mode: its mode; None where it is not known.
        must_move: whether it is one of those that change the pose whenever they succeed.
    """

    name: str
    mode: str | None
    must_move: bool


def action_word(
    action: Any,
    name_of: Callable[[int], str | None] | None = None,
    mode: Callable[[str], str] | None = None,
) -> ActionWord:
    """The action in words.

    Args:
        action: what was given to `step`: a name, an index, or habitat-lab's mapping with `action` and `action_args`.
        name_of: the name of an action's index; None where it has none.
        mode: the mode of a name; None takes `mode_of`.

    >>> action_word("turn_left"), action_word(np.int64(1), NAVIGATION_ACTIONS.__getitem__).name
    (ActionWord(name='turn_left', mode='turn', must_move=True), 'move_forward')
    >>> action_word({"action": ("arm_action", "base_velocity"), "action_args": {}})
    ActionWord(name='arm_action+base_velocity', mode='manipulate', must_move=False)
    """
    discrete = True
    if not isinstance(action, str) and isinstance(action, Mapping):
        discrete = not action.get("action_args")
        action = action.get("action")
    word = _word_of_name(_name(action, name_of), discrete)
    return word if mode is None or not word.name else replace(word, mode=mode(word.name))


@lru_cache(maxsize=1024)
def _word_of_name(name: str, discrete: bool) -> ActionWord:
    if not name:
        return ActionWord("", None, False)
    mode = mode_of(name)
    return ActionWord(name, mode, discrete and "+" not in name and mode in ("turn", "navigate"))


def mode_of(name: str) -> str | None:
    """The mode of an action's name; of several words the one that says most; None where no word is known.

    >>> [mode_of(name) for name in ("move_forward", "rearrange_stop", "pick_object", "look_up", "dance")]
    ['navigate', 'stop', 'manipulate', 'perceive', None]
    """
    words = name.lower().replace("+", "_").split("_")
    modes = {_MODE_OF_WORD[word] for word in words if word in _MODE_OF_WORD}
    return next((mode for mode in _ORDER if mode in modes), None)


def names_in_order(names: Sequence[str]) -> Callable[[int], str | None]:
    """Looks an index up in a list of names; None where it lies outside."""
    return lambda index: names[index] if 0 <= index < len(names) else None


def _name(action: Any, name_of: Callable[[int], str | None] | None) -> str:
    if isinstance(action, str):
        return action
    if isinstance(action, (tuple, list)) and all(isinstance(part, str) for part in action):
        return "+".join(action)
    if isinstance(action, np.ndarray) and action.size == 1 and np.issubdtype(action.dtype, np.integer):
        action = action.item()
    if isinstance(action, (int, np.integer)) and not isinstance(action, bool):
        return (None if name_of is None else name_of(int(action))) or str(int(action))
    return ""


class Pose(msgspec.Struct, frozen=True):
    """Where an agent is.

    Attributes:
        position: m, in the scene's frame (or in that of the episode's start).
        rotation: a quaternion's four parts, in any one order; empty where it is not known.
    """

    position: tuple[float, ...]
    rotation: tuple[float, ...] = ()


def bearing_rad(pose: Pose, goal: Sequence[float]) -> float | None:
    """How far a goal lies off the agent's heading, rad, to the left positive; None where the heading is not known.

    Args:
        pose: with a rotation of w, x, y and z; one that turns nothing looks along -z, as Habitat's agents do.
        goal: its position, x, y (up) and z, m.

    >>> bearing_rad(Pose((0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)), (-1.0, 0.0, 0.0)) == math.pi / 2
    True
    """
    if len(pose.rotation) != 4 or len(pose.position) != 3:
        return None
    w, x, y, z = pose.rotation
    ahead = complex(1.0 - 2.0 * (x * x + y * y), 2.0 * (x * z + w * y))
    towards = complex(-(goal[2] - pose.position[2]), -(goal[0] - pose.position[0]))
    return cmath.phase(towards / ahead) if ahead and towards else None


class EpisodeSignals:
    """The signals of one episode.

    Args:
        reading: how they are read.
        start: what the metrics say before the first step; None where they cannot be read then.
        pose: where the agent starts; None where that is not known.
        start_distance_m: the distance that the episode's own description gives; taken where `start` has none.
        follower_actions: as many as the simulator's follower takes; None where it cannot be asked.
        bearing_rad: how far the goal lies off the heading at the start, rad; None where that is not known.
        goals: how many goals there are one after another, as far as one knows.

    Attributes:
        fault: why the episode is unfit; None while it is not.
        goals: the way to one goal after another.
        bridged: at how many steps a number that was broken was taken to be what it was before.
        travel_m: the way so far, m.
        steps: how many steps there were.
        last: the last reading.
    """

    def __init__(
        self,
        reading: HabitatReading,
        start: TaskReading | None = None,
        pose: Pose | None = None,
        start_distance_m: float | None = None,
        *,
        follower_actions: int | None = None,
        bearing_rad: float | None = None,
        goals: int = 1,
    ) -> None:
        self.fault: str | None = None
        self.bridged = 0
        self.travel_m: float | None = None if pose is None else 0.0
        self.steps = 0
        self.last = TaskReading() if start is None else start
        self._reading = reading
        self._pose = pose
        self._asked = start is not None
        self._follower_actions = follower_actions
        self._bearing_rad = bearing_rad
        self._stepwise = True
        start_m = self.last.distance_m if self.last.distance_m is not None else start_distance_m
        self.goals = GoalLegs(start_m, goals)
        self._broken: set[str] = set()
        self._objects_start_m = self.last.object_distance_m
        self._check("the distance at the start", start_m)
        self._check("the objects' distance at the start", self._objects_start_m)
        self._check("the task's share at the start", self.last.share)
        self._held = _fit_numbers(msgspec.structs.replace(self.last, distance_m=start_m))

    def step(
        self,
        found: TaskReading,
        word: ActionWord,
        pose: Pose | None = None,
        clearance_m: float | None = None,
        before: Pose | None = None,
        *,
        same_goal: bool = False,
    ) -> dict[str, Any]:
        """The signals of the next step; progress is NaN where the episode is unfit.

        Args:
            found: what the metrics say after the step.
            word: the action.
            pose: where the agent is after the step; None where that is not known.
            clearance_m: distance to the nearest obstacle, m.
            before: where it was when its action came, if that is not its last pose because something has pushed it.
            same_goal: whether the goal is known to be the one that it was, though moved perhaps.
        """
        self._recover_start(found)
        found = self._steadied(found)
        collisions = self._collisions(found)
        step_m, unmoved = self._move(before or self._pose, pose)
        self._check("the way of a step", step_m)
        self.goals.see(found.distance_m, step_m, same_goal=same_goal)
        signals: dict[str, Any] = {
            "risk": self._risk(found, collisions, clearance_m),
            "violation": collisions + found.broken_rules,
            "retries": float(collisions > 0 or (unmoved and word.must_move)),
            "travel": step_m,
            "action": word.name or None,
            "mode": word.mode,
            **self._progress(found),
        }
        self.last = found
        self.steps += 1
        self._stepwise = self._stepwise and (word.must_move or word.mode in ("stop", "perceive"))
        return {name: value for name, value in signals.items() if value is not None}

    def navigation(self) -> dict[str, Any]:
        """The fields of `NavigationOutcome` so far; None where a thing was not measured."""
        last = self.last
        solved = None if last.success is None else int(last.success)
        several = self.goals.total > 1
        return {
            "shortest_path": self.goals.length_m,
            "path": self.travel_m if self.travel_m is not None else self._path_by_spl(),
            "actions": self.steps,
            "shortest_actions": self._shortest_actions(),
            "final_distance": last.distance_m,
            "target_in_view": True if last.success else None if last.success is None else False,
            "goals_met": last.parts_met if last.parts_total else self._found(last) if several else solved,
            "goals_total": last.parts_total or (self._goals_total(last) if several else None if solved is None else 1),
        }

    def _recover_start(self, found: TaskReading) -> None:
        """Where the start could not be asked, takes it from the first step's distance and what the step took off it."""
        if self.steps or self._asked:
            return
        if self.goals.start_m is None and found.distance_m is not None:
            self.goals = GoalLegs(found.distance_m + (found.distance_gain_m or 0.0), self.goals.total)
        if self._objects_start_m is None:
            self._objects_start_m = found.object_distance_m

    def _steadied(self, found: TaskReading) -> TaskReading:
        """The reading, where a number is broken that was fit before with what it was then; else there is a fault."""
        held: dict[str, float] = {}
        for name, what in _CHECKED.items():
            number = getattr(found, name)
            if number is None:
                self._broken.discard(name)
            elif _fits(number):
                self._held[name] = number
                self._broken.discard(name)
            elif name in self._held and (name not in self._broken or found.success):
                held[name] = self._held[name]
                self._broken.add(name)
            else:
                self._check(what, number)
        self.bridged += bool(held)
        return msgspec.structs.replace(found, **held) if held else found

    def _check(self, what: str, number: float | None) -> None:
        if self.fault is None and number is not None and not _fits(number):
            self.fault = f"{what} is {'negative' if -math.inf < number < 0.0 else number}"

    def _progress(self, found: TaskReading) -> dict[str, float]:
        solved = None if found.success is None else float(found.success)
        parts = None if not found.parts_total else (found.parts_met or 0) / found.parts_total
        by_distance = self.goals.share()
        if found.success and self.goals.total > 1 and by_distance is not None:
            by_distance = 1.0  # however many goals were expected
        by_objects = share_done(found.object_distance_m, self._objects_start_m)
        if parts is not None and by_objects is not None:
            by_objects = max(parts, by_objects)
        progress = _first_known(found.progress, found.share, by_objects, parts, by_distance, solved)
        if progress is None and self.fault is None:
            self.fault = NO_PROGRESS
        of_goals = None if self.goals.total == 1 else self._found(found) / self._goals_total(found)
        held = _first_known(found.share, parts, of_goals, solved)
        if self.fault is not None or progress is None:
            return {"progress": math.nan}
        progress = _clipped(progress)
        return {"progress": progress} if held is None else {"progress": progress, "propositions": _clipped(held)}

    def _found(self, found: TaskReading) -> int:
        return self.goals.found + bool(found.success)

    def _goals_total(self, found: TaskReading) -> int:
        return self._found(found) if found.success else self.goals.total

    def _collisions(self, found: TaskReading) -> float:
        if found.collided is not None:
            return float(found.collided)
        return _risen(found.collisions, self.last.collisions)

    def _risk(self, found: TaskReading, collisions: float, clearance_m: float | None) -> float:
        near = self._reading.clearance_m
        risk = self._reading.collision_risk * collisions
        risk += _risen(found.force_n, self.last.force_n) / self._reading.force_unit_n
        if clearance_m is not None and near > 0.0 and not math.isnan(clearance_m):
            risk += max(0.0, near - clearance_m) / near
        return risk

    def _move(self, before: Pose | None, pose: Pose | None) -> tuple[float | None, bool]:
        """Takes in the new pose: the way to it, and whether it is known to be the old one."""
        self._pose = pose
        if before is None or pose is None:
            return None, False
        step_m = math.dist(before.position, pose.position)
        self.travel_m = (self.travel_m or 0.0) + step_m
        known = bool(before.rotation) and len(before.rotation) == len(pose.rotation)
        return step_m, known and step_m < UNMOVED and _same(before.rotation, pose.rotation)

    def _shortest_actions(self) -> int | None:
        """The fewest actions that the episode could have taken."""
        if not self._stepwise or not self.steps:
            return None
        if self._follower_actions is not None and not self.goals.found:
            return self._follower_actions
        way_m = self.goals.length_m
        if way_m is None or not math.isfinite(way_m):
            return None
        turns = round(abs(math.degrees(self._bearing_rad or 0.0)) / self._reading.turn_deg)
        return math.ceil(way_m / self._reading.forward_m) + turns

    def _path_by_spl(self) -> float | None:
        """The longer of the path and the shortest one, as the SPL of a success tells it: shortest / path."""
        last, way_m = self.last, self.goals.length_m
        return way_m / last.spl if last.success and last.spl and way_m is not None else None


def _same(one: Sequence[float], other: Sequence[float]) -> bool:
    return len(one) == len(other) and all(abs(a - b) < UNMOVED for a, b in zip(one, other))


def _fit_numbers(found: TaskReading) -> dict[str, float]:
    numbers = {name: getattr(found, name) for name in _CHECKED}
    return {name: number for name, number in numbers.items() if number is not None and _fits(number)}


def _first_known(*numbers: float | None) -> float | None:
    for number in numbers:
        if number is not None:
            return number
    return None


def _fits(number: float) -> bool:
    return 0.0 <= number < math.inf


def _risen(total: float | None, before: float | None) -> float:
    return 0.0 if total is None else max(0.0, total - (before or 0.0))


def _clipped(share: float) -> float:
    return min(1.0, max(0.0, share))
