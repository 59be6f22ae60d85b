"""Habitat without Habitat: its interfaces as they are, over recorded episodes that they replay.

What is faithful, by habitat-lab 0.3.320260507 and habitat-sim 0.3.3: `habitat.Env.step` gives observations alone, and
refuses a step after the end; metrics come as dicts with numpy scalars, images and a 0-d array among them; Gym-style
steps have four parts; `VectorEnv` resets by itself and then names the next episode; a simulator has poses, a navmesh
and a clock, and no episodes. An action other than the recorded one is a fault of the test.
"""

import gzip
import json
import math
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

Row = dict[str, Any]
Trace = list[Row]
TURN_RAD = math.radians(10.0)


def read_traces(path: Path) -> list[Trace]:
    """The episodes of a raw recording, in order."""
    with gzip.open(path, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    for before, row in zip([None, *rows], rows):
        if "path_length" in row:  # what the action moved the agent by, without what pushed it before
            so_far_m = before["path_length"] if before and row["step"] else 0.0
            row["moved_m"] = row.get("travel", row["path_length"] - so_far_m)
    return [list(group) for _, group in groupby(rows, key=lambda row: (row["scene"], row["episode_id"]))]


def quaternion(parts: Sequence[float]) -> SimpleNamespace:
    return SimpleNamespace(**dict(zip("wxyz", parts)))


def about_y(angle: float) -> SimpleNamespace:
    return quaternion((math.cos(angle / 2), 0.0, math.sin(angle / 2), 0.0))


class FakePathFinder:
    """A navmesh that knows the recorded distances; one that is not loaded answers nothing."""

    def __init__(self, is_loaded: bool) -> None:
        self.is_loaded = is_loaded
        self.clearance_m = 0.0
        self.distance_m = 0.0

    def distance_to_closest_obstacle(self, pt: Any, max_search_radius: float = 2.0) -> float:
        assert self.is_loaded, "no navmesh"
        assert np.asarray(pt).shape == (3,)
        return min(self.clearance_m, max_search_radius)

    def find_path(self, path: Any) -> bool:
        assert self.is_loaded, "no navmesh"
        assert np.asarray(path.requested_ends).ndim == 2
        path.geodesic_distance = self.distance_m
        return math.isfinite(self.distance_m)


def fake_habitat_sim() -> ModuleType:
    """The module `habitat_sim`, as far as it is asked."""
    module = ModuleType("habitat_sim")
    module.MultiGoalShortestPath = SimpleNamespace  # type: ignore[attr-defined]
    return module


class FakeLabSim:
    """`HabitatSim` of habitat-lab: a simulator that hands out agents' states."""

    def __init__(self) -> None:
        self.pathfinder = FakePathFinder(is_loaded=False)
        self.state = SimpleNamespace(position=np.zeros(3, np.float32), rotation=about_y(0.0))
        self.time_s = 0.0

    def get_agent_state(self, agent_id: int = 0) -> SimpleNamespace:
        return self.state

    def get_world_time(self) -> float:
        return self.time_s

    def move(self, row: Row) -> None:
        position = np.array(row["position"], dtype=np.float64)
        self.state = SimpleNamespace(position=position, rotation=quaternion(row["rotation_wxyz"]))
        self.time_s = row["t_sim"]


class FakeTask:
    actions = ("stop", "move_forward", "turn_left", "turn_right")

    def __init__(self) -> None:
        self.is_episode_active = False
        self.measurements: Any = None

    def get_action_name(self, action_index: int) -> str:
        if action_index >= len(self.actions):
            message = f"Action index '{action_index}' is out of range."
            raise ValueError(message)
        return self.actions[action_index]


class FakeEnv:
    """`habitat.Env`: plays the recorded episodes in turn."""

    def __init__(self, traces: Sequence[Trace]) -> None:
        self.traces = traces
        self.sim = FakeLabSim()
        self.task = FakeTask()
        self.episode_over = True
        self.closed = False
        self.trace: Trace = []
        self.place = -1
        self._next = 0
        self._current: SimpleNamespace | None = None

    @property
    def current_episode(self) -> SimpleNamespace:
        assert self._current is not None
        return self._current

    @property
    def number_of_episodes(self) -> int:
        return len(self.traces)

    def reset(self) -> dict[str, Any]:
        self.trace = self.traces[self._next % len(self.traces)]
        self._next += 1
        self.place, self.episode_over, self.task.is_episode_active = -1, False, True
        first = self.trace[0]
        self._current = SimpleNamespace(episode_id=first["episode_id"], scene_id=first["scene"], info=None)
        self.sim.move(start_row(first))
        return self.observations()

    def step(self, action: Any) -> dict[str, Any]:
        assert self.place >= -1
        assert self._current is not None, "Cannot call step before calling reset"
        assert not self.episode_over, "Episode over, call reset before calling step"
        name = action["action"] if isinstance(action, dict) else action
        name = self.task.get_action_name(int(name)) if isinstance(name, (int, np.integer)) else name
        row = self.trace[self.place + 1]
        assert name == row["action"], f"recorded is {row['action']}, taken was {name}"
        self.place += 1
        self.sim.move(row)
        self.task.is_episode_active = row["action"] != "stop"
        self.episode_over = row["done"]
        return self.observations()

    def observations(self) -> dict[str, Any]:
        return {"depth": np.zeros((4, 4, 1), np.float32)}

    def get_metrics(self) -> dict[str, Any]:
        """As habitat-lab's look: scalars of numpy, and a map with images, tuples and a 0-d array."""
        if self.place < 0:
            start_m = self.trace[0]["start_geodesic"]
            metrics = {"distance_to_goal": start_m, "success": 0.0, "spl": 0.0, "num_steps": 0}
            metrics |= {"collisions": {"count": 0, "is_collision": False}, "distance_to_goal_reward": -0.0}
        else:
            metrics = dict(self.trace[self.place]["metrics"])
        if self.place >= 0 and self.trace[self.place]["done"]:
            metrics["spl"] = np.float32(metrics["spl"])
        metrics["distance_to_goal"] = np.float64(metrics["distance_to_goal"])
        metrics["top_down_map"] = {
            "map": np.zeros((8, 8), np.uint8),
            "fog_of_war_mask": None,
            "agent_map_coord": [(1, 2)],
            "agent_angle": [np.array(0.5)],
        }
        return metrics

    def close(self) -> None:
        self.closed = True


def start_row(first: Row) -> Row:
    """The pose before the first action, which is not recorded: where it leads back to."""
    start = {"position": first["position"], "rotation_wxyz": first["rotation_wxyz"], "t_sim": 0.0}
    if "turn" in first["action"]:
        w, _, y, _ = first["rotation_wxyz"]
        angle = 2 * math.atan2(y, w) - TURN_RAD * (1 if first["action"] == "turn_left" else -1)
        start["rotation_wxyz"] = [math.cos(angle / 2), 0.0, math.sin(angle / 2), 0.0]
    if first["action"] == "move_forward":
        x, y, z = first["position"]
        start["position"] = [x - 0.25, y, z]
    return start


class FakeRLEnv:
    """`RLTaskEnv`: an old Gym environment, whose steps have four parts."""

    def __init__(self, traces: Sequence[Trace]) -> None:
        self._env = FakeEnv(traces)

    @property
    def habitat_env(self) -> FakeEnv:
        return self._env

    @property
    def number_of_episodes(self) -> int:
        return self._env.number_of_episodes

    def current_episode(self, all_info: bool = False) -> SimpleNamespace:
        episode = self._env.current_episode
        if all_info:
            return episode
        return SimpleNamespace(episode_id=episode.episode_id, scene_id=episode.scene_id)

    def reset(self, *, return_info: bool = False) -> Any:
        observations = self._env.reset()
        return (observations, self._env.get_metrics()) if return_info else observations

    def step(self, action: Any) -> tuple[Any, ...]:
        observations = self._env.step(action)
        metrics = self._env.get_metrics()
        return observations, metrics["distance_to_goal_reward"] - 0.01, self._env.episode_over, metrics

    def close(self) -> None:
        self._env.close()
