"""What a Habitat simulator knows of its agent: pose, clearance, the way to the goal. Nothing here changes it.

Habitat is imported only where it is needed, and says how to install it where it is missing.

**Here alone a navmesh is asked.** Whatever asks one that is not loaded (`find_path`, `snap_point`,
`distance_to_closest_obstacle`, habitat-lab's `geodesic_distance`, the greedy follower) ends the process by a
segmentation fault that nothing can catch, and a follower whose agent turns by 0 degrees never comes back. So every
such question goes through `navmesh_of`, with places that are three finite numbers, and without a navmesh the answer is
that it is not known.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from springback.producers.errors import ProducerError
from springback.producers.habitat.metrics import single_number
from springback.producers.habitat.signals import Pose, bearing_rad

HABITAT_SIM_BY_CONDA = (
    "conda install habitat-sim withbullet headless -c conda-forge -c aihabitat (Python 3.9) or -c aihabitat-nightly "
    "(Python 3.10 and 3.11)"
)
HABITAT_LAB_BY_PIP = 'pip install habitat-lab "opencv-python<5"'
"""How both are installed, in the words of the README of `producers`."""
_HOW = {"habitat_sim": HABITAT_SIM_BY_CONDA, "habitat": HABITAT_LAB_BY_PIP}

_FOLLOWERS = ("move_forward", "turn_left", "turn_right")
"""The actions that habitat-sim's greedy follower plans with."""
_WAYS_TO_THE_NEXT = ("env", "gym_env")
MOST_GOALS = 16
"""Goals that the way is looked up for; where an object has hundreds of places to see it from, that would take long."""


class MissingHabitatError(ProducerError, ImportError):
    """habitat-sim or habitat-lab is not installed.

    They are no extra of springback: habitat-sim does not come by pip.

    >>> str(MissingHabitatError("habitat", ImportError("it is not there")))
    'habitat cannot be imported (it is not there); install it with: pip install habitat-lab "opencv-python<5"'
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


class MissingNavmeshError(ProducerError, ValueError):
    """A simulator has no navmesh, so that nothing can tell the way to a goal.

    >>> str(MissingNavmeshError()).partition("; ")[0]
    'the simulator has no navmesh, so the way to the goals is not known'
    """

    def __init__(self) -> None:
        super().__init__(
            "the simulator has no navmesh, so the way to the goals is not known; load one before begin_episode "
            "(simulator.pathfinder.load_nav_mesh(path)) or make one (simulator.recompute_navmesh(simulator.pathfinder, "
            "settings))"
        )


def navmesh_of(sim: Any) -> Any | None:
    """The simulator's pathfinder, if it has a navmesh that can be asked; None without one."""
    pathfinder = getattr(sim, "pathfinder", None)
    return pathfinder if getattr(pathfinder, "is_loaded", False) else None


def pose_of(sim: Any, agent_id: int = 0) -> Pose:
    """The agent's pose, by habitat-lab's `get_agent_state` or by the agent of a bare simulator.

    Of a bare simulator's agent its node in the scene is read, which `get_state` reads too: that would also make an
    object of the state and work out each sensor's pose, at many times the cost.
    """
    if hasattr(sim, "get_agent_state"):
        state = sim.get_agent_state(agent_id)
    else:
        agent = sim.get_agent(agent_id)
        node = getattr(agent, "scene_node", None)
        if node is not None:
            place, turn = node.absolute_translation, node.rotation
            axis = turn.vector
            return Pose(
                (float(place[0]), float(place[1]), float(place[2])),
                (float(turn.scalar), float(axis[0]), float(axis[1]), float(axis[2])),
            )
        state = agent.get_state()
    (x, y, z), turned = state.position, state.rotation
    return Pose((float(x), float(y), float(z)), (float(turned.w), float(turned.x), float(turned.y), float(turned.z)))


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
    asked = hasattr(sim, "make_greedy_follower") and navmesh_of(sim) is not None and _is_place(goal)
    if not asked or not _gets_ahead(sim, agent_id):
        return None
    try:
        follower = sim.make_greedy_follower(agent_id, goal_radius=radius_m)
        return len(follower.find_path(np.asarray(goal, dtype=np.float32)))
    except (AssertionError, RuntimeError):  # it has other actions, or no way leads there
        return None


def _gets_ahead(sim: Any, agent_id: int) -> bool:
    """Whether the follower's actions do anything: it tries turns until it has gone half round."""
    specs = [spec for spec in sim.get_agent(agent_id).agent_config.action_space.values() if spec.name in _FOLLOWERS]
    amounts = [single_number(getattr(getattr(spec, "actuation", None), "amount", None)) for spec in specs]
    return all(amount > 0.0 for amount in amounts if amount is not None)


def clearance_m(sim: Any, position: Sequence[float], within_m: float) -> float | None:
    """The distance to the nearest obstacle, m; None where there is no navmesh, or `within_m` is 0."""
    navmesh = navmesh_of(sim) if within_m > 0.0 and _is_place(position) else None
    if navmesh is None:
        return None
    return single_number(navmesh.distance_to_closest_obstacle(np.asarray(position, dtype=np.float32)))


def geodesic_m(sim: Any, position: Sequence[float], goals: Sequence[Sequence[float]]) -> float:
    """The way to the nearest of the goals, m; infinite where none leads there, NaN where there is no navmesh to ask.

    Raises:
        MissingHabitatError: habitat-sim is not installed.
    """
    navmesh = navmesh_of(sim)
    if navmesh is None or not _is_place(position):
        return math.nan
    ends = [goal for goal in goals if _is_place(goal)]
    if not ends:
        return math.inf
    if hasattr(sim, "geodesic_distance"):  # habitat-lab's own
        return float(sim.geodesic_distance(position, ends))
    habitat_sim = sys.modules.get("habitat_sim") or import_habitat("habitat_sim")
    path = habitat_sim.MultiGoalShortestPath()
    path.requested_start = np.asarray(position, dtype=np.float32)
    path.requested_ends = np.asarray(ends, dtype=np.float32)
    navmesh.find_path(path)
    return float(path.geodesic_distance)


class Surroundings:
    """The way to the goals and the clearance from where a bare simulator's agent is.

    The simulator is asked again when the agent has moved, or a goal, or the navmesh is another one: turning on the spot
    changes neither.
    """

    def __init__(self) -> None:
        self._of: Any = None
        self._distance_m = math.nan
        self._clearance_m: float | None = None

    def look(
        self, sim: Any, position: tuple[float, ...], goals: Sequence[Sequence[float]], within_m: float
    ) -> tuple[float, float | None]:
        """The way to the nearest of the goals, as `geodesic_m` says it, and `clearance_m`.

        Args:
            sim: the simulator.
            position: where the agent is, m.
            goals: positions, m; any of them will do.
            within_m: how near an obstacle is a risk, m.

        Raises:
            MissingHabitatError: habitat-sim is not installed.
        """
        navmesh = navmesh_of(sim)
        # A navmesh that is made anew in place is told by its area.
        area_m2 = None if navmesh is None else getattr(navmesh, "navigable_area", None)
        of = (position, [tuple(goal) for goal in goals], within_m, navmesh, area_m2)
        if of != self._of:
            self._distance_m = geodesic_m(sim, position, goals)
            self._clearance_m = clearance_m(sim, position, within_m)
            self._of = of
        return self._distance_m, self._clearance_m


def snapped(sim: Any, position: Sequence[float]) -> list[float] | None:
    """The nearest place that an agent can stand on; None where there is none, or no navmesh to ask."""
    navmesh = navmesh_of(sim)
    if navmesh is None or not _is_place(position):
        return None
    place = [float(part) for part in navmesh.snap_point(np.asarray(position, dtype=np.float32))]
    return place if _is_place(place) else None


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


def _is_place(position: Sequence[float]) -> bool:
    return len(position) == 3 and all(map(math.isfinite, position))


def _numbers(values: Any) -> tuple[float, ...]:
    if not isinstance(values, np.ndarray) or not 1 <= values.size <= 4 or not np.issubdtype(values.dtype, np.number):
        return ()
    return tuple(float(value) for value in values.ravel())
