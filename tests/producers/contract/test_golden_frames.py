"""The wire contract as bytes: what version 1 was written as must be read the same for ever.

To write the golden files anew, after a change of the contract that was meant, run this file as a program:

    python tests/producers/contract/test_golden_frames.py

- `step_frame.v1.json`: the JSON form.
- `step_frame.v1.msgpack`: MessagePack with packed columns, as our emitter writes it.
- `step_frame.v1.lists.msgpack`: MessagePack with plain lists, as any other client may write it.
"""

import json

import msgspec
import numpy as np
import pytest

from springback.producers.contract.codec import decode_frame, encode_json, encode_msgpack
from springback.producers.contract.columns import ABSENT
from springback.producers.contract.frame import EpisodeEnd, EpisodeHeader, NavigationOutcome, StepFrame, TextColumn
from tests.house import DATA

GOLDEN = StepFrame(
    producer="robot-7",
    session="2026-11-30T08:00:00Z-3f2a",
    episodes=(
        EpisodeHeader(
            agent="robot-7", episode="12", task="kitchen-041", family="transportation", method="reflexion",
            version="1.4.0", stress=0.4, perturbation="physical", perturbation_name="slip", magnitude=0.4,
            attack="none", instruction="put the mug next to the sink — 🍵",
        ),
        EpisodeHeader(agent="robot-8", episode="3", family="navigation", reference=True),
    ),
    steps={
        "episode": np.array([0, 0, 1]),
        "step": np.array([17, 18, 2**40]),
        "time_s": np.array([1790000003.12, 1790000003.62, ABSENT]),
        "cycle_time_s": np.array([0.5, 0.5, ABSENT]),
        "progress": np.array([0.41, 0.41, 1.0]),
        "propositions": np.array([0.25, 0.25, 0.0]),
        "planning_s": np.array([0.02, 0.35, 0.0]),
        "perception_s": np.array([0.05, 0.05, 0.05]),
        "travel": np.array([0.25, 0.0, 1e-300]),
        "retries": np.array([0.0, 1.0, 0.0]),
        "risk": np.array([0.0, 0.2, np.nan]),
        "violation": np.array([0.0, 0.0, np.inf]),
        "judge_goal": np.array([ABSENT, 0.5, 1.0]),
        "mode": TextColumn.of(["navigate", "manipulate", "navigate"]),
        "action": TextColumn.of(["forward", "pick", "forward"]),
        "feedback": TextColumn.of(["", "slipped", ""]),
    },
    ends=(
        EpisodeEnd(
            episode=0, outcome="failure", time_s=1790000009.5,
            navigation=NavigationOutcome(
                shortest_path=6.1, path=8.4, actions=34, shortest_actions=25, final_distance=2.2,
                target_in_view=False, goals_met=1, goals_total=3,
            ),
        ),
        EpisodeEnd(episode=1, outcome="success"),
    ),
)  # fmt: skip


def _as_lists(frame: StepFrame) -> bytes:
    document = json.loads(encode_json(frame))
    not_finite = {"NaN": np.nan, "Infinity": np.inf}
    for name in ("risk", "violation"):
        document["steps"][name] = [not_finite.get(cell, cell) for cell in document["steps"][name]]
    return msgspec.msgpack.encode(document)


FORMS = {
    "step_frame.v1.json": encode_json,
    "step_frame.v1.msgpack": encode_msgpack,
    "step_frame.v1.lists.msgpack": _as_lists,
}


def assert_same(one: StepFrame, other: StepFrame) -> None:
    """The same frame to the last bit, absent cells and other NaNs told apart."""
    assert (one.producer, one.session, one.episodes, one.ends) == (
        other.producer, other.session, other.episodes, other.ends,
    )  # fmt: skip
    assert list(one.steps) == list(other.steps)
    for name, column in one.steps.items():
        opposite = other.steps[name]
        if isinstance(column, TextColumn):
            assert isinstance(opposite, TextColumn)
            assert column.texts() == opposite.texts()
        else:
            assert isinstance(opposite, np.ndarray)
            assert column.dtype == opposite.dtype
            assert column.tobytes() == opposite.tobytes(), name


@pytest.mark.parametrize("name", FORMS)
def test_golden_file_is_read_as_ever(name: str) -> None:
    assert_same(GOLDEN, decode_frame((DATA / name).read_bytes()))


@pytest.mark.parametrize("name", FORMS)
def test_frame_is_written_as_ever(name: str) -> None:
    assert FORMS[name](GOLDEN) == (DATA / name).read_bytes()


def test_packed_columns_are_little_endian() -> None:
    document = msgspec.msgpack.decode((DATA / "step_frame.v1.msgpack").read_bytes())
    assert document["steps"]["step"][:8] == (17).to_bytes(8, "little")
    assert document["steps"]["mode"] == [["navigate", "manipulate"], b"\x00\x00\x01\x00\x00\x00"]
    assert document["steps"]["time_s"][16:] == bytes.fromhex("a2070000 0000f87f")


if __name__ == "__main__":
    for file_name, encode in FORMS.items():
        (DATA / file_name).write_bytes(encode(GOLDEN))
