"""minigrid's BabyAI bot, made to start anywhere in a mission and to say so when it has lost its plan."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from minigrid.envs.babyai.core.verifier import PickupInstr, PutNextInstr
from minigrid.utils.baby_ai_bot import (
    BabyAIBot,
    DisappearedBoxError,
    DropSubgoal,
    ExploreSubgoal,
    GoNextToSubgoal,
)
from springback.producers.babyai_testbed.mission_progress import Cell

MAX_REVISIONS = 200
"""Revisions of the plan within one cycle; the bot needs some ten, and can go round in circles for ever."""

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
        notice: is told the cells in view at each look; whether something is missing that should be there.
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
        if carried is None or not remaining or not isinstance(remaining[0], PickupInstr | PutNextInstr):
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
        level = self.mission.unwrapped
        size = level.agent_view_size
        _, visible = level.gen_obs_grid()
        ahead, right = level.dir_vec, level.right_vec
        corner = np.asarray(level.agent_pos) + ahead * (size - 1) - right * (size // 2)
        across, down = np.nonzero(visible)
        x = corner[0] - ahead[0] * down + right[0] * across
        y = corner[1] - ahead[1] * down + right[1] * across
        inside = (x >= 0) & (x < level.width) & (y >= 0) & (y < level.height)
        x, y = x[inside], y[inside]
        self.vis_mask[x, y] = True
        view = set(zip(x.tolist(), y.tolist(), strict=True))
        self.new_cells += len(view - self.in_view)
        self.in_view = view
