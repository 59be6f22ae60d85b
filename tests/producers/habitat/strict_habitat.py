"""Habitat's manners where they hurt, in a room that can be walked: what crashes there fails the test here.

By habitat-lab 0.3.320260507 and habitat-sim 0.3.3: a call into a navmesh that is not loaded, or into a simulator that
is closed, ends the process. `DistanceToGoal` is measured anew only when the agent has moved, and PointNav measures no
collisions, which `previous_step_collided` knows: that is false again after a stop. Several agents act and see by
their numbers in a bare simulator, by names that begin with `agent_1_` in habitat-lab. A call that fails in a
`VectorEnv` ends that environment's process.

The room is empty, so that the way to a goal is a straight line, and Habitat's agents look along -z.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import gymnasium
import numpy as np

from tests.producers.habitat.fake_habitat import about_y

STEP_M, TURN_DEG, SUCCESS_M, AGENT_M = 0.25, 10.0, 0.2, 0.1
ROOM = (-2.0, -4.0, 2.0, 4.0)
"""The least and the greatest x and z of the walls, m: x, z, x, z."""
ACTIONS = ("stop", "move_forward", "turn_left", "turn_right")
POINTNAV_MEASURES = ("distance_to_goal", "success", "spl")
SIMULATOR_STEP_S = 1.0 / 60.0


class SimulatorCrash(BaseException):
    """Habitat would have ended the process here: no error that anything could catch."""


class StrictPathFinder:
    """The navmesh of the room; where it is not loaded, asking it crashes. `calls` counts what was asked."""

    def __init__(self, calls: Counter[str], *, is_loaded: bool = True) -> None:
        self.is_loaded = is_loaded
        self.obstacles_m2 = 0.0
        self._calls = calls

    @property
    def navigable_area(self) -> float:
        self._asked("navigable_area")
        return (ROOM[2] - ROOM[0]) * (ROOM[3] - ROOM[1]) - self.obstacles_m2

    def find_path(self, path: Any) -> bool:
        self._asked("find_path")
        ends = np.asarray(path.requested_ends)
        assert ends.ndim == 2
        assert len(ends)
        start = np.asarray(path.requested_start)
        reached = [math.dist(start, end) if _inside(end) else math.inf for end in ends]
        path.geodesic_distance = min(reached)
        return math.isfinite(path.geodesic_distance)

    def distance_to_closest_obstacle(self, pt: Any, max_search_radius: float = 2.0) -> float:
        self._asked("distance_to_closest_obstacle")
        x, _, z = pt
        return float(min(x - ROOM[0], ROOM[2] - x, z - ROOM[1], ROOM[3] - z, max_search_radius))

    def snap_point(self, point: Any) -> Any:
        self._asked("snap_point")
        return np.asarray(point, np.float32) if _inside(point) else np.full(3, np.nan, np.float32)

    def is_navigable(self, pt: Any, max_y_delta: float = 0.5) -> bool:
        self._asked("is_navigable")
        return _inside(pt)

    def _asked(self, name: str) -> None:
        self._calls[name] += 1
        if not self.is_loaded:
            message = f"PathFinder.{name} without a navmesh: a segmentation fault"
            raise SimulatorCrash(message)


class _Agent:
    """One of a simulator's agents."""

    def __init__(self, place: Sequence[float], calls: Counter[str]) -> None:
        names = ("move_forward", "turn_left", "turn_right")
        self.agent_config = SimpleNamespace(action_space={name: SimpleNamespace(name=name) for name in names})
        self.position, self.heading = np.array(place, np.float32), 0.0
        self._calls = calls

    @property
    def scene_node(self) -> SimpleNamespace:
        """The node that `get_state` reads, in Magnum's types: a quaternion has a `vector` and a `scalar`."""
        self._calls["scene_node"] += 1
        half = self.heading / 2
        turn = SimpleNamespace(scalar=math.cos(half), vector=(0.0, math.sin(half), 0.0))
        return SimpleNamespace(absolute_translation=self.position.copy(), rotation=turn)

    def get_state(self) -> SimpleNamespace:
        self._calls["get_state"] += 1
        return SimpleNamespace(position=self.position.copy(), rotation=about_y(self.heading), sensor_states={})

    def set_state(self, state: Any, reset_sensors: bool = True) -> None:
        self._calls["set_state"] += 1
        x, y, z, w = state.rotation if isinstance(state.rotation, list) else _parts(state.rotation)
        assert abs(x) + abs(z) < 1e-9
        self.position, self.heading = np.array(state.position, np.float32), 2 * math.atan2(y, w)

    def act(self, action: str) -> bool:
        """Whether it collided: it stops at the wall."""
        assert action in self.agent_config.action_space, f"the agent has no action {action!r}"
        if action != "move_forward":
            self.heading += math.radians(TURN_DEG) * (1 if action == "turn_left" else -1)
            return False
        way = STEP_M * np.array([-math.sin(self.heading), 0.0, -math.cos(self.heading)])
        wanted = self.position + way
        low = np.array([ROOM[0] + AGENT_M, -9.0, ROOM[1] + AGENT_M])
        high = np.array([ROOM[2] - AGENT_M, 9.0, ROOM[3] - AGENT_M])
        self.position = np.clip(wanted, low, high).astype(np.float32)
        return bool(np.abs(self.position - wanted).max() > 1e-5)


class StrictSimulator:
    """`habitat_sim.Simulator`, with as many agents as there are places."""

    def __init__(self, places: Sequence[Sequence[float]] = ((0.0, 0.0, 0.0),), *, navmesh: bool = True) -> None:
        self.calls: Counter[str] = Counter()
        self.pathfinder = StrictPathFinder(self.calls, is_loaded=navmesh)
        self.curr_scene_name = "room"
        self._places = places
        self._closed = False
        self.reset_agents()

    def reset_agents(self) -> None:
        self.agents = [_Agent(place, self.calls) for place in self._places]
        self._time_s = 0.0

    def get_agent(self, agent_id: int) -> _Agent:
        self._alive()
        return self.agents[agent_id]

    def get_world_time(self) -> float:
        self._alive()
        self.calls["get_world_time"] += 1
        return self._time_s

    def reset(self, agent_ids: int | None = None) -> dict[str, Any]:
        self._alive()
        self.reset_agents()
        return self.get_sensor_observations()

    def step(self, action: Any, dt: float = SIMULATOR_STEP_S) -> Any:
        self._alive()
        self.calls["step"] += 1
        many = isinstance(action, Mapping)
        collided = {number: self.agents[number].act(own) for number, own in (action if many else {0: action}).items()}
        self._time_s += dt
        seen = {number: {**self.get_sensor_observations(), "collided": hit} for number, hit in collided.items()}
        return seen if many else seen[0]

    def step_physics(self, dt: float) -> None:
        self._alive()
        self._time_s += dt

    def get_sensor_observations(self, agent_ids: int = 0) -> dict[str, Any]:
        self._alive()
        return {"depth": np.ones((2, 2), np.float32)}

    def make_greedy_follower(self, agent_id: int | None = None, goal_radius: float | None = None, **keys: Any) -> Any:
        return StrictFollower(self, agent_id or 0, SUCCESS_M if goal_radius is None else goal_radius, **keys)

    def close(self) -> None:
        self._closed = True

    def _alive(self) -> None:
        if self._closed:
            message = "a simulator that is closed was asked: a segmentation fault"
            raise SimulatorCrash(message)


class StrictFollower:
    """`GreedyGeodesicFollower`: turns to the goal and goes there."""

    def __init__(self, sim: StrictSimulator, agent_id: int, goal_radius: float, stop_key: Any = None) -> None:
        self._sim, self._number, self._radius, self._stop = sim, agent_id, goal_radius, stop_key

    def next_action_along(self, goal_pos: Any) -> Any:
        return self._next(self._sim.get_agent(self._number), goal_pos)

    def find_path(self, goal_pos: Any) -> list[Any]:
        scout, actions = copy.copy(self._sim.get_agent(self._number)), []
        while (action := self._next(scout, goal_pos)) != self._stop:
            actions.append(action)
            scout.act(action)
        return [*actions, self._stop]

    def _next(self, agent: _Agent, goal_pos: Any) -> Any:
        self._sim.pathfinder._asked("follower")
        if not _inside(goal_pos):
            message = "no path to the goal"
            raise RuntimeError(message)  # GreedyFollowerError
        away = np.asarray(goal_pos) - agent.position
        if math.hypot(away[0], away[2]) < self._radius:
            return self._stop
        bearing = math.remainder(math.atan2(-away[0], -away[2]) - agent.heading, 2 * math.pi)
        if abs(bearing) > math.radians(TURN_DEG) / 2 + 1e-6:
            return "turn_left" if bearing > 0 else "turn_right"
        return "move_forward"


class StrictLabSim(StrictSimulator):
    """`HabitatSim` of habitat-lab."""

    def __init__(self, places: Sequence[Sequence[float]] = ((0.0, 0.0, 0.0),), *, navmesh: bool = True) -> None:
        super().__init__(places, navmesh=navmesh)
        self._seen: Any = {}

    def step(self, action: Any, dt: float = SIMULATOR_STEP_S) -> Any:
        self._seen = self.get_sensor_observations() if action is None else super().step(action, dt)
        return {"depth": np.ones((2, 2), np.float32)}

    def reset(self, agent_ids: int | None = None) -> dict[str, Any]:
        seen = self._seen = super().reset(agent_ids)
        return seen

    @property
    def previous_step_collided(self) -> bool:
        """Of the last step, where that was an action of agent 0's alone; of several agents' it tells nothing."""
        return bool(self._seen.get("collided", False))

    def get_agent_state(self, agent_id: int = 0) -> SimpleNamespace:
        return self.get_agent(agent_id).get_state()

    def set_agent_state(
        self, position: Any, rotation: list[float], agent_id: int = 0, reset_sensors: bool = True
    ) -> bool:
        self.get_agent(agent_id).set_state(SimpleNamespace(position=position, rotation=rotation), reset_sensors)
        return True

    def geodesic_distance(self, position_a: Any, position_b: Any, episode: Any = None) -> float:
        """Once an episode is given, its goals are kept with it and taken from there."""
        path = None if episode is None else episode._shortest_path_cache
        if path is None:
            path = SimpleNamespace(requested_ends=np.array(position_b, np.float32).reshape(-1, 3))
        path.requested_start = np.array(position_a, np.float32)
        self.pathfinder.find_path(path)
        if episode is not None:
            episode._shortest_path_cache = path
        return float(path.geodesic_distance)


class BaseEpisode:
    """What `current_episode` tells of a Gym-style environment's episode: its ids alone."""

    def __init__(self, episode_id: str, scene_id: str) -> None:
        self.episode_id, self.scene_id = episode_id, scene_id


class NavigationEpisode(BaseEpisode):
    """An episode of a data set, which may say the distance at its start."""

    def __init__(self, number: int, scene: str, goal: Sequence[float], geodesic_m: float | None) -> None:
        super().__init__(str(number), scene)
        self.scene_dataset_config = "default"
        self.goals = [SimpleNamespace(position=list(goal), radius=None)]
        self.info = None if geodesic_m is None else {"geodesic_distance": geodesic_m}
        self._shortest_path_cache: Any = None


class StrictMeasurements:
    """Measures by name; `DistanceToGoal` stays what it was until the agent has moved."""

    def __init__(self, env: StrictEnv, names: Sequence[str]) -> None:
        self.measures = {name: SimpleNamespace(uuid=name) for name in names}
        self.values: dict[str, Any] = {}
        self._env = env

    def reset_measures(self, **_: Any) -> None:
        self.measures["distance_to_goal"]._previous_position = None
        self.values = {}
        self._path_m, self._before, self._start_m = 0.0, self._env.sim.agents[0].position.copy(), math.inf
        self.update_measures()
        self._start_m = self.values["distance_to_goal"]

    def update_measures(self, **_: Any) -> None:
        env, values = self._env, self.values
        here = env.sim.agents[0].position
        measure = self.measures["distance_to_goal"]
        if measure._previous_position is None or not np.allclose(measure._previous_position, here, atol=1e-4):
            before_m = values.get("distance_to_goal")
            goals = [goal.position for goal in env.current_episode.goals]
            values["distance_to_goal"] = env.sim.geodesic_distance(here, goals, env.current_episode)
            values["distance_to_goal_reward"] = (before_m or values["distance_to_goal"]) - values["distance_to_goal"]
            measure._previous_position = tuple(here)
        else:
            values["distance_to_goal_reward"] = 0.0
        self._path_m += math.dist(self._before, here)
        self._before = here.copy()
        values["success"] = float(env.stopped and values["distance_to_goal"] < SUCCESS_M)
        values["spl"] = values["success"] and self._start_m / max(self._start_m, self._path_m)

    def get_metrics(self) -> dict[str, Any]:
        return {name: self.values[name] for name in self.measures}


class StrictEnv:
    """`habitat.Env` over the room: plays its goals in turn, one an episode.

    Args:
        goals: the goal of each episode.
        measures: the measures that the task has.
        places: where the agents start.
        scene: id of the scene.
        geodesic: whether episodes say the distance at the start.
    """

    def __init__(
        self,
        goals: Sequence[Sequence[float]] = ((0.0, 0.0, -3.0),),
        measures: Sequence[str] = POINTNAV_MEASURES,
        places: Sequence[Sequence[float]] = ((0.0, 0.0, 0.0),),
        *,
        scene: str = "data/scene_datasets/strict/room.glb",
        geodesic: bool = True,
        limit: int = 100,
    ) -> None:
        self.sim = StrictLabSim(places)
        self.episodes = [
            NavigationEpisode(number, scene, goal, math.dist(places[0], goal) if geodesic else None)
            for number, goal in enumerate(goals)
        ]
        self.task = SimpleNamespace(is_episode_active=False, get_action_name=_action_name)
        self.task.measurements = StrictMeasurements(self, measures)
        self.current_episode = self.episodes[0]
        self.episode_over, self.stopped = True, False
        self._next, self._limit = 0, limit

    @property
    def number_of_episodes(self) -> int:
        return len(self.episodes)

    def reset(self) -> dict[str, Any]:
        self.current_episode = self.episodes[self._next % len(self.episodes)]
        self._next += 1
        self.current_episode._shortest_path_cache = None
        self.episode_over, self.stopped, self._steps = False, False, 0
        self.task.is_episode_active = True
        seen = self.sim.reset()
        self.task.measurements.reset_measures(episode=self.current_episode, task=self.task)
        return self._seen(seen)

    def step(self, action: Any) -> dict[str, Any]:
        assert not self.episode_over, "Episode over, call reset before calling step"
        name = action["action"] if isinstance(action, Mapping) else action
        name = _action_name(int(name)) if isinstance(name, (int, np.integer)) else name
        self.stopped = name == "stop"
        names = name if isinstance(name, tuple) else (name,)
        own = {int(part[6]): part[8:] if part.startswith("agent_") else part for part in map(_numbered, names)}
        seen = self.sim.step(None if self.stopped else own[0] if set(own) == {0} else own)
        self._steps += 1
        self.task.is_episode_active = not self.stopped
        self.task.measurements.update_measures(episode=self.current_episode, action=action, task=self.task)
        self.episode_over = self.stopped or self._steps >= self._limit
        return self._seen(seen)

    def get_metrics(self) -> dict[str, Any]:
        metrics: dict[str, Any] = self.task.measurements.get_metrics()
        return metrics

    def close(self) -> None:
        self.sim.close()

    def _seen(self, fresh: dict[str, Any]) -> dict[str, Any]:
        if len(self.sim.agents) == 1:
            return {**fresh, **self._sensed(self.sim.agents[0])}
        return {
            f"agent_{number}_{name}": value
            for number, agent in enumerate(self.sim.agents)
            for name, value in self._sensed(agent).items()
        }

    def _sensed(self, agent: _Agent) -> dict[str, Any]:
        """By `gps` (2-D: along the start's heading, and to its right) and PointGoal."""
        away = np.array(self.current_episode.goals[0].position) - agent.position
        bearing = math.remainder(math.atan2(-away[0], -away[2]) - agent.heading, 2 * math.pi)
        return {
            "gps": np.array([-agent.position[2], agent.position[0]], np.float32),
            "compass": np.array([agent.heading], np.float32),
            "pointgoal_with_gps_compass": np.array([math.hypot(away[0], away[2]), bearing], np.float32),
        }


class StrictRLEnv(gymnasium.Env[Any, Any]):
    """`habitat.RLEnv`: a Gym environment, whose steps have four parts."""

    def __init__(self, env: StrictEnv) -> None:
        self._env = env

    @property
    def habitat_env(self) -> StrictEnv:
        return self._env

    @property
    def number_of_episodes(self) -> int:
        return self._env.number_of_episodes

    def current_episode(self, all_info: bool = False) -> Any:
        episode = self._env.current_episode
        return copy.deepcopy(episode) if all_info else BaseEpisode(episode.episode_id, episode.scene_id)

    def reset(self, **_: Any) -> Any:
        return self._env.reset()

    def step(self, action: Any) -> Any:
        seen = self._env.step(action)
        return seen, 0.0, self._env.episode_over, self._env.get_metrics()

    def close(self) -> None:
        self._env.close()


class StrictVectorEnv:
    """habitat-lab's `VectorEnv` without its processes; an environment in which a call has failed is dead."""

    def __init__(self, envs: Sequence[Any], *, auto_reset_done: bool = True) -> None:
        self._envs, self._auto_reset_done = list(envs), auto_reset_done
        self._waiting: dict[int, Any] = {}
        self._dead: set[int] = set()
        self.calls: list[str] = []
        self.orig_action_spaces = [SimpleNamespace(spaces=dict.fromkeys(sorted(ACTIONS))) for _ in envs]

    @property
    def num_envs(self) -> int:
        return len(self._envs)

    def call_at(self, index: int, function_name: str, function_args: dict[str, Any] | None = None) -> Any:
        assert index not in self._waiting, "Tried to write to process but the last write has not been read"
        self.calls.append(function_name)
        try:
            found = getattr(self._envs[index], function_name)
            return found(**(function_args or {})) if function_args or callable(found) else found
        except Exception as error:
            self._dead.add(index)
            raise EOFError from error

    def reset(self) -> list[Any]:
        return [self.reset_at(index)[0] for index in range(self.num_envs)]

    def reset_at(self, index_env: int) -> list[Any]:
        return [self._envs[index_env].reset()]

    def async_step_at(self, index_env: int, action: Any) -> None:
        self._waiting[index_env] = action

    def wait_step_at(self, index_env: int) -> Any:
        action = self._waiting.pop(index_env)
        if index_env in self._dead:
            raise EOFError
        seen, reward, done, info = self._envs[index_env].step(action)
        return (self._envs[index_env].reset() if done and self._auto_reset_done else seen), reward, done, info

    def close(self) -> None:
        for env in self._envs:
            env.close()


def strict_habitat_sim() -> ModuleType:
    """The module `habitat_sim`, as far as it is asked."""
    module = ModuleType("habitat_sim")
    module.MultiGoalShortestPath = SimpleNamespace  # type: ignore[attr-defined]
    module.PathFinder = lambda: StrictPathFinder(Counter(), is_loaded=False)  # type: ignore[attr-defined]
    return module


def _action_name(index: int) -> str:
    if not 0 <= index < len(ACTIONS):
        message = f"Action index '{index}' is out of range."
        raise ValueError(message)
    return ACTIONS[index]


def _numbered(name: str) -> str:
    return name if name.startswith("agent_") else f"agent_0_{name}"


def _inside(place: Any) -> bool:
    x, y, z = place
    return bool(ROOM[0] <= x <= ROOM[2] and ROOM[1] <= z <= ROOM[3] and abs(y) < 1.0)


def _parts(rotation: Any) -> tuple[float, ...]:
    return rotation.x, rotation.y, rotation.z, rotation.w
