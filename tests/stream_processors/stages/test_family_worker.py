"""A whole worker on a broker: what it says of families in the end is what the offline run says."""

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from springback.producers.contract.frame import StepFrame
from springback.stream_processors.offline.evaluation import evaluate_frames
from springback.stream_processors.resilience.baseline.codec import load_baseline
from springback.stream_processors.resilience.baseline.stage_baseline import BaselineConfig
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.families.family_aggregate import aggregate, in_order
from springback.stream_processors.resilience.readings import FamilyReading, decode_reading
from springback.stream_processors.stages.aggregate_families import reading_key
from springback.stream_processors.topics import FAMILIES
from tests.stream_processors.conftest import FLEETS, until
from tests.stream_processors.resilience.families.test_family_aggregate import HISTORY, assert_alike

if TYPE_CHECKING:
    from tests.stream_processors.conftest import Recorded, Stream


GROUPS = {"a": ("plan", "1"), "b": ("plan", "2"), "c": ("react", "1"), "d": ("react", "undeclared")}
"""Method and version of each fleet: two versions at once, and one that does not declare what stress it is under."""


@pytest.mark.broker
def test_families_are_offline_on_the_embedded_broker(embedded_stream: "Stream", recorded: "Recorded") -> None:
    families_are_offline(embedded_stream, recorded)


@pytest.mark.kafka
def test_families_are_offline_on_a_real_kafka(kafka_stream: "Stream", recorded: "Recorded") -> None:
    families_are_offline(kafka_stream, recorded)


def families_are_offline(stream: "Stream", recorded: "Recorded") -> None:
    frames = [of_group(frame, *GROUPS[frame.producer[0]]) for frame in recorded.frames]
    # The fleets are one recording, whose eight references are asked to be enough.
    config = ResilienceConfig(baseline=BaselineConfig(learning_references=8))
    found = evaluate_frames(frames, config, load_baseline(recorded.baseline), lagged=True)
    offline = aggregate(in_order(found.begun, found.summaries), config.aggregate)
    assert {reading.capacity_flag for reading in offline} == {"ok", "open"}
    assert [reading.version for reading in offline if reading.undeclared is not None] == ["undeclared"]
    stream.freeze(recorded)
    worker = stream.start(resilience__baseline__learning_references="8")
    worker.wait_until_ready()

    async def scenario() -> list[FamilyReading]:
        await stream.send_frames(frames)
        latest: dict[bytes, FamilyReading] = {}

        async def complete() -> bool:
            latest.update(await latest_readings(stream))
            # The last reading of a group is told after the last reference of any, which all are held to.
            return {key: told_of(r) for key, r in latest.items()} == {reading_key(r): told_of(r) for r in offline}

        await until(complete, "every family has all its episodes")
        return sorted(latest.values(), key=lambda reading: reading.identity)

    streamed = asyncio.run(scenario())
    assert len(streamed) == len(GROUPS) == len(FLEETS)
    # Fleets arrive side by side, so which episodes ended before which is another matter every time.
    assert_alike(streamed, offline, "sequence", "violations", *HISTORY)
    assert worker.end() == 0, worker.log()
    assert "level=error logger=stream_processors" not in worker.log()


def told_of(reading: FamilyReading) -> tuple[object, ...]:
    return reading.episodes, reading.thresholds, reading.bound_references, reading.unpaired


async def latest_readings(stream: "Stream") -> dict[bytes, FamilyReading]:
    latest: dict[bytes, FamilyReading] = {}
    for record in await stream.read(FAMILIES):
        reading: Any = decode_reading(record.value)
        assert isinstance(reading, FamilyReading)
        assert record.key == reading_key(reading)
        latest[record.key] = reading
    return latest


def of_group(frame: StepFrame, method: str, version: str) -> StepFrame:
    episodes = []
    for header in frame.episodes:
        stress = None if version == "undeclared" and not header.reference else header.stress
        episodes.append(msgspec.structs.replace(header, method=method, version=version, stress=stress))
    return msgspec.structs.replace(frame, episodes=tuple(episodes))
