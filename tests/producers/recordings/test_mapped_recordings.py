"""Real files of every format, written by the public libraries, to windows: whole, cut off, unindexed, out of order."""

from __future__ import annotations

import gzip
import io
import json
import random
import sys
from pathlib import Path

import pytest

from springback.producers.errors import MappingError
from springback.producers.mapping.signal_mapping import parse_mapping
from springback.producers.recordings.any_format import (
    STEPS_PER_FRAME,
    RecordedFrames,
    check_without_mapping,
    read_recordings,
)
from springback.producers.recordings.step_frames import UnreadablePart
from springback.stream_processors.offline.evaluation import evaluate_frames
from springback.stream_processors.resilience.config import ResilienceConfig
from tests.producers.recordings import robot_logs
from tests.producers.recordings.recording_writers import (
    MESSAGES,
    MISSIONS,
    SAID,
    STEPS,
    TABLES,
    Write,
    bag1,
    bag2,
    ends_in,
    frames_of,
    gzip_csv,
    json_lines,
    ros2_mcap,
    steps_in,
)


@pytest.fixture(scope="module")
def costs(tmp_path_factory: pytest.TempPathFactory) -> list[float | None]:
    """The recovery cost of each episode, by the first of the formats."""
    path, mapping = MESSAGES[0](tmp_path_factory.mktemp("reference"), SAID)
    evaluation = evaluate_frames(RecordedFrames([path], mapping=mapping), ResilienceConfig())
    return [summary.recovery_cost for summary in evaluation.summaries]


@pytest.mark.parametrize("write", [*MESSAGES, *TABLES])
def test_every_format_comes_to_the_same_windows(write: Write, costs: list[float | None], tmp_path: Path) -> None:
    path, mapping = write(tmp_path, SAID)
    unreadable: list[UnreadablePart] = []
    shares: list[float | None] = []
    frames = RecordedFrames([path], unreadable.append, mapping, lambda source, share: shares.append(share))
    evaluation = evaluate_frames(frames, ResilienceConfig())
    assert not unreadable
    assert not evaluation.rejected
    assert len(evaluation.summaries) == MISSIONS
    assert sum(summary.steps for summary in evaluation.summaries) == STEPS
    stressed = {summary.key.episode for summary in evaluation.summaries if summary.traits.stress}
    assert stressed == {str(number) for number in range(robot_logs.CLEAN, MISSIONS)}
    assert stressed <= {window.key.episode for window in evaluation.windows}
    assert all(summary.outcome == "success" for summary in evaluation.summaries)
    assert [summary.recovery_cost for summary in evaluation.summaries] == pytest.approx(costs, rel=1e-6)
    known = [share for share in shares if share is not None]
    assert len(known) == len(shares) > 2
    assert known == sorted(known)
    assert known[-1] == 1.0


@pytest.mark.parametrize("write", [*MESSAGES])
def test_messages_that_are_late_are_put_in_order(write: Write, tmp_path: Path) -> None:
    late = random.Random(3)
    shuffled = sorted(SAID, key=lambda one: one.time_ns + late.uniform(0.0, 0.8e9))
    path, mapping = write(tmp_path, shuffled)
    frames, unreadable = frames_of([path], mapping)
    assert not unreadable
    assert steps_in(frames) == STEPS
    assert ends_in(frames) == ["success"] * MISSIONS


def test_frames_are_of_a_second_or_of_64_steps(tmp_path: Path) -> None:
    path, mapping = json_lines(tmp_path, SAID)
    for scale, most in ((1.0, 4), (1e-3, STEPS_PER_FRAME)):
        rows = [json.loads(line) for line in path.read_bytes().splitlines()]
        robot_logs.write_json_lines(tmp_path / "scaled", [row | {"id": 0, "time": row["time"] * scale} for row in rows])
        frames, _ = frames_of([tmp_path / "scaled"], mapping)
        assert max(frame.n_steps for frame in frames) <= most
        assert steps_in(frames) == STEPS


@pytest.mark.parametrize("write", [ros2_mcap, bag1, bag2])
def test_a_topic_that_is_not_there_is_told(write: Write, tmp_path: Path) -> None:
    path, _ = write(tmp_path, SAID)
    mapping = parse_mapping(robot_logs.MAPPING.replace('"position", field', '"odmo", field'), "mine.toml")
    frames, (part,) = frames_of([path], mapping)
    assert steps_in(frames) == STEPS
    assert str(part).startswith(f"{path}: no_such_topic: mine.toml also reads 'odmo'; topics in it: '/mission/clean'")


def test_a_topic_of_the_kind_that_is_read_is_named_with_what_to_map(tmp_path: Path) -> None:
    path, mapping = ros2_mcap(tmp_path, SAID)
    text = robot_logs.MAPPING
    assert '"mission/' in text
    other = parse_mapping(text.replace('"mission/', '"missions/'), "mine.toml")
    _, unreadable = frames_of([path], other)
    assert mapping.topics != other.topics
    told = [str(part) for part in unreadable if part.reason == "topic_not_read"]
    assert len(told) == 1
    assert "a copy of it with 'mission' in place of 'missions' reads them" in told[0]


def test_lines_that_are_no_records_are_told(tmp_path: Path) -> None:
    path, mapping = json_lines(tmp_path, SAID)
    path.write_bytes(path.read_bytes() + b'{"half": \n')
    frames, unreadable = frames_of([path], mapping)
    assert steps_in(frames) == STEPS
    assert (unreadable[0].line, unreadable[0].reason) == (STEPS + 1, "not_json")


def test_a_mixture_of_formats_is_one_input(tmp_path: Path) -> None:
    first, mapping = ros2_mcap(tmp_path, SAID)
    second = robot_logs.write_bag2(tmp_path / "bag", SAID)
    native = tmp_path / "frames.jsonl.gz"
    own = b"".join(recorded.data + b"\n" for recorded in read_recordings([first], mapping))
    native.write_bytes(gzip.compress(own))
    frames, unreadable = frames_of([first, second, native], mapping)
    assert not unreadable
    assert steps_in(frames) == 3 * STEPS
    assert len({frame.session for frame in frames}) == 2  # the third one repeats the first


def test_reading_twice_gives_the_same_and_tells_once(tmp_path: Path) -> None:
    path, mapping = ros2_mcap(tmp_path, SAID)
    path.write_bytes(path.read_bytes()[:20_000])
    unreadable: list[UnreadablePart] = []
    frames = RecordedFrames([path], unreadable.append, mapping)
    first = [(frame.session, frame.n_steps, frame.ends) for frame in frames]
    told = len(unreadable)
    assert first == [(frame.session, frame.n_steps, frame.ends) for frame in frames]
    assert 0 < told == len(unreadable)


def test_standard_input_may_be_of_any_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for write in (ros2_mcap, bag2, gzip_csv):
        path, mapping = write(tmp_path, SAID)
        raw = io.BufferedReader(io.BytesIO(path.read_bytes()))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
        frames, unreadable = frames_of(["-"], mapping)
        assert not unreadable
        assert steps_in(frames) == STEPS


def test_a_recording_without_any_of_the_topics_says_which_it_has(tmp_path: Path) -> None:
    path, _ = ros2_mcap(tmp_path, SAID)
    mapping = parse_mapping(
        'agent = "a"\nheader = { family = "f" }\nstep = { trigger = "odom" }\n'
        'signals = { progress = { topic = "odom", field = "x" } }\nepisode = { whole = true }\n',
        "odom.toml",
    )
    frames, unreadable = frames_of([path], mapping)
    assert not frames
    assert unreadable[-1].reason == "no_topic_matches"
    assert "'/remaining'" in unreadable[-1].detail


def test_without_a_mapping_it_says_that_one_is_needed(tmp_path: Path) -> None:
    path, mapping = ros2_mcap(tmp_path, SAID)
    with pytest.raises(MappingError, match=r"is a recording of the format mcap: say with --mapping"):
        list(read_recordings([path], None))
    with pytest.raises(MappingError, match="--mapping"):
        check_without_mapping(path)
    unknown = tmp_path / "photo"
    unknown.write_bytes(bytes(range(256)) * 8)
    with pytest.raises(MappingError, match="neither step frames nor of a format"):
        list(read_recordings([unknown], mapping))
