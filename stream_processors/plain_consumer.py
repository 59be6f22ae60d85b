"""A Kafka consumer apart from Faust's: it belongs to no group, commits nothing, and reads from the beginning."""

import aiokafka  # type: ignore[import-untyped]

from stream_processors.kafka_connection import KafkaConnection


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
