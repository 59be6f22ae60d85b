"""Makes BabyAI levels for the testbed: seeded, silent, and without the costly image that its agent does not use."""

from functools import cache
from typing import Any

import gymnasium
from gymnasium.envs.registration import load_env_creator
from minigrid.core.roomgrid import RoomGrid
from minigrid.envs.babyai.core.roomgrid_level import RejectSampling

MAX_PLACINGS = 5_000
"""Placings in one layout; a layout has some tens, but where a small room is full, minigrid tries for ever."""


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
