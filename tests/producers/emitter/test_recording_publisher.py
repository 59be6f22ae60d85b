import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from springback.producers.contract.codec import decode_frame, encode_msgpack
from springback.producers.contract.columns import ABSENT
from springback.producers.contract.frame import EpisodeHeader, StepFrame
from springback.producers.emitter.publishers import JsonLinesPublisher, MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.errors import FrameRefusedError
from tests.house import ROOT

FRAME = StepFrame(
    producer="p",
    session="s",
    episodes=(EpisodeHeader(agent="a", episode="1", family="f"),),
    steps={
        "episode": np.array([0, 0]),
        "step": np.array([0, 1]),
        "progress": np.array([0.1, 0.2]),
        "travel": np.array([np.nan, ABSENT]),
    },
)


@pytest.mark.parametrize("name", ["steps.jsonl", "steps.jsonl.gz"])
def test_recording_is_lines_of_json_and_is_continued(tmp_path: Path, name: str) -> None:
    answers: list[Exception | None] = []
    for _ in range(2):
        publisher = JsonLinesPublisher(tmp_path / name)
        publisher.publish(b"p", encode_msgpack(FRAME), answers.append)
        publisher.flush(1.0)
        publisher.close()
        publisher.close()
    data = (tmp_path / name).read_bytes()
    lines = (gzip.decompress(data) if name.endswith(".gz") else data).splitlines()
    assert answers == [None, None]
    assert [json.loads(line)["steps"]["travel"] for line in lines] == [["NaN", None]] * 2
    assert [decode_frame(line).n_steps for line in lines] == [2, 2]


def test_closed_recording_refuses(tmp_path: Path) -> None:
    answers: list[Exception | None] = []
    publisher = JsonLinesPublisher(tmp_path / "steps.jsonl")
    publisher.close()
    publisher.publish(b"p", encode_msgpack(FRAME), answers.append)
    assert isinstance(answers[0], FrameRefusedError)


def test_memory_publisher_answers_with_its_failure() -> None:
    publisher = MemoryPublisher()
    problem = ConnectionError()
    publisher.failure = problem
    answers: list[Exception | None] = []
    publisher.publish(b"p", encode_msgpack(FRAME), answers.append)
    publisher.failure = None
    publisher.publish(b"p", encode_msgpack(FRAME), answers.append)
    assert answers == [problem, None]
    assert [frame.producer for frame in publisher.frames] == ["p"]


def test_program_that_forgets_to_close_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl.gz"
    program = (
        "from springback.producers.emitter.publishers import JsonLinesPublisher\n"
        "from springback.producers.emitter.step_emitter import StepEmitter\n"
        f"emitter = StepEmitter(JsonLinesPublisher({str(path)!r}), producer='robot', linger_s=3600.0)\n"
        "episode = emitter.begin_episode(episode='1', family='f')\n"
        "for _ in range(100): episode.step(progress=0.5)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60, cwd=ROOT)
    frames = [decode_frame(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert sum(frame.n_steps for frame in frames) == 100
    assert [end.outcome for frame in frames for end in frame.ends] == ["aborted"]


def test_emitter_records(tmp_path: Path) -> None:
    with StepEmitter(JsonLinesPublisher(tmp_path / "steps.jsonl"), producer="robot") as emitter:
        emitter.begin_episode(episode="1", family="f").step(progress=0.5)
    assert emitter.report.steps_sent == 1
