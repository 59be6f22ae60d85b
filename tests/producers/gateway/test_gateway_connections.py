from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import msgspec
import pytest

from springback.producers.gateway import app as gateway_app
from springback.producers.gateway.app import GatewayApp
from springback.producers.gateway.request_bodies import Admission, admit
from tests.producers.gateway.gateway_checks import FakeDelivery, frame_of, gateway_without_kafka
from tests.producers.jumping_loop import run_jumping

SECRET = b"GET / HTTP/1.1\r\nAuthorization: Bearer 0123\x00\r\n\r\n"


def talk(
    said: Callable[[int, GatewayApp], Awaitable[None]],
    delivery: FakeDelivery | None = None,
    *,
    run_in: Callable[[Coroutine[Any, Any, None]], None] = asyncio.run,
    **told: Any,
) -> None:
    async def run() -> None:
        there = FakeDelivery() if delivery is None else delivery
        async with asyncio.timeout(60), gateway_without_kafka(there, **told) as (_, app, port):
            await said(port, app)

    run_in(run())


async def speak(port: int, said: bytes) -> tuple[bytes, asyncio.StreamWriter]:
    """Sends this and reads until the other side closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(said)
    try:
        return await reader.read(), writer
    except ConnectionResetError:
        return b"", writer


def test_a_connection_that_sends_no_whole_head_is_cut() -> None:
    async def said(port: int, app: GatewayApp) -> None:
        for silent in (b"", b"POST /v1/frames HTTP/1.1\r\nHost: x\r\n"):
            answer, writer = await speak(port, silent)
            writer.close()
            assert answer == b""
        assert app._metrics.turned_away.labels("too_slow")._value.get() == 2

    talk(said, header_timeout_s=2.0, run_in=run_jumping)


def test_a_body_that_trickles_is_refused() -> None:
    async def said(port: int, app: GatewayApp) -> None:
        head = b"POST /v1/frames HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        answer, writer = await speak(port, head)
        writer.close()
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"body_too_slow" in answer
        assert app._budget.held == 0

    talk(said, body_timeout_s=2.0, run_in=run_jumping)


def test_one_more_than_the_most_connections_is_turned_away_and_room_comes_back() -> None:
    async def said(port: int, app: GatewayApp) -> None:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        while app._metrics.connections._value.get() < 2:
            await asyncio.sleep(0.01)
        answer, writer = await speak(port, b"")
        writer.close()
        assert answer.startswith(b"HTTP/1.1 503")
        assert answer.endswith(b'\r\n\r\n{"reason":"too_many_connections"}')
        for _, writer in held:
            writer.close()
        while app._metrics.connections._value.get():
            await asyncio.sleep(0.01)
        answer, writer = await speak(port, b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        writer.close()
        assert answer.startswith(b"HTTP/1.1 200")

    talk(said, most_connections=2)


def test_a_kept_connection_may_be_silent_between_requests_and_no_longer() -> None:
    async def said(port: int, app: GatewayApp) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = frame_of("robot-1", 0)
        head = b"POST /v1/frames HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        for _ in range(2):
            writer.write(head % len(body) + body)
            assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")
            await reader.readuntil(b"]}")
        assert await reader.read() == b""
        writer.close()

    talk(said, header_timeout_s=5.0, run_in=run_jumping)


def test_a_kept_connection_that_works_is_never_cut_and_a_half_head_on_it_is() -> None:
    async def said(port: int, app: GatewayApp) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(4):  # more than twice the silence that is allowed
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            await reader.readuntil(b'"alive"}')
            await asyncio.sleep(2.5)
        writer.write(b"GET /healthz HTTP/1.1\r\n")
        assert await reader.read() == b""
        writer.close()
        assert app._metrics.turned_away.labels("too_slow")._value.get() == 1

    talk(said, header_timeout_s=4.0, run_in=run_jumping)


def test_a_request_may_last_longer_than_a_silence_and_leaves_no_timer_behind() -> None:
    delivery = FakeDelivery()

    async def said(port: int, app: GatewayApp) -> None:
        delivery.free.clear()
        asyncio.get_running_loop().call_later(8.0, delivery.free.set)
        body = frame_of("robot-1", 0)
        answer, writer = await speak(port, HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        writer.close()
        assert answer.startswith(b"HTTP/1.1 200")
        while app._metrics.connections._value.get():
            await asyncio.sleep(0.01)
        await asyncio.sleep(6.0)  # past the time at which a timer left behind would go off
        assert app._metrics.turned_away.labels("too_slow")._value.get() == 0

    talk(said, delivery, header_timeout_s=4.0, run_in=run_jumping)


def test_a_length_that_is_too_large_is_answered_before_the_body_comes() -> None:
    async def said(port: int, app: GatewayApp) -> None:
        answer, writer = await speak(port, HEAD + b"Content-Length: 2001\r\n\r\n")
        writer.close()
        assert answer.startswith(b"HTTP/1.1 413")
        assert b"body_too_large" in answer

    talk(said, most_body_bytes=2000, run_in=run_jumping)


HEAD = b"POST /v1/frames HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


def test_headers_in_odd_bytes_are_answered_as_any_other(caplog: pytest.LogCaptureFixture) -> None:
    async def said(port: int, app: GatewayApp) -> None:
        for odd, status in (
            (b"Content-Encoding: \xff\xfe", b"415"),
            (b"Authorization: Bearer \xff\xed\xa0\x80", b"401"),
        ):
            app._options = msgspec.structs.replace(app._options, token="0123456789abcdef" if status == b"401" else None)
            answer, writer = await speak(port, HEAD + odd + b"\r\nContent-Length: 2\r\n\r\n{}")
            writer.close()
            assert answer.startswith(b"HTTP/1.1 " + status)
            assert b'"accepted":0' in answer

    talk(said)
    assert not caplog.records


def test_a_client_that_goes_away_in_the_midst_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async def said(port: int, app: GatewayApp) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HEAD + b"Content-Length: 100\r\n\r\n{")
        while not app._budget.held:
            await asyncio.sleep(0.01)
        writer.close()
        while app._budget.held or app._metrics.connections._value.get():
            await asyncio.sleep(0.01)

    talk(said)
    assert not caplog.records


def test_a_large_body_that_takes_long_to_look_at_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    looking, looked = threading.Event(), threading.Event()

    def slow(*told: Any) -> Admission:
        looking.set()
        assert looked.wait(30.0)
        return admit(*told)

    monkeypatch.setattr(gateway_app, "admit", slow)

    async def said(port: int, app: GatewayApp) -> None:
        body = frame_of("robot-1", 0) + b" " * gateway_app.IN_A_THREAD_BYTES
        sending = asyncio.create_task(
            speak(port, HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        )
        await asyncio.to_thread(looking.wait, 30.0)
        health, writer = await speak(port, b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        writer.close()
        assert health.startswith(b"HTTP/1.1 200")
        looked.set()
        answer, writer = await sending
        writer.close()
        assert answer.startswith(b"HTTP/1.1 200")

    talk(said)


def test_very_many_slow_clients_do_not_keep_a_fast_one_out() -> None:
    async def said(port: int, app: GatewayApp) -> None:
        slow = [await asyncio.open_connection("127.0.0.1", port) for _ in range(60)]
        for _, writer in slow:
            writer.write(HEAD + b"Content-Length: 1000\r\n\r\n{")
        body = frame_of("robot-1", 0)
        for _ in range(20):
            for _, writer in slow:
                writer.write(b" ")
            answer, writer = await speak(
                port, HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            )
            writer.close()
            assert answer.startswith(b"HTTP/1.1 200")
        ends = [await reader.read() for reader, _ in slow]
        assert all(end.startswith(b"HTTP/1.1 408") for end in ends)
        assert app._budget.held == 0
        for _, writer in slow:
            writer.close()

    talk(said, body_timeout_s=10.0, run_in=run_jumping)


def test_what_is_no_http_at_all_is_answered_and_closed(caplog: pytest.LogCaptureFixture) -> None:
    async def said(port: int, app: GatewayApp) -> None:
        for nonsense in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"HELO there\r\n\r\n", SECRET):
            answer, writer = await speak(port, nonsense)
            writer.close()
            assert answer.startswith((b"HTTP/1.0 400", b"HTTP/1.1 400"))

    talk(said, header_timeout_s=5.0)
    assert not caplog.records  # neither a flood nor a secret
