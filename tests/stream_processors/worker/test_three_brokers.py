"""Three brokers, three copies of everything, a warm copy of the state: a broker and a worker die, nothing is lost."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from springback.deploy.errors import MissingToolError
from springback.stream_processors.topics import declare_topics
from tests.kafka_cluster import KafkaNode, kafka_cluster
from tests.stream_processors.conftest import DEADLINE_S, MakeStream, Recorded


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[list[KafkaNode]]:
    try:
        with kafka_cluster(tmp_path) as nodes:
            yield nodes
    except MissingToolError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.mark.kafka
def test_a_broker_and_a_worker_are_killed_and_nothing_is_lost_or_doubled(
    cluster: list[KafkaNode], make_stream: MakeStream, recorded: Recorded
) -> None:
    address = ",".join(node.address for node in cluster)
    settings = {"replication": "3", "standby_replicas": "1", "session_timeout_s": "6"}
    stream = make_stream(address, **settings)
    stream.freeze(recorded)
    workers = [stream.start() for _ in range(2)]
    for worker in workers:
        worker.wait_until_ready()
    half = len(recorded.frames) // 2

    async def scenario() -> None:
        waiting = asyncio.create_task(stream.wait_for_episodes(recorded))
        await stream.send_frames(recorded.frames[:half], pause_s=0.002)
        await asyncio.to_thread(cluster[0].kill)
        await stream.send_frames(recorded.frames[half : half + half // 2], pause_s=0.002)
        workers[0].end(signal.SIGKILL)
        await stream.send_frames(recorded.frames[half + half // 2 :], pause_s=0.002)
        await waiting

    asyncio.run(asyncio.wait_for(scenario(), 2 * DEADLINE_S))
    assert asyncio.run(stream.differences(recorded)) == []
    assert workers[1].process.poll() is None, workers[1].log()
    cluster[0].start()
    found = asyncio.run(declare_topics(address, prefix=stream.prefix, app_id=stream.prefix + "springback"))
    assert set(found.values()) == {1, 4}
