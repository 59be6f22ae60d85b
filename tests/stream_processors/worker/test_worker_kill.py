"""Workers that are killed, stopped, paused and joined by others on a real Kafka: nothing missing, nothing twice."""

import asyncio
import random
import signal
from typing import TYPE_CHECKING

import pytest

from springback.deploy.apache_kafka import ApacheKafka

if TYPE_CHECKING:
    from tests.stream_processors.conftest import MakeStream, Recorded, Stream, WorkerProcess

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]
KILLS = 3
SESSION_S = 6


def test_kill_9_at_random_instants_changes_nothing(kafka_stream: "Stream", recorded: "Recorded") -> None:
    kafka_stream.freeze(recorded)
    chance = random.Random(20261130)

    async def scenario() -> list[str]:
        worker = await asyncio.to_thread(started, kafka_stream)
        sending = asyncio.create_task(kafka_stream.send_frames(recorded.frames, pause_s=0.02))
        for _ in range(KILLS):
            await asyncio.sleep(chance.uniform(0.3, 1.5))
            await asyncio.to_thread(worker.end, signal.SIGKILL)
            worker = await asyncio.to_thread(started, kafka_stream)
        await sending
        await kafka_stream.wait_for_episodes(recorded)
        return await kafka_stream.differences(recorded)

    assert asyncio.run(scenario()) == []


def test_workers_that_join_leave_and_are_paused_change_nothing(kafka_stream: "Stream", recorded: "Recorded") -> None:
    kafka_stream.freeze(recorded)

    async def scenario() -> list[str]:
        first = await asyncio.to_thread(started, kafka_stream)
        sending = asyncio.create_task(kafka_stream.send_frames(recorded.frames, pause_s=0.03))
        second = await asyncio.to_thread(started, kafka_stream)
        await asyncio.sleep(0.5)
        assert await asyncio.to_thread(first.end) == 0
        third = await asyncio.to_thread(started, kafka_stream)
        second.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(SESSION_S + 2)  # its session ends, its partitions go to the third
        second.process.send_signal(signal.SIGCONT)
        await sending
        await kafka_stream.wait_for_episodes(recorded)
        assert [await asyncio.to_thread(worker.end) for worker in (second, third)] == [0, 0]
        return await kafka_stream.differences(recorded)

    assert asyncio.run(scenario()) == []


def test_a_broker_that_restarts_changes_nothing(recorded: "Recorded", make_stream: "MakeStream") -> None:
    with ApacheKafka() as kafka:
        stream = make_stream(kafka.address)
        stream.freeze(recorded)

        async def scenario() -> list[str]:
            await asyncio.to_thread(started, stream)
            sending = asyncio.create_task(stream.send_frames(recorded.frames, pause_s=0.006))
            await asyncio.sleep(1.0)
            await asyncio.to_thread(kafka.kill)
            await asyncio.to_thread(kafka.start)
            await sending
            await stream.wait_for_episodes(recorded)
            return await stream.differences(recorded)

        assert asyncio.run(scenario()) == []


def started(stream: "Stream") -> "WorkerProcess":
    worker = stream.start()
    worker.wait_until_ready()
    return worker
