"""A BabyAI level as a world with disturbances and a clock, whose `info` holds the signals of each step.

The levels are seeded and silent, and spare the costly image that the agent does not use.
"""

from __future__ import annotations

from functools import cache
from typing import Any, SupportsFloat

import gymnasium
from gymnasium.envs.registration import load_env_creator
from minigrid.core.actions import Actions
from minigrid.core.roomgrid import RoomGrid
from minigrid.envs.babyai.core.roomgrid_level import RejectSampling

from springback.producers.babyai_testbed.agent import RecoveringAgent
from springback.producers.babyai_testbed.disturbances import Disturbance
from springback.producers.babyai_testbed.mission import Cell, MissionProgress, cell_of
from springback.producers.babyai_testbed.simulated_time import ACTION_S, SimulatedClock

CLOSE_RISK = 0.1
"""Risk load of each occupied cell beside the agent; a bump adds 1."""

CELL_M = 1.0
"""Metres that a cell stands for: a door fills one, so it is as wide as a door. Ours; minigrid's cells have no size."""

MAX_PLACINGS = 5_000
"""Placings in one layout; a layout has some tens, but where a small room is full, minigrid tries for ever."""

_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1))


class TestbedWorld(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Plays a level under a disturbance; `info` of a step has the keys that `SignalHooks` reads by default.

    travel is in cells; a retry is an action that did not do what was meant; risk counts bumps and what stands close;
    a violation is a bump. The last step's info has `navigation`, the fields of a `NavigationOutcome`, and
    `realised_magnitude`, what the disturbance really did. Attach the agent after the reset: it may be disturbed too.

    Args:
        level: a level of `make_level`.
        disturbance: what happens to the agent.
        clock: moved on by the time of each action.
    """

    __test__ = False

    def __init__(self, level: gymnasium.Env[Any, Any], disturbance: Disturbance, clock: SimulatedClock) -> None:
        super().__init__(level)
        self._level: Any = level
        self._disturbance = disturbance
        self._clock = clock
        self._cycle_start_s = clock.elapsed_s
        self._mission: MissionProgress | None = None
        self._agent: RecoveringAgent | None = None
        self._path = 0.0
        self._actions = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets the level; the agent of the last episode is forgotten."""
        observation, info = super().reset(seed=seed, options=options)
        self._mission = MissionProgress(self._level)
        self._agent = None
        self._path, self._actions = 0.0, 0
        self._cycle_start_s = self._clock.elapsed_s
        return observation, {**info, "instruction": self._disturbance.instruction(self._level.mission)}

    def attach(self, agent: RecoveringAgent) -> None:
        """Says which agent the disturbance strikes in this episode, and has it told its mission."""
        self._agent = agent
        self._disturbance.meet(agent)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Takes the action, or what the disturbance makes of it."""
        if self._mission is None or self._agent is None:
            message = "call reset() and attach() before step()"
            raise gymnasium.error.ResetNeeded(message)
        effect = self._disturbance.effect(action)
        before = self._state()
        observation, reward, terminated, truncated, info = super().step(effect)
        after = self._state()
        self._clock.advance(ACTION_S[action])
        if not (terminated or truncated):
            self._disturbance.strike(self._level, self._mission, self._agent)
        success = terminated and float(reward) > 0.0
        progress, propositions = self._mission.measure(success)
        # An agent that means to wait has done what it meant.
        failed = effect != action or (before == after and action != Actions.done)
        bump = effect == Actions.forward and before == after
        signals: dict[str, Any] = {
            "progress": progress,
            "propositions": propositions,
            "travel": float(before[0] != after[0]),
            "retries": float(failed),
            "risk": CLOSE_RISK * self._things_beside(after[0]) + bump,
            "violation": float(bump),
            "feedback": _feedback(bump, failed),
            "success": success,
            "cycle_time_s": self._clock.elapsed_s - self._cycle_start_s,
        }
        self._cycle_start_s = self._clock.elapsed_s
        self._path += signals["travel"]
        self._actions += 1
        if terminated or truncated:
            signals["navigation"] = self._navigation(self._mission, propositions, success)
            signals["realised_magnitude"] = self._disturbance.dose
        return observation, reward, terminated, truncated, {**info, **signals}

    def _navigation(self, mission: MissionProgress, propositions: float, success: bool) -> dict[str, Any]:
        """How the episode's way was, in cells and actions. The shortest is a lower bound: turns are not in it."""
        sees = any(self._level.in_view(*cell_of(thing.cur_pos)) for thing in mission.targets())
        return {
            "shortest_path": float(mission.shortest_path),
            "path": self._path,
            "actions": self._actions,
            "shortest_actions": mission.shortest_path + mission.goals,
            "final_distance": 0.0 if success else float(mission.distance_to_target()),
            "target_in_view": success or sees,
            "goals_met": round(propositions * mission.goals),
            "goals_total": mission.goals,
            "metres_per_unit": CELL_M,
        }

    def _state(self) -> tuple[Cell, int, Any, Any]:
        level = self._level
        ahead = level.grid.get(*level.front_pos)
        door_open = ahead.is_open if ahead is not None and ahead.type == "door" else None
        return cell_of(level.agent_pos), level.agent_dir, level.carrying, door_open

    def _things_beside(self, cell: Cell) -> int:
        return sum(self._level.grid.get(cell[0] + dx, cell[1] + dy) is not None for dx, dy in _SIDES)


def _feedback(bump: bool, failed: bool) -> str:
    if bump:
        return "bumped"
    return "the action did not do what was meant" if failed else ""


class _TestbedLevel:
    """Goes before a level class: the same missions as minigrid's own, draw by draw."""

    def place_obj(self: Any, *args: Any, **kwargs: Any) -> Any:
        self._placings += 1
        if self._placings > MAX_PLACINGS:
            message = f"no layout after {MAX_PLACINGS} placings"
            raise RejectSampling(message)
        return super().place_obj(*args, **kwargs)  # type: ignore[misc]

    def _gen_grid(self: Any, width: int, height: int) -> None:
        # As in RoomGridLevel, which prints every layout that it rejects to stdout.
        while True:
            self._placings = 0
            try:
                RoomGrid._gen_grid(self, width, height)  # type: ignore[no-untyped-call]
                self.gen_mission()
                self.validate_instrs(self.instrs)
            except (RecursionError, RejectSampling):
                continue
            break
        # Some levels put an object straight into the grid, which leaves its own place unset.
        for index, thing in enumerate(self.grid.grid):
            if thing is not None and thing.cur_pos is None:
                thing.cur_pos = (index % width, index // width)
        self.surface = self.instrs.surface(self)
        self.mission = self.surface

    def gen_obs(self: Any) -> dict[str, Any]:
        return {"direction": self.agent_dir, "mission": self.mission}


@cache
def _testbed_class(level_class: type) -> type:
    return type(level_class.__name__, (_TestbedLevel, level_class), {})


def make_level(level_id: str, step_limit: int) -> gymnasium.Env[Any, Any]:
    """A level of this id whose episodes are cut off after `step_limit` steps.

    Its observations leave out the image: the bot reads its view from the grid.

    Raises:
        gymnasium.error.NameNotFound: there is no such level.
    """
    spec = gymnasium.spec(level_id)
    creator: Any = load_env_creator(spec.entry_point) if isinstance(spec.entry_point, str) else spec.entry_point
    level: gymnasium.Env[Any, Any] = _testbed_class(creator)(**{**spec.kwargs, "max_steps": step_limit})
    return level
