"""An HTTP server of ours: each connection is bounded in what it may cost, and each host in how many it may have.

aiohttp and uvicorn alone wait for ever for the head of a connection's first request, and for its body, so a few hundred
silent connections would be all that they have. The gateway, the metrics page, the health endpoint and the live page are
served so.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple, cast

from springback.producers.install_hints import MissingExtraError

try:
    from aiohttp import web
    from aiohttp.http_exceptions import HttpProcessingError
except ImportError as error:
    raise MissingExtraError(extra="gateway", cause=error) from error

_LINGER_S = 1.0
_LEAST_PER_HOST = 8
_TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Type: application/json\r\nContent-Length: 33\r\n\r\n"
    b'{"reason":"too_many_connections"}'
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
AsgiApp = Callable[[Any, Any, Any], Awaitable[None]]


class _NonsenseFilter(logging.Filter):
    """Keeps to itself what aiohttp says of bytes that are no HTTP: a flood of them, with headers as they came."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


_http_log = logging.getLogger("springback.http")
_http_log.addFilter(_NonsenseFilter())


class ConnectionLimits(NamedTuple):
    """What a connection may cost.

    Attributes:
        most_connections: more are answered with 503 and closed, unless another host gives way, see `ConnectionGuard`.
        silence_s: how long a connection may take for the head of its first request, and of each next one.
        request_s: how long a request may last, its answer included.
        most_request_bytes: bytes of one request, for servers that take no bodies; None for any number.
        most_per_host: connections of one host; by default a quarter of all, or 8 where that is more.
    """

    most_connections: int
    silence_s: float
    request_s: float
    most_request_bytes: int | None = None
    most_per_host: int | None = None

    @property
    def of_one_host(self) -> int:
        """The most connections of one host."""
        wanted = max(_LEAST_PER_HOST, self.most_connections // 4) if self.most_per_host is None else self.most_per_host
        return min(self.most_connections, wanted)


def host_of(address: object) -> str:
    """The host at an address, as far as one can be told from another: of IPv6 the network, which one host has whole.

    >>> host_of("10.0.0.7"), host_of("2001:db8:1:2:3::4"), host_of("::ffff:10.0.0.7"), host_of(None)
    ('10.0.0.7', '2001:db8:1:2::/64', '10.0.0.7', '')
    """
    try:
        found = ipaddress.ip_address(str(address))
    except ValueError:
        return "" if address is None else str(address)
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))


class _Connection:
    """A connection that is open: from where, what it has sent of a request, and when it will be cut."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.peer: tuple[Any, ...] = tuple(transport.get_extra_info("peername") or ())[:2]
        self.host = host_of(self.peer[0] if self.peer else None)
        self.received = 0
        self.busy = False
        self.timer: asyncio.TimerHandle | None = None

    def cut_in(self, seconds: float | None, cut: Callable[[_Connection], None]) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None if seconds is None else asyncio.get_running_loop().call_later(seconds, cut, self)


class ConnectionGuard:
    """Makes the protocols of a server, each with a watch on it.

    One host cannot keep another one out: it has a bound of its own, and when all places are taken, a newcomer gets that
    of the connection that has been silent longest of the host with the most. A proxy is one host.

    Args:
        limits: what a connection may cost.
        on_count: given the number of open connections whenever it changes.
        on_turned_away: given the reason, `too_many`, `too_slow` or `too_large`, of each connection that is cut.

    Attributes:
        switching: whether what speaks on a connection may hand it over to another protocol.
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
        self._open: dict[asyncio.Transport, _Connection] = {}  # those that have been silent longest first
        self._by_peer: dict[tuple[Any, ...], _Connection] = {}
        self._of_host: Counter[str] = Counter()
        self._make_protocol: Callable[[], asyncio.Protocol] | None = None
        self.switching = False

    def __call__(self) -> asyncio.Protocol:
        """A protocol for the next connection."""
        assert self._make_protocol is not None, "started by start_application or guard"
        return _GuardedProtocol(self, self._make_protocol())

    async def start_application(self, app: web.Application, drain_s: float) -> web.AppRunner:
        """Starts what speaks HTTP on the connections; it is to be cleaned up at the end.

        Args:
            app: what answers; the guard watches its requests.
            drain_s: how long the clean-up waits for requests under way.
        """

        @web.middleware
        async def watched(request: web.Request, handler: Handler) -> web.StreamResponse:
            connection = self._open.get(request.transport) if request.transport is not None else None
            self._watch(connection, self._limits.request_s, busy=True)
            try:
                return await handler(request)
            finally:
                self._watch(connection, self._limits.silence_s, busy=False)

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

    def guard(self, make_protocol: Callable[[], asyncio.Protocol]) -> None:
        """Watches connections that another server than aiohttp's speaks on; its requests by `watched_asgi`.

        Args:
            make_protocol: makes what speaks on the next connection.
        """
        self._make_protocol = make_protocol
        self.switching = True

    def watched_asgi(self, app: AsgiApp) -> AsgiApp:
        """An ASGI application whose requests are watched; a web socket that is accepted stays for as long as it wants.

        Args:
            app: what answers.
        """

        async def watched(scope: Any, receive: Any, send: Any) -> None:
            connection = self._by_peer.get(tuple(scope.get("client") or ()))
            if scope["type"] not in ("http", "websocket") or connection is None:
                return await app(scope, receive, send)
            self._watch(connection, self._limits.request_s, busy=True)

            async def sending(message: Any) -> None:
                if message["type"] == "websocket.accept":
                    self._watch(connection, None, busy=True)
                await send(message)

            try:
                await app(scope, receive, sending)
            finally:
                self._watch(connection, self._limits.silence_s, busy=False)

        return watched

    def admit(self, transport: asyncio.Transport) -> bool:
        """Whether there is room for a new connection; it is turned away if not."""
        connection = _Connection(transport)
        crowded = self._of_host[connection.host] >= self._limits.of_one_host
        if crowded or (len(self._open) >= self._limits.most_connections and not self._make_room(connection.host)):
            self._on_turned_away("too_many")
            transport.write(_TOO_MANY)
            transport.close()
            return False
        self._open[transport] = self._by_peer[connection.peer] = connection
        self._of_host[connection.host] += 1
        connection.cut_in(self._limits.silence_s, self._cut_slow)
        self._on_count(len(self._open))
        return True

    def received(self, transport: asyncio.Transport, size: int) -> bool:
        """Whether bytes that have come may be passed on; a connection that sends too many is cut."""
        connection = self._open.get(transport)
        if connection is None:
            return False  # it had to make room
        most = self._limits.most_request_bytes
        if most is not None:
            connection.received += size
            if connection.received > most:
                self._cut(connection, "too_large")
                return False
        return True

    def forget(self, transport: asyncio.Transport) -> None:
        """Forgets a connection that is closed."""
        connection = self._open.pop(transport, None)
        if connection is None:
            return  # it had to make room
        connection.cut_in(None, self._cut_slow)
        if self._by_peer.get(connection.peer) is connection:
            del self._by_peer[connection.peer]
        self._of_host[connection.host] -= 1
        if not self._of_host[connection.host]:
            del self._of_host[connection.host]
        self._on_count(len(self._open))

    def _make_room(self, newcomer: str) -> bool:
        """Takes a place away from the host with the most, if it has more than the newcomer's would then have."""
        host, most = self._of_host.most_common(1)[0]
        silent = [known for known in self._open.values() if known.host == host and not known.busy]
        if most <= self._of_host[newcomer] + 1 or not silent:
            return False
        self._cut(silent[0], "too_many")
        self.forget(silent[0].transport)
        return True

    def _watch(self, connection: _Connection | None, seconds: float | None, *, busy: bool) -> None:
        if connection is not None and connection.transport in self._open:
            connection.busy = busy
            connection.received = 0
            self._open[connection.transport] = self._open.pop(connection.transport)
            connection.cut_in(seconds, self._cut_slow)

    def _cut_slow(self, connection: _Connection) -> None:
        self._cut(connection, "too_slow")

    def _cut(self, connection: _Connection, reason: str) -> None:
        self._on_turned_away(reason)
        connection.transport.abort()


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
            switchable = cast(asyncio.Transport, _SwitchingTransport(connection, self))
            self._inner.connection_made(switchable if self._guard.switching else connection)

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

    def switch(self, inner: asyncio.Protocol) -> None:
        """Passes on to another protocol from now on, as a web socket's is."""
        self._inner = inner


class _SwitchingTransport:
    """A transport whose protocol can be exchanged behind the guard's."""

    def __init__(self, transport: asyncio.Transport, outer: _GuardedProtocol) -> None:
        self._transport = transport
        self._outer = outer

    def set_protocol(self, protocol: asyncio.Protocol) -> None:
        self._outer.switch(protocol)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class HostTurns:
    """Turns at something that takes long or must be slow, such as a look at a password: those of a host one by one.

    A host that guesses keeps itself waiting, and no other.

    Args:
        most_waiting: more of one host at a time are refused.
    """

    def __init__(self, most_waiting: int = 8) -> None:
        self._most_waiting = most_waiting
        self._waiting: Counter[str] = Counter()
        self._locks: dict[str, asyncio.Lock] = {}

    @contextlib.asynccontextmanager
    async def turn(self, address: object) -> AsyncIterator[bool]:
        """Waits for the host's turn. Yields whether it has one: not if too many of it wait already.

        Args:
            address: the host's, as the connection says.
        """
        host = host_of(address)
        if self._waiting[host] >= self._most_waiting:
            yield False
            return
        self._waiting[host] += 1
        try:
            async with self._locks.setdefault(host, asyncio.Lock()):
                yield True
        finally:
            self._waiting[host] -= 1
            if not self._waiting[host]:
                del self._waiting[host], self._locks[host]


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
