"""Recordings as the field leaves them: whole, cut off, damaged, or none at all."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from springback.producers.contract.codec import MAX_FRAME_BYTES
from springback.producers.recordings.step_frames import RecordedFrame, UnreadablePart, count_lines, read_frames


def frame_line(step: int, session: str = "recorded") -> bytes:
    document = {
        "schema_version": 1,
        "producer": "robot-7",
        "session": session,
        "episodes": [{"agent": "robot-7", "episode": "12", "family": "transportation"}],
        "steps": {"episode": [0], "step": [step], "progress": [0.25], "time_s": [1_790_000_000.0 + step]},
    }
    return json.dumps(document).encode() + b"\n"


def read(*paths: str | Path) -> tuple[list[RecordedFrame], list[UnreadablePart]]:
    unreadable: list[UnreadablePart] = []
    return list(read_frames(paths, unreadable.append)), unreadable


def steps_of(frames: list[RecordedFrame]) -> list[int]:
    columns = [recorded.frame.steps["step"] for recorded in frames]
    return [step for column in columns if isinstance(column, np.ndarray) for step in column.tolist()]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"".join(map(frame_line, range(200))))
    return path


def test_plain_and_gzip_files_are_one_input_in_the_order_given(recording: Path, tmp_path: Path) -> None:
    # Told by content: the name of the compressed one does not say what it is.
    compressed = tmp_path / "later"
    compressed.write_bytes(gzip.compress(frame_line(200) + frame_line(201)))
    frames, unreadable = read(recording, compressed)
    assert steps_of(frames) == list(range(202))
    assert not unreadable
    assert (frames[-1].source, frames[-1].line) == (str(compressed), 2)
    assert frames[-1].data == frame_line(201).strip()


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BufferedReader(io.BytesIO(gzip.compress(frame_line(0) + frame_line(1))))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
    frames, unreadable = read("-")
    assert steps_of(frames) == [0, 1]
    assert frames[0].source == "<stdin>"
    assert not unreadable
    assert not sys.stdin.closed


def test_a_gzip_file_that_was_cut_off_gives_what_is_whole(recording: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.jsonl.gz"
    whole = gzip.compress(recording.read_bytes())
    cut.write_bytes(whole[: len(whole) * 3 // 4])
    frames, unreadable = read(cut)
    assert 50 < len(frames) < 200
    assert steps_of(frames) == list(range(len(frames)))
    (part,) = unreadable
    assert (part.source, part.line, part.reason) == (str(cut), len(frames) + 1, "damaged_gzip")
    assert str(part).startswith(f"{cut}:{len(frames) + 1}: damaged_gzip: ")


def test_every_cut_of_a_gzip_file_is_survived(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(map(frame_line, range(5))))
    cut = tmp_path / "cut.jsonl.gz"
    for size in range(2, len(whole)):
        cut.write_bytes(whole[:size])
        frames, unreadable = read(cut)
        assert steps_of(frames) == list(range(len(frames)))
        assert [part.reason for part in unreadable] == ["damaged_gzip"]


@pytest.mark.parametrize("damage", [b"\x00" * 40, b"\xff" * 40])
def test_damage_in_the_middle_of_a_gzip_file_is_reported(recording: Path, tmp_path: Path, damage: bytes) -> None:
    damaged = tmp_path / "damaged.jsonl.gz"
    content = bytearray(gzip.compress(recording.read_bytes()))
    middle = len(content) // 2
    content[middle : middle + len(damage)] = damage
    damaged.write_bytes(content)
    frames, unreadable = read(damaged)
    assert len(frames) < 200
    assert unreadable


def test_something_else_after_the_compressed_part_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "tail.jsonl.gz"
    path.write_bytes(gzip.compress(frame_line(0)) + b"not compressed")
    frames, unreadable = read(path)
    assert steps_of(frames) == [0]
    assert [part.reason for part in unreadable] == ["damaged_gzip"]


def test_bad_lines_are_left_out_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    lines = [frame_line(0), b"\n", b"{not json}\n", frame_line(1), b"\x00\x01\n", b'{"a": 1}\n', frame_line(2)[:60]]
    path.write_bytes(b"".join(lines))
    frames, unreadable = read(path)
    assert steps_of(frames) == [0, 1]
    assert [part.line for part in unreadable] == [3, 5, 6, 7]
    assert all(part.reason.replace("_", "").isalpha() and part.detail for part in unreadable)
    # The reason stands once in the line that a user sees.
    assert str(unreadable[0]).count(unreadable[0].reason) == 1


def test_a_byte_order_mark_and_windows_line_ends_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + frame_line(0).replace(b"\n", b"\r\n") + frame_line(1))
    frames, unreadable = read(path)
    assert steps_of(frames) == [0, 1]
    assert not unreadable


def test_a_line_without_end_is_passed_over_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(frame_line(0) + b"x" * (2 * MAX_FRAME_BYTES + 5) + b"\n" + frame_line(1))
    frames, unreadable = read(path)
    assert steps_of(frames) == [0, 1]
    assert [(part.line, part.reason) for part in unreadable] == [(2, "line_too_long")]


def test_lines_are_counted_as_far_as_they_can_be_read(recording: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(gzip.compress(recording.read_bytes())[:-100])
    assert count_lines([recording]) == 200
    assert count_lines([recording, cut]) == 200 + len(read(cut)[0])
    assert count_lines([recording, "-"]) is None


def test_an_empty_file_is_an_empty_recording(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.touch()
    assert read(path) == ([], [])


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.jsonl"):
        read(tmp_path / "none.jsonl")


def test_what_is_unreadable_is_logged_where_nobody_asks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"{}\n")
    assert list(read_frames([path])) == []
    assert f"{path}:1: " in caplog.text
