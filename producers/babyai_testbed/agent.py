"""The agent of the testbed: follows a plan, notices when it no longer fits the world, and makes a new one from scratch.

The plan is that of minigrid's BabyAI bot, made to start anywhere in a mission and to say when it is lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from minigrid.core.actions import Actions
from minigrid.envs.babyai.core.verifier import GoToInstr, PickupInstr, PutNextInstr
from minigrid.utils.baby_ai_bot import (
    BabyAIBot,
    DisappearedBoxError,
    DropSubgoal,
    ExploreSubgoal,
    GoNextToSubgoal,
)

from springback.producers.babyai_testbed.hearing import Hearing
from springback.producers.babyai_testbed.mission import BelievedDescription, Cell, MissionBeliefs
from springback.producers.babyai_testbed.simulated_time import CostModel
from springback.producers.perturbations.paraphrase import Paraphrase

MAX_REVISIONS = 200
"""Revisions of the plan within one cycle; the bot needs some ten, and can go round in circles for ever."""

_State = tuple[int, int, int, int]
"""A cell, and the direction in which it was reached."""

_WAYS_OUT = (Actions.left, Actions.right, Actions.forward)

BOT_FAILURES = (AssertionError, AttributeError, DisappearedBoxError, TypeError)
"""What minigrid's bot raises when the world does not fit its plan: it checks by assertions alone, if at all."""


class PlanLostError(Exception):
    """The plan does not fit the world any more; the message says why."""


class PlanningBot(BabyAIBot):
    """A bot with a plan for what is left of a mission, from the present state of the level.

    Args:
        level: the level, in any state.
        remaining: the action instructions still to do, in order.
        map_seen: which cells were seen so far, bool, shape (width, height); taken over and kept up to date.
        notice: given the cells in view at each look, says whether something is missing that should be there.
    """

    def __init__(
        self, level: Any, remaining: list[Any], map_seen: npt.NDArray[np.bool_], notice: Callable[[set[Cell]], bool]
    ) -> None:
        super().__init__(level)  # type: ignore[no-untyped-call]
        self.vis_mask = map_seen
        self._notice = notice
        self.in_view: set[Cell] = set()
        self.new_cells = 0
        self.look()
        self.stack.clear()
        for action in reversed(remaining):
            self._process_instr(action)  # type: ignore[no-untyped-call]
        self._make_hands_free(remaining)

    def replan(self, action_taken: Any = None) -> Any:
        """The next action of the plan, which is revised as far as it needs.

        Raises:
            PlanLostError: the plan has no next action.
        """
        self.look()
        if self._notice(self.in_view):
            reason = "what the mission needs is not where it was"
            raise PlanLostError(reason)
        try:
            action = self._revise(action_taken)
        except BOT_FAILURES as failure:
            reason = f"the plan does not fit the world: {failure or type(failure).__name__}"
            raise PlanLostError(reason) from failure
        self._remember_current_state()  # type: ignore[no-untyped-call]
        return action

    @property
    def mode(self) -> str:
        """What the bot is doing: explore, navigate or manipulate."""
        if any(isinstance(subgoal, ExploreSubgoal) for subgoal in self.stack):
            return "explore"
        return "navigate" if isinstance(self.stack[-1], GoNextToSubgoal) else "manipulate"

    def _revise(self, action_taken: Any) -> Any:
        self._check_erroneous_box_opening(action_taken)  # type: ignore[no-untyped-call]
        for subgoal in self.stack:
            subgoal.update_agent_attributes()
        if self.stack:
            self.stack[-1].replan_after_action(action_taken)
        while self.stack and self.stack[-1].is_exploratory():
            self.stack.pop()
        for _ in range(MAX_REVISIONS):
            if not self.stack:
                reason = "the plan is done and the mission is not"
                raise PlanLostError(reason)
            action = self.stack[-1].replan_before_action()
            if action is not None:
                return action
        reason = "the plan goes round in circles"
        raise PlanLostError(reason)

    def _make_hands_free(self, remaining: list[Any]) -> None:
        carried = self.mission.unwrapped.carrying
        if carried is None or not remaining or not isinstance(remaining[0], (PickupInstr, PutNextInstr)):
            return
        if isinstance(remaining[0], PutNextInstr) and any(carried is it for it in remaining[0].desc_move.obj_set):
            self.stack.pop()  # going to what is to be moved
            self.stack.pop()  # and picking it up
            return
        self.stack.append(DropSubgoal(self))
        place = self._find_drop_pos()  # type: ignore[no-untyped-call]
        self.stack.append(GoNextToSubgoal(self, place))

    def look(self) -> None:
        """Takes in what is in view now."""
        view = cells_in_view(self.mission.unwrapped)
        x, y = zip(*view)
        self.vis_mask[x, y] = True
        self.new_cells += len(view - self.in_view)
        self.in_view = view

    def _breadth_first_search(
        self, initial_states: Iterable[_State], accept_fn: Callable[[Cell, Any], bool], ignore_blockers: bool
    ) -> tuple[list[Cell] | None, Cell | None, dict[Cell, Cell | None]]:
        """What the bot's own comes to, by a queue that is not copied at every cell: that took half of all planning."""
        self.bfs_counter += 1
        grid, seen = self.mission.unwrapped.grid, self.vis_mask
        queue: deque[tuple[_State, Cell | None]] = deque((state, None) for state in initial_states)
        before: dict[Cell, Cell | None] = {}
        while queue:
            (i, j, di, dj), came_from = queue.popleft()
            here = (i, j)
            if here in before:
                continue
            self.bfs_step_counter += 1
            cell = grid.get(i, j)
            before[here] = came_from
            if accept_fn(here, cell):
                path: list[Cell] = []
                at: Cell | None = here
                while at is not None:
                    path.append(at)
                    at = before[at]
                return path, here, before
            if not seen[i, j] or (cell is not None and _stops(cell, ignore_blockers)):
                continue
            for k, m in ((di, dj), (dj, di), (-dj, -di), (-di, -dj)):  # without turning first
                if (i + k, j + m) not in before:
                    queue.append(((i + k, j + m, k, m), here))
        return None, None, before


def cells_in_view(level: Any) -> set[Cell]:
    """The cells of a level that its agent sees now.

    They are those of minigrid's `gen_obs_grid`, which cuts the view out of the grid and turns it before it looks.
    """
    size = level.agent_view_size
    middle, nearest = size // 2, size - 1
    (x, y), (ahead_x, ahead_y), (right_x, right_y) = level.agent_pos, level.dir_vec, level.right_vec
    grid, width, height = level.grid, level.width, level.height

    def place(across: int, down: int) -> Cell:
        far, aside = nearest - down, across - middle
        return int(x + ahead_x * far + right_x * aside), int(y + ahead_y * far + right_y * aside)

    def clear(across: int, down: int) -> bool:
        i, j = place(across, down)
        if not (0 <= i < width and 0 <= j < height):
            return False
        cell = grid.get(i, j)
        return cell is None or bool(cell.see_behind())

    # Row by row away from the agent: sight spreads to both sides, and from each clear cell to the row behind it.
    visible: set[Cell] = set()
    row = {middle}
    for down in range(nearest, -1, -1):
        behind: set[int] = set()
        for step, sweep in ((1, range(nearest)), (-1, range(nearest, 0, -1))):
            for across in sweep:
                if across in row and clear(across, down):
                    row.add(across + step)
                    behind |= {across, across + step}
        visible |= {place(across, down) for across in row}
        row = behind
    return {(i, j) for i, j in visible if 0 <= i < width and 0 <= j < height}


def _stops(cell: Any, ignore_blockers: bool) -> bool:
    if cell.type == "door":
        return not cell.is_open
    return cell.type == "wall" or not ignore_blockers


@dataclass(frozen=True)
class Decision:
    """What the agent does next, and what it took to decide it.

    Attributes:
        action: the action, one of minigrid's `Actions`.
        mode: what the agent is doing: explore, navigate, manipulate, or plan when it has no plan at all.
        planning_s: time spent on planning, s.
        perception_s: time spent on looking, s.
        remark: why a new plan was made; empty where the old one was followed.
    """

    action: int
    mode: str
    planning_s: float
    perception_s: float
    remark: str


class RecoveringAgent:
    """An agent for one episode on a level.

    It does not feel whether an action had its effect: it sees where it is and what lies before it, and finds out that
    a grasp or a release has failed only when its plan does not fit any more. Then it plans from scratch with the map
    that it has; if things are not where they were, it trusts no more of the map than it sees.

    Args:
        level: the level, after its reset.
        costs: what planning and looking take.
        rng: for the way out when no plan can be made.
    """

    def __init__(self, level: Any, costs: CostModel, rng: np.random.Generator) -> None:
        self._level = level
        self._costs = costs
        self._rng = rng
        self.beliefs = MissionBeliefs(level)
        self._wrong: tuple[Any, str, Any] | None = None
        self._hearing: Hearing | None = None
        self._doubt = ""
        self._todo: list[Any] = []
        self._bot = self._plan(np.zeros((level.width, level.height), dtype=bool))
        self._last_action: int | None = None
        self._last_carried: Any = None

    def decide(self) -> Decision:
        """The next action."""
        self._feel_hand()
        if self._hearing is not None and self._hearing.rereads:
            self._hearing.rereads -= 1
            self._last_action = None
            return Decision(int(Actions.done), "plan", self._costs.think_s, self._costs.read_s, "")
        self._go_on()
        bot, searched, seen = self._bot, self._bot.bfs_step_counter, self._bot.new_cells
        lost, self._doubt = self._doubt, ""
        if not lost:
            try:
                action, mode = bot.replan(self._last_action), bot.mode
            except PlanLostError as reason:
                lost = str(reason)
        if lost:
            action, mode = self._start_again()
        self._last_action = action
        searched, seen = bot.bfs_step_counter - searched, bot.new_cells - seen
        if self._bot is not bot:
            searched, seen = searched + self._bot.bfs_step_counter, seen + self._bot.new_cells
        costs = self._costs
        return Decision(
            action=int(action),
            mode=mode,
            planning_s=costs.think_s + costs.search_cell_s * searched + costs.replan_s * bool(lost),
            perception_s=costs.look_s + costs.new_cell_s * seen,
            remark=lost,
        )

    def hear(self, told: Paraphrase) -> None:
        """Tells the agent its mission, perhaps in words that it does not know; see `hearing`."""
        self._hearing = Hearing(self._level, self.beliefs, told)
        self._bot = self._plan(self._bot.vis_mask)

    @property
    def mistaken(self) -> bool:
        """Whether the agent takes something else for its target just now."""
        return self._wrong is not None

    @property
    def goes_only(self) -> bool:
        """Whether the agent is to go to something, and not to do anything to it."""
        remaining = self.beliefs.remaining()
        return bool(remaining) and isinstance(remaining[0], GoToInstr)

    def mistake(self, distractor: Any) -> bool:
        """Makes the agent take a distractor for the target at hand, without noticing. False if that is not possible."""
        if self._wrong is not None or not self.beliefs.remaining():
            return False
        instruction, name = self.beliefs.at_hand()
        self._wrong = (instruction, name, getattr(instruction, name))
        setattr(instruction, name, BelievedDescription(distractor, [distractor]))
        self._bot = self._plan(self._bot.vis_mask)
        self._last_action = None
        return True

    def realise(self) -> None:
        """Lets the agent see its mistake: its plan is lost."""
        self._correct()
        self._doubt = "it was after the wrong thing"

    def _feel_hand(self) -> None:
        if self._last_carried is not None and self._level.carrying is None:
            self.beliefs.released(self._last_carried)
        self._last_carried = self._level.carrying

    def _go_on(self) -> None:
        """Goes on with the next act where the agent had set out to do one alone, and has done it."""
        if self._hearing is None or self._doubt:
            return
        remaining = self.beliefs.remaining()
        if remaining and self._todo and not any(self._todo[0] is action for action in remaining):
            try:
                self._bot = self._plan(self._bot.vis_mask)
                self._last_action = None
            except BOT_FAILURES as failure:
                self._doubt = f"the plan does not fit the world: {failure or type(failure).__name__}"

    def _start_again(self) -> tuple[int, str]:
        self._correct()
        if self._hearing is not None:
            self._hearing.reconsider(self._todo)
        self._bot.look()
        seen = self._bot.vis_mask
        if self.beliefs.notice(self._bot.in_view):
            seen = np.zeros_like(seen)
            self.beliefs.recall()
        for map_seen in (seen, np.zeros_like(seen)):
            try:
                self._bot = self._plan(map_seen)
                return self._bot.replan(), self._bot.mode
            except (PlanLostError, *BOT_FAILURES):
                # No plan with this map: try with none, and then get out of where it is stuck.
                continue
        return int(self._rng.choice(_WAYS_OUT)), "plan"

    def _correct(self) -> None:
        if self._wrong is not None:
            instruction, name, believed = self._wrong
            setattr(instruction, name, believed)
            self._wrong = None

    def _plan(self, map_seen: Any) -> PlanningBot:
        remaining = self.beliefs.remaining()
        self._todo = remaining if self._hearing is None else self._hearing.todo(remaining)
        return PlanningBot(self._level, self._todo, map_seen, self.beliefs.notice)
