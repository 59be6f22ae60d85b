"""Sensors that are noisy: in two and three dimensions, by angles and by coordinates, of one agent among several."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from springback.producers.perturbations.habitat import disturbed
from springback.producers.perturbations.navigation import NavigationDice, StepDisturbance
from springback.producers.perturbations.sensor_noise import drifted, told_by_noisy_sensors
from tests.producers.habitat.strict_habitat import StrictEnv, StrictSimulator

THROW = StepDisturbance(drift_m=(0.5, 0.25), drift_deg=30.0, acting=("sensor_noise",))
DICE = NavigationDice(1.0)


def told(observations: dict[str, Any], *, polar: bool = True) -> dict[str, Any]:
    return told_by_noisy_sensors(observations, THROW, DICE, lambda name: polar)


@pytest.mark.parametrize(
    ("gps", "expected"),
    [
        ([1.0, 2.0], [1.5, 2.25]),  # ahead, to the right
        ([2.0, 0.7, -1.0], [2.25, 0.7, -1.5]),  # the same place: to the right, up, backwards
    ],
)
def test_gps_in_two_and_in_three_dimensions(gps: list[float], expected: list[float]) -> None:
    seen = told({"gps": np.array(gps, np.float32)})["gps"]
    assert seen == pytest.approx(np.array(expected))
    assert (seen.dtype, seen.shape) == (np.float32, (len(gps),))


def forms(ahead: float, right: float, up: float) -> dict[str, list[float]]:
    """A goal's place in each of the four forms that habitat-lab's point goal sensors tell it."""
    flat, phi = math.hypot(ahead, right), math.atan2(-right, ahead)
    return {
        "polar 2": [flat, phi],
        "polar 3": [math.hypot(flat, up), phi, math.atan2(flat, up)],
        "cartesian 2": [ahead, right],
        "cartesian 3": [right, up, -ahead],
    }


@pytest.mark.parametrize("form", ["polar 2", "polar 3", "cartesian 2", "cartesian 3"])
def test_a_point_goal_drifts_alike_in_each_form(form: str) -> None:
    rho, phi = drifted(math.hypot(3.0, 1.0), math.atan2(-1.0, 3.0), THROW.drift_m, THROW.drift_deg)
    expected = forms(rho * math.cos(phi), -rho * math.sin(phi), 0.4)[form]
    goal = np.array(forms(3.0, 1.0, 0.4)[form], np.float32)
    seen = told({"pointgoal": goal}, polar="polar" in form)["pointgoal"]
    assert seen == pytest.approx(np.array(expected), abs=1e-6)
    assert seen.dtype == np.float32


def test_the_format_is_asked_of_the_sensor() -> None:
    core = StrictEnv()
    core.task.sensor_suite = SimpleNamespace(sensors={"pointgoal": SimpleNamespace(_goal_format="CARTESIAN")})
    env: Any = disturbed(core, 1.0, kinds=["sensor_noise"])
    assert (env._is_polar("pointgoal"), env._is_polar("pointgoal_with_gps_compass")) == (False, True)


@pytest.mark.parametrize(
    "observations",
    [
        {},
        {"rgb": np.zeros((2, 2, 3), np.uint8), "objectgoal": np.array([3])},
        {"gps": [1.0, 2.0], "depth": "far"},  # no arrays
        {"gps": np.zeros(4), "pointgoal": np.zeros(5), "depth": np.zeros(0)},
        {"pointgoal": np.array([1.0, 0.0, math.nan])},  # habitat-lab's at the goal itself
    ],
)
def test_what_no_noise_can_be_put_on_is_not_told(observations: dict[str, Any]) -> None:
    assert told(observations) == {}


@pytest.mark.parametrize("made", ["env", "simulator"])
def test_noise_that_has_no_sensor_is_neither_told_nor_counted(made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    blind = {"goal": np.zeros(5)}
    if made == "env":
        core = StrictEnv(limit=300)
        monkeypatch.setattr(core, "_seen", lambda fresh: blind)
        env: Any = disturbed(core, 1.0, kinds=["sensor_noise"])
        env.reset()
    else:
        bare = StrictSimulator()
        monkeypatch.setattr(bare, "get_sensor_observations", lambda agent_ids=0: blind)
        env = disturbed(bare, 1.0, kinds=["sensor_noise"])
        env.begin_disturbances("room/1")
    for _ in range(200):
        env.step("turn_left")
        note = env.perturbation_note()
        assert (note["feedback"], note["realised_magnitude"]) == ("", 0.0)


def test_the_sensors_of_one_agent_are_noisy_and_the_others_are_not() -> None:
    core = StrictEnv(places=((0.0, 0.0, 0.0), (1.0, 0.0, 1.0)), limit=300)
    env: Any = disturbed(core, 1.0, kinds=["sensor_noise"], agent_id=1)
    env.reset()
    act = {"action": ("agent_0_turn_left", "agent_1_turn_left"), "action_args": {}}
    seen = [env.step(dict(act)) for _ in range(100)]
    assert {tuple(step["agent_0_gps"]) for step in seen} == {(0.0, 0.0)}
    assert len({tuple(step["agent_1_gps"]) for step in seen}) > 10
    assert env.perturbation_note()["agent_id"] == 1


@pytest.mark.parametrize("disturbed_one", [0, 1])
def test_of_several_agents_one_has_its_actions_dropped_and_its_heading_kicked(disturbed_one: int) -> None:
    other = 1 - disturbed_one
    bare = StrictSimulator(((0.0, 0.0, 0.0), (1.0, 0.0, 1.0)))
    env: Any = disturbed(bare, 1.0, kinds=["action_drop", "heading_kick"], agent_id=disturbed_one, seed=2)
    env.begin_disturbances("room/1")
    steps = 100
    for _ in range(steps):
        seen = env.step({0: "turn_left", 1: "turn_left"})
        assert set(seen) == {0, 1}
    turned = [math.degrees(agent.heading) for agent in bare.agents]
    assert math.remainder(turned[other] - 10.0 * steps, 360.0) == pytest.approx(0.0, abs=1e-3)
    assert abs(math.remainder(turned[disturbed_one] - 10.0 * steps, 360.0)) > 1.0
    lab = StrictEnv(places=((0.0, 0.0, 0.0), (1.0, 0.0, 1.0)), limit=300)
    env = disturbed(lab, 1.0, kinds=["action_drop"], agent_id=disturbed_one, seed=2)
    env.reset()
    dropped = 0
    for _ in range(steps):
        env.step({"action": ("agent_0_turn_left", "agent_1_turn_left"), "action_args": {}})
        dropped += bool(env.perturbation_note()["feedback"])
    turns = [round(math.degrees(agent.heading) / 10.0) for agent in lab.sim.agents]
    assert 0 < dropped < steps
    assert (turns[other], turns[disturbed_one]) == (steps, steps - dropped)


def test_an_agent_that_does_not_act_has_nothing_dropped() -> None:
    bare = StrictSimulator(((0.0, 0.0, 0.0), (1.0, 0.0, 1.0)))
    env: Any = disturbed(bare, 1.0, kinds=["action_drop"], agent_id=1, seed=2)
    env.begin_disturbances("room/1")
    for action in ("turn_left", {0: "turn_left"}):
        for _ in range(50):
            env.step(action)
            assert env.perturbation_note()["feedback"] == ""
    assert round(math.degrees(bare.agents[0].heading)) == 1000
