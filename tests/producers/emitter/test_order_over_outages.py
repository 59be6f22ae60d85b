"""The order of one producer's frames, over outages longer than Kafka's client keeps a batch."""

import asyncio
import gc
import logging
import os
import signal
import time
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]

from springback.deploy.apache_kafka import ApacheKafka
from springback.producers.contract.codec import decode_frame
from springback.producers.emitter.kafka_publisher import KafkaPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.stream_processors.topics import declare_topics
from tests.producers.emitter.emitter_waiting import until


async def steps_in(address: str, topic: str) -> list[tuple[str, int]]:
    """The session and the number of each step, in the order of the topic."""
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=address, auto_offset_reset="earliest")
    found: list[tuple[str, int]] = []
    async with consumer:
        ends = await consumer.end_offsets(consumer.assignment())
        while [place for place, end in ends.items() if await consumer.position(place) < end]:
            for records in (await consumer.getmany(timeout_ms=500)).values():
                for frame in [decode_frame(record.value) for record in records]:
                    numbers: Any = frame.steps["step"] if frame.steps else np.empty(0)
                    found += [(frame.session, number) for number in numbers.tolist()]
    return found


@pytest.mark.kafka
def test_no_step_passes_an_older_one_when_kafka_comes_back_after_batches_have_expired(
    kafka_process: ApacheKafka,
) -> None:
    prefix = f"o{uuid.uuid4().hex[:8]}."
    asyncio.run(declare_topics(kafka_process.address, prefix=prefix))
    options = {"request_timeout_ms": 2000, "delivery_timeout_ms": 4000, "batch_size": 1}
    publisher = KafkaPublisher(kafka_process.address, f"{prefix}steps", **options)
    with StepEmitter(publisher, producer="robot", max_steps=1, linger_s=0.0) as emitter:
        episode = emitter.begin_episode(family="f")
        sent, due_at = 1, 0.0

        def a_step_now_and_then() -> bool:
            nonlocal sent, due_at
            if time.monotonic() >= due_at:  # so that young ones are with Kafka's client when the oldest expires
                due_at = time.monotonic() + 0.05
                episode.step(progress=0.5)
                sent += 1
            return emitter.report.publish_errors > 0

        episode.step(progress=0.5)
        assert emitter.flush(60.0)
        os.kill(kafka_process.pid, signal.SIGSTOP)
        try:
            until(a_step_now_and_then)
        finally:
            os.kill(kafka_process.pid, signal.SIGCONT)
        episode.end("success")
        assert emitter.flush(60.0)
    assert emitter.report.steps_dropped == 0
    found = asyncio.run(steps_in(kafka_process.address, f"{prefix}steps"))
    assert list(dict.fromkeys(found)) == [(emitter.session, number) for number in range(sent)]


@pytest.mark.kafka
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # kafka-python leaves refused sockets so
def test_what_a_process_has_left_in_its_spool_comes_before_what_the_next_one_reports(
    kafka_process: ApacheKafka, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, logger="kafka")  # its records would keep those sockets beyond the test
    prefix = f"o{uuid.uuid4().hex[:8]}."
    asyncio.run(declare_topics(kafka_process.address, prefix=prefix))
    report_over_an_outage(kafka_process, f"{prefix}steps", tmp_path)
    gc.collect()  # those sockets, before another test is blamed for them
    found = asyncio.run(steps_in(kafka_process.address, f"{prefix}steps"))
    expected = [("old", number) for number in range(500)] + [("new", number) for number in range(100)]
    assert list(dict.fromkeys(found)) == expected


def report_over_an_outage(kafka: ApacheKafka, topic: str, spool: Path) -> None:
    """Has Kafka killed under one emitter, and started again under the next one."""

    def emitter_of(session: str) -> StepEmitter:
        publisher = KafkaPublisher(kafka.address, topic, request_timeout_ms=2000)
        return StepEmitter(publisher, producer="robot", session=session, max_steps=8, spool=spool)

    with emitter_of("old") as emitter:
        episode = emitter.begin_episode(family="f")
        episode.step(progress=0.5)
        until(lambda: emitter.report.steps_sent == 1)
        kafka.kill()
        for _ in range(499):
            episode.step(progress=0.5)
        assert emitter.flush(60.0)  # it is safe, on disk
        assert emitter.report.steps_spooled == 499
    with emitter_of("new") as emitter:
        episode = emitter.begin_episode(family="f")
        for _ in range(100):
            episode.step(progress=0.5)
        kafka.start()
        until(lambda: emitter.report.steps_sent == 100)
        assert (emitter.report.steps_left, emitter.report.steps_dropped) == (0, 0)
