import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition  # type: ignore[import-untyped]
from aiokafka.admin import AIOKafkaAdminClient, NewTopic  # type: ignore[import-untyped]

from springback.deploy.apache_kafka import ApacheKafka
from springback.deploy.broker_process import cluster_id, free_port
from springback.deploy.errors import ChildFailedError, DeployError

pytestmark = pytest.mark.kafka

TOPIC = "test-apache-kafka"


@pytest.fixture(scope="module")
def own_kafka(apache_kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    """A Kafka that may be stopped; it depends on the shared one, whose fixture decides about skipping."""
    with ApacheKafka(tmp_path_factory.mktemp("log")) as kafka:
        assert kafka.address != apache_kafka
        yield kafka


async def create_topic(address: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(TOPIC, 1, 1)])
    finally:
        await admin.close()


async def write(address: str, value: bytes) -> None:
    async with AIOKafkaProducer(bootstrap_servers=address) as producer:
        await producer.send_and_wait(TOPIC, value)


async def read(address: str, count: int) -> list[bytes]:
    async with AIOKafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(TOPIC, 0)])
        async with asyncio.timeout(150):
            return [(await consumer.getone()).value for _ in range(count)]


def test_data_and_address_outlive_a_stop_and_a_kill(own_kafka: ApacheKafka) -> None:
    address = own_kafka.address
    asyncio.run(create_topic(address))
    asyncio.run(write(address, b"before the stop"))
    own_kafka.stop()
    assert cluster_id(address) is None
    own_kafka.start()
    asyncio.run(write(address, b"before the kill"))
    own_kafka.kill()
    assert cluster_id(address) is None
    with pytest.raises(ChildFailedError, match="does not run"):
        own_kafka.check()
    own_kafka.start()
    own_kafka.check()
    assert own_kafka.address == address
    assert asyncio.run(read(address, 2)) == [b"before the stop", b"before the kill"]


def test_a_topic_does_not_create_itself(own_kafka: ApacheKafka) -> None:
    async def topics() -> list[str]:
        admin = AIOKafkaAdminClient(bootstrap_servers=own_kafka.address)
        await admin.start()
        try:
            await admin.describe_topics(["misspelt"])
            return list(await admin.list_topics())
        finally:
            await admin.close()

    assert "misspelt" not in asyncio.run(topics())


def test_a_running_one_is_not_started_again(own_kafka: ApacheKafka) -> None:
    with pytest.raises(DeployError, match=f"runs already, at {own_kafka.address}"):
        own_kafka.start()


def test_another_port_is_taken_when_the_first_is_held_and_nothing_is_left_behind(
    apache_kafka: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ports = [int(apache_kafka.rpartition(":")[2]), *(free_port() for _ in range(3))]
    monkeypatch.setattr("springback.deploy.broker_process.free_port", iter(ports).__next__)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with ApacheKafka() as kafka:
        assert kafka.address != apache_kafka
        assert cluster_id(kafka.address) not in {None, cluster_id(apache_kafka)}
        assert any(tmp_path.rglob("meta.properties"))
    assert not any(path.is_dir() for base in tmp_path.iterdir() for path in base.iterdir())
    assert cluster_id(kafka.address) is None
