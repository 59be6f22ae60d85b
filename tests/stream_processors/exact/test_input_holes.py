"""Offsets that a real Kafka no longer has, or never had a message at, are passed over and counted; nothing else is."""

import asyncio
import json
import urllib.request
from typing import TYPE_CHECKING

import aiokafka  # type: ignore[import-untyped]
import msgspec
import pytest
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete  # type: ignore[import-untyped]

from springback.stream_processors.topics import STEPS
from tests.stream_processors.conftest import DEADLINE_S, until, wait_until

if TYPE_CHECKING:
    from tests.stream_processors.conftest import Stream

pytestmark = pytest.mark.kafka


def a_frame(step: int) -> bytes:
    return msgspec.msgpack.encode(
        {
            "schema_version": 1,
            "producer": "robot",
            "session": "s",
            "episodes": [{"agent": "robot", "episode": "1", "family": "navigation"}],
            "steps": {"episode": [0], "step": [step], "progress": [0.5]},
        }
    )


def test_offsets_lost_to_retention_and_markers_of_transactions(kafka_stream: "Stream") -> None:
    topic = kafka_stream.prefix + STEPS
    place = aiokafka.TopicPartition(topic, 1)

    async def send(steps: range, transactional: bool = False) -> None:
        options = {"transactional_id": kafka_stream.prefix} if transactional else {}
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=kafka_stream.address, **options) as producer:
            for step in steps:
                if transactional:
                    await producer.begin_transaction()
                await producer.send_and_wait(topic, a_frame(step), key=b"robot", partition=place.partition)
                if transactional:
                    await producer.commit_transaction()

    async def delete_before(offset: int) -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka_stream.address)
        await admin.start()
        await admin.delete_records({place: RecordsToDelete(before_offset=offset)})
        await admin.close()

    first = kafka_stream.start()
    health = first.wait_until_ready()
    asyncio.run(send(range(10)))
    wait_for(health, events=10, lost_offsets=0)
    assert first.end() == 0
    asyncio.run(send(range(10, 20)))
    asyncio.run(delete_before(15))
    health = kafka_stream.start(stall_s="1").wait_until_ready()
    wait_for(health, events=5, lost_offsets=5)
    asyncio.run(send(range(20, 22), transactional=True))
    # The last marker, too, which nothing follows: else the partition would never be read to its end.
    wait_for(health, events=7, lost_offsets=7)
    asyncio.run(send(range(22, 24)))
    wait_for(health, events=9, lost_offsets=7)
    asyncio.run(wait_for_commit(kafka_stream, place, 26))


async def wait_for_commit(stream: "Stream", place: aiokafka.TopicPartition, offset: int) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=stream.address)
    await admin.start()
    try:

        async def committed() -> bool:
            offsets = await admin.list_consumer_group_offsets(stream.prefix + "springback")
            return bool(offsets[place].offset == offset)

        await until(committed, f"offset {offset} is committed")
    finally:
        await admin.close()


def wait_for(health: str, **wanted: int) -> None:
    def counted() -> bool:
        with urllib.request.urlopen(health + "live", timeout=DEADLINE_S) as answer:
            return bool(wanted.items() <= json.load(answer)["stages"]["track_steps"].items())

    wait_until(counted, f"the stage has counted {wanted}")
