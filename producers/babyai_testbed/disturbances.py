"""Disturbances of an episode: actions that slip, things that move, targets mistaken, instructions in other words.

Each draws from a generator of its own, so that a disturbed run and its clean twin differ by the disturbance alone. Each
also measures what it really did to the episode, its dose: by chance that is more or less than the severity announces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
from minigrid.core.actions import Actions

from springback.producers.babyai_testbed.agent import RecoveringAgent
from springback.producers.babyai_testbed.mission import Cell, MissionProgress, cell_of
from springback.producers.perturbations.paraphrase import paraphrase
from springback.producers.perturbations.severity import (
    DisturbanceName,
    action_slip,
    moved_objects,
    wrong_grounding,
)

_SLIPS = (Actions.done, Actions.done, Actions.left, Actions.right, Actions.forward)
_NEIGHBOURS = ((1, 0), (-1, 0), (0, 1), (0, -1))


class Disturbance(Protocol):
    """What happens to an agent: to its instruction, to its actions, and to the world or to itself between two steps."""

    @property
    def dose(self) -> float | None:
        """What it did so far; None where nothing was to happen."""

    def instruction(self, mission: str) -> str:
        """The mission in the words in which the agent is told it."""

    def meet(self, agent: RecoveringAgent) -> None:
        """What happens to an agent before its first step."""

    def effect(self, action: int) -> int:
        """The action that takes place where `action` was meant."""

    def strike(self, level: Any, mission: MissionProgress, agent: RecoveringAgent) -> None:
        """What happens after a step that did not end the episode."""


class Undisturbed:
    """Nothing happens."""

    @property
    def dose(self) -> float | None:
        """None: there is nothing to measure."""
        return None

    def instruction(self, mission: str) -> str:
        """The mission as it is."""
        return mission

    def meet(self, agent: RecoveringAgent) -> None:
        """Nothing."""

    def effect(self, action: int) -> int:
        """The action itself."""
        return action

    def strike(self, level: Any, mission: MissionProgress, agent: RecoveringAgent) -> None:
        """Nothing."""


class SlippingActions(Undisturbed):
    """Physical: now and then an action does nothing, or is a turn or a step forward instead.

    Its dose is the share of the actions that had another effect, over the probability at severity 1.
    """

    def __init__(self, severity: float, rng: np.random.Generator) -> None:
        self._slip = action_slip(severity)
        self._rng = rng
        self._actions = self._slipped = 0

    @property
    def dose(self) -> float | None:
        """By the actions so far."""
        return self._slipped / max(self._actions, 1) / action_slip(1.0).probability

    def effect(self, action: int) -> int:
        """The action, or a slip."""
        self._actions += 1
        if self._rng.random() >= self._slip.probability:
            return action
        slip = int(self._rng.choice(_SLIPS))
        self._slipped += slip != action
        return slip


class MovingThings(Undisturbed):
    """Object state: what the agent is after is moved; where nothing can be, an open door is shut.

    Its dose is how often that happened, over the most at severity 1.
    """

    def __init__(self, severity: float, rng: np.random.Generator) -> None:
        self._moves = moved_objects(severity)
        self._left = self._moves.events
        self._rng = rng

    @property
    def dose(self) -> float | None:
        """By the moves so far."""
        return (self._moves.events - self._left) / moved_objects(1.0).events

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
    """Semantic: for a while the agent takes a distractor for its target, until it realises.

    Its dose is the share of the steps at which it was mistaken.
    """

    def __init__(self, severity: float, rng: np.random.Generator) -> None:
        self._grounding = wrong_grounding(severity)
        self._left = self._grounding.spells
        self._remaining_steps = self._mistaken_steps = self._steps = 0
        self._rng = rng

    @property
    def dose(self) -> float | None:
        """By the steps so far."""
        return self._mistaken_steps / max(self._steps, 1)

    def strike(self, level: Any, mission: MissionProgress, agent: RecoveringAgent) -> None:
        """Begins a mistake when the next one is due, and ends it in time."""
        self._steps += 1
        if agent.mistaken:
            self._mistaken_steps += 1
            self._remaining_steps -= 1
            if self._remaining_steps <= 0:
                agent.realise()
        elif self._left and self._rng.random() < self._grounding.rate:
            distractors = _distractors(level, mission.targets(), agent.goes_only)
            if distractors and agent.mistake(distractors[int(self._rng.integers(len(distractors)))]):
                self._left -= 1
                self._remaining_steps = self._grounding.steps


class ParaphrasedMission(Undisturbed):
    """Semantic: the agent is told its mission in other words, some of which it does not know; see `hearing`.

    Its dose is the share of the sentence that was changed.
    """

    def __init__(self, severity: float, rng: np.random.Generator) -> None:
        self._severity = severity
        self._seed = int(rng.integers(2**31))
        self._told = paraphrase("", severity)

    @property
    def dose(self) -> float | None:
        """By the sentence of the last reset."""
        return self._told.share

    def instruction(self, mission: str) -> str:
        """The mission in other words."""
        self._told = paraphrase(mission, self._severity, seed=self._seed, free_order=True)
        return self._told.text

    def meet(self, agent: RecoveringAgent) -> None:
        """Tells the agent."""
        agent.hear(self._told)


_DISTURBANCES: dict[DisturbanceName, Callable[[float, np.random.Generator], Disturbance]] = {
    "slip": SlippingActions,
    "mis-grounding": MistakenTargets,
    "paraphrase": ParaphrasedMission,
    "moved": MovingThings,
}


def make_disturbance(name: DisturbanceName | None, severity: float, seed: int) -> Disturbance:
    """The disturbance of a name and severity for the task of this seed; none without a name.

    Raises:
        ValueError: there is no such disturbance, or the severity is outside [0, 1].
    """
    if name is None:
        return Undisturbed()
    if name not in _DISTURBANCES:
        message = f"there is no disturbance {name!r}; there are {', '.join(_DISTURBANCES)}"
        raise ValueError(message)
    return _DISTURBANCES[name](severity, np.random.default_rng([seed, *name.encode()]))


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
        for place, thing in zip(around, things):
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
