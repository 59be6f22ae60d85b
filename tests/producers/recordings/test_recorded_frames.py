"""Recordings that are gone through more than once."""

import gzip
import io
import os
import sys
import threading
from pathlib import Path

import pytest

from springback.producers.contract.codec import encode_json
from springback.producers.contract.frame import StepFrame
from springback.producers.recordings.any_format import RecordedFrames
from springback.producers.recordings.step_frames import UnreadablePart

LINES = [
    encode_json(StepFrame(producer="robot-7", session=f"s{number}", episodes=(), steps={}, ends=())) + b"\n"
    for number in range(6)
]


def sessions(frames: RecordedFrames) -> list[str]:
    return [frame.session for frame in frames]


@pytest.fixture
def recordings(tmp_path: Path) -> list[Path]:
    plain, packed = tmp_path / "plain.jsonl", tmp_path / "packed.jsonl.gz"
    plain.write_bytes(LINES[0] + b"not a frame\n" + LINES[1])
    packed.write_bytes(gzip.compress(b"".join(LINES[2:4]))[:-4])
    return [plain, packed]


def test_each_time_through_gives_all_frames_and_tells_of_each_bad_part_once(recordings: list[Path]) -> None:
    told: list[UnreadablePart] = []
    frames = RecordedFrames(recordings, told.append)
    assert next(iter(frames)).session == "s0"  # given up after the first, as who only looks does
    assert sessions(frames) == sessions(frames) == ["s0", "s1", "s2", "s3"]
    assert [(part.source, part.line) for part in told] == [(str(recordings[0]), 2), (str(recordings[1]), 3)]


def test_files_are_read_anew_and_not_held(recordings: list[Path]) -> None:
    frames = RecordedFrames(recordings)
    assert len(sessions(frames)) == 4
    recordings[0].write_bytes(LINES[5])
    assert sessions(frames) == ["s5", "s2", "s3"]
    recordings[1].unlink()
    with pytest.raises(FileNotFoundError):
        sessions(frames)


def test_standard_input_is_held(recordings: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"".join(LINES[4:])))))
    frames = RecordedFrames(["-", recordings[0]])
    assert sessions(frames) == sessions(frames) == ["s4", "s5", "s0", "s1"]


def test_a_pipe_is_held(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"".join(LINES[:3]),))
    writer.start()
    frames = RecordedFrames([pipe])
    assert sessions(frames) == sessions(frames) == ["s0", "s1", "s2"]
    writer.join()
