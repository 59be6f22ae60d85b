"""The log of a PX4 drone, written by the format's description, to windows: whole, cut off, damaged."""

from __future__ import annotations

import itertools
import struct
from pathlib import Path

import pytest

from springback.producers.mapping.signal_mapping import SignalMapping, parse_mapping
from springback.producers.recordings.any_format import RecordedFrames, read_recordings
from springback.producers.recordings.step_frames import UnreadablePart
from springback.stream_processors.offline.evaluation import evaluate_frames
from springback.stream_processors.resilience.config import ResilienceConfig
from tests.producers.recordings import robot_logs
from tests.producers.recordings.recording_writers import MISSIONS, SAID, STEPS, cells_of, frames_of, steps_in

MAPPING = """
agent = "drone-3"
[header]
family = "inspection"
reference = { topic = "mission/0", field = "clean", transform = { table = { 1 = true, 0 = false } } }
stress = { topic = "mission/0", field = "clean", transform = { table = { 1 = 0.0, 0 = 0.6 } } }
[step]
trigger = "mission/0"
[signals]
progress = { topic = "mission/0", field = "remaining", transform = "progress_from_remaining" }
travel = { topic = "mission/0", field = "point", transform = "distance_travelled" }
risk = { topic = "battery_status/+", field = "warning", over = "maximum", default = 0.0 }
[episode]
id = { topic = "mission/0", field = "id" }
outcome = "success"
"""
FORMATS = (
    b"mission:uint64_t timestamp;int32_t id;uint8_t clean;float remaining;double[2] point;",
    b"battery_status:uint64_t timestamp;float warning;",
    b"sensor_gyro:uint64_t timestamp;float x;",
)
MISSION, BATTERY, SPARE_BATTERY, GYRO = range(4)


def part(kind: bytes, body: bytes) -> bytes:
    return struct.pack("<Hc", len(body), kind) + body


def ulog(dropout_ms: int | None = None) -> bytes:
    """What the drone says of each row of the common log, with two batteries and a gyro that nobody asked for."""
    parts = [b"ULog\x01\x12\x35\x01" + struct.pack("<Q", 0), part(b"B", bytes(40))]
    parts += [part(b"F", text) for text in FORMATS]
    for number, (name, instance) in enumerate(
        ((b"mission", 0), (b"battery_status", 0), (b"battery_status", 1), (b"sensor_gyro", 0))
    ):
        parts.append(part(b"A", struct.pack("<BH", instance, number) + name))
    for row in robot_logs.rows(SAID):
        time_us = round((row["time"] - robot_logs.START_S) * 1e6)
        said = (row["id"], row["clean"], row["remaining"], *row["point"])
        parts.append(part(b"D", struct.pack("<HQiBfdd", MISSION, time_us, *said)))
        parts.append(part(b"D", struct.pack("<HQf", BATTERY, time_us - 3000, 0.1)))
        parts.append(part(b"D", struct.pack("<HQf", SPARE_BATTERY, time_us - 2000, 0.7)))
        parts.append(part(b"D", struct.pack("<HQf", GYRO, time_us - 1000, 0.0)))
    if dropout_ms is not None:
        parts.append(part(b"O", struct.pack("<H", dropout_ms)))
    return b"".join(parts)


@pytest.fixture
def mapping() -> SignalMapping:
    return parse_mapping(MAPPING, "drone.toml")


def written(folder: Path, data: bytes) -> Path:
    path = folder / "flight"
    path.write_bytes(data)
    return path


def test_a_flight_comes_to_windows_under_stress_alone(tmp_path: Path, mapping: SignalMapping) -> None:
    unreadable: list[UnreadablePart] = []
    frames = RecordedFrames([written(tmp_path, ulog())], unreadable.append, mapping)
    evaluation = evaluate_frames(frames, ResilienceConfig())
    assert not unreadable
    assert not evaluation.rejected
    assert len(evaluation.summaries) == MISSIONS
    assert sum(summary.steps for summary in evaluation.summaries) == STEPS
    stressed = {summary.key.episode for summary in evaluation.summaries if summary.traits.stress}
    assert stressed == {str(number) for number in range(robot_logs.CLEAN, MISSIONS)}
    assert stressed <= {window.key.episode for window in evaluation.windows}


def test_arrays_are_lists_and_instances_are_topics_of_their_own(tmp_path: Path, mapping: SignalMapping) -> None:
    frames, unreadable = frames_of([written(tmp_path, ulog())], mapping)
    assert not unreadable
    rows = robot_logs.rows(SAID)
    apart = sum(
        abs(after["point"][0] - before["point"][0])
        for before, after in itertools.pairwise(rows)
        if before["id"] == after["id"]
    )
    assert sum(cells_of(frames, "travel")) == pytest.approx(apart)
    assert max(cells_of(frames, "risk")) == pytest.approx(0.7)


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_flight_that_was_cut_off_gives_what_there_is(share: float, tmp_path: Path, mapping: SignalMapping) -> None:
    whole = ulog()
    frames, _ = frames_of([written(tmp_path, whole[: int(share * len(whole))])], mapping)
    assert steps_in(frames) == pytest.approx(share * STEPS, rel=0.02)


def test_what_the_logger_lost_is_told(tmp_path: Path, mapping: SignalMapping) -> None:
    frames, unreadable = frames_of([written(tmp_path, ulog(dropout_ms=1500))], mapping)
    assert steps_in(frames) == STEPS
    assert [(part.reason, part.detail) for part in unreadable] == [
        ("dropouts", "the logger lost 1 stretches, 1.5 s in all")
    ]


def test_a_file_with_nothing_but_the_first_bytes_is_told(tmp_path: Path, mapping: SignalMapping) -> None:
    unreadable: list[UnreadablePart] = []
    assert not list(read_recordings([written(tmp_path, ulog()[:12])], mapping, unreadable.append))
    assert unreadable[0].reason == "damaged_file"


def test_damage_in_the_midst_costs_a_part(tmp_path: Path, mapping: SignalMapping) -> None:
    data = bytearray(ulog())
    middle = len(data) // 2
    data[middle : middle + 40] = bytes(40)
    frames, unreadable = frames_of([written(tmp_path, bytes(data))], mapping)
    assert 0.4 * STEPS < steps_in(frames) <= STEPS
    assert "damaged_parts" in {part.reason for part in unreadable}
