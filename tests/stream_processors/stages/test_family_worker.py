"""A whole worker on a broker: what it says of families in the end is what the offline run says."""

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from springback.producers.contract.frame import StepFrame
from springback.stream_processors.offline.evaluation import evaluate_frames
from springback.stream_processors.resilience.baseline.codec import load_baseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.families.family_aggregate import aggregate, in_order
from springback.stream_processors.resilience.readings import FamilyReading, decode_reading
from springback.stream_processors.stages.aggregate_families import reading_key
from springback.stream_processors.topics import FAMILIES
from tests.stream_processors.conftest import FLEETS, until
from tests.stream_processors.resilience.families.test_family_aggregate import HISTORY, assert_alike

if TYPE_CHECKING:
    from tests.stream_processors.conftest import Recorded, Stream


@pytest.mark.broker
def test_families_are_offline_on_the_embedded_broker(embedded_stream: "Stream", recorded: "Recorded") -> None:
    families_are_offline(embedded_stream, recorded)


@pytest.mark.kafka
def test_families_are_offline_on_a_real_kafka(kafka_stream: "Stream", recorded: "Recorded") -> None:
    families_are_offline(kafka_stream, recorded)


def families_are_offline(stream: "Stream", recorded: "Recorded") -> None:
    frames = [of_method(frame, frame.producer[0]) for frame in recorded.frames]
    config = ResilienceConfig()
    found = evaluate_frames(frames, config, load_baseline(recorded.baseline), lagged=True)
    offline = aggregate(in_order(found.begun, found.summaries), config.aggregate)
    stream.freeze(recorded)
    worker = stream.start()
    worker.wait_until_ready()

    async def scenario() -> list[FamilyReading]:
        await stream.send_frames(frames)
        latest: dict[bytes, FamilyReading] = {}

        async def complete() -> bool:
            latest.update(await latest_readings(stream))
            return {key: r.episodes for key, r in latest.items()} == {reading_key(r): r.episodes for r in offline}

        await until(complete, "every family has all its episodes")
        return sorted(latest.values(), key=lambda reading: reading.identity)

    streamed = asyncio.run(scenario())
    assert len(streamed) == len(FLEETS)
    assert all(reading.capacity is not None for reading in streamed)
    # Fleets arrive side by side, so which episodes ended before which is another matter every time.
    assert_alike(streamed, offline, "sequence", "violations", *HISTORY)
    assert worker.end() == 0, worker.log()
    assert "level=error logger=stream_processors" not in worker.log()


async def latest_readings(stream: "Stream") -> dict[bytes, FamilyReading]:
    latest: dict[bytes, FamilyReading] = {}
    for record in await stream.read(FAMILIES):
        reading: Any = decode_reading(record.value)
        assert isinstance(reading, FamilyReading)
        assert record.key == reading_key(reading)
        latest[record.key] = reading
    return latest


def of_method(frame: StepFrame, method: str) -> StepFrame:
    episodes = tuple(msgspec.structs.replace(header, method=method) for header in frame.episodes)
    return msgspec.structs.replace(frame, episodes=episodes)
