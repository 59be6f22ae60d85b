from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from springback.producers.habitat.metrics import DEFAULT_READING, HabitatReading, TaskReading
from springback.producers.habitat.signals import EpisodeSignals, Pose, action_word, bearing_rad

FORWARD = action_word("move_forward")
WAIT = action_word("wait")


def begun(start: TaskReading | None = None, **reading: Any) -> EpisodeSignals:
    return EpisodeSignals(HabitatReading(**reading), start)


def test_progress_is_the_share_of_the_way_to_the_start_that_is_done() -> None:
    signals = begun(TaskReading(distance_m=8.0))
    steps = [TaskReading(distance_m=distance, success=False) for distance in (8.0, 6.0, 10.0, 0.4)]
    found = [signals.step(step, FORWARD) for step in steps]
    assert [row["progress"] for row in found] == [0.0, 0.25, 0.0, 0.95]
    assert [row["propositions"] for row in found] == [0.0] * 4


@pytest.mark.parametrize(
    ("start", "found", "progress", "propositions"),
    [
        (TaskReading(distance_m=4.0), TaskReading(distance_m=1.0, share=0.5), 0.5, 0.5),
        (TaskReading(), TaskReading(parts_met=1, parts_total=4, success=False), 0.25, 0.25),
        (
            TaskReading(object_distance_m=4.0),
            TaskReading(object_distance_m=1.0, parts_met=1, parts_total=4),
            0.75,
            0.25,
        ),
        (TaskReading(object_distance_m=4.0), TaskReading(object_distance_m=9.0, parts_met=1, parts_total=2), 0.5, 0.5),
        (TaskReading(), TaskReading(success=True), 1.0, 1.0),
        (TaskReading(distance_m=0.0), TaskReading(distance_m=0.0), 1.0, None),
        (TaskReading(distance_m=4.0), TaskReading(progress=0.1, share=0.5), 0.1, 0.5),
    ],
)
def test_the_tasks_own_measures_go_before_the_distance(
    start: TaskReading, found: TaskReading, progress: float, propositions: float | None
) -> None:
    row = begun(start).step(found, FORWARD)
    assert (row["progress"], row.get("propositions")) == (progress, propositions)


def test_without_a_look_at_the_start_the_first_step_tells_of_it() -> None:
    signals = begun()
    first = signals.step(TaskReading(distance_m=7.5, distance_gain_m=0.5), FORWARD)
    assert first["progress"] == 1 - 7.5 / 8.0
    assert signals.navigation()["shortest_path"] == 8.0
    known = EpisodeSignals(DEFAULT_READING, None, None, 10.0)
    assert known.step(TaskReading(distance_m=7.5, distance_gain_m=0.5), FORWARD)["progress"] == 0.25


def test_collisions_are_read_from_the_flag_or_from_what_the_count_has_risen_by() -> None:
    signals = begun(TaskReading(success=False))
    flagged = signals.step(TaskReading(success=False, collided=True, collisions=7.0), FORWARD)
    counted = signals.step(TaskReading(success=False, collisions=9.0), FORWARD)
    calm = signals.step(TaskReading(success=False, collisions=9.0, broken_rules=1), WAIT)
    assert [row["violation"] for row in (flagged, counted, calm)] == [1.0, 2.0, 1.0]
    assert [row["risk"] for row in (flagged, counted, calm)] == [2.0, 4.0, 0.0]
    assert [row["retries"] for row in (flagged, counted, calm)] == [1.0, 1.0, 0.0]


def test_risk_rises_with_nearness_and_with_force() -> None:
    signals = begun(TaskReading(success=False, force_n=100.0), clearance_m=0.5, force_unit_n=1000.0)
    near = signals.step(TaskReading(success=False, force_n=100.0), FORWARD, clearance_m=0.1)
    pressed = signals.step(TaskReading(success=False, force_n=350.0), FORWARD, clearance_m=math.inf)
    assert near["risk"] == pytest.approx(0.8)
    assert pressed["risk"] == pytest.approx(0.25)


def test_an_action_that_leaves_the_pose_as_it_was_is_a_retry_if_it_is_one_that_moves() -> None:
    here, there = Pose((0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)), Pose((0.0, 0.0, -0.25), (1.0, 0.0, 0.0, 0.0))
    signals = EpisodeSignals(DEFAULT_READING, TaskReading(), here)
    known = TaskReading(success=False)
    rows = [signals.step(known, word, pose) for word, pose in ((FORWARD, here), (WAIT, here), (FORWARD, there))]
    assert [(row["travel"], row["retries"]) for row in rows] == [(0.0, 1.0), (0.0, 0.0), (0.25, 0.0)]
    blind = EpisodeSignals(DEFAULT_READING, TaskReading(), Pose((0.0, 0.0)))
    assert blind.step(known, FORWARD, Pose((0.0, 0.0)))["retries"] == 0.0  # it may have turned


def test_a_push_between_steps_is_no_travel() -> None:
    here, pushed, after = Pose((0.0, 0.0)), Pose((3.0, 0.0)), Pose((3.0, 0.25))
    signals = EpisodeSignals(DEFAULT_READING, TaskReading(), here)
    assert signals.step(TaskReading(success=False), FORWARD, after, before=pushed)["travel"] == 0.25


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf, -1.0])
@pytest.mark.parametrize("name", ["distance_m", "object_distance_m", "share", "progress"])
def test_a_broken_number_makes_the_episode_unfit_from_then_on(name: str, broken: float) -> None:
    signals = begun(TaskReading(distance_m=8.0))
    assert signals.step(TaskReading(distance_m=7.0), FORWARD)["progress"] == 0.125
    found: dict[str, Any] = {"distance_m": 6.0, name: broken}
    if name == "distance_m":  # of what was known before, one that is alone broken is bridged
        assert signals.step(TaskReading(**found), FORWARD)["progress"] == 0.125
    assert math.isnan(signals.step(TaskReading(**found), FORWARD)["progress"])
    assert math.isnan(signals.step(TaskReading(distance_m=6.0), FORWARD)["progress"])
    assert signals.fault is not None
    assert signals.fault.endswith("negative" if broken == -1.0 else str(broken))


def test_a_broken_start_makes_it_unfit_at_once() -> None:
    assert begun(TaskReading(distance_m=math.inf)).fault == "the distance at the start is inf"


def test_nothing_that_says_progress_makes_it_unfit() -> None:
    signals = begun(TaskReading())
    assert math.isnan(signals.step(TaskReading(collided=True), FORWARD)["progress"])
    assert signals.fault == "nothing says the progress"


def test_the_path_of_a_success_is_known_by_its_spl() -> None:
    signals = begun(TaskReading(distance_m=8.0))
    signals.step(TaskReading(distance_m=0.1, success=True, spl=0.5), action_word("stop"))
    assert signals.navigation() == {
        "shortest_path": 8.0,
        "path": 16.0,
        "actions": 1,
        "shortest_actions": 32,
        "final_distance": 0.1,
        "target_in_view": True,
        "goals_met": 1,
        "goals_total": 1,
    }


@pytest.mark.parametrize(
    ("goal", "degrees"),
    [((0.0, 0.0, -3.0), 0.0), ((-3.0, 1.0, 0.0), 90.0), ((3.0, 0.0, 0.0), -90.0), ((-3.0, 0.0, -3.0), 45.0)],
)
def test_the_bearing_is_that_from_the_heading_to_the_left(goal: tuple[float, ...], degrees: float) -> None:
    ahead = bearing_rad(Pose((0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)), goal)
    assert ahead is not None
    assert math.degrees(ahead) == pytest.approx(degrees)
    half = math.radians(30.0 / 2)  # turned to the left by 30 degrees, a goal lies 30 degrees further to the right
    turned = bearing_rad(Pose((0.0, 0.0, 0.0), (math.cos(half), 0.0, math.sin(half), 0.0)), goal)
    assert turned is not None
    assert math.degrees(turned) == pytest.approx(degrees - 30.0)


def test_a_bearing_needs_a_heading_and_a_way() -> None:
    assert bearing_rad(Pose((0.0, 0.0, 0.0)), (1.0, 0.0, 0.0)) is None
    assert bearing_rad(Pose((1.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)), (1.0, 5.0, 0.0)) is None


@pytest.mark.parametrize(
    ("known", "fewest"),
    [
        ({"follower_actions": 41, "bearing_rad": 1.0}, 41),
        # 8.1 m in steps of 0.25 m are 32.4, so 33; 87 degrees in turns of 10 are 9.
        ({"bearing_rad": math.radians(-87.0)}, 33 + 9),
        ({}, 33),
    ],
)
def test_the_fewest_actions_are_the_followers_else_an_estimate(known: dict[str, Any], fewest: int) -> None:
    signals = EpisodeSignals(DEFAULT_READING, TaskReading(distance_m=8.1), **known)
    signals.step(TaskReading(distance_m=8.0, success=False), FORWARD)
    assert signals.navigation()["shortest_actions"] == fewest


@pytest.mark.parametrize("word", [WAIT, action_word("pick_object"), action_word(np.array([0.1, 0.2]))])
def test_the_fewest_actions_are_told_only_where_actions_are_single_moves(word: Any) -> None:
    signals = EpisodeSignals(DEFAULT_READING, TaskReading(distance_m=8.0), follower_actions=41)
    signals.step(TaskReading(distance_m=8.0, success=False), FORWARD)
    signals.step(TaskReading(distance_m=8.0, success=False), word)
    assert signals.navigation()["shortest_actions"] is None


def test_the_size_of_an_action_is_a_setting() -> None:
    signals = EpisodeSignals(
        HabitatReading(forward_m=0.5, turn_deg=30.0), TaskReading(distance_m=2.0), bearing_rad=math.radians(60.0)
    )
    signals.step(TaskReading(distance_m=2.0, success=False), FORWARD)
    assert signals.navigation()["shortest_actions"] == 4 + 2
