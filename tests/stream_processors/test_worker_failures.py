"""A worker that cannot go on says why and ends with an error; it never idles silently."""

import asyncio
import json
from typing import TYPE_CHECKING

import aiokafka  # type: ignore[import-untyped]
import pytest

from deploy.free_port import free_port
from stream_processors.errors import RecoveryTimeoutError
from stream_processors.topics import STEPS_TABLE, changelog_name
from stream_processors.worker_health import Readiness, health_endpoint

if TYPE_CHECKING:
    from tests.stream_processors.conftest import Stream

DEADLINE_S = 30


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


@pytest.mark.parametrize(
    ("request_line", "status"),
    [("GET /live", 200), ("GET /ready", 503), ("GET /ready?x=1", 503), ("GET /other", 404), ("POST /live", 405)],
)
def test_the_health_endpoint_answers(request_line: str, status: int) -> None:
    async def scenario() -> bytes:
        async with health_endpoint("127.0.0.1", 0, lambda: {"ready": False}) as address:
            host, _, port = address.removeprefix("http://").rstrip("/").partition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(f"{request_line} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            answer = await reader.read()
            writer.close()
            await writer.wait_closed()
            return answer

    head, _, body = asyncio.run(scenario()).partition(b"\r\n\r\n")
    assert int(head.split()[1]) == status
    assert ("ready" in json.loads(body)) == (status in (200, 503))
