"""On habitat-sim itself, where it is installed: a floor without walls, a navmesh made on the spot, no renderer."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.habitat.watch import watch
from springback.producers.habitat.world import HABITAT_SIM_BY_CONDA
from springback.producers.perturbations.habitat import disturbed
from tests.producers.habitat.trace_replay import ends_of, rows_of

pytestmark = pytest.mark.needs_habitat
REASON = f"habitat-sim is not installed; it comes by conda: {HABITAT_SIM_BY_CONDA}"


@pytest.fixture
def simulator() -> Iterator[Any]:
    habitat_sim: Any = pytest.importorskip("habitat_sim", reason=REASON)
    backend = habitat_sim.SimulatorConfiguration()
    backend.scene_id, backend.enable_physics, backend.random_seed = "NONE", True, 1
    agent = habitat_sim.AgentConfiguration(sensor_specifications=[])
    with habitat_sim.Simulator(habitat_sim.Configuration(backend, [agent])) as simulator:
        templates = simulator.get_object_template_manager()
        floor = templates.get_template_by_handle(templates.get_template_handles("cubeSolid")[0])
        floor.scale = np.array([5.0, 0.1, 5.0])
        templates.register_template(floor, "floor")
        slab = simulator.get_rigid_object_manager().add_object_by_template_handle("floor")
        slab.motion_type = habitat_sim.physics.MotionType.STATIC
        settings = habitat_sim.NavMeshSettings()
        settings.set_defaults()
        settings.include_static_objects = True
        assert simulator.recompute_navmesh(simulator.pathfinder, settings)
        simulator.seed(1)
        yield simulator


@pytest.mark.parametrize("severity", [0.0, 0.6])
def test_a_follower_on_an_open_floor(simulator: Any, severity: float) -> None:
    publisher = MemoryPublisher()
    with StepEmitter(publisher, producer="habitat", session="s") as emitter:
        loop: Any = watch(disturbed(simulator, severity, seed=1), emitter, family="navigation", max_steps=400)
        follower = simulator.make_greedy_follower(goal_radius=0.15, stop_key="stop")
        for episode in ("0", "1"):
            simulator.initialize_agent(0)
            goal = simulator.pathfinder.get_random_navigable_point()
            loop.begin_episode(goals=[goal], episode=episode, scene="floor")
            for _ in range(400):
                action = follower.next_action_along(np.array(loop.goals[0], dtype=np.float32))
                if action == "stop":
                    loop.stop_episode()
                    break
                loop.step(action)
    ends = ends_of(publisher.frames)
    assert {end.outcome for end in ends.values()} == {"success"}
    for episode, end in ends.items():
        assert end.navigation is not None
        assert end.navigation.shortest_path is not None
        rows = [row for name, row in rows_of(publisher.frames) if name == episode]
        assert sum(row["travel"] for row in rows) == pytest.approx(end.navigation.path)
        assert all(0.0 <= row["progress"] <= 1.0 for row in rows)
        assert rows[-1]["mode"] == "stop"
        assert end.navigation.shortest_actions is not None
        if severity == 0.0:  # the same follower, but for its radius and that it was asked anew at each step
            assert abs(end.navigation.shortest_actions - len(rows)) <= 2 + len(rows) / 10


def test_a_goal_that_cannot_be_reached_is_quarantined(simulator: Any) -> None:
    publisher = MemoryPublisher()
    with StepEmitter(publisher, producer="habitat", session="s") as emitter:
        loop: Any = watch(simulator, emitter, family="navigation")
        loop.begin_episode(goals=[[500.0, 500.0, 500.0]], episode="0", scene="floor")
        loop.step("move_forward")
        loop.stop_episode()
    assert loop.springback.quarantined_episodes == 1
    assert [end.outcome for end in ends_of(publisher.frames).values()] == ["aborted"]
