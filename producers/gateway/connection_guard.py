"""Bounds what a connection may cost: how many there are, how slowly one may send, how long one request may last.

aiohttp waits for the head of a first request for ever, so a few hundred silent connections would be all it has.
"""

import asyncio
from collections.abc import Callable
from typing import cast

from springback.producers.gateway.metrics import GatewayMetrics

_TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Type: application/json\r\nContent-Length: 33\r\n\r\n"
    b'{"reason":"too_many_connections"}'
)


class ConnectionGuard:
    """Makes the protocols of a server, each with a watch on it.

    Args:
        make_protocol: makes what speaks HTTP.
        most_connections: more are answered with 503 and closed.
        silence_s: how long a connection may take to send the head of its first request, and of each next one.
        request_s: how long a request may last, its answer included.
        metrics: where connections are counted.
    """

    def __init__(
        self,
        make_protocol: Callable[[], asyncio.Protocol],
        *,
        most_connections: int,
        silence_s: float,
        request_s: float,
        metrics: GatewayMetrics,
    ) -> None:
        self._make_protocol = make_protocol
        self._most_connections = most_connections
        self._silence_s = silence_s
        self._request_s = request_s
        self._metrics = metrics
        self._open: dict[asyncio.Transport, asyncio.TimerHandle] = {}

    def __call__(self) -> asyncio.Protocol:
        """A protocol for the next connection."""
        return _GuardedProtocol(self, self._make_protocol())

    def request_begins(self, transport: asyncio.Transport | None) -> None:
        """A request's head has come: it may last for `request_s`."""
        self._watch(transport, self._request_s)

    def request_ends(self, transport: asyncio.Transport | None) -> None:
        """A request is answered: the next head must come within `silence_s`."""
        self._watch(transport, self._silence_s)

    def admit(self, transport: asyncio.Transport) -> bool:
        """Whether there is room for a new connection; it is turned away if not."""
        if len(self._open) >= self._most_connections:
            self._metrics.turned_away.labels("too_many").inc()
            transport.write(_TOO_MANY)
            transport.close()
            return False
        self._open[transport] = asyncio.get_running_loop().call_later(self._silence_s, self._cut, transport)
        self._metrics.connections.set(len(self._open))
        return True

    def forget(self, transport: asyncio.Transport) -> None:
        """The connection is closed."""
        self._open.pop(transport).cancel()
        self._metrics.connections.set(len(self._open))

    def _watch(self, transport: asyncio.Transport | None, seconds: float) -> None:
        if transport is not None and transport in self._open:
            self._open[transport].cancel()
            self._open[transport] = asyncio.get_running_loop().call_later(seconds, self._cut, transport)

    def _cut(self, transport: asyncio.Transport) -> None:
        self._metrics.turned_away.labels("too_slow").inc()
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
        if self._transport is not None:
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received() if self._transport is not None else None

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()
