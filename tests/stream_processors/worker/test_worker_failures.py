"""A worker that cannot go on says why and ends with an error; it never idles silently."""

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import aiokafka  # type: ignore[import-untyped]
import pytest

from springback.deploy.broker_process import free_port
from springback.stream_processors.errors import RecoveryTimeoutError
from springback.stream_processors.service.health import Readiness
from springback.stream_processors.topics import STEPS_TABLE, changelog_name
from tests.stream_processors.conftest import DEADLINE_S

if TYPE_CHECKING:
    from tests.stream_processors.conftest import Stream


def end_of(stream: "Stream", **options: str) -> str:
    """The log of a worker that fails."""
    worker = stream.start(**options)
    assert worker.process.wait(DEADLINE_S) == 1, worker.log()
    return worker.log()


@pytest.mark.broker
def test_state_that_cannot_be_read_stops_the_worker(embedded_stream: "Stream") -> None:
    async def put(value: bytes) -> None:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=embedded_stream.address) as producer:
            changelog = changelog_name(embedded_stream.prefix + "springback", STEPS_TABLE)
            await producer.send_and_wait(changelog, value, key=b"2/next", partition=2)

    asyncio.run(put(b"damaged"))
    log = end_of(embedded_stream)
    assert "kind=StateFormatError" in log
    assert "b'2/next' (7 bytes" in log


@pytest.mark.broker
def test_topics_with_other_partitions_stop_the_worker(embedded_stream: "Stream") -> None:
    assert "kind=TopicMismatchError" in end_of(embedded_stream, partitions="3")


@pytest.mark.broker
def test_a_broker_that_never_answers_stops_the_worker(embedded_stream: "Stream") -> None:
    log = end_of(embedded_stream, kafka__bootstrap=f"127.0.0.1:{free_port()}", recovery_bound_s="1")
    assert "kind=RecoveryTimeoutError" in log


def test_not_ready_within_the_bound_is_an_error() -> None:
    now, missing = 0.0, ["tables"]
    readiness = Readiness(lambda: missing, 10.0, lambda: now)
    now = 9.0
    assert readiness.check() == ["tables"]
    missing = []
    assert readiness.check() == []
    assert readiness.ready
    now, missing = 100.0, ["partitions", "baselines"]
    readiness.check()
    assert not readiness.ready
    now = 111.0
    with pytest.raises(RecoveryTimeoutError, match=r"11 s, at most 10 s .* partitions, baselines"):
        readiness.check()


@pytest.mark.broker
def test_a_worker_that_is_killed_leaves_no_files_behind(embedded_stream: "Stream", tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    embedded_stream.environment["TMPDIR"] = str(temporary)
    worker = embedded_stream.start()
    worker.wait_until_ready()
    worker.end(signal.SIGKILL)
    assert list(temporary.iterdir()) == []
