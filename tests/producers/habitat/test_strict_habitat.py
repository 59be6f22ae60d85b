"""The strict fake of Habitat itself: it hurts where the real one does."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.producers.habitat.strict_habitat import (
    SimulatorCrash,
    StrictEnv,
    StrictRLEnv,
    StrictSimulator,
    StrictVectorEnv,
)


def test_what_ends_the_process_is_no_error_that_could_be_caught() -> None:
    sim = StrictSimulator(navmesh=False)
    with pytest.raises(SimulatorCrash, match="find_path without a navmesh"):
        sim.pathfinder.find_path(SimpleNamespace(requested_start=[0, 0, 0], requested_ends=[[0, 0, -1]]))
    sim.close()
    with pytest.raises(SimulatorCrash, match="closed"):
        sim.get_agent(0)
    assert not issubclass(SimulatorCrash, Exception)


def test_the_distance_of_a_moved_goal_is_stale_until_the_agent_moves() -> None:
    env = StrictEnv(goals=[(0.0, 0.0, -1.0)])
    env.reset()
    env.current_episode.goals[0].position = [0.0, 0.0, -2.0]
    env.current_episode._shortest_path_cache = None
    env.step("turn_left")
    assert env.get_metrics()["distance_to_goal"] == 1.0
    env.step("turn_right")
    env.step("move_forward")
    assert env.get_metrics()["distance_to_goal"] == pytest.approx(1.75)


def test_collisions_are_known_to_the_simulator_alone_until_a_stop() -> None:
    env = StrictEnv(goals=[(0.0, 0.0, 0.5)])
    env.reset()
    for _ in range(15):
        env.step("move_forward")  # 0.25 m each from the middle to the wall, at 3.9 m
        assert not env.sim.previous_step_collided
    env.step("move_forward")
    assert env.sim.previous_step_collided
    assert set(env.get_metrics()) == {"distance_to_goal", "success", "spl"}
    env.step("stop")
    assert not env.sim.previous_step_collided


def test_a_call_that_fails_ends_the_environment_s_process() -> None:
    vector = StrictVectorEnv([StrictRLEnv(StrictEnv())])
    vector.reset()
    assert not hasattr(vector.call_at(0, "current_episode"), "info")
    assert vector.call_at(0, "current_episode", {"all_info": True}).info == {"geodesic_distance": 3.0}
    with pytest.raises(EOFError):
        vector.call_at(0, "no_such_thing")
    vector.async_step_at(0, "stop")
    with pytest.raises(EOFError):
        vector.wait_step_at(0)


def test_agents_act_and_see_by_their_numbers() -> None:
    sim = StrictSimulator(places=[(0.0, 0.0, 0.0), (1.0, 0.0, -3.8)])
    seen: Any = sim.step({0: "move_forward", 1: "move_forward"})
    assert [seen[number]["collided"] for number in (0, 1)] == [False, True]
    env = StrictEnv(places=[(0.0, 0.0, 0.0), (1.0, 0.0, 0.0)])
    env.reset()
    seen = env.step({"action": ("agent_0_move_forward", "agent_1_turn_left"), "action_args": {}})
    assert seen["agent_0_gps"].tolist() == [0.25, 0.0]
    assert seen["agent_1_compass"].tolist() == pytest.approx([0.1745], abs=1e-3)
