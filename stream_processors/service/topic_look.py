"""A look at what comes to a topic for a while: from now on, in no consumer group, and nothing is committed."""

import time
from collections.abc import AsyncIterator
from typing import Any

import aiokafka  # type: ignore[import-untyped]

from springback.stream_processors.errors import TopicMissingError
from springback.stream_processors.service.broker_watch import check_broker
from springback.stream_processors.service.kafka_connection import KafkaConnection

_POLL_MS = 200


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
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=kafka.bootstrap, enable_auto_commit=False, **kafka.client_options()
    )
    try:
        await consumer.start()
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
    finally:
        await consumer.stop()
