"""How far a BabyAI mission has got: its propositions, the target at hand, and progress with the distance to it.

The propositions of a mission are the sub-instructions of its And, Before and After: one for going to, opening or
picking up something, two for putting something next to something (it is held; it is there). Progress is the share of
the propositions that hold, and for the first that does not, the share of the way to its target. This is ours.

What the agent believes of its mission is kept apart from that. minigrid's bot shares its object descriptions with the
verifier of the mission, and so knows at once of anything that moves; `MissionBeliefs` has descriptions of its own,
which only what it sees, or does itself, keeps up to date.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from minigrid.envs.babyai.core.verifier import (
    AfterInstr,
    BeforeInstr,
    GoToInstr,
    ObjDesc,
    OpenInstr,
    PickupInstr,
    PutNextInstr,
    SeqInstr,
)

Cell = tuple[int, int]

_DESCRIPTIONS = ("desc", "desc_move", "desc_fixed")  # how minigrid's instructions name the things that they are about
UNREACHABLE = 10_000
NEARLY = 0.95
"""Share of a proposition that is reached at its target, before it holds."""


def ordered_actions(instruction: Any) -> list[tuple[Any, Callable[[], bool]]]:
    """The action instructions in the order in which the bot does them, each with whether it is done."""
    if not isinstance(instruction, SeqInstr):
        return [(instruction, lambda: False)]
    parts: list[tuple[Any, str]] = [(instruction.instr_a, "a_done"), (instruction.instr_b, "b_done")]
    if isinstance(instruction, AfterInstr):
        parts.reverse()
    ordered: list[tuple[Any, Callable[[], bool]]] = []
    for part, flag in parts:
        if isinstance(part, SeqInstr):
            ordered += ordered_actions(part)
        else:
            ordered.append((part, _flag_reader(instruction, flag)))
    return ordered


def _flag_reader(instruction: Any, flag: str) -> Callable[[], bool]:
    return lambda: bool(getattr(instruction, flag) == "success")


@dataclass(frozen=True)
class _Proposition:
    holds: Callable[[], bool]
    description: Any  # minigrid's ObjDesc of what must be reached for it


class MissionProgress:
    """The state of a level's mission; make one after each reset of the level.

    Args:
        level: the level, after its reset.
    """

    def __init__(self, level: Any) -> None:
        self._level = level
        self._propositions = [
            proposition
            for action, done in ordered_actions(level.instrs)
            for proposition in _propositions_of(level, action, done)
        ]
        self._distances = _WalkingDistances(level.grid)
        self._first_distance: dict[int, int] = {}
        self.shortest_path = self._route_length()

    def measure(self, success: bool) -> tuple[float, float]:
        """Progress and the share of propositions that hold, both in [0, 1]; both 1 on success."""
        if success:
            return 1.0, 1.0
        open_ones = [index for index, proposition in enumerate(self._propositions) if not proposition.holds()]
        total = len(self._propositions)
        satisfied = total - len(open_ones)
        if not open_ones:
            return 1.0, 1.0
        return (satisfied + self._approach(open_ones[0])) / total, satisfied / total

    @property
    def goals(self) -> int:
        """How many propositions the mission has."""
        return len(self._propositions)

    def distance_to_target(self) -> int:
        """Cells to walk to the nearest target of the first proposition that does not hold; 0 if all do."""
        goals = [cell_of(thing.cur_pos) for thing in self.targets()]
        return self._distances.to_nearest(goals, cell_of(self._level.agent_pos)) if goals else 0

    def _route_length(self) -> int:
        """Cells that must be walked to be beside a target of each proposition in turn: a lower bound.

        It is enough to come beside a target, to set out from beside the one before, and to put a thing down ahead.
        """
        best = {cell_of(self._level.agent_pos): 0}
        spared = 1
        for proposition in self._propositions:
            goals = [cell_of(thing.cur_pos) for thing in self._loose(proposition.description)]
            if goals:
                best = {
                    goal: min(
                        length + max(self._distances.to_nearest([goal], here) - spared, 0)
                        for here, length in best.items()
                    )
                    for goal in goals
                }
                spared = 3
        return min(best.values())

    def targets(self) -> list[Any]:
        """The objects that would do for the first proposition that does not hold, without what is carried."""
        for proposition in self._propositions:
            if not proposition.holds():
                return self._loose(proposition.description)
        return []

    def _loose(self, description: Any) -> list[Any]:
        return [thing for thing in description.obj_set if thing is not self._level.carrying]

    def _approach(self, index: int) -> float:
        goals = [cell_of(thing.cur_pos) for thing in self._loose(self._propositions[index].description)]
        distance = self._distances.to_nearest(goals, cell_of(self._level.agent_pos)) if goals else 1
        first = self._first_distance.setdefault(index, distance)
        # Beside the target is as near as can be; the agent may even stand in the door that it is to reach.
        return NEARLY * max(0.0, 1.0 - max(distance - 1, 0) / max(first - 1, 1))


def _propositions_of(level: Any, action: Any, done: Callable[[], bool]) -> Iterable[_Proposition]:
    if isinstance(action, PutNextInstr):
        movable = action.desc_move
        yield _Proposition(lambda: done() or any(level.carrying is thing for thing in movable.obj_set), movable)
        yield _Proposition(done, action.desc_fixed)
    else:
        yield _Proposition(done, action.desc)


def cell_of(position: Any) -> Cell:
    """A position of minigrid's, which may be a tuple or an array, as plain numbers."""
    return int(position[0]), int(position[1])


class _WalkingDistances:
    """Cells to walk to the nearest of some goals around walls, through doors and past objects; kept per goals."""

    def __init__(self, grid: Any) -> None:
        self._width: int = grid.width
        self._wall = [cell is not None and cell.type == "wall" for cell in grid.grid]
        self._fields: dict[tuple[int, ...], list[int]] = {}

    def to_nearest(self, goals: Sequence[Cell], start: Cell) -> int:
        key = tuple(sorted(y * self._width + x for x, y in goals))
        field = self._fields.get(key)
        if field is None:
            field = self._fields[key] = self._spread(key)
        return field[start[1] * self._width + start[0]]

    def _spread(self, goals: Iterable[int]) -> list[int]:
        field = [UNREACHABLE] * len(self._wall)
        for goal in goals:
            field[goal] = 0
        queue = deque(goals)
        while queue:
            place = queue.popleft()
            for neighbour in (place + 1, place - 1, place + self._width, place - self._width):
                if not self._wall[neighbour] and field[neighbour] == UNREACHABLE:
                    field[neighbour] = field[place] + 1
                    queue.append(neighbour)
        return field


class BelievedDescription(ObjDesc):
    """An object description with positions as believed; both lists stay aligned, unlike minigrid's."""

    def __init__(self, true_description: Any, things: list[Any]) -> None:
        super().__init__(true_description.type, true_description.color)  # type: ignore[no-untyped-call]
        self.obj_set = things
        self.obj_poss = [cell_of(thing.cur_pos) for thing in things]

    def notice(self, grid: Any, carried: Any, in_view: Collection[Cell]) -> bool:
        """Takes in what is in view; whether a thing is missing from where it was believed, and not seen elsewhere."""
        missing = False
        for index, thing in enumerate(self.obj_set):
            if thing is carried:
                continue
            true_cell = cell_of(thing.cur_pos)
            believed = self.obj_poss[index]
            if true_cell in in_view:
                self.obj_poss[index] = true_cell
            elif believed in in_view and grid.get(*believed) is not thing:
                missing = True
        return missing

    def recall(self) -> None:
        """Gives up what was believed; the bot finds a thing again only when it sees the place where it is."""
        self.obj_poss = [cell_of(thing.cur_pos) for thing in self.obj_set]


class MissionBeliefs:
    """The agent's own reading of a level's mission.

    Args:
        level: the level, after its reset.
    """

    def __init__(self, level: Any) -> None:
        self._level = level
        ordered = ordered_actions(level.instrs)
        believed = {id(action): _believed(action) for action, _ in ordered}
        self._actions = [(believed[id(action)], done) for action, done in ordered]
        self._named = [believed[id(action)] for action in _in_words(level.instrs)]
        self._first = _first_part(level.instrs)

    def remaining(self) -> list[Any]:
        """The action instructions that are still to do, in order."""
        return [action for action, done in self._actions if not done()]

    def named_things(self) -> list[tuple[Any, str]]:
        """Each thing that the mission's sentence names, in its order: the action instruction, and which attribute."""
        return [(action, name) for action in self._named for name in _DESCRIPTIONS if hasattr(action, name)]

    def as_told(self, remaining: list[Any]) -> list[Any]:
        """What remains with its two parts the wrong way round: as one does it who has not understood the order."""
        first = [action for action, _ in self._actions[: self._first]]
        later = [action for action in remaining if not any(action is one for one in first)]
        return later + [action for action in remaining if any(action is one for one in first)]

    def notice(self, in_view: Collection[Cell]) -> bool:
        """Takes in what is in view; whether something that is still needed is missing from its place."""
        grid, carried = self._level.grid, self._level.carrying
        missing = [believed.notice(grid, carried, in_view) for believed in self._descriptions()]
        return any(missing)

    def recall(self) -> None:
        """Gives up the believed places of all that is still needed."""
        for believed in self._descriptions():
            believed.recall()

    def released(self, thing: Any) -> None:
        """Takes in that the agent has put down a thing."""
        for believed in self._descriptions():
            for index, known in enumerate(believed.obj_set):
                if known is thing:
                    believed.obj_poss[index] = cell_of(thing.cur_pos)

    def at_hand(self) -> tuple[Any, str]:
        """The instruction at hand, and which attribute of it describes what is to be reached first."""
        action = self.remaining()[0]
        return action, next(name for name in _DESCRIPTIONS if hasattr(action, name))

    def _descriptions(self) -> Iterator[BelievedDescription]:
        for action in self.remaining():
            for name in _DESCRIPTIONS:
                believed = getattr(action, name, None)
                if believed is not None:
                    yield believed


def _in_words(instruction: Any) -> list[Any]:
    """The action instructions in the order in which the mission's sentence says them."""
    if isinstance(instruction, SeqInstr):
        return _in_words(instruction.instr_a) + _in_words(instruction.instr_b)
    return [instruction]


def _first_part(instruction: Any) -> int:
    """How many action instructions must be done before the others; 0 where their order is free."""
    if isinstance(instruction, BeforeInstr):
        return len(_in_words(instruction.instr_a))
    return len(_in_words(instruction.instr_b)) if isinstance(instruction, AfterInstr) else 0


def _believed(action: Any) -> Any:
    if isinstance(action, PutNextInstr):
        move, fixed = _copy(action.desc_move), _copy(action.desc_fixed)
        return PutNextInstr(move, fixed)  # type: ignore[no-untyped-call]
    for kind in (GoToInstr, OpenInstr, PickupInstr):
        if isinstance(action, kind):
            return kind(_copy(action.desc))
    message = f"the testbed's agent does not know {type(action).__name__}; use levels of GoTo, Open, Pickup and PutNext"
    raise TypeError(message)


def _copy(description: Any) -> BelievedDescription:
    return BelievedDescription(description, list(description.obj_set))
