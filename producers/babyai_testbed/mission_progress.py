"""How far a BabyAI mission has got: its propositions, the target at hand, and progress with the distance to it.

The propositions of a mission are the sub-instructions of its And, Before and After: one for going to, opening or
picking up something, two for putting something next to something (it is held; it is there). Progress is the share of
the propositions that hold, and for the first that does not, the share of the way to its target. This is ours.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from minigrid.envs.babyai.core.verifier import AfterInstr, PutNextInstr, SeqInstr

Cell = tuple[int, int]
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


@dataclass(frozen=True, slots=True)
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
