"""A recording that was split into files is one recording, in the order of time, not of names."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from springback.producers.contract.codec import encode_json
from springback.producers.mapping.signal_mapping import parse_mapping
from springback.producers.recordings.any_format import RecordedFrames, in_time_order
from tests.producers.recordings.recording_writers import cells_of, ends_in, frames_of, steps_in
from tests.stream_processors.frame_builders import START_S, frame_of, nominal_rows

MAPPING = parse_mapping(
    """
agent = "robot-7"
time = "header"
header_time = "time"
header = { family = "navigation" }
step = { trigger = "#" }
signals = { progress = { field = "done" } }
[episode]
id = { field = "id" }
outcome = "success"
""",
    "rows.toml",
)


def row(second: float, episode: int, done: float) -> dict[str, Any]:
    return {"time": START_S + second, "id": episode, "done": done}


ROWS = [row(10 * episode + second, episode, (second + 1) / 10) for episode in range(12) for second in range(10)]
"""Twelve episodes of ten steps, a second apart."""


def split(folder: Path, length: int, rows: list[dict[str, Any]] = ROWS, name: str = "run") -> list[Path]:
    """The rows as files of so many, in the order in which a shell names them: the tenth before the second."""
    paths = []
    for number, start in enumerate(range(0, len(rows), length)):
        path = folder / f"{name}_{number}.jsonl"
        path.write_bytes(b"\n".join(map(msgspec.json.encode, rows[start : start + length])))
        paths.append(path)
    return sorted(paths)


@pytest.mark.parametrize("length", [7, 10, 25, 120])
def test_what_runs_at_the_end_of_a_file_goes_on_in_the_next(tmp_path: Path, length: int) -> None:
    paths = split(tmp_path, length)
    frames, unreadable = frames_of(paths, MAPPING)
    assert (steps_in(frames), ends_in(frames)) == (120, ["success"] * 12)
    assert len({frame.session for frame in frames}) == 1
    assert cells_of(frames, "step") == list(range(10)) * 12
    assert unreadable == []


def test_topics_of_a_later_piece_are_named_too(tmp_path: Path) -> None:
    text = """
agent = "robot-7"
record_topic = "topic"
header = { family = "navigation" }
step = { trigger = "mission" }
signals = { progress = { topic = "mission", field = "done" } }
episode = { whole = true }
"""
    said: list[dict[str, Any]] = [{"topic": "mission", "done": 0.5}]
    later: list[dict[str, Any]] = [
        {"topic": topic} for topic in ("mission", *(f"camera/{number}" for number in range(60)), "r7/mission")
    ]
    paths = [tmp_path / f"run_{number}.jsonl" for number in range(2)]
    for path, rows in zip(paths, (said, later), strict=True):
        path.write_bytes(b"\n".join(map(msgspec.json.encode, rows)))
    _, unreadable = frames_of(paths, parse_mapping(text, "mine.toml"))
    told = [part.detail for part in unreadable if part.reason == "topic_not_read"]
    assert [each.partition(":")[0] for each in told] == ["'r7/mission' is not read"]


def test_recordings_with_time_between_them_are_recordings_of_their_own(tmp_path: Path) -> None:
    first, second = ROWS[:15], [{**each, "time": each["time"] + 60.0} for each in ROWS[15:30]]
    frames, _ = frames_of(split(tmp_path, 15, first + second), MAPPING)
    # The second episode was under way when the first file ended: two halves, and nothing is made up between.
    assert (steps_in(frames), len(ends_in(frames))) == (30, 4)
    assert len({frame.session for frame in frames}) == 2


def test_files_of_two_robots_that_ran_at_the_same_time_stay_apart(tmp_path: Path) -> None:
    paths = [*split(tmp_path, 120, name="one"), *split(tmp_path, 120, name="two")]
    alike = [tmp_path / "robot_1.jsonl", tmp_path / "robot_2.jsonl"]
    for path, new in zip(paths, alike, strict=True):
        path.rename(new)
    frames, _ = frames_of(alike, MAPPING)
    assert (steps_in(frames), len(ends_in(frames))) == (240, 24)
    assert len({frame.session for frame in frames}) == 2


def test_step_frames_in_several_files_are_read_in_the_order_of_time(tmp_path: Path) -> None:
    paths = []
    for number in range(12):
        path = tmp_path / f"monday_{number}.frames.jsonl"
        path.write_bytes(encode_json(frame_of(nominal_rows(5 * number, 5 * number + 5, total=60))))
        paths.append(path)
    named = sorted(paths)
    assert named != paths
    assert in_time_order(named) == paths
    frames = list(RecordedFrames(named))
    assert cells_of(frames, "step") == list(range(60))
    assert in_time_order([Path("-"), *named[:1], tmp_path / "gone_1.jsonl"]) == [
        Path("-"), named[0], tmp_path / "gone_1.jsonl"
    ]  # fmt: skip
