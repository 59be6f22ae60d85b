"""The fewest actions of an episode in Habitat: the simulator's follower is asked, else they are an estimate."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.habitat.signals import Pose
from springback.producers.habitat.watch import watch
from springback.producers.habitat.world import MOST_GOALS, bearing_by_sensors, way_to
from tests.producers.habitat.live_habitat import LiveEnv, LiveSimulator, follow
from tests.producers.habitat.trace_replay import ends_of

GOAL = [3.0, 0.0, -4.0]
# 5 m away in steps of 0.25 m are 20, and 36.9 degrees in turns of 10 nearest to 4.
ESTIMATE = 20 + 4


class Follower:
    """habitat-sim's greedy follower on an open floor: its path ends with the key of the stop, None."""

    def __init__(self, sim: FollowedSimulator, agent_id: int, goal_radius: float) -> None:
        self.sim, self.agent_id, self.goal_radius = sim, agent_id, goal_radius

    def find_path(self, goal_pos: Any) -> list[Any]:
        assert goal_pos.dtype == np.float32
        self.sim.asked.append((self.agent_id, self.goal_radius, goal_pos.tolist()))
        if self.sim.fails is not None:
            raise self.sim.fails
        metres = math.dist(self.sim.get_agent(0).get_state().position, goal_pos.tolist())
        return ["move_forward"] * math.ceil((metres - self.goal_radius) / 0.25) + [None]


class FollowedSimulator(LiveSimulator):
    """A simulator that makes followers; `fails` is what they raise."""

    def __init__(self, fails: Exception | None = None) -> None:
        super().__init__()
        self.asked: list[tuple[int, float, list[float]]] = []
        self.fails = fails

    def make_greedy_follower(self, agent_id: int = 0, goal_radius: float | None = None) -> Follower:
        assert goal_radius is not None
        return Follower(self, agent_id, goal_radius)


def fewest(simulator: LiveSimulator, publisher: MemoryPublisher, emitter: StepEmitter, goals: Any) -> int | None:
    loop: Any = watch(simulator, emitter, family="nav")
    loop.begin_episode(goals=goals, episode="1")
    loop.step("move_forward")
    loop.stop_episode()
    assert emitter.flush()
    (end,) = ends_of(publisher.frames).values()
    assert end.navigation is not None
    shortest: int | None = end.navigation.shortest_actions
    return shortest


@pytest.mark.usefixtures("habitat_sim")
def test_the_simulators_follower_is_asked(publisher: MemoryPublisher, emitter: StepEmitter) -> None:
    simulator = FollowedSimulator()
    # To within 0.2 m of 5 m in steps of 0.25 m: 4.8 / 0.25 = 19.2, so 20, and the stop.
    assert fewest(simulator, publisher, emitter, [GOAL]) == 20 + 1
    assert simulator.asked == [(0, 0.2, GOAL)]


@pytest.mark.usefixtures("habitat_sim")
def test_of_several_goals_the_one_that_takes_fewest(publisher: MemoryPublisher, emitter: StepEmitter) -> None:
    # 2 m away: 1.8 / 0.25 = 7.2, so 8, and the stop.
    assert fewest(FollowedSimulator(), publisher, emitter, [GOAL, [0.0, 0.0, -2.0]]) == 8 + 1


@pytest.mark.usefixtures("habitat_sim")
@pytest.mark.parametrize(
    "simulator",
    [
        FollowedSimulator(AssertionError("Could not find an action spec corresponding to move_forward")),
        FollowedSimulator(RuntimeError("no way")),
        LiveSimulator(),
    ],
)
def test_without_a_follower_it_is_an_estimate(
    simulator: LiveSimulator, publisher: MemoryPublisher, emitter: StepEmitter
) -> None:
    assert fewest(simulator, publisher, emitter, [GOAL]) == ESTIMATE


def test_habitat_lab_tells_where_the_goals_are(publisher: MemoryPublisher, emitter: StepEmitter) -> None:
    env: Any = watch(LiveEnv(), emitter, family="nav")
    observations = env.reset()
    while not env.episode_over:
        observations = env.step(follow(observations))
    assert emitter.flush()
    (end,) = ends_of(publisher.frames).values()
    assert end.navigation is not None
    assert end.navigation.shortest_actions == ESTIMATE


def test_more_goals_than_one_would_ask_for_are_not_asked_for() -> None:
    here = Pose((0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0))
    assert way_to(FollowedSimulator(), here, [GOAL] * (MOST_GOALS + 1), 0.2) == {}
    assert way_to(FollowedSimulator(), here, [], 0.2) == {}


@pytest.mark.parametrize(
    ("observation", "bearing"),
    [
        ({"pointgoal_with_gps_compass": np.array([5.0, -0.6], np.float32)}, -0.6),
        ({"pointgoal": np.array([5.0, 0.4])}, 0.4),
        ({"pointgoal": np.array([5.0, 0.4, 0.1])}, None),
        ({"pointgoal": np.array([5.0, math.nan])}, None),
        ({}, None),
        (SimpleNamespace(), None),
    ],
)
def test_a_vector_has_the_bearing_from_its_point_goal_sensors(observation: Any, bearing: float | None) -> None:
    assert bearing_by_sensors(observation) == (None if bearing is None else pytest.approx(bearing))
