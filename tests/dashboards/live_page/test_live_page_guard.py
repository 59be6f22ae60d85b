"""The login of the live page under clients that send slowly, not at all, or guess."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import pytest
import uvicorn

from springback.dashboards.live_page import access
from springback.dashboards.live_page.access import LoginGate
from springback.dashboards.live_page.live_server import _Server
from springback.producers.http_server import ConnectionGuard, ConnectionLimits
from springback.producers.serving import open_socket

pytestmark = pytest.mark.browser

PASSWORD = "horse battery"
GREEDY, OTHER = "127.0.0.2", "127.0.0.3"
LIMITS = ConnectionLimits(most_connections=500, silence_s=1.0, request_s=2.0)
PATIENT = LIMITS._replace(silence_s=60.0, request_s=60.0)


async def hello(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


@contextlib.asynccontextmanager
async def served(limits: ConnectionLimits) -> AsyncIterator[int]:
    guard = ConnectionGuard(limits)
    gate = guard.watched_asgi(LoginGate(hello, PASSWORD))
    server = _Server(uvicorn.Config(gate, lifespan="off", log_config=None, access_log=False), guard)
    at = open_socket("127.0.0.1", 0, what="test")
    port = at.getsockname()[1]
    serving = asyncio.create_task(server.serve(sockets=[at]))
    try:
        while not server.started:
            await asyncio.sleep(0.01)
        yield port
    finally:
        server.should_exit = True
        await serving
        at.close()


def login(password: str, port: int, *, cut: int = 0, header: str = "") -> bytes:
    body = urlencode({"password": password}).encode()
    head = (
        f"POST /login HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{header}"
        f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    said = head.encode() + body
    return said[: len(said) - cut]


async def ask(port: int, host: str, said: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(host, 0))
    writer.write(said)
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


def test_slow_logins_keep_nobody_out_and_are_cut() -> None:
    async def scenario() -> None:
        async with asyncio.timeout(120), served(LIMITS) as port:
            slow = [asyncio.create_task(ask(port, GREEDY, login("guess", port, cut=5))) for _ in range(20)]
            for host in (OTHER, GREEDY):  # another host, and the same
                assert (await ask(port, host, login(PASSWORD, port))).startswith(b"HTTP/1.1 303")
            assert await asyncio.gather(*slow) == [b""] * 20

    asyncio.run(scenario())


def test_the_cookie_of_a_page_behind_a_proxy_with_tls_is_for_tls_alone() -> None:
    async def scenario() -> None:
        async with asyncio.timeout(120), served(LIMITS) as port:
            plain, proxied = [
                await ask(port, OTHER, login(PASSWORD, port, header=header))
                for header in ("", "X-Forwarded-Proto: https\r\n")
            ]
            assert (b"; Secure" in plain, b"; Secure" in proxied) == (False, True)

    asyncio.run(scenario())


@pytest.mark.parametrize("half", [b"", b"GET / HTTP/1.1\r\nHost: 127"])
def test_half_sent_heads_are_cut(half: bytes) -> None:
    async def scenario() -> None:
        async with asyncio.timeout(120), served(LIMITS) as port:
            slow = [asyncio.create_task(ask(port, GREEDY, half)) for _ in range(100)]
            assert (await ask(port, OTHER, login(PASSWORD, port))).startswith(b"HTTP/1.1 303")
            assert await asyncio.gather(*slow) == [b""] * 100

    asyncio.run(scenario())


def test_guessing_by_one_host_keeps_no_other_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with asyncio.timeout(120), served(PATIENT) as port:
            guesses = [asyncio.create_task(ask(port, GREEDY, login("guess", port))) for _ in range(30)]
            while sum(task.done() for task in guesses) < 22:  # all that are too many have been refused
                await asyncio.sleep(0.01)
            assert (await ask(port, OTHER, login(PASSWORD, port))).startswith(b"HTTP/1.1 303")
            waiting = [task for task in guesses if not task.done()]
            assert waiting, "the other host has waited behind the guesses"
            answers = [answer.split(b" ", 2)[1] for answer in await asyncio.gather(*guesses)]
            assert (answers.count(b"401"), answers.count(b"429")) == (8, 22)

    monkeypatch.setattr(access, "_WRONG_WAIT_S", 0.5)
    asyncio.run(scenario())


def test_guesses_under_other_hosts_names_wait_for_each_other_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with asyncio.timeout(120), served(PATIENT) as port:
            names = [f"X-Forwarded-For: 203.0.113.{number}\r\n" for number in range(30)]
            asked = [ask(port, "127.0.0.1", login("guess", port, header=name)) for name in names]
            answers = [answer.split(b" ", 2)[1] for answer in await asyncio.gather(*asked)]
            assert (answers.count(b"401"), answers.count(b"429")) == (8, 22)

    monkeypatch.setattr(access, "_WRONG_WAIT_S", 0.2)
    asyncio.run(scenario())


@pytest.mark.parametrize("forwarded", ["", "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Proto: https\r\n"])
def test_a_web_socket_stays_through_a_proxy_too_and_gives_its_place_back(forwarded: str) -> None:
    async def sockets(scope: Any, receive: Any, send: Any) -> None:
        assert (await receive())["type"] == "websocket.connect"
        await send({"type": "websocket.accept"})
        while (await receive())["type"] != "websocket.disconnect":
            await send({"type": "websocket.send", "text": "still here"})

    async def scenario() -> None:
        counts: list[int] = []
        guard = ConnectionGuard(LIMITS, on_count=counts.append)
        config = uvicorn.Config(guard.watched_asgi(sockets), lifespan="off", log_config=None, access_log=False)
        server = _Server(config, guard)
        at = open_socket("127.0.0.1", 0, what="test")
        port = at.getsockname()[1]
        serving = asyncio.create_task(server.serve(sockets=[at]))
        while not server.started:
            await asyncio.sleep(0.01)
        upgrade = (
            "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{forwarded}\r\n"
        )
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(upgrade.encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
        await asyncio.sleep(2 * LIMITS.request_s)  # past any deadline of a request
        writer.write(b"\x81\x82\x00\x00\x00\x00hi")
        assert b"still here" in await reader.readexactly(12)
        writer.close()
        while counts[-1]:
            await asyncio.sleep(0.01)
        server.should_exit = True
        await serving
        at.close()

    asyncio.run(asyncio.wait_for(scenario(), 120))
