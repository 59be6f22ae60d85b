from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.producers.habitat.metrics import (
    BROKEN_RULE_KEYS,
    COLLISION_TOTALS,
    DISTANCE_KEYS,
    FORCE_KEYS,
    OBJECT_DISTANCE_KEY,
    PART_KEYS,
    SHARE_KEY,
    STOP_KEY,
    SUCCESS_KEYS,
    HabitatReading,
    read_metrics,
)
from springback.producers.habitat.signals import NAVIGATION_ACTIONS, action_word

KEYS = (
    *DISTANCE_KEYS, *PART_KEYS, *SUCCESS_KEYS, *COLLISION_TOTALS, *FORCE_KEYS, *BROKEN_RULE_KEYS,
    "distance_to_goal_reward", OBJECT_DISTANCE_KEY, SHARE_KEY, STOP_KEY, "top_down_map", "gfx_replay_keyframes_string",
)  # fmt: skip

scalars = st.one_of(
    st.none(), st.booleans(), st.floats(), st.integers(), st.just(10**400), st.sampled_from(["", "0.5", b"x"]),
    st.floats(width=32).map(np.float32), st.booleans().map(np.bool_), st.floats().map(np.array), st.complex_numbers(),
    st.just(np.zeros((4, 4, 3), np.uint8)), st.just(np.zeros(0)), st.just([(1, 2)]), st.just(np.datetime64("NaT")),
    st.just(np.array([{"a": 1}], dtype=object)), st.just(np.array(["x"])),
)  # fmt: skip
names = st.sampled_from(["count", "is_collision", "accum", "instant", "total_collisions", "0", "stage_0_success"])
values = st.one_of(scalars, st.dictionaries(names, scalars, max_size=3))


@given(st.dictionaries(st.sampled_from(KEYS), values))
def test_whatever_a_measure_holds_is_a_plain_number_or_passed_over(metrics: dict[str, Any]) -> None:
    found = read_metrics(metrics)
    for name in ("distance_m", "object_distance_m", "share"):
        assert type(getattr(found, name)) in (float, type(None))
    for name in ("distance_gain_m", "spl", "collisions", "force_n"):
        value = getattr(found, name)
        assert value is None or math.isfinite(value)
    assert type(found.success) in (bool, type(None))
    assert type(found.collided) in (bool, type(None))


@pytest.mark.parametrize("metrics", [None, {}, [], "metrics", 3.0])
def test_no_metrics_say_nothing(metrics: Any) -> None:
    assert read_metrics(metrics) == read_metrics({})


def test_nan_and_infinity_are_told_from_what_is_missing() -> None:
    assert read_metrics({"distance_to_goal": np.float32("inf")}).distance_m == math.inf
    assert math.isnan(read_metrics({"distance_to_goal": np.array(math.nan)}).distance_m or 0.0)
    assert read_metrics({"distance_to_goal": {"0": 1.0}}).distance_m is None
    assert read_metrics({"object_to_goal_distance": {"0": 1.0, "1": math.inf}}).object_distance_m == math.inf


def test_the_measures_of_rearrangement() -> None:
    found = read_metrics(
        {
            "object_to_goal_distance": {"0": np.float32(1.5), "1": np.float32(0.5)},
            "obj_at_goal": {"0": np.bool_(False), "1": np.bool_(True)},
            "robot_collisions": {"total_collisions": 4, "robot_obj_colls": 1},
            "articulated_agent_force": {"accum": 2500.0, "instant": 12.0},
            "did_violate_hold_constraint": True,
            "force_terminate": False,
            "does_want_terminate": 1.0,
            "pddl_success": False,
            "gfx_replay_keyframes_string": "",
        }
    )
    assert (found.object_distance_m, found.parts_met, found.parts_total) == (2.0, 1, 2)
    assert (found.collided, found.collisions, found.force_n) == (None, 4.0, 2500.0)
    assert (found.broken_rules, found.stopped, found.success) == (1, True, False)


def test_the_measures_of_partnr_and_of_stage_goals() -> None:
    partnr = {"auto_eval_proposition_tracker": {"propositions": []}, "task_percent_complete": np.float64(0.5)}
    found = read_metrics({**partnr, "task_state_success": 0.0, "task_explanation": "not yet"})
    assert (found.share, found.success) == (0.5, False)
    stages = read_metrics({"pddl_stage_goals": {"stage_0_success": 1.0, "stage_1_success": 0.0}})
    assert (stages.parts_met, stages.parts_total) == (1, 2)


def test_success_is_the_first_measure_that_says_it_unless_one_is_named() -> None:
    metrics = {"success": 0.0, "spl": np.float32(0.5), "my_success": {"nested": 1}}
    assert read_metrics(metrics).success is False
    assert read_metrics({"success": math.nan, "spl": np.float32(0.5)}).success is True
    assert read_metrics(metrics, HabitatReading(success_measure="my_success")).success is None


@pytest.mark.parametrize(
    ("action", "name", "mode", "must_move"),
    [
        (1, "move_forward", "navigate", True),
        (np.int64(0), "stop", "stop", False),
        (np.array([3]), "turn_right", "turn", True),
        ({"action": "look_up"}, "look_up", "perceive", False),
        ({"action": 2, "action_args": None}, "turn_left", "turn", True),
        (
            {"action": "velocity_control", "action_args": {"linear_velocity": 0.5}},
            "velocity_control",
            "navigate",
            False,
        ),
        ({"action": ("arm_action", "base_velocity")}, "arm_action+base_velocity", "manipulate", False),
        (17, "17", None, False),
        (np.zeros(7, np.float32), "", None, False),
        (None, "", None, False),
    ],
)
def test_actions_in_words(action: Any, name: str, mode: str | None, must_move: bool) -> None:
    def name_of(index: int) -> str | None:
        return NAVIGATION_ACTIONS[index] if index < len(NAVIGATION_ACTIONS) else None

    word = action_word(action, name_of)
    assert (word.name, word.mode, word.must_move) == (name, mode, must_move)
