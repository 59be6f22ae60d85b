"""What a simulator knows of a step, on the strict fake and on Habitat itself where it is installed."""

import importlib
import math
from typing import Any

import numpy as np
import pytest

from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.habitat.watch import watch
from springback.producers.habitat.world import MissingNavmeshError, pose_of, snapped
from springback.producers.perturbations.habitat import disturbed
from springback.producers.perturbations.navigation import DisturbanceName
from tests.producers.habitat.habitat_makers import AHEAD, Habitat
from tests.producers.habitat.trace_replay import ends_of, rows_of

NO_NOISE: list[DisturbanceName] = ["action_drop", "heading_kick", "goal_move"]
"""What disturbs an agent without the sensors that noise would be put on."""


def rows(publisher: MemoryPublisher, emitter: StepEmitter) -> list[dict[str, Any]]:
    assert emitter.flush()
    return [row for _, row in rows_of(publisher.frames)]


def test_a_simulator_without_a_navmesh_is_refused_and_goes_on(habitat: Habitat, emitter: StepEmitter) -> None:
    simulator = habitat.simulator()
    simulator.pathfinder = importlib.import_module("habitat_sim").PathFinder()
    loop: Any = watch(disturbed(simulator, 1.0, kinds=NO_NOISE), emitter, family="nav")
    with pytest.raises(MissingNavmeshError, match="has no navmesh"):
        loop.begin_episode(goals=[AHEAD], episode="0")
    loop.begin_disturbances("room/0")
    for _ in range(30):
        loop.step("turn_left")
        assert loop.moved_goals([list(AHEAD)]) == [list(AHEAD)]
    assert snapped(simulator, AHEAD) is None


def test_a_navmesh_that_goes_in_an_episode_makes_it_unfit(
    habitat: Habitat, emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    simulator = habitat.simulator()
    loop: Any = watch(simulator, emitter, family="nav")
    loop.begin_episode(goals=[AHEAD], episode="0")
    loop.step("move_forward")
    simulator.pathfinder = importlib.import_module("habitat_sim").PathFinder()
    for _ in range(3):
        loop.step("turn_left")
    loop.stop_episode()
    told = rows(publisher, emitter)
    assert told[0]["progress"] > 0.0
    assert math.isnan(told[-1]["progress"])
    assert [end.outcome for end in ends_of(publisher.frames).values()] == ["aborted"]


@pytest.mark.parametrize("made", ["env", "gym"])
@pytest.mark.parametrize("severity", [0.0, 0.7])
def test_collisions_are_those_of_the_simulator(
    habitat: Habitat, made: str, severity: float, emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    bare = habitat.env() if made == "env" else habitat.gym()
    core = bare if made == "env" else bare.habitat_env
    env: Any = watch(disturbed(bare, severity, kinds=["action_drop"], seed=1), emitter, family="nav")
    env.reset()
    hits = []
    for action in [*["move_forward"] * 25, *["turn_right"] * 2, "stop"]:
        env.step(action)
        hits.append(action != "stop" and bool(core.sim.previous_step_collided))
    assert 1 < sum(hits) < 25  # the wall is some 4 m away
    told = rows(publisher, emitter)
    assert [row["violation"] for row in told] == [float(hit) for hit in hits]
    assert all(row["retries"] == 1.0 for row, hit in zip(told, hits) if hit)


def test_a_moved_goal_is_measured_where_it_is(habitat: Habitat) -> None:
    core = habitat.env()
    env: Any = disturbed(core, 1.0, kinds=["goal_move", "action_drop"], seed=3)
    env.reset()
    places = set()
    for _ in range(90):  # on the spot: habitat-lab's own measure would stay what it was
        env.step("turn_left")
        goal = core.current_episode.goals[0].position
        way_m = core.sim.geodesic_distance(core.sim.get_agent_state().position, [goal])
        assert core.get_metrics()["distance_to_goal"] == pytest.approx(way_m)
        places.add(tuple(float(part) for part in goal))
    assert len(places) > 1
    env.reset()
    assert core.get_metrics()["distance_to_goal"] == pytest.approx(math.dist((0.0, 0.0, 0.0), AHEAD), abs=0.3)


def test_noise_is_told_when_a_sensor_is_noisy_and_only_then(habitat: Habitat) -> None:
    core = habitat.env()
    env: Any = disturbed(core, 1.0, kinds=["sensor_noise"], seed=2)
    env.reset()
    noisy = 0
    for _ in range(90):
        seen = env.step("turn_left")["pointgoal_with_gps_compass"]
        state, goal = core.sim.get_agent_state(), core.current_episode.goals[0].position
        away_m = math.hypot(float(goal[0] - state.position[0]), float(goal[2] - state.position[2]))
        told = bool(env.perturbation_note()["feedback"])
        noisy += told
        assert (abs(float(seen[0]) - away_m) > 1e-4) == told
    assert 0 < noisy < 90


@pytest.mark.parametrize("severity", [0.0, 0.7])
def test_a_step_is_told_as_the_state_says_it(
    habitat: Habitat, severity: float, emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    simulator = habitat.simulator()
    loop: Any = watch(disturbed(simulator, severity, kinds=NO_NOISE, seed=5), emitter, family="nav")
    loop.begin_episode(goals=[AHEAD], episode="0")
    agent, places = simulator.get_agent(0), [simulator.get_agent(0).get_state().position]
    for action in ["move_forward"] * 5 + ["turn_left"] * 4 + ["move_forward"] * 4:
        loop.step(action)
        state = agent.get_state()
        places.append(state.position)
        pose = pose_of(simulator)
        assert np.allclose(pose.position, state.position, atol=1e-6)
        turned = [getattr(state.rotation, part) for part in "wxyz"]
        assert np.allclose(pose.rotation, turned, atol=1e-6) or np.allclose(
            pose.rotation, np.negative(turned), atol=1e-6
        )
    ways = [float(np.linalg.norm(after - before)) for before, after in zip(places, places[1:])]
    assert [row["travel"] for row in rows(publisher, emitter)] == pytest.approx(ways, abs=1e-5)


def test_an_instrumented_vector_tells_what_a_single_environment_does(habitat: Habitat) -> None:
    index = {"stop": 0, "move_forward": 1, "turn_left": 2, "turn_right": 3}
    found = []
    for in_vector in (False, True):
        publisher = MemoryPublisher()
        with StepEmitter(publisher, producer="habitat", session="s", clock=lambda: 1.8e9) as emitter:
            bare = habitat.vector(1, instrument=True) if in_vector else habitat.gym()
            env: Any = watch(bare, emitter, family="nav", timer=lambda: 0.0)
            env.reset()
            for action in [*["move_forward"] * 20, "turn_left", "stop"]:
                env.step([index[action]] if in_vector else action)
            env.close()
        told = [{**row, "time_s": 0.0} for _, row in rows_of(publisher.frames)]
        assert {row["violation"] for row in told} == {0.0, 1.0}
        assert all(row["travel"] >= 0.0 for row in told)
        found.append((str(told), ends_of(publisher.frames)))
    assert found[0] == found[1]
