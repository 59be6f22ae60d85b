"""What a Habitat simulator knows of its agent: pose, clearance, clock, the way to the goal. Nothing here changes it.

Habitat is imported only where it is needed, and says how to install it where it is missing.
"""

import importlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from springback.producers.errors import ProducerError
from springback.producers.habitat.metrics import single_number
from springback.producers.habitat.signals import Pose, bearing_rad

_HOW = {
    "habitat_sim": "conda install habitat-sim withbullet headless -c conda-forge -c aihabitat",
    "habitat": "pip install habitat-lab",
}

_WAYS_TO_THE_NEXT = ("env", "gym_env")
MOST_GOALS = 16
"""Goals that the way is looked up for; where an object has hundreds of places to see it from, that would take long."""


class MissingHabitatError(ProducerError, ImportError):
    """habitat-sim or habitat-lab is not installed.

    They are no extra of springback: habitat-sim does not come by pip, and the two ask for different versions of numpy.

    >>> str(MissingHabitatError("habitat", ImportError("No module named 'habitat'")))
    "habitat cannot be imported (No module named 'habitat'); install it with: pip install habitat-lab"
    """

    def __init__(self, module: str, cause: ImportError) -> None:
        super().__init__(f"{module} cannot be imported ({cause}); install it with: {_HOW[module]}", name=module)


def import_habitat(module: str) -> Any:
    """The module `habitat_sim` or `habitat`.

    Raises:
        MissingHabitatError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingHabitatError(module, error) from error


def pose_of(sim: Any, agent_id: int = 0) -> Pose:
    """The agent's pose, by habitat-lab's `get_agent_state` or by the agent of a bare simulator."""
    state = sim.get_agent_state(agent_id) if hasattr(sim, "get_agent_state") else sim.get_agent(agent_id).get_state()
    rotation = state.rotation
    return Pose(
        tuple(float(part) for part in state.position),
        tuple(float(getattr(rotation, part)) for part in "wxyz"),
    )


def pose_by_sensors(observation: Any) -> Pose | None:
    """The pose by habitat-lab's own sensors (`gps` and `compass`, or `localization_sensor`); None without them."""
    if not isinstance(observation, Mapping):
        return None
    for position, heading in (("localization_sensor", ""), ("gps", "compass")):
        found = _numbers(observation.get(position))
        if found and not heading:
            return Pose(found[:3], found[3:])
        if found:
            return Pose(found, _numbers(observation.get(heading)))
    return None


def bearing_by_sensors(observation: Any) -> float | None:
    """How far the goal lies off the heading, rad, by habitat-lab's point goal sensors; None without them."""
    for name in ("pointgoal_with_gps_compass", "pointgoal"):
        found = _numbers(observation.get(name)) if isinstance(observation, Mapping) else ()
        if len(found) == 2 and math.isfinite(found[1]):
            return found[1]
    return None


def way_to(
    sim: Any, pose: Pose, goals: Sequence[Sequence[float]], radius_m: float, agent_id: int = 0
) -> dict[str, Any]:
    """What `EpisodeStart` says of the way from here to the nearest goal: `follower_actions` and `bearing_rad`.

    Args:
        sim: the simulator; nothing in it moves.
        pose: where the agent is.
        goals: positions, m; any of them will do.
        radius_m: how near the goal the follower stops, m.
        agent_id: which agent.
    """
    if not 0 < len(goals) <= MOST_GOALS:
        return {}
    nearest = min(goals, key=lambda goal: math.dist(pose.position, goal))
    actions = [count for goal in goals if (count := _follower_actions(sim, goal, radius_m, agent_id)) is not None]
    return {"follower_actions": min(actions, default=None), "bearing_rad": bearing_rad(pose, nearest)}


def _follower_actions(sim: Any, goal: Sequence[float], radius_m: float, agent_id: int) -> int | None:
    """The length of the greedy geodesic follower's path, the stop included; None where it knows no way.

    The follower plans on perfect actions, and only where the agent has habitat-sim's own `move_forward` and turns.
    """
    pathfinder: Any = getattr(sim, "pathfinder", None)
    if not hasattr(sim, "make_greedy_follower") or not getattr(pathfinder, "is_loaded", False):
        return None
    try:
        follower = sim.make_greedy_follower(agent_id, goal_radius=radius_m)
        return len(follower.find_path(np.asarray(goal, dtype=np.float32)))
    except (AssertionError, RuntimeError):  # it has other actions, or no way leads there
        return None


def clearance_m(sim: Any, position: Sequence[float], within_m: float) -> float | None:
    """The distance to the nearest obstacle, m; None where there is no navmesh, or `within_m` is 0."""
    pathfinder: Any = getattr(sim, "pathfinder", None)
    if within_m <= 0.0 or not getattr(pathfinder, "is_loaded", False):
        return None
    return single_number(pathfinder.distance_to_closest_obstacle(np.asarray(position, dtype=np.float32)))


def geodesic_m(sim: Any, position: Sequence[float], goals: Sequence[Sequence[float]]) -> float:
    """The way to the nearest of the goals, m; infinite where there is none.

    Raises:
        MissingHabitatError: habitat-sim is not installed.
    """
    path = import_habitat("habitat_sim").MultiGoalShortestPath()
    path.requested_start = np.asarray(position, dtype=np.float32)
    path.requested_ends = np.asarray(goals, dtype=np.float32)
    sim.pathfinder.find_path(path)
    return float(path.geodesic_distance)


def core_env(env: Any) -> Any | None:
    """The `habitat.Env` behind a Gym-style environment and its wrappers; None where there is none."""
    seen: list[Any] = []
    while env is not None and all(env is not other for other in seen):
        core = getattr(env, "habitat_env", None)
        if core is not None:
            return core
        seen.append(env)
        env = next((inner for way in _WAYS_TO_THE_NEXT if (inner := getattr(env, way, None)) is not None), None)
    return None


def _numbers(values: Any) -> tuple[float, ...]:
    if not isinstance(values, np.ndarray) or not 1 <= values.size <= 4 or not np.issubdtype(values.dtype, np.number):
        return ()
    return tuple(float(value) for value in values.ravel())
