"""An HTTP server of ours: an aiohttp application, each connection of which is bounded in what it may cost.

aiohttp alone waits for ever for the head of a connection's first request, so a few hundred silent connections would be
all that it has. The gateway, the metrics page and the health endpoint are served so.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple, cast

from springback.producers.errors import MissingExtraError

try:
    from aiohttp import web
    from aiohttp.http_exceptions import HttpProcessingError
except ImportError as error:
    raise MissingExtraError(extra="gateway", cause=error) from error

_LINGER_S = 1.0
_TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Type: application/json\r\nContent-Length: 33\r\n\r\n"
    b'{"reason":"too_many_connections"}'
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _NonsenseFilter(logging.Filter):
    """Keeps to itself what aiohttp says of bytes that are no HTTP: a flood of them, with headers as they came."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


_http_log = logging.getLogger("springback.http")
_http_log.addFilter(_NonsenseFilter())


class ConnectionLimits(NamedTuple):
    """What a connection may cost.

    Attributes:
        most_connections: more are answered with 503 and closed.
        silence_s: how long a connection may take for the head of its first request, and of each next one.
        request_s: how long a request may last, its answer included.
        most_request_bytes: bytes of one request, for servers that take no bodies; None for any number.
    """

    most_connections: int
    silence_s: float
    request_s: float
    most_request_bytes: int | None = None


class ConnectionGuard:
    """Makes the protocols of a server, each with a watch on it.

    Args:
        limits: what a connection may cost.
        on_count: given the number of open connections whenever it changes.
        on_turned_away: given the reason, `too_many`, `too_slow` or `too_large`, of each connection that is cut.
    """

    def __init__(
        self,
        limits: ConnectionLimits,
        on_count: Callable[[int], None] = lambda _: None,
        on_turned_away: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._limits = limits
        self._on_count = on_count
        self._on_turned_away = on_turned_away
        self._open: dict[asyncio.Transport, asyncio.TimerHandle] = {}
        self._received: dict[asyncio.Transport, int] = {}
        self._make_protocol: Callable[[], asyncio.Protocol] | None = None

    def __call__(self) -> asyncio.Protocol:
        """A protocol for the next connection."""
        assert self._make_protocol is not None, "started by start_application"
        return _GuardedProtocol(self, self._make_protocol())

    async def start_application(self, app: web.Application, drain_s: float) -> web.AppRunner:
        """Starts what speaks HTTP on the connections; it is to be cleaned up at the end.

        Args:
            app: what answers; the guard watches its requests.
            drain_s: how long the clean-up waits for requests under way.
        """

        @web.middleware
        async def watched(request: web.Request, handler: Handler) -> web.StreamResponse:
            self._watch(request.transport, self._limits.request_s)
            try:
                return await handler(request)
            finally:
                self._watch(request.transport, self._limits.silence_s)

        app.middlewares.insert(0, watched)
        runner = web.AppRunner(
            app,
            access_log=None,
            logger=_http_log,
            auto_decompress=False,  # whoever takes bodies unpacks them within bounds
            shutdown_timeout=drain_s,
            keepalive_timeout=self._limits.silence_s,
            lingering_time=_LINGER_S,
        )
        await runner.setup()
        self._make_protocol = runner.server
        return runner

    def admit(self, transport: asyncio.Transport) -> bool:
        """Whether there is room for a new connection; it is turned away if not."""
        if len(self._open) >= self._limits.most_connections:
            self._on_turned_away("too_many")
            transport.write(_TOO_MANY)
            transport.close()
            return False
        self._watch_from_now(transport, self._limits.silence_s)
        self._on_count(len(self._open))
        return True

    def received(self, transport: asyncio.Transport, size: int) -> bool:
        """Whether bytes that have come may be passed on; a connection that sends too many is cut."""
        most = self._limits.most_request_bytes
        if most is not None:
            self._received[transport] = size = self._received.get(transport, 0) + size
            if size > most:
                self._cut(transport, "too_large")
                return False
        return True

    def forget(self, transport: asyncio.Transport) -> None:
        """Forgets a connection that is closed."""
        self._received.pop(transport, None)
        self._open.pop(transport).cancel()
        self._on_count(len(self._open))

    def _watch(self, transport: asyncio.Transport | None, seconds: float) -> None:
        if transport is not None and transport in self._open:
            self._open[transport].cancel()
            self._received.pop(transport, None)
            self._watch_from_now(transport, seconds)

    def _watch_from_now(self, transport: asyncio.Transport, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._open[transport] = loop.call_later(seconds, self._cut, transport, "too_slow")

    def _cut(self, transport: asyncio.Transport, reason: str) -> None:
        self._on_turned_away(reason)
        transport.abort()


class _GuardedProtocol(asyncio.Protocol):
    """Passes everything on, but a connection for which there is no room."""

    def __init__(self, guard: ConnectionGuard, inner: asyncio.Protocol) -> None:
        self._guard = guard
        self._inner = inner
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        connection = cast(asyncio.Transport, transport)
        if self._guard.admit(connection):
            self._transport = connection
            self._inner.connection_made(connection)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            self._guard.forget(self._transport)
            self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._transport is not None and self._guard.received(self._transport, len(data)):
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received() if self._transport is not None else None

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()


async def listen(
    guard: ConnectionGuard, at: socket.socket, tls: ssl.SSLContext | None, silence_s: float
) -> asyncio.Server:
    """The server that hands the connections of a socket to a guard.

    Args:
        guard: has started its application.
        at: the listening socket; closed with the server.
        tls: the TLS context; None for plain HTTP.
        silence_s: how long a client may take to shake hands.
    """
    return await asyncio.get_running_loop().create_server(
        guard, sock=at, ssl=tls, ssl_handshake_timeout=silence_s if tls is not None else None
    )


@contextlib.asynccontextmanager
async def http_server(
    app: web.Application,
    at: socket.socket,
    limits: ConnectionLimits,
    *,
    tls: ssl.SSLContext | None = None,
    drain_s: float = 1.0,
) -> AsyncIterator[None]:
    """Serves an application for as long as the block runs.

    Args:
        app: what answers.
        at: the listening socket; closed at the end.
        limits: what a connection may cost.
        tls: the TLS context; None for plain HTTP.
        drain_s: how long the end waits for requests under way.
    """
    with at:
        guard = ConnectionGuard(limits)
        runner = await guard.start_application(app, drain_s)
        try:
            server = await listen(guard, at, tls, limits.silence_s)
            try:
                yield
            finally:
                server.close()
        finally:
            await runner.cleanup()
