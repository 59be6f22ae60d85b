"""The agent of the testbed: follows a plan, notices when it has lost it, and makes a new one from scratch."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from minigrid.core.actions import Actions
from minigrid.envs.babyai.core.verifier import GoToInstr
from springback.producers.babyai_testbed.mission_beliefs import BelievedDescription, MissionBeliefs
from springback.producers.babyai_testbed.planning_bot import BOT_FAILURES, PlanLostError, PlanningBot
from springback.producers.babyai_testbed.simulated_time import CostModel

_WAYS_OUT = (Actions.left, Actions.right, Actions.forward)


@dataclass(frozen=True, slots=True)
class Decision:
    """What the agent does next, and what it took to decide it.

    Attributes:
        action: the action, one of minigrid's `Actions`.
        mode: what the agent is doing: explore, navigate, manipulate, or plan when it has no plan at all.
        planning_s: time spent on planning, s.
        perception_s: time spent on looking, s.
        remark: why the plan was made anew; empty where it was not.
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
        self._doubt = ""
        self._bot = self._plan(np.zeros((level.width, level.height), dtype=bool))
        self._last_action: int | None = None
        self._last_carried: Any = None

    def decide(self) -> Decision:
        """The next action."""
        self._feel_hand()
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
        """Makes the agent take a distractor for the target at hand, without noticing; whether that was possible."""
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

    def _start_again(self) -> tuple[int, str]:
        self._correct()
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
        return PlanningBot(self._level, self.beliefs.remaining(), map_seen, self.beliefs.notice)
