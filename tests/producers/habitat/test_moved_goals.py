"""A goal that a disturbance moves is measured where it is now, also where the agent has not moved since."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.habitat.watch import watch
from springback.producers.perturbations.habitat import disturbed
from tests.producers.habitat.strict_habitat import StrictEnv, StrictRLEnv
from tests.producers.habitat.trace_replay import ends_of, rows_of

NEAR = (0.0, 0.0, -0.1)  # within the 0.2 m at which a stop is a success


def turned_until_the_goal_moves(env: Any, core: StrictEnv) -> None:
    """Turns on the spot, so that the agent does not move."""
    env.reset()
    while core.current_episode.goals[0].position == list(NEAR):
        env.step("turn_left")


@pytest.mark.parametrize("gym_style", [False, True])
@pytest.mark.parametrize("kinds", [["goal_move"], ["goal_move", "action_drop"]])
def test_the_distance_is_that_to_the_new_goal_at_once(gym_style: bool, kinds: Any) -> None:
    core = StrictEnv((NEAR,), limit=1000)
    env: Any = disturbed(StrictRLEnv(core) if gym_style else core, 1.0, kinds=kinds, seed=4)
    turned_until_the_goal_moves(env, core)
    goal = core.current_episode.goals[0].position
    assert core.get_metrics()["distance_to_goal"] == pytest.approx(math.dist((0.0, 0.0, 0.0), goal))


def test_progress_and_success_follow_the_new_goal(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    core = StrictEnv((NEAR,), limit=1000)
    env: Any = watch(disturbed(core, 1.0, kinds=["goal_move"], seed=4), emitter, family="nav")
    turned_until_the_goal_moves(env, core)
    env.step("stop")
    assert emitter.flush()
    rows = [row for _, row in rows_of(publisher.frames)]
    # Before, the goal is as far as at the start; then it is metres away. A stop is not a success.
    assert [row["progress"] for row in rows[-2:]] == [0.0, 0.0]
    (end,) = ends_of(publisher.frames).values()
    assert end.outcome == "failure"
    assert end.navigation is not None
    assert end.navigation.final_distance is not None
    assert end.navigation.final_distance > 0.5


def test_a_stop_at_the_very_step_of_the_move_is_no_success(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    moved_at = len(tried_actions())
    core = StrictEnv((NEAR,), limit=1000)
    env: Any = watch(disturbed(core, 1.0, kinds=["goal_move"], seed=4), emitter, family="nav")
    env.reset()
    for _ in range(moved_at - 1):
        env.step("turn_left")
    env.step("stop")
    assert emitter.flush()
    assert [end.outcome for end in ends_of(publisher.frames).values()] == ["failure"]


def tried_actions() -> list[str]:
    """As many actions as it takes until the goal moves."""
    core = StrictEnv((NEAR,), limit=1000)
    env: Any = disturbed(core, 1.0, kinds=["goal_move"], seed=4)
    taken: list[str] = []
    env.reset()
    while core.current_episode.goals[0].position == list(NEAR):
        env.step("turn_left")
        taken.append("turn_left")
    return taken


class PictureOfTheGoal:
    """habitat-lab's `ImageGoalSensor`: takes a picture of each episode's goal once, and keeps it."""

    def __init__(self, core: StrictEnv) -> None:
        self._core = core
        self._current_episode_id: str | None = None
        self._current_image_goal: list[float] = []

    def seen_at(self) -> list[float]:
        episode = self._core.current_episode
        if self._current_episode_id != episode.episode_id:
            self._current_episode_id = episode.episode_id
            self._current_image_goal = list(episode.goals[0].position)
        return self._current_image_goal


def test_a_picture_shows_the_goal_where_it_is() -> None:
    core = StrictEnv((NEAR,), limit=1000)
    picture = PictureOfTheGoal(core)
    core.task.sensor_suite = SimpleNamespace(sensors={"imagegoal": picture, "gps": SimpleNamespace()})
    env: Any = disturbed(core, 1.0, kinds=["goal_move"], seed=4)
    env.reset()
    assert picture.seen_at() == list(NEAR)
    turned_until_the_goal_moves(env, core)
    assert picture.seen_at() == core.current_episode.goals[0].position != list(NEAR)
    env.reset()  # the same episode again
    assert picture.seen_at() == list(NEAR)


def test_other_measures_keep_where_the_agent_was() -> None:
    core = StrictEnv((NEAR,), limit=1000)
    env: Any = disturbed(core, 1.0, kinds=["goal_move"], seed=4)
    path = core.task.measurements.measures["spl"]
    path._previous_position = (0.0, 0.0, 0.0)  # SPL adds up the path from there
    turned_until_the_goal_moves(env, core)
    assert path._previous_position == (0.0, 0.0, 0.0)


def test_a_goal_that_is_measured_by_where_it_is_seen_from_stays() -> None:
    core = StrictEnv((NEAR,), limit=1000)
    measures = core.task.measurements.measures
    measures["distance_to_goal"] = SimpleNamespace(_distance_to="VIEW_POINTS", _previous_position=None)
    env: Any = disturbed(core, 1.0, kinds=["goal_move"], seed=4)
    env.reset()
    for _ in range(300):
        env.step("turn_left")
        assert env.perturbation_note()["feedback"] == ""
    assert core.current_episode.goals[0].position == list(NEAR)
