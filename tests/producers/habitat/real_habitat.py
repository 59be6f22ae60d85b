"""The room of the tests in habitat-sim and habitat-lab themselves, where they are installed; nothing is downloaded.

A bare simulator builds the floor of its own cube; habitat-lab loads it as a scene, which is written here, and makes the
navmesh when it does. The floor's rim is the walls: an agent does not leave the navmesh, and collides with its end.
"""

from __future__ import annotations

import importlib
import json
import math
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from springback.producers.habitat.sight import instrumented
from tests.producers.habitat.habitat_makers import AHEAD, MIDDLE, Place
from tests.producers.habitat.strict_habitat import ROOM

HALF = (ROOM[2], 0.1, ROOM[3])
"""Half the floor's size, m; its upper side is at y = 0."""


class RealHabitat:
    """habitat-sim's and habitat-lab's own.

    Args:
        folder: where the scene is written.
    """

    def __init__(self, folder: Path) -> None:
        self._scene = folder / "room.glb"
        self._made: list[Any] = []

    def simulator(self, places: Sequence[Place] = (MIDDLE,)) -> Any:
        habitat_sim: Any = pytest.importorskip("habitat_sim", reason="habitat-sim is not installed")
        backend = habitat_sim.SimulatorConfiguration()
        backend.scene_id, backend.enable_physics, backend.random_seed = "NONE", True, 1
        agents = [habitat_sim.AgentConfiguration(sensor_specifications=[]) for _ in places]
        simulator = habitat_sim.Simulator(habitat_sim.Configuration(backend, agents))
        self._made.append(simulator)
        templates = simulator.get_object_template_manager()
        floor = templates.get_template_by_handle(templates.get_template_handles("cubeSolid")[0])
        floor.scale = np.array(HALF)
        templates.register_template(floor, "floor")
        slab = simulator.get_rigid_object_manager().add_object_by_template_handle("floor")
        slab.translation = np.array([0.0, -HALF[1], 0.0])
        slab.motion_type = habitat_sim.physics.MotionType.STATIC
        settings = habitat_sim.NavMeshSettings()
        settings.set_defaults()
        settings.include_static_objects = True
        assert simulator.recompute_navmesh(simulator.pathfinder, settings)
        for number, place in enumerate(places):
            state = simulator.get_agent(number).get_state()
            state.position = simulator.pathfinder.snap_point(np.array(place, np.float32))
            simulator.get_agent(number).set_state(state)
        return simulator

    def env(self) -> Any:
        made = make_env(self._written())
        self._made.append(made)
        return made

    def gym(self) -> Any:
        made = make_gym(self._written())
        self._made.append(made)
        return made

    def vector(self, count: int, *, instrument: bool = False) -> Any:
        habitat: Any = pytest.importorskip("habitat", reason="habitat-lab is not installed")
        make = make_instrumented if instrument else make_gym
        made = habitat.VectorEnv(make_env_fn=make, env_fn_args=tuple((self._written(),) for _ in range(count)))
        self._made.append(made)
        return made

    def close(self) -> None:
        """Closes what was made and is still open; each takes a second close."""
        for made in self._made:
            made.close()

    def _written(self) -> str:
        if not self._scene.exists():
            self._scene.write_bytes(glb_of_a_box((0.0, -HALF[1], 0.0), HALF))
        return str(self._scene)


def make_env(scene: str) -> Any:
    """A `habitat.Env` in the scene: PointNav with its default measures, and no camera."""
    habitat: Any = pytest.importorskip("habitat", reason="habitat-lab is not installed")
    return habitat.Env(*config_and_dataset(habitat, scene))


def make_gym(scene: str) -> Any:
    """A `habitat.RLEnv` around one; its info is the metrics, as that of habitat-lab's own environments."""
    habitat: Any = pytest.importorskip("habitat", reason="habitat-lab is not installed")

    class RoomEnv(habitat.RLEnv):  # type: ignore[misc]
        def get_reward_range(self) -> tuple[float, float]:
            return -1.0, 1.0

        def get_reward(self, observations: Any) -> float:
            return 0.0

        def get_done(self, observations: Any) -> bool:
            return bool(self.habitat_env.episode_over)

        def get_info(self, observations: Any) -> Any:
            return self.habitat_env.get_metrics()

    return RoomEnv(*config_and_dataset(habitat, scene))


def make_instrumented(scene: str) -> Any:
    """A `habitat.RLEnv` that says in a vector what its simulator knows."""
    return instrumented(make_gym(scene))


def config_and_dataset(habitat: Any, scene: str) -> tuple[Any, Any]:
    """PointNav's configuration, and a data set of one episode."""
    nav: Any = importlib.import_module("habitat.tasks.nav.nav")
    point_nav: Any = importlib.import_module("habitat.datasets.pointnav.pointnav_dataset")
    config = habitat.get_config("benchmark/nav/pointnav/pointnav_habitat_test.yaml")
    with habitat.config.read_write(config):
        config.habitat.simulator.agents.main_agent.sim_sensors = {}
        config.habitat.environment.max_episode_steps = 100
    dataset = point_nav.PointNavDatasetV1()
    dataset.episodes = [
        nav.NavigationEpisode(
            episode_id="0",
            scene_id=scene,
            start_position=list(MIDDLE),
            start_rotation=[0.0, 0.0, 0.0, 1.0],
            goals=[nav.NavigationGoal(position=list(AHEAD), radius=None)],
            info={"geodesic_distance": math.dist(MIDDLE, AHEAD)},
        )
    ]
    return config, dataset


def glb_of_a_box(centre: Sequence[float], half: Sequence[float]) -> bytes:
    """A box as a scene in binary glTF: six sides of four corners with their normals, and two triangles a side."""
    corners: list[list[float]] = []
    normals: list[list[float]] = []
    triangles: list[list[int]] = []
    for axis in range(3):
        one, other = (axis + 1) % 3, (axis + 2) % 3
        for side in (-1.0, 1.0):
            first = len(corners)
            for u, v in ((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)):
                corner, normal = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
                corner[axis], corner[one], corner[other], normal[axis] = side, u, v, side
                corners.append([c + part * h for c, part, h in zip(centre, corner, half)])
                normals.append(normal)
            outwards = ((0, 1, 2), (0, 2, 3)) if side > 0 else ((0, 2, 1), (0, 3, 2))
            triangles += [[first + number for number in triangle] for triangle in outwards]
    parts = [np.array(corners, "<f4"), np.array(normals, "<f4"), np.array(triangles, "<u4")]
    data = b"".join(part.tobytes() for part in parts)
    starts = [0, parts[0].nbytes, parts[0].nbytes + parts[1].nbytes]
    document = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0, "NORMAL": 1}, "indices": 2}]}],
        "accessors": [
            {
                "bufferView": 0, "componentType": 5126, "count": len(corners), "type": "VEC3",
                "min": parts[0].min(axis=0).tolist(), "max": parts[0].max(axis=0).tolist(),
            },
            {"bufferView": 1, "componentType": 5126, "count": len(normals), "type": "VEC3"},
            {"bufferView": 2, "componentType": 5125, "count": parts[2].size, "type": "SCALAR"},
        ],
        "bufferViews": [
            {"buffer": 0, "byteOffset": start, "byteLength": part.nbytes} for start, part in zip(starts, parts)
        ],
        "buffers": [{"byteLength": len(data)}],
    }  # fmt: skip
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<II", len(text), 0x4E4F534A) + text + struct.pack("<II", len(data), 0x004E4942) + data
    return struct.pack("<III", 0x46546C67, 2, 12 + len(chunks)) + chunks
