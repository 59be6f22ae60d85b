"""`springback annotate` as a process: it gets ready, marks a window, and ends well at SIGTERM."""

import asyncio
import json
import os
import time
import uuid
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]

from springback.deploy.child_process import ChildProcess
from springback.deploy.local_stack import SPRINGBACK
from springback.sinks.grafana.connection import TOKEN_VARIABLE
from springback.stream_processors.resilience.readings import encode_reading
from springback.stream_processors.topics import WINDOWS, declare_topics, topic_name
from tests.reading_builders import window_reading
from tests.sinks.grafana.grafana_stub import TOKEN, GrafanaStub, serve

pytestmark = pytest.mark.broker

DEADLINE_S = 150.0


async def send(broker: str, prefix: str) -> None:
    await declare_topics(broker, prefix=prefix, partitions=1)
    now = time.time()
    reading = window_reading(state="open", departure_time_s=now - 5, reentry_time_s=now)
    async with AIOKafkaProducer(bootstrap_servers=broker) as producer:
        await producer.send_and_wait(topic_name(WINDOWS, prefix), encode_reading(reading), key=b"robot-7")


def annotate(broker: str, stub: GrafanaStub, folder: Path, token: str = TOKEN) -> ChildProcess:
    prefix = f"annotate-{uuid.uuid4().hex[:8]}-"
    asyncio.run(send(broker, prefix))
    command = [*SPRINGBACK, "annotate", "--broker", broker, "--prefix", prefix, "--url", stub.url]
    environment = {**os.environ, TOKEN_VARIABLE: token}
    return ChildProcess(
        "annotate", [*command, "--ready-file", str(folder / "ready")], folder / "log", environment=environment
    )


def test_it_gets_ready_marks_and_ends_when_told(embedded_broker: str, tmp_path: Path) -> None:
    with serve(GrafanaStub()) as stub:
        with annotate(embedded_broker, stub, tmp_path) as child:
            child.wait_until((tmp_path / "ready").exists, DEADLINE_S, "its ready file")
            child.wait_until(lambda: bool(stub.annotations), DEADLINE_S, "a mark")
            assert child.terminate() == 0
        (mark,) = stub.annotations.values()
        assert json.loads((tmp_path / "ready").read_text()) == {"grafana": stub.url}
        assert f"Marks go to {stub.url}" in (tmp_path / "log").read_text()
    assert "agent:robot-7" in mark["tags"]


def test_a_refused_token_ends_it_and_is_not_told(embedded_broker: str, tmp_path: Path) -> None:
    with serve(GrafanaStub()) as stub, annotate(embedded_broker, stub, tmp_path, "glsa_wrong") as child:
        assert child.wait(DEADLINE_S) == 1
    log = (tmp_path / "log").read_text()
    assert "(HTTP 401). It says: Invalid API key" in log
    assert "glsa_wrong" not in log
