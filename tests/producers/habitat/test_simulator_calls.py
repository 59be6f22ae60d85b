"""How often a simulator is asked for a step to be reported: each of its answers costs its user time."""

import math
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.habitat.metrics import HabitatReading
from springback.producers.habitat.sight import instrumented
from springback.producers.habitat.watch import watch
from springback.producers.habitat.world import Surroundings, pose_of
from tests.producers.habitat.strict_habitat import StrictEnv, StrictRLEnv, StrictSimulator, StrictVectorEnv

GOAL = (0.0, 0.0, -3.0)
POSES = {"scene_node": 2}  # before the action, and after it
MOVED = {"find_path": 1, "distance_to_closest_obstacle": 1}
AREA = {"navigable_area": 1}
TIMED = {"get_world_time": 2}


def loop_of(bare: StrictSimulator, emitter: StepEmitter, **options: Any) -> Any:
    """A loop that has taken a step, so that what only an episode's first one asks is not counted."""
    loop = watch(bare, emitter, family="nav", **options)
    loop.begin_episode(goals=[GOAL], episode="1")
    loop.step("move_forward")
    return loop


def asked(bare: StrictSimulator, step: Any) -> Counter[str]:
    """What a step asks of the simulator, the step itself left out."""
    calls = bare.calls.copy()
    step()
    return bare.calls - calls - Counter(step=1)


@pytest.mark.usefixtures("habitat_sim")
@pytest.mark.parametrize(
    ("action", "reading", "calls"),
    [
        ("move_forward", HabitatReading(), {**POSES, **AREA, **MOVED}),
        ("turn_left", HabitatReading(), {**POSES, **AREA}),
        ("turn_left", HabitatReading(simulated_time=True), {**POSES, **AREA, **TIMED}),
        ("move_forward", HabitatReading(clearance_m=0.0), {**POSES, **AREA, "find_path": 1}),
    ],
)
def test_a_step_of_a_bare_simulator(action: str, reading: Any, calls: dict[str, int], emitter: StepEmitter) -> None:
    bare = StrictSimulator()
    loop = loop_of(bare, emitter, reading=reading)
    assert asked(bare, lambda: loop.step(action)) == calls


@pytest.mark.parametrize("in_vector", [False, True])
def test_a_step_of_habitat_lab(in_vector: bool, emitter: StepEmitter) -> None:
    made = StrictRLEnv(StrictEnv([GOAL]))
    env: Any = watch(StrictVectorEnv([instrumented(made)]) if in_vector else made, emitter, family="nav")
    bare = StrictRLEnv(StrictEnv([GOAL]))
    found = []
    for own, sim in ((env, made.habitat_env.sim), (bare, bare.habitat_env.sim)):
        own.reset()
        for action in (1, 1, 2):
            if own is env and in_vector:
                last = asked(sim, lambda own=own, action=action: own.step([action]))
            else:
                last = asked(sim, lambda own=own, action=action: own.step(action))
            found.append(last)
    # Beside what its own measures ask: two poses and the clearance, and in a vector's process the clock.
    more = {"get_state": 2, "distance_to_closest_obstacle": 1, **(TIMED if in_vector else {})}
    assert [ours - own for ours, own in zip(found[1:3], found[4:])] == [more] * 2


@pytest.mark.usefixtures("habitat_sim")
def test_what_changes_where_the_agent_stands_is_seen(emitter: StepEmitter) -> None:
    bare = StrictSimulator()
    loop = loop_of(bare, emitter)
    loop.step("turn_left")
    loop.goals = [(1.0, 0.0, -1.0)]
    assert asked(bare, lambda: loop.step("turn_left"))["find_path"] == 1
    bare.pathfinder.obstacles_m2 = 0.5  # made anew, around something
    assert asked(bare, lambda: loop.step("turn_left"))["find_path"] == 1
    assert asked(bare, lambda: loop.step("turn_left"))["find_path"] == 0
    bare.agents[0].position[0] += 0.01  # pushed
    assert asked(bare, lambda: loop.step("turn_left"))["find_path"] == 1


@pytest.mark.usefixtures("habitat_sim")
def test_surroundings_are_those_of_the_simulator_that_is_asked() -> None:
    surroundings, here = Surroundings(), (0.0, 0.0, 0.0)
    assert surroundings.look(StrictSimulator(), here, [GOAL], 0.3) == (3.0, 2.0)
    lost_m, clear_m = surroundings.look(StrictSimulator(navmesh=False), here, [GOAL], 0.3)
    assert (math.isnan(lost_m), clear_m) == (True, None)
    assert surroundings.look(StrictSimulator(), here, [GOAL], 0.0) == (3.0, None)


@pytest.mark.parametrize("heading", [0.0, 0.4, -2.5])
def test_a_pose_by_the_node_is_that_of_the_state(heading: float) -> None:
    bare = StrictSimulator([(0.5, 0.25, -1.0)])
    bare.agents[0].heading = heading
    state = bare.agents[0].get_state()
    simulator: Any = SimpleNamespace(get_agent=lambda number: SimpleNamespace(get_state=lambda: state))
    assert pose_of(bare) == pose_of(simulator)
    assert pose_of(bare).position == (0.5, 0.25, -1.0)
    assert all(type(part) is float for part in (*pose_of(bare).position, *pose_of(bare).rotation))
