"""The testbed's own time: a clock that moves only when told, and what each act of the agent takes of it."""

from __future__ import annotations

from dataclasses import dataclass

from minigrid.core.actions import Actions

ACTION_S: dict[int, float] = {
    Actions.left: 0.4,
    Actions.right: 0.4,
    Actions.forward: 0.5,
    Actions.pickup: 1.2,
    Actions.drop: 1.0,
    Actions.toggle: 0.8,
    Actions.done: 0.3,
}
"""How long each action takes, s; `done` is a wait. An action that fails takes as long as one that works."""


@dataclass(frozen=True)
class CostModel:
    """What thinking and looking take, s. The first plan of an episode is made before its clock starts.

    A cycle takes its planning and perception times, and then the time of its action (`ACTION_S`).

    Attributes:
        think_s: following the plan for one cycle.
        search_cell_s: each cell that the planner's path searches expand.
        replan_s: making a new plan from scratch, once the old one is lost.
        look_s: taking in one view.
        new_cell_s: each cell of the view that was not in the view before.
        read_s: reading the instruction once more.
    """

    think_s: float = 0.05
    search_cell_s: float = 0.001
    replan_s: float = 0.5
    look_s: float = 0.05
    new_cell_s: float = 0.002
    read_s: float = 0.3


class SimulatedClock:
    """The time of one run, s UTC epoch; call it to read it. `elapsed_s` is the same from its start, to full precision.

    >>> clock = SimulatedClock(1_800_000_000.0)
    >>> clock.advance(0.5)
    >>> clock()
    1800000000.5
    """

    def __init__(self, start_s: float) -> None:
        self._start_s = start_s
        self.elapsed_s = 0.0

    def __call__(self) -> float:
        """The current time."""
        return self._start_s + self.elapsed_s

    def advance(self, duration_s: float) -> None:
        """Lets time pass."""
        self.elapsed_s += duration_s
