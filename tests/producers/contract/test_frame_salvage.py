"""What is left of frames that are not clean: every fault costs the smallest part that it spoils."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from springback.producers.contract.codec import decode_frame
from springback.stream_processors.intake.step_table import ArrivedFrame, StepTable
from springback.stream_processors.intake.validation import tabulate

NOW = 1_790_000_000.0
HEADER = {"agent": "r", "episode": "1", "family": "f"}

both = pytest.mark.parametrize(
    "encode", [lambda value: json.dumps(value).encode(), msgspec.msgpack.encode], ids=["json", "msgpack"]
)
Encode = Callable[[Any], bytes]


def table_of(encode: Encode, **fields: Any) -> StepTable:
    document = {"schema_version": 1, "producer": "p", "session": "s", "episodes": [HEADER], **fields}
    return tabulate([ArrivedFrame(decode_frame(encode(document)), NOW)])


def faults(table: StepTable) -> list[tuple[str, str]]:
    return [(row.reason, row.detail) for row in table.rejected]


@both
@pytest.mark.parametrize(
    ("column", "bad", "reason"),
    [
        ("episode", None, "missing"),
        ("episode", True, "wrong_type"),
        ("episode", "0", "wrong_type"),
        ("step", 1.5, "wrong_type"),
        ("step", False, "wrong_type"),
        ("step", float("nan"), "not_finite"),
        ("step", 2**63, "out_of_range"),
        ("step", 2**53 + 1, "out_of_range"),
        ("progress", None, "missing"),
        ("progress", "0.5", "wrong_type"),
        ("progress", True, "wrong_type"),
        ("progress", "NaN", "not_finite"),
        ("progress", float("inf"), "not_finite"),
        ("travel", [1.0], "wrong_type"),
        ("travel", {"m": 1.0}, "wrong_type"),
        ("travel", 2**64 - 1, "out_of_range"),
        ("mode", 3, "wrong_type"),
        ("action", ["go"], "wrong_type"),
        ("feedback", "x" * 257, "too_long"),
    ],
)
def test_a_bad_cell_costs_its_row_alone(encode: Encode, column: str, bad: Any, reason: str) -> None:
    good: Any = "go" if column in ("mode", "action", "feedback") else 0
    steps = {"episode": [0, 0, 0], "step": [1, 2, 3], "progress": [0.1, 0.2, 0.3], "travel": [1, 2.5, None]}
    table = table_of(encode, steps=steps | {column: [good, bad, good]})
    assert len(table) == 2
    ((found, detail),) = faults(table)
    assert found == reason
    assert detail.startswith(f"{column}: ")


def test_integer_that_no_float_holds() -> None:
    steps = {"episode": [0], "step": [1], "progress": [10**400]}
    assert faults(table_of(lambda value: json.dumps(value).encode(), steps=steps))[0][0] == "out_of_range"


@both
def test_whole_floats_are_integers_and_null_is_left_out(encode: Encode) -> None:
    table = table_of(
        encode,
        episodes=[HEADER | {"task": None, "stress": None}],
        steps={"episode": [0.0, 0], "step": [1.0, 2], "progress": [0, 1], "travel": [None, 3], "mode": [None, "go"]},
        ends=[{"episode": 0.0, "outcome": "success", "time_s": None, "navigation": {"actions": 34.0, "path": None}}],
    )
    assert not table.rejected
    assert table.step.tolist() == [1, 2]
    assert table.travel.tolist() == [0.0, 3.0]
    assert [table.mode_names[code] for code in table.mode] == ["run", "go"]
    traits = table.episodes[0].header.traits()
    assert (traits.task, traits.stress) == ("1", None)
    assert table.ends[0].end.navigation is not None
    assert table.ends[0].end.navigation.actions == 34


@both
def test_bad_headers_and_ends_are_told_once_and_leave_the_others(encode: Encode) -> None:
    table = table_of(
        encode,
        episodes=[HEADER, HEADER | {"agent": 7}, None, HEADER | {"stress": 2}],
        steps={"episode": [0, 1, 2, 3], "step": [0, 0, 0, 0], "progress": [0.1, 0.2, 0.3, 0.4]},
        ends=[
            {"episode": 0, "outcome": "lost"},
            5,
            {"episode": 3, "outcome": "failure"},
            {"episode": 0, "outcome": "timeout"},
        ],
    )
    assert table.progress.tolist() == [0.1]
    assert [end.end.outcome for end in table.ends] == ["timeout"]
    rejected = [({*row.row} & {"episodes", "ends", "step"}, row.reason) for row in table.rejected]
    assert rejected.count(({"episodes"}, "invalid_episode")) == 3
    assert rejected.count(({"step"}, "invalid_episode")) == 3
    assert rejected.count(({"ends"}, "invalid_end")) == 2
    assert rejected.count(({"ends"}, "invalid_episode")) == 1
    assert len(rejected) == 9


@both
def test_broken_navigation_leaves_the_end(encode: Encode) -> None:
    end = {"episode": 0, "outcome": "success", "navigation": {"final_distance": float("inf")}}
    table = table_of(encode, ends=[end])
    assert [(kept.end.outcome, kept.end.navigation) for kept in table.ends] == [("success", None)]
    assert [row.reason for row in table.rejected] == ["invalid_navigation"]


@both
@pytest.mark.parametrize("bad", [-0.1, "much", float("nan"), True])
def test_a_broken_magnitude_leaves_the_end(encode: Encode, bad: Any) -> None:
    end = {"episode": 0, "outcome": "success", "realised_magnitude": bad, "navigation": {"path": 2.0}}
    table = table_of(encode, ends=[end])
    ((kept),) = table.ends
    assert (kept.end.outcome, kept.end.realised_magnitude) == ("success", None)
    assert kept.end.navigation is not None
    assert [row.reason for row in table.rejected] == ["invalid_realised_magnitude"]


@both
@pytest.mark.parametrize(
    ("told", "kept", "rejected"),
    [(True, True, []), ("yes", False, ["invalid_extended"]), ({}, False, ["invalid_extended"])],
)
def test_whether_an_episode_was_extended_does_not_cost_its_end(
    encode: Encode, told: Any, kept: bool, rejected: list[str]
) -> None:
    table = table_of(encode, ends=[{"episode": 0, "outcome": "success", "extended": told}])
    assert [(end.end.outcome, end.end.extended) for end in table.ends] == [("success", kept)]
    assert [row.reason for row in table.rejected] == rejected


def test_what_was_rejected_can_be_written_down() -> None:
    steps = {
        "episode": [0, 0],
        "step": [1, 10**30],
        "progress": [float("nan"), {"deep": [1]}],
        "action": ["x" * 1000, None],
    }
    table = table_of(lambda value: json.dumps(value).encode(), steps=steps)
    first, second = (row.row for row in table.rejected)
    assert (first["progress"], len(first["action"])) == ("NaN", 300)
    assert second["step"] == "<integer of 100 bits>"
    assert len(json.dumps([first, second], allow_nan=False)) < 1000
    assert np.isfinite(table.time_s).all()
