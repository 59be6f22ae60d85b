"""Disturbances of a running episode: actions that slip, things that move, targets that are mistaken.

Each draws from a generator of its own, so that a disturbed run and its clean twin differ by the disturbance alone.
"""

from collections import deque
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from minigrid.core.actions import Actions

from springback.producers.babyai_testbed.agent import RecoveringAgent
from springback.producers.babyai_testbed.mission import Cell, MissionProgress, cell_of
from springback.producers.perturbations.severity import PerturbationKind, action_slip, moved_objects, wrong_grounding

_SLIPS = (Actions.done, Actions.done, Actions.left, Actions.right, Actions.forward)
_NEIGHBOURS = ((1, 0), (-1, 0), (0, 1), (0, -1))


class Disturbance(Protocol):
    """What happens to an agent: to its actions, and to the world or to itself between two steps."""

    name: str

    def effect(self, action: int) -> int:
        """The action that takes place where `action` was meant."""

    def strike(self, level: Any, mission: MissionProgress, agent: RecoveringAgent) -> None:
        """What happens after a step that did not end the episode."""


class Undisturbed:
    """Nothing happens."""

    name = ""

    def effect(self, action: int) -> int:
        """The action itself."""
        return action

    def strike(self, level: Any, mission: MissionProgress, agent: RecoveringAgent) -> None:
        """Nothing."""


class SlippingActions(Undisturbed):
    """Physical: now and then an action does nothing, or is a turn or a step forward instead."""

    name = "slip"

    def __init__(self, severity: float, rng: np.random.Generator) -> None:
        self._slip = action_slip(severity)
        self._rng = rng

    def effect(self, action: int) -> int:
        """The action, or a slip."""
        if self._rng.random() >= self._slip.probability:
            return action
        return int(self._rng.choice(_SLIPS))


class MovingThings(Undisturbed):
    """Object state: what the agent is after is moved; where nothing can be, an open door is shut."""

    name = "moved"

    def __init__(self, severity: float, rng: np.random.Generator) -> None:
        self._moves = moved_objects(severity)
        self._left = self._moves.events
        self._rng = rng

    def strike(self, level: Any, mission: MissionProgress, agent: RecoveringAgent) -> None:
        """Moves a target, or shuts a door, when the next event is due; an event that cannot happen yet waits."""
        if self._left and self._rng.random() < self._moves.rate:
            self._left -= self._move(level, mission) or self._shut(level)

    def _move(self, level: Any, mission: MissionProgress) -> bool:
        for thing in mission.targets():
            if thing.type == "door":
                continue
            places = list(_places_around(level, cell_of(thing.cur_pos), self._moves.reach))
            if places:
                old, new = cell_of(thing.cur_pos), places[int(self._rng.integers(len(places)))]
                level.grid.set(*old, None)
                level.grid.set(*new, thing)
                thing.cur_pos = new
                level.update_objs_poss()
                return True
        return False

    def _shut(self, level: Any) -> bool:
        agent_cell = cell_of(level.agent_pos)
        doors = [thing for thing in level.grid.grid if thing is not None and thing.type == "door" and thing.is_open]
        doors = [door for door in doors if cell_of(door.cur_pos) != agent_cell]
        if doors:
            doors[int(self._rng.integers(len(doors)))].is_open = False
        return bool(doors)


class MistakenTargets(Undisturbed):
    """Semantic: for a while the agent takes a distractor for its target, until it realises."""

    name = "mis-grounding"

    def __init__(self, severity: float, rng: np.random.Generator) -> None:
        self._grounding = wrong_grounding(severity)
        self._left = self._grounding.spells
        self._remaining_steps = 0
        self._rng = rng

    def strike(self, level: Any, mission: MissionProgress, agent: RecoveringAgent) -> None:
        """Begins a mistake when the next one is due, and ends it in time."""
        if agent.mistaken:
            self._remaining_steps -= 1
            if self._remaining_steps <= 0:
                agent.realise()
        elif self._left and self._rng.random() < self._grounding.rate:
            distractors = _distractors(level, mission.targets(), agent.goes_only)
            if distractors and agent.mistake(distractors[int(self._rng.integers(len(distractors)))]):
                self._left -= 1
                self._remaining_steps = self._grounding.steps


_DISTURBANCES: dict[PerturbationKind, type[SlippingActions | MovingThings | MistakenTargets]] = {
    "physical": SlippingActions,
    "object_state": MovingThings,
    "semantic": MistakenTargets,
}


def make_disturbance(kind: PerturbationKind | None, severity: float, seed: int) -> Disturbance:
    """The disturbance of a kind and severity for the task of this seed; none without a kind, or at severity 0.

    Raises:
        ValueError: there is no such kind, or the severity is outside [0, 1].
    """
    if kind is None:
        return Undisturbed()
    if kind not in _DISTURBANCES:
        message = f"there is no perturbation {kind!r}; there are {', '.join(_DISTURBANCES)}"
        raise ValueError(message)
    rng = np.random.default_rng([seed, *kind.encode()])
    return _DISTURBANCES[kind](severity, rng)


def _places_around(level: Any, start: Cell, reach: int) -> Iterator[Cell]:
    """Free cells within reach of a thing, not through locked doors, not beside a door or the agent."""
    agent_cell = cell_of(level.agent_pos)
    distance = {start: 0}
    queue = deque([start])
    while queue:
        cell = queue.popleft()
        around = [(cell[0] + dx, cell[1] + dy) for dx, dy in _NEIGHBOURS]
        things = [level.grid.get(*place) for place in around]
        by_door = any(thing is not None and thing.type == "door" for thing in things)
        if distance[cell] > 1 and level.grid.get(*cell) is None and not by_door and _apart(cell, agent_cell):
            yield cell
        if distance[cell] == reach:
            continue
        for place, thing in zip(around, things, strict=True):
            passable = thing is None or (thing.type == "door" and not thing.is_locked)
            if passable and place not in distance:
                distance[place] = distance[cell] + 1
                queue.append(place)


def _apart(cell: Cell, other: Cell) -> bool:
    return abs(cell[0] - other[0]) + abs(cell[1] - other[1]) > 1


def _distractors(level: Any, targets: list[Any], goes_only: bool) -> list[Any]:
    """Things that could be taken for the targets: any to go to; else only doors for doors."""
    if not targets:
        return []
    wants_door = targets[0].type == "door"
    return [
        thing
        for thing in level.grid.grid
        if thing is not None
        and thing.type != "wall"
        and (goes_only or (thing.type == "door") == wants_door)
        and not any(thing is target for target in targets)
    ]
