"""A recording that is being made: what becomes of a file that is there already, or cannot be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from springback.producers.emitter import new_recording
from springback.producers.emitter.new_recording import NewRecording
from springback.producers.emitter.publishers import MemoryPublisher, OnDone
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.errors import PublishError


class SilentPublisher(MemoryPublisher):
    """Never says what became of a frame."""

    def publish(self, key: bytes, frame_bytes: bytes, on_done: OnDone) -> None:
        """Takes it."""


def test_a_recording_spares_a_file_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "made.frames.jsonl"
    path.write_text("kept\n")
    with pytest.raises(FileExistsError, match=r"made\.frames\.jsonl exists already; remove it or choose another name"):
        NewRecording(path, producer="player", seed=3, frame_steps=8)
    assert path.read_text() == "kept\n"


def test_a_recording_that_is_not_written_says_so_at_its_next_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_recording, "_FLUSH_S", 0.0)
    recording = NewRecording(tmp_path / "made.frames.jsonl", producer="player", seed=3, frame_steps=8)
    emitter = StepEmitter(SilentPublisher(), producer="player")
    emitter.begin_episode(episode="1", family="f").step(progress=0.5)
    with pytest.raises(PublishError, match=r"made\.frames\.jsonl could not be written"):
        recording.cut(emitter)
    emitter.close(0.0)
