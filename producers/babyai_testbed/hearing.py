"""What the agent makes of an instruction in words that it does not know.

The agent knows the words of BabyAI's own missions and no others. It grounds what it hears by those that it knows:

- A word for a thing, a colour or a place that it does not know narrows nothing down. It may then mean anything that the
  known words fit and that the act can be done to: the agent takes the nearest, as its bot does. When the plan for it
  comes to nothing, it rules out the thing that it stands before, and tries the next one. Where it cannot say what was
  wrong (the act has two things, or no other is left), it is told.
- Clauses whose order is said by words that it does not know it carries out as they come, until that comes to nothing.
- For any other word that it does not know (an act, a courtesy, an aside) it reads the instruction once more: a cycle in
  which it does nothing else.

So an instruction in other words costs cycles, detours and plans, and the mission stays what it was. All of it is ours.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minigrid.envs.babyai.core.verifier import GoToInstr, OpenInstr, PutNextInstr

from springback.producers.babyai_testbed.mission import BelievedDescription, MissionBeliefs
from springback.producers.perturbations.paraphrase import Paraphrase

_NAMING = ("thing", "colour", "place")


class _Misread(NamedTuple):
    """An instruction's description that was widened: its attribute, and what it was."""

    name: str
    meant: Any


class Hearing:
    """How an agent understands its mission as it was told it.

    Args:
        level: the level, after its reset.
        beliefs: the agent's reading of its mission; widened here where it has not understood a description.
        told: the mission as it was told.

    Attributes:
        rereads: how many times the agent still has to read the instruction again.
    """

    def __init__(self, level: Any, beliefs: MissionBeliefs, told: Paraphrase) -> None:
        self._level = level
        self._beliefs = beliefs
        self._wrong_order = any(edit.kind == "order" for edit in told.edits)
        self._misread: dict[int, list[_Misread]] = {}
        self.rereads = sum(edit.kind not in (*_NAMING, "order") for edit in told.edits)
        unknown: dict[int, set[str]] = {}
        for edit in told.edits:
            if edit.kind in _NAMING and edit.thing is not None:
                unknown.setdefault(edit.thing, set()).add(edit.kind)
        for number, (action, name) in enumerate(beliefs.named_things()):
            if number in unknown:
                self._widen(action, name, unknown[number])

    def todo(self, remaining: list[Any]) -> list[Any]:
        """What the agent sets out to do: all that remains, as it understands the order; one act where it may be wrong.

        With several acts at once it would not know which of them came to nothing.
        """
        ordered = self._beliefs.as_told(remaining) if self._wrong_order else remaining
        return ordered[:1] if ordered and self._misread else ordered

    def reconsider(self, tried: list[Any]) -> None:
        """Learns from a plan for `tried` that came to nothing: the order first, else what the thing at hand is not."""
        if self._wrong_order:
            self._wrong_order = False
        elif tried and id(tried[0]) in self._misread:
            self._rule_out(tried[0])

    def _widen(self, action: Any, name: str, unknown: set[str]) -> None:
        meant = getattr(action, name)
        kind = None if "thing" in unknown else meant.type
        colour = None if "colour" in unknown else meant.color
        could_be = [
            thing
            for thing in self._level.grid.grid
            if thing is not None
            and thing.type in ("door", "ball", "box", "key")
            and kind in (None, thing.type)
            and colour in (None, thing.color)
            and _can(action, thing)
        ]
        if len(could_be) > len(meant.obj_set):
            setattr(action, name, BelievedDescription(meant, could_be))
            self._misread.setdefault(id(action), []).append(_Misread(name, meant))

    def _rule_out(self, action: Any) -> None:
        misread = self._misread[id(action)]
        if not isinstance(action, PutNextInstr):
            (one,) = misread
            believed = getattr(action, one.name)
            before = self._level.grid.get(*self._level.front_pos)
            left = [thing for thing in believed.obj_set if thing is not before]
            if 0 < len(left) < len(believed.obj_set):
                setattr(action, one.name, BelievedDescription(one.meant, left))
                return
        for one in misread:
            setattr(action, one.name, one.meant)
        del self._misread[id(action)]


def _can(action: Any, thing: Any) -> bool:
    """Whether the act can be done to such a thing: doors alone are opened, and they alone cannot be carried."""
    return isinstance(action, GoToInstr) or (thing.type == "door") == isinstance(action, OpenInstr)
