"""habitat-sim's `Simulator` without habitat-sim, over recorded episodes."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.producers.habitat.fake_habitat import TURN_RAD, FakePathFinder, Row, Trace, about_y


class FakeSimulator:
    """`habitat_sim.Simulator`: one agent, no episodes. `play` says which recorded episode it is to be in."""

    def __init__(self) -> None:
        self.pathfinder = FakePathFinder(is_loaded=True)
        self.curr_scene_name = ""
        self.closed = False
        names = {"forward": "move_forward", "left": "turn_left", "right": "turn_right"}
        actions = {key: SimpleNamespace(name=name) for key, name in names.items()}
        self._state = SimpleNamespace(position=np.zeros(3), rotation=about_y(0.0))
        self._agent = SimpleNamespace(agent_config=SimpleNamespace(action_space=actions), get_state=lambda: self._state)
        self._rows: Iterator[Row] = iter(())
        self._time_s = 0.0

    def play(self, trace: Trace) -> None:
        first = trace[0]
        self._rows = iter(trace)
        self.curr_scene_name = first["scene"]
        self._time_s = 0.0
        self.pathfinder.distance_m = first["start_geodesic"]
        self.pathfinder.clearance_m = first["clearance"]
        self.disturb(first)

    def disturb(self, row: Row) -> None:
        """Puts the agent where the next action finds it: what pushes or turns it comes before its decision."""
        x, y, z = row["position"]
        moved = not row["dropped"]
        angle = row["yaw"] + TURN_RAD * moved
        self._state = SimpleNamespace(position=np.array([x - row["moved_m"], y, z]), rotation=about_y(angle))

    def place(self, distance_m: float) -> None:
        """Puts the agent at this distance from its goal."""
        self._state = SimpleNamespace(position=np.array([distance_m, 0.0, 0.0]), rotation=self._state.rotation)
        self.pathfinder.distance_m = distance_m

    def get_agent(self, agent_id: int) -> SimpleNamespace:
        assert agent_id == 0
        return self._agent

    def get_world_time(self) -> float:
        return self._time_s

    def reset(self) -> dict[str, Any]:
        return {}

    def step(self, action: str, dt: float = 1.0 / 60.0) -> dict[str, Any]:
        row = next(self._rows)
        assert action == row["action"]
        self.move(row)
        return {"depth": np.zeros((4, 4), np.float32), "collided": row["collided"]}

    def move(self, row: Row) -> None:
        self._state = SimpleNamespace(position=np.array(row["position"]), rotation=about_y(row["yaw"]))
        self.pathfinder.distance_m = row["distance_to_goal"]
        self.pathfinder.clearance_m = row["clearance"]
        self._time_s = row["t_sim"]

    def close(self) -> None:
        self.closed = True
