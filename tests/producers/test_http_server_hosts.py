"""What one host may take of a server, and that it takes nothing from another: places, and turns at a password."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from springback.producers.http_server import ConnectionLimits, HostTurns, host_of, http_server
from springback.producers.serving import open_socket

GREEDY, OTHER, THIRD = "127.0.0.2", "127.0.0.3", "127.0.0.4"
ASKED = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
LIMITS = ConnectionLimits(most_connections=6, silence_s=300.0, request_s=300.0, most_per_host=6)

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@contextlib.asynccontextmanager
async def served(limits: ConnectionLimits, free: asyncio.Event | None = None) -> AsyncIterator[int]:
    async def answer(request: web.Request) -> web.Response:
        if request.path == "/slow" and free is not None:
            await free.wait()
        return web.Response(text="here")

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    at = open_socket("127.0.0.1", 0, what="test")
    port = at.getsockname()[1]
    async with http_server(app, at, limits):
        yield port


async def connect(port: int, host: str, said: bytes = b"") -> Streams:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(host, 0))
    writer.write(said)
    return reader, writer


async def ask(port: int, host: str) -> bytes:
    reader, writer = await connect(port, host, ASKED)
    try:
        return await reader.read()
    finally:
        writer.close()


def test_a_newcomer_gets_the_place_of_the_host_that_has_the_most() -> None:
    async def scenario() -> None:
        async with asyncio.timeout(60), served(LIMITS) as port:
            silent = [await connect(port, GREEDY, b"GET / HTTP/1.1\r\n") for _ in range(6)]
            await asyncio.sleep(0)
            assert (await ask(port, OTHER)).endswith(b"here")
            assert await silent[0][0].read() == b""  # the one that had been silent longest was cut
            assert not silent[1][0].at_eof()
            for _, writer in silent:
                writer.close()

    asyncio.run(scenario())


def test_the_place_that_is_given_up_is_of_the_connection_that_has_been_silent_longest() -> None:
    async def scenario() -> None:
        async with asyncio.timeout(60), served(LIMITS) as port:
            used = await connect(port, GREEDY, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            silent = [await connect(port, GREEDY) for _ in range(5)]
            await used[0].readuntil(b"here")
            assert (await ask(port, GREEDY)).startswith(b"HTTP/1.1 503")  # so the server has taken in all six
            used[1].write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await used[0].readuntil(b"here")
            assert (await ask(port, OTHER)).endswith(b"here")
            assert await silent[0][0].read() == b""
            used[1].write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await used[0].readuntil(b"here")
            for _, writer in [used, *silent]:
                writer.close()

    asyncio.run(scenario())


def test_a_request_under_way_gives_way_to_nobody() -> None:
    async def scenario() -> None:
        free = asyncio.Event()
        async with asyncio.timeout(60), served(LIMITS, free) as port:
            busy = [
                await connect(port, GREEDY, b"GET /slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                for _ in range(6)
            ]
            while b"503" not in (refused := await ask(port, OTHER)):
                assert refused.endswith(b"here")  # until the server has read all six
            free.set()
            for reader, writer in busy:
                answer = await reader.read()
                assert answer.endswith(b"here") or not answer  # one of them may have been cut before it was read
                writer.close()

    asyncio.run(scenario())


def test_no_host_has_more_than_its_share() -> None:
    async def scenario() -> None:
        async with asyncio.timeout(60), served(LIMITS._replace(most_per_host=2)) as port:
            held = [await connect(port, GREEDY) for _ in range(2)]
            answer = b""
            while not answer.startswith(b"HTTP/1.1 503"):
                answer = await ask(port, GREEDY)  # until the server has taken both in
            assert (await ask(port, OTHER)).endswith(b"here")
            assert (await ask(port, THIRD)).endswith(b"here")
            for _, writer in held:
                writer.close()
            while not answer.endswith(b"here"):
                answer = await ask(port, GREEDY)  # until both are gone

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("most", "wanted", "share"), [(500, None, 125), (20, None, 8), (4, None, 4), (500, 3, 3), (2, 9, 2)]
)
def test_the_share_of_a_host(most: int, wanted: int | None, share: int) -> None:
    assert ConnectionLimits(most, 1.0, 1.0, most_per_host=wanted).of_one_host == share


def test_an_ipv6_host_is_its_network() -> None:
    assert host_of("2001:db8::1") == host_of("2001:db8::ffff") != host_of("2001:db8:0:1::1")


def test_turns_of_a_host_come_one_by_one_and_too_many_are_refused() -> None:
    async def scenario() -> None:
        turns = HostTurns(most_waiting=3)
        free = asyncio.Event()
        inside: list[str] = []

        async def take(host: str) -> bool:
            async with turns.turn(host) as has_turn:
                if has_turn:
                    inside.append(host)
                    await free.wait()
                    inside.remove(host)
                return has_turn

        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            greedy = [group.create_task(take(GREEDY)) for _ in range(5)]
            other = group.create_task(take(OTHER))
            while not (all(task.done() for task in greedy[3:]) and OTHER in inside):
                await asyncio.sleep(0)
            assert sorted(inside) == [GREEDY, OTHER]
            free.set()
        assert [task.result() for task in greedy] == [True, True, True, False, False]
        assert other.result()
        assert not turns._waiting
        assert not turns._locks

    asyncio.run(scenario())
