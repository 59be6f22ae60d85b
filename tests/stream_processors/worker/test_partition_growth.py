"""Partitions that are added to a topic: keys move away from their state, so nothing is read on, and it says so."""

import asyncio
import logging
import time

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions  # type: ignore[import-untyped]

from springback.producers.broker_fault import FaultLog
from springback.stream_processors.errors import TopicMismatchError
from springback.stream_processors.judging.process import judge_steps
from springback.stream_processors.service.broker_watch import check_not_grown, watch_broker
from springback.stream_processors.service.kafka_connection import KafkaConnection
from springback.stream_processors.settings import load_settings
from springback.stream_processors.topics import STEPS, SUMMARIES
from tests.stream_processors.conftest import DEADLINE_S, Stream, wait_until


async def add_partitions(address: str, topic: str, count: int) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    try:
        answer = await admin.create_partitions({topic: NewPartitions(count)})
        assert [(name, code) for name, code, *_ in answer.topic_errors] == [(topic, 0)]
    finally:
        await admin.close()


@pytest.mark.kafka
@pytest.mark.parametrize("topic", [STEPS, SUMMARIES])
def test_a_running_worker_ends_and_says_what_to_do_and_so_does_the_next(kafka_stream: Stream, topic: str) -> None:
    worker = kafka_stream.start()
    worker.wait_until_ready()
    asyncio.run(add_partitions(kafka_stream.address, kafka_stream.prefix + topic, 6))
    wait_until(lambda: worker.process.poll() is not None, "the worker has noticed it")
    assert worker.process.returncode == 1
    told = worker.log().splitlines()
    line = next(line for line in told if "worker_failed kind=TopicMismatchError" in line)
    assert f"{kafka_stream.prefix}{topic} has 6 in place of 4" in line
    assert "springback topics --prefix NEW --partitions 6" in line
    again = kafka_stream.start()
    wait_until(lambda: again.process.poll() is not None, "the next worker has noticed it")
    assert f"{kafka_stream.prefix}{topic} has 6, expected 4" in again.log()
    assert "go on under another prefix" in again.log()


@pytest.mark.kafka
def test_a_running_judge_ends_as_well(kafka_stream: Stream, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    settings = load_settings(
        environment={},
        overrides={
            "kafka": {"bootstrap": kafka_stream.address},
            "prefix": kafka_stream.prefix,
            "judge": {"base_url": "http://127.0.0.1:1/v1", "model": "none"},
        },
    )

    async def scenario() -> None:
        judging = asyncio.create_task(judge_steps(settings, asyncio.Event()))
        while "ready health=" not in caplog.text:
            await asyncio.sleep(0.05)
        await add_partitions(kafka_stream.address, kafka_stream.prefix + STEPS, 5)
        await judging

    with pytest.raises(TopicMismatchError, match="steps has 5 in place of 4"):
        asyncio.run(asyncio.wait_for(scenario(), DEADLINE_S))


def test_a_topic_that_is_missing_or_smaller_is_another_matter() -> None:
    check_not_grown({"a": 4, "c": 99}, {"a": 4, "b": 4})
    with pytest.raises(
        TopicMismatchError, match=r"topics: a has 5 in place of 4; b has 8 in place of 1\..*partitions 8"
    ):
        check_not_grown({"a": 5, "b": 8, "c": 99}, {"a": 4, "b": 1})


def test_a_broker_that_is_away_is_told_of_and_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    faults = FaultLog("the test")

    async def scenario() -> None:
        kafka = KafkaConnection(bootstrap="127.0.0.1:1")
        watching = asyncio.create_task(watch_broker(kafka, {"a": 1}, faults, interval_s=0.01))
        deadline = time.monotonic() + DEADLINE_S
        while faults.fault is None:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
        assert not watching.done()
        watching.cancel()

    asyncio.run(scenario())
    assert faults.fault is not None
    assert faults.fault.kind == "address"
    assert "broker_fault kind=address waits=the test" in caplog.text
