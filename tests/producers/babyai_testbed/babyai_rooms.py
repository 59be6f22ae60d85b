"""Rooms of BabyAI that are laid out by hand, with their missions."""

from typing import Any

from minigrid.core import world_object
from minigrid.envs.babyai.core import verifier as mission_verifier

from springback.producers.babyai_testbed.world import make_level

# minigrid is only half annotated: taken as Any where it is not.
verifier: Any = mission_verifier
things_of_minigrid: Any = world_object
ball_of: Any = world_object.Ball


def level_after_reset(level_id: str, seed: int) -> Any:
    level = make_level(level_id, 200)
    level.reset(seed=seed)
    return level


def go_to(kind: str, color: str) -> Any:
    return verifier.GoToInstr(verifier.ObjDesc(kind, color))


def pick_up(kind: str, color: str) -> Any:
    return verifier.PickupInstr(verifier.ObjDesc(kind, color))


def put(level: Any, thing: Any, x: int, y: int) -> Any:
    level.grid.set(x, y, thing)
    thing.cur_pos = (x, y)
    return thing


def open_room(instruction: Any, *things: tuple[Any, int, int]) -> Any:
    """A walled room of 6 x 6 free cells, the agent at (1, 1) facing right, with these things and this mission."""
    level = level_after_reset("BabyAI-GoToLocalS8N2-v0", 0)
    level.grid.grid = [
        things_of_minigrid.Wall() if x in (0, 7) or y in (0, 7) else None for y in range(8) for x in range(8)
    ]
    level.agent_pos, level.agent_dir = (1, 1), 0
    for thing, x, y in things:
        put(level, thing, x, y)
    level.instrs = instruction
    level.instrs.reset_verifier(level)
    return level
