"""The module `habitat_sim` as far as a house is built of its cubes and walked in; its navmesh is a grid.

The way to a goal leads from cell to cell, so that it is up to 8 % longer than the real one. What crashes in Habitat is
an error that fails the test, as in the strict fake, whose agents and simulator these are.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from tests.producers.habitat.strict_habitat import STEP_M, TURN_DEG, SimulatorCrash, StrictSimulator

CELL_M, AGENT_M, AHEAD_CELLS, MOST_ACTIONS = 0.1, 0.1, 3, 300
Cell = tuple[int, int]


class GreedyFollowerError(RuntimeError):
    """No way leads to the goal."""


class Cube:
    """A rigid object made of a template: half its size is the template's scale."""

    def __init__(self, half: Any) -> None:
        self.half = tuple(float(part) for part in half)
        self.translation: Any = np.zeros(3)
        self.motion_type = "DYNAMIC"

    def gap_m(self, x: float, z: float) -> float:
        beside = max(0.0, abs(x - self.translation[0]) - self.half[0])
        return math.hypot(beside, max(0.0, abs(z - self.translation[2]) - self.half[2]))

    @property
    def is_floor(self) -> bool:
        return bool(self.translation[1] + self.half[1] < 0.1)


class GridNavmesh:
    """The navmesh of the cubes that stand still."""

    def __init__(self, calls: Counter[str]) -> None:
        self.is_loaded = False
        self._calls = calls
        self._fields: dict[Cell, dict[Cell, float]] = {}

    def make(self, cubes: list[Cube]) -> bool:
        still = [cube for cube in cubes if cube.motion_type == "STATIC"]
        floors, self.obstacles = [c for c in still if c.is_floor], [c for c in still if not c.is_floor]
        self.cells = {
            (i, j)
            for floor in floors
            for i in range(round(-floor.half[0] / CELL_M), round(floor.half[0] / CELL_M) + 1)
            for j in range(round(-floor.half[2] / CELL_M), round(floor.half[2] / CELL_M) + 1)
            if self.gap_m(i * CELL_M, j * CELL_M) >= AGENT_M + CELL_M / 2
        }
        self.is_loaded = bool(self.cells)
        return self.is_loaded

    def gap_m(self, x: float, z: float) -> float:
        return min((cube.gap_m(x, z) for cube in self.obstacles), default=math.inf)

    def find_path(self, path: Any) -> bool:
        self._asked("find_path")
        fields = [self.field(cell_of(end)) for end in path.requested_ends]
        path.geodesic_distance = min(
            math.inf if (cell := self.nearest(path.requested_start, field)) is None else field[cell] for field in fields
        )
        return math.isfinite(path.geodesic_distance)

    def snap_point(self, point: Any) -> Any:
        self._asked("snap_point")
        on_floor = cell_of(point) in self.cells
        return np.asarray([point[0], 0.0, point[2]] if on_floor else [math.nan] * 3, np.float32)

    def distance_to_closest_obstacle(self, pt: Any, max_search_radius: float = 2.0) -> float:
        self._asked("distance_to_closest_obstacle")
        return min(max(0.0, self.gap_m(pt[0], pt[2]) - AGENT_M), max_search_radius)

    def field(self, goal: Cell) -> dict[Cell, float]:
        """The way from every cell to a goal, m."""
        if goal not in self._fields:
            found: dict[Cell, float] = {}
            queue = [(0.0, goal)] if goal in self.cells else []
            while queue:
                way_m, cell = heapq.heappop(queue)
                if cell in found:
                    continue
                found[cell] = way_m
                for other, step_m in self.beside(cell):
                    if other not in found:
                        heapq.heappush(queue, (way_m + step_m, other))
            self._fields[goal] = found
        return self._fields[goal]

    def nearest(self, place: Any, field: dict[Cell, float]) -> Cell | None:
        """The cell of a field that a place is in, or beside; None where it is in none."""
        cell = cell_of(place)
        near = [cell] if cell in field else [other for other, _ in self.beside(cell) if other in field]
        return min(near, key=field.__getitem__, default=None)

    def beside(self, cell: Cell) -> Iterator[tuple[Cell, float]]:
        for i in (-1, 0, 1):
            for j in (-1, 0, 1):
                other = (cell[0] + i, cell[1] + j)
                if (i or j) and other in self.cells:
                    yield other, CELL_M * math.hypot(i, j)

    def _asked(self, name: str) -> None:
        self._calls[name] += 1
        if not self.is_loaded:
            message = f"PathFinder.{name} without a navmesh: a segmentation fault"
            raise SimulatorCrash(message)


class HouseSimulator(StrictSimulator):
    """`habitat_sim.Simulator` in the scene `NONE`: what stands in it are the cubes that are put there."""

    made: ClassVar[list[HouseSimulator]] = []

    def __init__(self, config: Any) -> None:
        super().__init__()
        assert config.sim_cfg.scene_id == "NONE"
        assert config.sim_cfg.enable_physics
        assert config.agents[0].sensor_specifications == []
        self.curr_scene_name = "NONE"
        self.navmesh = GridNavmesh(self.calls)
        self.pathfinder: Any = self.navmesh
        self.cubes: list[Cube] = []
        self.agents[0].act = self._act  # type: ignore[method-assign]
        self._templates = {"cubeSolid": SimpleNamespace(scale=np.full(3, 0.1))}
        self.made.append(self)

    def get_object_template_manager(self) -> SimpleNamespace:
        return SimpleNamespace(
            get_template_handles=lambda part: [name for name in self._templates if part in name],
            get_template_by_handle=lambda name: SimpleNamespace(scale=self._templates[name].scale.copy()),
            register_template=lambda template, name: self._templates.update({name: template}),
        )

    def get_rigid_object_manager(self) -> SimpleNamespace:
        def add(name: str) -> Cube:
            self.cubes.append(Cube(self._templates[name].scale))
            return self.cubes[-1]

        return SimpleNamespace(add_object_by_template_handle=add)

    def recompute_navmesh(self, pathfinder: GridNavmesh, settings: Any) -> bool:
        assert settings.include_static_objects
        return pathfinder.make(self.cubes)

    def make_greedy_follower(self, agent_id: int | None = None, goal_radius: float | None = None, **keys: Any) -> Any:
        return HouseFollower(self, goal_radius or STEP_M, keys.get("stop_key"))

    def _act(self, action: str) -> bool:
        agent = self.agents[0]
        if action != "move_forward":
            agent.heading += math.radians(TURN_DEG) * (1 if action == "turn_left" else -1)
            return False
        hit, way = False, STEP_M / 5 * ahead(agent.heading)
        for _ in range(5):  # where it runs against something it slides along
            for part in (way, way * [1, 0, 0], way * [0, 0, 1]):
                wanted = agent.position + part
                if self.navmesh.gap_m(wanted[0], wanted[2]) >= AGENT_M:
                    agent.position = wanted.astype(np.float32)
                    break
                hit = True
        return hit


class HouseFollower:
    """Goes down the way from cell to cell, by what lies a little ahead on it."""

    def __init__(self, sim: HouseSimulator, radius_m: float, stop: Any) -> None:
        self._sim, self._radius_m, self._stop = sim, radius_m, stop

    def next_action_along(self, goal_pos: Any) -> Any:
        agent = self._sim.agents[0]
        return self._next(agent.position, agent.heading, goal_pos)

    def find_path(self, goal_pos: Any) -> list[Any]:
        agent, actions = self._sim.agents[0], []
        position, heading = agent.position, agent.heading
        try:
            while (action := self.next_action_along(goal_pos)) != self._stop:
                actions.append(action)
                agent.act(action)
                if len(actions) > MOST_ACTIONS:
                    raise GreedyFollowerError
        finally:
            agent.position, agent.heading = position, heading
        return [*actions, self._stop]

    def _next(self, position: Any, heading: float, goal_pos: Any) -> Any:
        navmesh = self._sim.navmesh
        navmesh._asked("follower")
        field = navmesh.field(cell_of(goal_pos))
        cell = navmesh.nearest(position, field)
        if cell is None:
            message = "no way to the goal"
            raise GreedyFollowerError(message)
        target = np.asarray(goal_pos)
        if math.hypot(*(target - position)[[0, 2]]) < self._radius_m:
            return self._stop
        if field[cell] > AHEAD_CELLS * CELL_M:
            for _ in range(AHEAD_CELLS):
                cell = min((other for other, _ in navmesh.beside(cell)), key=field.__getitem__)
            target = np.array([cell[0] * CELL_M, 0.0, cell[1] * CELL_M])
        away = target - position
        bearing = math.remainder(math.atan2(-away[0], -away[2]) - heading, 2 * math.pi)
        if abs(bearing) > math.radians(TURN_DEG) / 2 + 1e-6:
            return "turn_left" if bearing > 0 else "turn_right"
        return "move_forward"


def fake_house_sim() -> ModuleType:
    """The module `habitat_sim`."""
    made = ModuleType("habitat_sim")
    module: Any = made
    module.__version__ = "0.3.3"
    module.SimulatorConfiguration = SimpleNamespace
    module.AgentConfiguration = SimpleNamespace
    module.Configuration = lambda sim_cfg, agents: SimpleNamespace(sim_cfg=sim_cfg, agents=agents)
    module.Simulator = HouseSimulator
    module.NavMeshSettings = lambda: SimpleNamespace(set_defaults=lambda: None, include_static_objects=False)
    module.MultiGoalShortestPath = SimpleNamespace
    module.physics = SimpleNamespace(MotionType=SimpleNamespace(STATIC="STATIC"))
    module.errors = SimpleNamespace(GreedyFollowerError=GreedyFollowerError)
    return made


def cell_of(place: Any) -> Cell:
    return round(float(place[0]) / CELL_M), round(float(place[2]) / CELL_M)


def ahead(heading: float) -> Any:
    return np.array([-math.sin(heading), 0.0, -math.cos(heading)])
