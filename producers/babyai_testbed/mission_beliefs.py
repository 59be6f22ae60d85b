"""What the agent believes about the things that its mission names: where they are, and which ones are meant.

minigrid's bot shares its object descriptions with the verifier of the mission, and so knows at once of anything that
moves. Here it has descriptions of its own, which only what it sees, or does itself, keeps up to date.
"""

from collections.abc import Collection, Iterator
from typing import Any

from minigrid.envs.babyai.core.verifier import GoToInstr, ObjDesc, OpenInstr, PickupInstr, PutNextInstr
from springback.producers.babyai_testbed.mission_progress import Cell, cell_of, ordered_actions


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
        self._actions = [(_believed(action), done) for action, done in ordered_actions(level.instrs)]

    def remaining(self) -> list[Any]:
        """The action instructions that are still to do, in order."""
        return [action for action, done in self._actions if not done()]

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


_DESCRIPTIONS = ("desc", "desc_move", "desc_fixed")


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
