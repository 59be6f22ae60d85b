"""A small world with habitat-lab's interface, in which actions have effects: an open floor, a robot, a goal."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.producers.habitat.fake_habitat import FakeTask, about_y

STEP_M, TURN_DEG, LIMIT, SUCCESS_M = 0.25, 10.0, 150, 0.3
START = (0.0, 0.0, 0.0)
Goal = SimpleNamespace


class LiveSim:
    """habitat-lab's simulator over an open floor: heading 0 looks along -z, as Habitat's agents do."""

    def __init__(self) -> None:
        self.pathfinder = open_floor()
        self.place()

    def place(self) -> None:
        self.position, self.heading, self.time_s = np.array(START), 0.0, 0.0

    def get_agent_state(self, agent_id: int = 0) -> SimpleNamespace:
        return SimpleNamespace(position=self.position.copy(), rotation=about_y(self.heading))

    def set_agent_state(
        self, position: Any, rotation: list[float], agent_id: int = 0, reset_sensors: bool = True
    ) -> bool:
        x, y, z, w = rotation
        assert abs(x) + abs(z) < 1e-9
        self.position, self.heading = np.array(position), 2 * math.atan2(y, w)
        return True

    def get_world_time(self) -> float:
        return self.time_s

    def geodesic_distance(self, position_a: Any, position_b: Any, episode: Any = None) -> float:
        """Once an episode is given, its goals are kept with it and taken from there, as habitat-lab does."""
        ends = position_b if isinstance(position_b[0], list) else [position_b]
        if episode is not None:
            ends = episode._shortest_path_cache = episode._shortest_path_cache or ends
        return min(math.dist(position_a, end) for end in ends)

    def step(self, action: str | None) -> dict[str, Any]:
        self.time_s += 0.05
        if action == "move_forward":
            self.position += STEP_M * np.array([-math.sin(self.heading), 0.0, -math.cos(self.heading)])
        elif action is not None and "turn" in action:
            self.heading += math.radians(TURN_DEG) * (1 if action == "turn_left" else -1)
        return {"depth": np.ones((2, 2), np.float32)}


class LiveEnv:
    """`habitat.Env` with one episode that is played again and again."""

    def __init__(self) -> None:
        self.sim = LiveSim()
        self.task: Any = FakeTask()
        self.task.measurements = self
        self.current_episode = SimpleNamespace(
            episode_id="3", scene_id="hall.glb", info=None, goals=[Goal(position=[3.0, 0.0, -4.0], radius=None)]
        )
        self.episode_over = True

    def reset(self) -> dict[str, Any]:
        self.sim.place()
        self.current_episode._shortest_path_cache = None
        self.stopped, self.steps, self.episode_over, self.task.is_episode_active = False, 0, False, True
        return self._seen(self.sim.step(None))

    def step(self, action: str) -> dict[str, Any]:
        assert not self.episode_over
        self.stopped = action == "stop"
        self.steps += 1
        fresh = self.sim.step(action)
        self.task.is_episode_active = not self.stopped
        self.episode_over = self.stopped or self.steps >= LIMIT
        return self._seen(fresh)

    def update_measures(self, *, episode: Any, action: Any, task: Any, observations: Any) -> None:
        """The metrics here are functions of the state."""

    def get_metrics(self) -> dict[str, Any]:
        goals = [goal.position for goal in self.current_episode.goals]
        distance_m = self.sim.geodesic_distance(self.sim.position, goals, self.current_episode)
        return {"distance_to_goal": distance_m, "success": float(self.stopped and distance_m < SUCCESS_M)}

    def close(self) -> None:
        """Nothing is open."""

    def _seen(self, fresh: dict[str, Any]) -> dict[str, Any]:
        away = np.array(self.current_episode.goals[0].position) - self.sim.position
        bearing = math.atan2(-away[0], -away[2]) - self.sim.heading
        polar = [math.hypot(away[0], away[2]), math.remainder(bearing, 2 * math.pi)]
        return {**fresh, "pointgoal_with_gps_compass": np.array(polar, np.float32)}


def follow(observations: dict[str, Any]) -> str:
    """Goes to where the goal seems to be."""
    rho, phi = (float(part) for part in observations["pointgoal_with_gps_compass"])
    if rho < 0.2:
        return "stop"
    if abs(phi) > math.radians(TURN_DEG):
        return "turn_left" if phi > 0 else "turn_right"
    return "move_forward"


class LiveSimulator:
    """habitat-sim's simulator over the same floor, without what habitat-lab adds."""

    curr_scene_name = "hall"

    def __init__(self) -> None:
        self._lab = LiveSim()
        self.pathfinder = open_floor()
        action_space = {"move_forward": SimpleNamespace(name="move_forward")}
        self._agent = SimpleNamespace(
            agent_config=SimpleNamespace(action_space=action_space),
            get_state=self._lab.get_agent_state,
            set_state=lambda state, reset_sensors=True: self._lab.set_agent_state(state.position, state.rotation),
        )

    def get_agent(self, agent_id: int) -> SimpleNamespace:
        return self._agent

    def get_world_time(self) -> float:
        return self._lab.time_s

    def get_sensor_observations(self) -> dict[str, Any]:
        return self._lab.step(None)

    def step_physics(self, dt: float) -> None:
        self._lab.time_s += dt

    def step(self, action: str, dt: float = 1.0 / 60.0) -> dict[str, Any]:
        return {**self._lab.step(action), "collided": False}


def open_floor() -> SimpleNamespace:
    """A navmesh without an obstacle."""
    return SimpleNamespace(
        is_loaded=True,
        snap_point=lambda point: point,
        find_path=_straight,
        distance_to_closest_obstacle=lambda point: 2.0,
    )


def _straight(path: Any) -> bool:
    path.geodesic_distance = min(math.dist(path.requested_start, end) for end in path.requested_ends)
    return True
