"""A Kafka consumer apart from Faust's: it belongs to no group, commits nothing, and reads from the beginning."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiokafka  # type: ignore[import-untyped]
from springback.stream_processors.kafka_connection import KafkaConnection


def plain_consumer(kafka: KafkaConnection, *topics: str) -> aiokafka.AIOKafkaConsumer:
    """The consumer, not started yet; of all partitions of the topics, or of none until it is assigned some.

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
    """A client of aiokafka for the block; unlike its own `async with`, closed also where it could not start."""
    try:
        await client.start()
        yield
    finally:
        await client.stop()
