"""What looks like a mistake is answered by the gateway as a warning: the frame is taken all the same."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from springback.producers.contract.codec import decode_frame, encode_msgpack
from springback.producers.contract.frame import EpisodeHeader, StepColumn, StepFrame
from springback.producers.contract.suspicions import signs_of_frame
from springback.producers.gateway.app import RequestOutcome
from springback.producers.gateway.request_bodies import MOST_WARNINGS, admit

ROWS = 24
T0_S = 1_790_000_000.0


def document(header: dict[str, Any] | None = None, **columns: list[float]) -> dict[str, Any]:
    """A frame of 24 steps, half a second apart, with nothing wrong but what is given."""
    rows = range(ROWS)
    steps: dict[str, Any] = {
        "episode": [0] * ROWS,
        "step": list(rows),
        "progress": [row / ROWS for row in rows],
        "time_s": [T0_S + 0.5 * row for row in rows],
    }
    named = {"agent": "r7", "episode": "1", "family": "inspection", **(header or {})}
    return {"schema_version": 1, "producer": "r7", "session": "s", "episodes": [named], "steps": steps | columns}


def warnings_of(*documents: dict[str, Any]) -> list[tuple[int, str]]:
    admission = admit([json.dumps(each).encode() for each in documents], 1_000_000)
    assert len(admission.admitted) == len(documents)
    return [(note.place, note.reason) for note in admission.warnings]


def test_a_frame_with_nothing_wrong_has_no_warning() -> None:
    good = document(cycle_time_s=[0.5] * ROWS, planning_s=[0.1] * ROWS, travel=[0.2] * ROWS)
    assert warnings_of(good, good) == []


@pytest.mark.parametrize(
    ("odd", "kind"),
    [
        (document(planing_s=[0.1] * ROWS), "unknown_column"),
        (document({"refrence": True}), "unknown_field"),
        (document() | {"lost_step": 3}, "unknown_field"),
        (document() | {"ends": [{"episode": 0, "outcome": "success", "navigation": {"paths": 3.0}}]}, "unknown_field"),
        (document({"reference": True, "stress": 0.4}), "stressed_reference"),
        (document({"reference": True, "attack": "model"}), "stressed_reference"),
        (document(time_s=[1000.0 * (T0_S + row) for row in range(ROWS)]), "time_unit"),
        (document(time_s=[0.5 * row for row in range(ROWS)]), "clock_unset"),
        (document(cycle_time_s=[500.0] * ROWS), "cycle_unit"),
        (document(planning_s=[100.0] * ROWS), "duration_unit"),
        (document(perception_s=[30.0] * ROWS), "duration_unit"),
        (document(travel=[200.0] * ROWS), "travel_unit"),
    ],
)  # fmt: skip
def test_a_mistake_of_a_frame_is_a_warning_with_its_place(odd: dict[str, Any], kind: str) -> None:
    assert warnings_of(document(), odd, odd) == [(1, kind)]


def test_a_frame_of_message_pack_shows_the_same() -> None:
    header = EpisodeHeader(agent="r7", episode="1", family="inspection", reference=True, stress=0.5)
    columns: dict[str, StepColumn] = {name: np.array(values) for name, values in document()["steps"].items()}
    data = encode_msgpack(StepFrame(producer="r7", session="s", episodes=(header,), steps=columns))
    assert [sign.kind for sign in signs_of_frame(data, decode_frame(data))] == ["stressed_reference"]


def test_fewer_steps_than_a_unit_can_be_told_by_say_nothing() -> None:
    odd = document(planning_s=[100.0] * ROWS)
    odd["steps"] = {name: cells[:19] for name, cells in odd["steps"].items()}
    assert warnings_of(odd) == []


def test_an_answer_tells_of_so_many_and_has_no_such_list_without_any() -> None:
    many = [document(None, **{f"own_{number}": [0.0] * ROWS}) for number in range(2 * MOST_WARNINGS)]
    admission = admit([json.dumps(each).encode() for each in many], 1_000_000)
    answer = RequestOutcome(len(many), [], [], [], admission.warnings).as_answer()
    assert len(answer["warnings"]) == MOST_WARNINGS
    assert answer["warnings"][3]["index"] == 3
    assert "'own_3'" in answer["warnings"][3]["detail"]
    assert RequestOutcome(1, [], [], [], []).as_answer() == {"accepted": 1, "refused": [], "failed": [], "faulty": []}
