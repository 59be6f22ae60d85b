"""Declaring topics: once is as often as you like, and what exists otherwise is an error."""

import asyncio
import uuid

import pytest
from aiokafka.admin import AIOKafkaAdminClient  # type: ignore[import-untyped]
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType  # type: ignore[import-untyped]

from springback.stream_processors.errors import TopicDeclarationError, TopicMismatchError
from springback.stream_processors.topics import (
    BASELINES,
    JUDGED_STEPS,
    STEPS,
    STEPS_TABLE,
    SUMMARIES,
    TOPICS,
    changelog_name,
    declare_topics,
)


def own_prefix() -> str:
    return f"t{uuid.uuid4().hex[:8]}."


@pytest.mark.parametrize(
    "fixture",
    [pytest.param("embedded_broker", marks=pytest.mark.broker), pytest.param("apache_kafka", marks=pytest.mark.kafka)],
)
def test_topics_are_declared_once_and_checked_after(fixture: str, request: pytest.FixtureRequest) -> None:
    address = request.getfixturevalue(fixture)
    prefix = own_prefix()
    first = asyncio.run(declare_topics(address, prefix=prefix, app_id=prefix + "app", partitions=3))
    assert {name for name in first if name.startswith(prefix) and "app" not in name} == {
        prefix + spec.name for spec in TOPICS
    }
    assert first[prefix + STEPS] == first[changelog_name(prefix + "app", STEPS_TABLE)] == 3
    assert first[prefix + BASELINES] == 1
    assert asyncio.run(declare_topics(address, prefix=prefix, app_id=prefix + "app", partitions=3)) == first
    with pytest.raises(TopicMismatchError, match=rf"{prefix}steps has 3, expected 5"):
        asyncio.run(declare_topics(address, prefix=prefix, partitions=5))


@pytest.mark.kafka
def test_cleanup_and_the_brokers_clock_are_set(apache_kafka: str) -> None:
    prefix = own_prefix()

    async def settings_of(topic: str) -> dict[str, str]:
        await declare_topics(apache_kafka, prefix=prefix, app_id=prefix + "app")
        admin = AIOKafkaAdminClient(bootstrap_servers=apache_kafka)
        await admin.start()
        try:
            (found,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
            return {entry[0]: entry[1] for entry in found.resources[0][4]}
        finally:
            await admin.close()

    steps = asyncio.run(settings_of(prefix + STEPS))
    assert (steps["cleanup.policy"], steps["message.timestamp.type"]) == ("delete", "LogAppendTime")
    # A worker whose clock stands in 1970 must not have its episodes removed as too old.
    assert asyncio.run(settings_of(prefix + SUMMARIES))["message.timestamp.type"] == "LogAppendTime"
    assert asyncio.run(settings_of(prefix + JUDGED_STEPS))["message.timestamp.type"] == "CreateTime"
    assert asyncio.run(settings_of(prefix + BASELINES))["cleanup.policy"] == "compact"
    assert asyncio.run(settings_of(changelog_name(prefix + "app", STEPS_TABLE)))["cleanup.policy"] == "compact"


@pytest.mark.kafka
def test_a_refusal_says_what_was_refused(apache_kafka: str) -> None:
    with pytest.raises(TopicDeclarationError, match="steps: "):
        asyncio.run(declare_topics(apache_kafka, prefix=own_prefix(), replication=3))


def test_every_topic_says_how_long_it_keeps_what() -> None:
    for spec in TOPICS:
        assert (spec.retention_ms is None) == (spec.cleanup == "compact"), spec.name
