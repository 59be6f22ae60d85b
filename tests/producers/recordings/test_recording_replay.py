"""What a replay sends, as which session, and when."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from springback.producers.contract.codec import decode_frame
from springback.producers.emitter.publishers import MemoryPublisher, OnDone
from springback.producers.errors import FrameRefusedError, PublishError
from springback.producers.recordings.replay import ReplaySummary, replay
from springback.producers.recordings.step_frames import RecordedFrame, read_frames

START_S = 1_790_000_000.0


def line(producer: str, time_s: float | None, session: str = "recorded", step: int = 0) -> bytes:
    steps: dict[str, list[float]] = {"episode": [0, 0], "step": [step, step + 1], "progress": [0.25, 0.5]}
    if time_s is not None:
        steps["time_s"] = [time_s - 0.25, time_s]
    document = {
        "schema_version": 1,
        "producer": producer,
        "session": session,
        "episodes": [{"agent": producer, "episode": "12", "family": "transportation"}],
        "steps": steps,
        "of_the_future": {"kept": True},
    }
    return json.dumps(document).encode()


def recorded(tmp_path: Path, lines: Sequence[bytes]) -> list[RecordedFrame]:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"\n".join(lines))
    return list(read_frames([path]))


class Kafka(MemoryPublisher):
    """Keeps what it is sent, and the instants of a clock that only the replay's pauses move."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 100.0
        self.sent_at_s: list[float] = []

    @property
    def sent(self) -> list[tuple[str, bytes]]:
        return [(key.decode(), data) for key, data in self.published]

    def publish(self, key: bytes, frame_bytes: bytes, on_done: OnDone) -> None:
        self.sent_at_s.append(self.now_s - 100.0)
        super().publish(key, frame_bytes, on_done)

    def clock(self) -> float:
        return self.now_s

    def pause(self, seconds: float) -> None:
        assert seconds > 0.0
        self.now_s += seconds

    def replay(self, frames: list[RecordedFrame], speed: float) -> ReplaySummary:
        return replay(frames, self, speed=speed, clock=self.clock, pause=self.pause)


def test_frames_are_sent_in_order_as_a_session_of_their_own(tmp_path: Path) -> None:
    frames = recorded(tmp_path, [line("a", START_S, "one"), line("b", START_S, "two"), line("a", START_S, "one", 2)])
    kafka = Kafka()
    summary = kafka.replay(frames, speed=0)
    assert [producer for producer, _ in kafka.sent] == ["a", "b", "a"]
    sessions = [decode_frame(data).session for _, data in kafka.sent]
    assert sessions[0] == sessions[2] != sessions[1]
    assert sessions[0].startswith("one+")
    assert sessions[1].startswith("two+")
    assert summary.sessions == {"one": sessions[0], "two": sessions[1]}
    assert (summary.frames, summary.arrived, summary.steps, summary.producers) == (3, 3, 6, {"a", "b"})
    assert not kafka.closed
    assert summary.size_bytes == sum(len(data) for _, data in kafka.sent)


def test_a_second_replay_is_another_session(tmp_path: Path) -> None:
    frames = recorded(tmp_path, [line("a", START_S)])
    first, second = Kafka().replay(frames, speed=0), Kafka().replay(frames, speed=0)
    assert first.sessions["recorded"] != second.sessions["recorded"]


def test_everything_but_the_session_is_as_recorded(tmp_path: Path) -> None:
    # NaN is what a Python client writes; the bad row is the worker's to reject.
    original = line("a", START_S).replace(b'"progress": [0.25, 0.5]', b'"progress": [NaN, "\\ud83e"]')
    (frame,) = recorded(tmp_path, [original])
    kafka = Kafka()
    kafka.replay([frame], speed=0)
    sent, kept = json.loads(kafka.sent[0][1]), json.loads(original)
    assert sent.pop("session") != kept.pop("session")
    assert math.isnan(sent["steps"]["progress"].pop(0))
    assert math.isnan(kept["steps"]["progress"].pop(0))
    assert sent == kept


def test_keeping_the_session_sends_the_very_bytes(tmp_path: Path) -> None:
    frames = recorded(tmp_path, [line("a", START_S)])
    kafka = Kafka()
    summary = replay(frames, kafka, speed=0, session="keep")
    assert kafka.sent == [("a", line("a", START_S))]
    assert summary.sessions == {"recorded": "recorded"}


def test_long_session_ids_stay_within_the_limit_and_apart(tmp_path: Path) -> None:
    frames = recorded(tmp_path, [line("a", START_S, "x" * 255 + end) for end in "12"])
    kafka = Kafka()
    kafka.replay(frames, speed=0)
    sessions = {decode_frame(data).session for _, data in kafka.sent}
    assert len(sessions) == 2
    assert max(map(len, sessions)) <= 256


@pytest.mark.parametrize(("speed", "expected"), [(1.0, [0.0, 2.0, 5.0]), (4.0, [0.0, 0.5, 1.25]), (0, [0.0, 0.0, 0.0])])
def test_speed_is_recorded_seconds_per_second(tmp_path: Path, speed: float, expected: list[float]) -> None:
    frames = recorded(tmp_path, [line("a", START_S + after) for after in (0, 2, 5)])
    kafka = Kafka()
    kafka.replay(frames, speed)
    assert kafka.sent_at_s == pytest.approx(expected, abs=1e-6)


def test_time_lost_in_sending_is_made_up_for(tmp_path: Path) -> None:
    frames = recorded(tmp_path, [line("a", START_S + after) for after in range(10)])
    kafka = Kafka()

    def slow(summary: ReplaySummary) -> None:
        kafka.now_s += 3.5 if summary.frames == 2 else 0.0

    replay(frames, kafka, speed=1.0, clock=kafka.clock, pause=kafka.pause, on_sent=slow)
    assert kafka.sent_at_s == pytest.approx([0, 1, 4.5, 4.5, 4.5, 5, 6, 7, 8, 9], abs=1e-6)


@pytest.mark.parametrize(
    "times_s",
    [
        pytest.param([START_S, START_S + 1, START_S - 7_000, START_S - 6_999], id="another robot's part of the file"),
        pytest.param([2.0, 3.0, START_S, START_S + 1], id="a clock that was set"),
        pytest.param([START_S, START_S + 1, START_S + 90_000, START_S + 90_001], id="the next day"),
    ],
)
def test_a_leap_of_the_recorded_clock_is_not_waited_for(tmp_path: Path, times_s: list[float]) -> None:
    kafka = Kafka()
    kafka.replay(recorded(tmp_path, [line("a", time_s) for time_s in times_s]), speed=1.0)
    assert kafka.sent_at_s == pytest.approx([0, 1, 1, 2], abs=1e-6)


def test_robots_side_by_side_share_one_clock(tmp_path: Path) -> None:
    # b's clock is a second behind: its frames go out with a's, and do not shift them.
    times = [("a", 0.0), ("b", -1.0), ("a", 2.0), ("b", 1.0), ("a", 4.0), ("b", 3.0)]
    frames = recorded(tmp_path, [line(producer, START_S + after) for producer, after in times])
    kafka = Kafka()
    kafka.replay(frames, speed=1.0)
    assert kafka.sent_at_s == pytest.approx([0, 0, 2, 2, 4, 4], abs=1e-6)


def test_frames_without_times_go_at_once(tmp_path: Path) -> None:
    frames = recorded(tmp_path, [line("a", START_S), line("a", None), line("a", START_S + 1)])
    kafka = Kafka()
    kafka.replay(frames, speed=1.0)
    assert kafka.sent_at_s == pytest.approx([0, 0, 1], abs=1e-6)


def test_progress_is_told_after_each_frame(tmp_path: Path) -> None:
    told: list[int] = []
    frames = recorded(tmp_path, [line("a", START_S)] * 3)
    replay(frames, Kafka(), speed=0, on_sent=lambda summary: told.append(summary.frames))
    assert told == [1, 2, 3]


@pytest.mark.parametrize("speed", [-1.0, math.inf, math.nan])
def test_a_speed_that_is_none_is_refused(tmp_path: Path, speed: float) -> None:
    with pytest.raises(ValueError, match="expected 0"):
        replay(itertools.repeat(recorded(tmp_path, [line("a", START_S)])[0]), Kafka(), speed=speed)


def test_a_frame_that_kafka_refuses_is_noted_and_the_rest_goes_on(tmp_path: Path) -> None:
    class Choosy(Kafka):
        def publish(self, key: bytes, frame_bytes: bytes, on_done: OnDone) -> None:
            self.failure = FrameRefusedError("too large") if key == b"b" else None
            super().publish(key, frame_bytes, on_done)

    frames = recorded(tmp_path, [line("a", START_S), line("b", START_S), line("a", START_S, step=2)])
    summary = replay(frames, Choosy(), speed=0)
    assert (summary.frames, summary.arrived) == (3, 2)
    (part,) = summary.refused
    assert (part.line, part.reason, part.detail) == (2, "refused_by_kafka", "too large")


def test_a_replay_ends_when_kafka_does_not_take_a_frame(tmp_path: Path) -> None:
    kafka, told = Kafka(), list[ReplaySummary]()
    frames = recorded(tmp_path, [line("a", START_S, step=2 * number) for number in range(5)])

    def lose_the_broker(summary: ReplaySummary) -> None:
        told.append(summary)
        if summary.frames == 2:
            kafka.failure = ConnectionError("broker away")

    with pytest.raises(PublishError, match=r"broker away.*2 frames had arrived"):
        replay(frames, kafka, speed=0, on_sent=lose_the_broker)
    assert len(kafka.sent) == told[-1].arrived == 2
    assert told[-1].frames == 3
