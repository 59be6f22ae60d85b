"""A rejection says what arrived, what is allowed, and of which field; what rounding has moved is no fault."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.producers.contract.codec import decode_frame
from springback.producers.contract.columns import SHARE_ROUNDING, rounded_back
from springback.producers.contract.frame import StepFrame
from springback.stream_processors.intake.step_table import ArrivedFrame, StepTable
from springback.stream_processors.intake.validation import tabulate

NOW = 1_790_000_000.0
HEADER = {"agent": "r", "episode": "1", "family": "f"}
END = {"episode": 0, "outcome": "success"}


def frame(**fields: Any) -> StepFrame:
    document = {"schema_version": 1, "producer": "p", "session": "s", "episodes": [HEADER], **fields}
    return decode_frame(msgspec.msgpack.encode(document))


def table(**fields: Any) -> StepTable:
    return tabulate([ArrivedFrame(frame(**fields), NOW)])


@pytest.mark.parametrize("word", ["SUCCEEDED", "Success", "completed", ""])
def test_an_outcome_in_other_words_is_told_the_four(word: str) -> None:
    ((row),) = table(ends=[END | {"outcome": word}]).rejected
    assert (row.part, row.field, row.reason) == ("ends", "outcome", "invalid_end")
    assert row.detail == f"outcome: got '{word}', expected success, failure, timeout or aborted"


@pytest.mark.parametrize(
    ("fields", "detail"),
    [
        ({"stress": 40}, "stress: got 40, expected a number from 0 to 1; a percentage is to be divided by 100"),
        ({"stress": -0.5}, "stress: got -0.5, expected a number from 0 to 1"),
        ({"stress": 400}, "stress: got 400, expected a number from 0 to 1"),
        ({"stress": "high"}, "stress: got 'high', expected a number from 0 to 1"),
        ({"reference": "true"}, "reference: got 'true', expected true or false, without quotes"),
        ({"reference": 1}, "reference: got 1, expected true or false, without quotes"),
        ({"family": ""}, "family: got '', expected a text of 1 to 256 characters"),
        ({"family": None}, "family: not there, and it is required"),
        ({"magnitude": -2.0}, "magnitude: got -2.0, expected a number of 0 or more"),
    ],
)
def test_a_header_is_told_what_its_field_may_be(fields: dict[str, Any], detail: str) -> None:
    ((row),) = table(episodes=[HEADER | fields]).rejected
    assert (row.part, row.field, row.detail) == ("episodes", next(iter(fields)), detail)


def test_what_a_header_costs_says_the_headers_fault() -> None:
    steps = {"episode": [0, 1, 1], "step": [0, 0, 1], "progress": [0.1, 0.2, 0.3]}
    episodes = [HEADER | {"stress": 40}, HEADER | {"episode": "2", "reference": "true"}]
    rejected = table(episodes=episodes, steps=steps, ends=[END]).rejected
    assert [(row.part, row.field) for row in rejected if row.field == "stress"] == [
        ("episodes", "stress"),
        ("steps", "stress"),
        ("ends", "stress"),
    ]
    assert [row.detail for row in rejected if row.part == "steps"] == [
        "the header of its episode was rejected: stress: got 40, expected a number from 0 to 1; "
        "a percentage is to be divided by 100",
        *["the header of its episode was rejected: reference: got 'true', expected true or false, without quotes"] * 2,
    ]


@pytest.mark.parametrize(
    ("end", "detail"),
    [
        ({"navigation": {"goals_met": -1}}, "goals_met: got -1, expected an integer of 0 or more"),
        ({"navigation": {"metres_per_unit": 0.0}}, "metres_per_unit: got 0.0, expected a number above 0"),
        ({"navigation": 3}, "got 3, expected an object"),
        ({"realised_magnitude": "much"}, "realised_magnitude: got 'much', expected a number of 0 or more"),
        ({"extended": "yes"}, "extended: got 'yes', expected true or false, without quotes"),
    ],
)
def test_other_parts_of_an_end_say_the_same(end: dict[str, Any], detail: str) -> None:
    ((row),) = table(ends=[END | end]).rejected
    assert row.detail == detail


@pytest.mark.parametrize(
    ("column", "bad", "detail"),
    [
        ("progress", 25.0, "progress: got 25.0, expected 0 to 1; a percentage is to be divided by 100"),
        ("progress", "0.5", "progress: got '0.5', expected a number"),
        ("judge_goal", 5.0, "judge_goal: got 5.0, expected 0 to 1; a percentage is to be divided by 100"),
        ("travel", -3.0, "travel: got -3.0, expected 0 to 1e+12"),
    ],
)
def test_a_cell_says_its_column(column: str, bad: Any, detail: str) -> None:
    steps = {"episode": [0], "step": [0], "progress": [0.5]} | {column: [bad]}
    ((row),) = table(steps=steps).rejected
    assert (row.part, row.field, row.detail) == ("steps", column, detail)


@pytest.mark.parametrize("steps", [40, 1_000, 10_000])
def test_sums_of_float32_past_1_are_1(steps: int) -> None:
    summed = np.cumsum(np.full(steps, np.float32(1 / steps), np.float32), dtype=np.float32).astype(float)
    rows = {"episode": [0] * steps, "step": list(range(steps)), "progress": summed.tolist()}
    found = table(steps=rows)
    assert not found.rejected
    assert found.progress.max() <= 1.0
    assert np.abs(found.progress - summed).max() <= SHARE_ROUNDING


def test_differences_that_rounding_makes_negative_are_0() -> None:
    steps = {"episode": [0], "step": [0], "progress": [-1e-9], "planning_s": [-1e-7], "travel": [-1e-12]}
    found = table(steps=steps)
    assert (found.progress.tolist(), found.planning_s.tolist(), found.travel.tolist()) == ([0.0], [0.0], [0.0])
    # A cycle must last: one that does not is no rounding.
    assert len(table(steps=steps | {"cycle_time_s": [-1e-9]}).rejected) == 1


def test_traits_and_ends_are_rounded_too() -> None:
    header = HEADER | {"stress": float(np.float32(1.0000001)), "magnitude": -1e-9}
    end = END | {"realised_magnitude": -1e-9, "navigation": {"final_distance": -1e-8, "path": 2.0}}
    found = table(episodes=[header], ends=[end])
    assert not found.rejected
    assert (found.episodes[0].header.stress, found.episodes[0].header.magnitude) == (1.0, 0.0)
    kept = found.ends[0].end
    assert kept.navigation is not None
    assert (kept.realised_magnitude, kept.navigation.final_distance, kept.navigation.path) == (0.0, 0.0, 2.0)


@given(st.floats(allow_nan=True))
def test_rounding_moves_nothing_by_more_than_rounding(value: float) -> None:
    rounded = rounded_back(value, 0.0, 1.0)
    assert rounded is value or (0.0 <= rounded <= 1.0 and abs(rounded - value) <= SHARE_ROUNDING)
