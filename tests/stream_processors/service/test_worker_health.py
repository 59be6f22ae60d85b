"""The health endpoint over a socket: what it answers on which path, and that no fault or busy port passes unsaid."""

import asyncio
import json
import socket
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from springback.producers.errors import ServerAddressError
from springback.stream_processors.metrics.services import WORKER_METRICS, WORKER_READY
from springback.stream_processors.service import health
from springback.stream_processors.service.health import (
    Measurement,
    MetricsPage,
    Readiness,
    RenderMetrics,
    health_endpoint,
)


def unready() -> dict[str, Any]:
    return {"ready": False}


def page() -> RenderMetrics:
    return MetricsPage(CollectorRegistry(), WORKER_METRICS, lambda: [Measurement(WORKER_READY, 0)]).render


def answers(
    *requests: str, report: Callable[[], dict[str, Any]] = unready, metrics: RenderMetrics | None = None
) -> list[tuple[int, dict[str, str], bytes]]:
    """Status, headers and body of each answer, to requests one after another."""

    async def ask(host: str, port: int, request: str) -> bytes:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(f"{request}\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer

    async def scenario() -> list[bytes]:
        async with health_endpoint("127.0.0.1", 0, report, metrics) as address:
            host, _, port = address.removeprefix("http://").rstrip("/").partition(":")
            return [await ask(host, int(port), request) for request in requests]

    found = []
    for answer in asyncio.run(scenario()):
        head, _, body = answer.partition(b"\r\n\r\n")
        status, *headers = head.decode().split("\r\n")
        found.append((int(status.split()[1]), dict(header.split(": ", 1) for header in headers), body))
    return found


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        ("GET /live", 200),
        ("GET /ready", 503),
        ("GET /ready?x=1", 503),
        ("GET /other", 404),
        ("GET /metrics", 404),
        ("POST /live", 405),
    ],
)
def test_the_health_endpoint_answers(request_line: str, status: int) -> None:
    ((found, headers, body),) = answers(f"{request_line} HTTP/1.1\r\nHost: x")
    assert found == status
    assert headers["Content-Type"] == "application/json"
    assert ("ready" in json.loads(body)) == (status in (200, 503))


@pytest.mark.parametrize(
    ("header", "content_type"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8"),
        ("\r\naccept:application/openmetrics-text;version=1.0.0,*/*", "application/openmetrics-text; version=1.0.0; "),
        (
            "\r\nAccept: text/html\r\nAccept: application/openmetrics-text",
            "application/openmetrics-text; version=1.0.0; ",
        ),
    ],
)
def test_metrics_are_served_in_the_format_asked_for(header: str, content_type: str) -> None:
    ((status, headers, body),) = answers(f"GET /metrics HTTP/1.1\r\nHost: x{header}", metrics=page())
    assert status == 200
    assert headers["Content-Type"].startswith(content_type)
    assert int(headers["Content-Length"]) == len(body)
    assert b"\nspringback_worker_ready 0.0\n" in body
    assert body.endswith(b"# EOF\n") == ("openmetrics" in content_type)


def test_a_head_has_no_body() -> None:
    ((status, headers, body),) = answers("HEAD /live HTTP/1.1\r\nHost: x")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 0


def test_a_fault_is_logged_and_answered_and_the_next_request_too(caplog: pytest.LogCaptureFixture) -> None:
    def faulty() -> dict[str, Any]:
        message = "no such number"
        raise ValueError(message)

    first, second = answers(
        "GET /ready HTTP/1.1\r\nHost: x", "GET /metrics HTTP/1.1\r\nHost: x", report=faulty, metrics=page()
    )
    assert (first[0], second[0]) == (500, 200)
    assert "no such number" in caplog.text
    assert b"no such number" not in first[2]


@pytest.mark.parametrize("sent", [b"", b"GET /live HTTP/1.1\r\n", b"GET /live HTTP/1.1\r\n" + b"x: y\r\n" * 2000])
def test_who_sends_no_whole_request_or_too_much_is_cut(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_LIMITS", health._LIMITS._replace(silence_s=0.2))

    async def scenario() -> bytes:
        async with health_endpoint("127.0.0.1", 0, unready) as address:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rstrip("/").rpartition(":")[2]))
            writer.write(sent)
            try:
                return await reader.read()
            except ConnectionResetError:
                return b""
            finally:
                writer.close()

    assert asyncio.run(scenario()) == b""


def test_a_port_that_is_taken_is_named_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        async def scenario() -> None:
            async with health_endpoint("127.0.0.1", port, unready):
                pass

        with pytest.raises(ServerAddressError, match=rf"127.0.0.1:{port} .*in use.*SPRINGBACK_HEALTH_PORT"):
            asyncio.run(scenario())


def test_it_is_known_since_when_the_worker_is_as_ready_as_it_is() -> None:
    now, missing = 1000.0, ["tables"]
    readiness = Readiness(lambda: missing, 10.0, lambda: 0.0, lambda: now)
    assert readiness.changed_s == 1000
    for later, still_missing, changed_s in ((1001.0, ["tables"], 1000), (1002.0, [], 1002), (1003.0, [], 1002)):
        now, missing = later, still_missing
        readiness.check()
        assert (readiness.ready, readiness.changed_s) == (not still_missing, changed_s)
