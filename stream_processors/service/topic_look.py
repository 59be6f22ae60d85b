"""Looks at topics apart from the stream: in no consumer group, and nothing is committed."""

import math
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiokafka  # type: ignore[import-untyped]

from springback.stream_processors.errors import TopicMissingError
from springback.stream_processors.service.broker_watch import check_broker
from springback.stream_processors.service.kafka_connection import KafkaConnection

_POLL_MS = 200
_SETTLING_S = 0.5


def plain_consumer(kafka: KafkaConnection, *topics: str) -> aiokafka.AIOKafkaConsumer:
    """A consumer apart from Faust's, not started yet: of no group, it commits nothing and reads from the beginning.

    It has all partitions of the topics, or none until it is assigned some.

    Args:
        kafka: how to reach the brokers.
        topics: what to read, with their prefix.
    """
    return aiokafka.AIOKafkaConsumer(
        *topics,
        bootstrap_servers=kafka.bootstrap,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **kafka.client_options(),
    )


@asynccontextmanager
async def started(client: Any) -> AsyncIterator[None]:
    """Starts a client of aiokafka for the block; unlike its own `async with`, closes one that could not start."""
    try:
        await client.start()
        yield
    finally:
        await client.stop()


async def records_until_now(kafka: KafkaConnection, topic: str) -> AsyncGenerator[Any, None]:
    """The records that are in a topic, and then some of those that come meanwhile: it ends, however many come.

    Args:
        kafka: how to reach the brokers.
        topic: its name, with the prefix.
    """
    consumer = plain_consumer(kafka, topic)
    async with started(consumer):
        ends = await consumer.end_offsets(consumer.assignment())
        # Tansu says of some logs that they end one message early, so the ends are not the end yet.
        until_s = math.inf
        while time.monotonic() < until_s:
            if until_s == math.inf and not [
                place for place, end in ends.items() if await consumer.position(place) < end
            ]:
                until_s = time.monotonic() + _SETTLING_S
            for records in (await consumer.getmany(timeout_ms=_POLL_MS)).values():
                for record in records:
                    yield record


async def look_at_topic(kafka: KafkaConnection, topic: str, seconds: float) -> AsyncIterator[list[Any]]:
    """The records that come to a topic from now on, for so many seconds, as they come.

    Args:
        kafka: how to reach the brokers.
        topic: its name, with the prefix.
        seconds: how long to look.

    Raises:
        BrokerFaultError: the broker cannot be used, and why.
        TopicMissingError: there is no such topic. None is made by looking at it.
    """
    await check_broker(kafka)
    consumer = plain_consumer(kafka)
    async with started(consumer):
        if topic not in await consumer.topics():
            message = (
                f"There is no topic {topic} at {kafka.bootstrap}: start a worker or run `springback topics`, or give "
                "the --prefix that they have."
            )
            raise TopicMissingError(message)
        partitions = [aiokafka.TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)]
        consumer.assign(partitions)
        await consumer.seek_to_end(*partitions)
        until_s = time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0.0:
            found = await consumer.getmany(timeout_ms=int(min(_POLL_MS, 1000.0 * left_s)))
            if records := [record for of_partition in found.values() for record in of_partition]:
                yield records
