"""Serves the metrics page over HTTP or HTTPS: `/metrics` to those who may read it, the exporter's health to anybody.

`/-/healthy` answers 200 while the server runs, `/-/ready` 200 once the readings were read to their end, else 503 and
why. Neither tells anything else, so probes need no password.

The server has a thread and an event loop of its own, and computes pages on two more (see `shared_pages`): neither a
slow page nor a long catch-up with the topics keeps anybody else waiting, and however many ask, no more threads come.
"""

import asyncio
import concurrent.futures
import contextlib
import gzip
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import NamedTuple

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder, gzip_accepted

from springback.producers.http_server import ConnectionLimits, HostTurns, http_server
from springback.producers.serving import is_loopback, open_socket, server_url, tls_context
from springback.sinks.basic_auth import BasicAuth
from springback.sinks.errors import PagesBusyError
from springback.sinks.shared_pages import SharedPages

_GZIP_LEVEL = 2
"""A page of 2 MB in some 15 ms; the highest level takes ten times as long and saves a quarter."""

_LIMITS = ConnectionLimits(most_connections=500, silence_s=30.0, request_s=30.0, most_request_bytes=64 * 1024)
_PIECE_BYTES = 64 * 1024
"""So much of a page is handed to a connection at a time: a slow reader has no copy of the page of its own."""

_log = logging.getLogger(__name__)


class ServerAccess(NamedTuple):
    """Who may read the page, and how.

    Attributes:
        certificate: a PEM file with the server's certificate and those between it and its root; None for plain HTTP.
        key: its private key, without a password; None where the certificate's file holds it too.
        auth_file: users and passwords, see `basic_auth`; None lets anybody read.
    """

    certificate: Path | None = None
    key: Path | None = None
    auth_file: Path | None = None


ANYBODY = ServerAccess()
"""Plain HTTP for anybody who can reach the address."""


@contextlib.contextmanager
def metrics_server(
    registry: CollectorRegistry,
    host: str,
    port: int,
    *,
    ready: Callable[[], bool] = lambda: True,
    access: ServerAccess = ANYBODY,
    why: Callable[[], str | None] = lambda: None,
) -> Iterator[str]:
    """Serves the registry's page for as long as the block runs.

    Args:
        registry: what the page shows.
        host: where to listen.
        port: its port; 0 takes a free one.
        ready: whether the page shows all that it should.
        access: who may read it, and how.
        why: what keeps it from being so, such as a broker's fault; None where that is not known.

    Yields:
        the page's address, with the port that was taken.

    Raises:
        ServerAddressError: the address cannot be listened at.
        CertificateError: the certificate or its key cannot be used.
        AuthFileError: the auth file cannot be used.
    """
    auth = None if access.auth_file is None else BasicAuth.of_file(access.auth_file)
    tls = None if access.certificate is None else tls_context(access.certificate, access.key)
    if auth is not None and tls is None and not is_loopback(host):
        _log.warning("Passwords for the metrics page travel unencrypted to %s; give a certificate too.", host)
    at = open_socket(host, port, what="metrics page")
    address = server_url("http" if tls is None else "https", host, at.getsockname()[1])
    with (
        contextlib.closing(_MetricsApp(registry, ready, auth, why)) as app,
        _on_own_thread(http_server(app.build(), at, _LIMITS, tls=tls), "springback-metrics"),
    ):
        yield f"{address}/metrics"


class _Wanted(NamedTuple):
    """What is asked for: in which format, which metrics (all where none is named), and whether packed."""

    accept: str
    names: frozenset[str]
    zipped: bool


class _MetricsApp:
    """The server's answers."""

    def __init__(
        self,
        registry: CollectorRegistry,
        ready: Callable[[], bool],
        auth: BasicAuth | None,
        why: Callable[[], str | None],
    ) -> None:
        self._registry = registry
        self._ready = ready
        self._why = why
        self._auth = auth
        # One check at a time, apart from the pages: guessing must not take up the whole machine. And one of each host
        # at a time, so that nobody else waits behind more than one guess.
        self._turns = HostTurns(most_waiting=4)
        self._checks = concurrent.futures.ThreadPoolExecutor(1, "springback-password")
        # Apart, so that who asks for ever other parts cannot keep Prometheus from the whole.
        self._pages = SharedPages(self._rendered, "springback-page")
        self._parts = SharedPages(self._rendered, "springback-page-part")

    def close(self) -> None:
        self._checks.shutdown(cancel_futures=True)
        self._pages.close()
        self._parts.close()

    def build(self) -> web.Application:
        app = web.Application()
        app.router.add_route("*", "/-/healthy", self._healthy)
        app.router.add_route("*", "/-/ready", self._is_ready)
        app.router.add_route("*", "/{path:.*}", self._page)
        return app

    async def _healthy(self, request: web.Request) -> web.Response:
        return _say(200, "springback exporter is healthy.")

    async def _is_ready(self, request: web.Request) -> web.Response:
        if self._ready():
            return _say(200, "springback exporter is ready.")
        # Everybody may ask, but addresses and users of the broker are told to those alone who may see the page.
        header = request.headers.get("Authorization")
        told = self._auth is None or (header is not None and await self._admits(header, request.remote))
        why = self._why() if told else None
        return _say(503, f"springback exporter has not read all readings yet{f' ({why})' if why else ''}.")

    async def _page(self, request: web.Request) -> web.StreamResponse:
        admitted = await self._admits(request.headers.get("Authorization"), request.remote)
        if admitted is None:
            return _say(429, "Too many look-ups of passwords are under way from your host.", {"Retry-After": "1"})
        if not admitted:
            challenge = {"WWW-Authenticate": 'Basic realm="springback", charset="UTF-8"'}
            return _say(401, "This page wants a user and a password.", challenge)
        if request.path != "/metrics":
            return _say(404, "Metrics are at /metrics.")
        names = frozenset(request.query.getall("name[]", []))
        accept, content_type = _format_of(",".join(request.headers.getall("Accept", [])))
        wanted = _Wanted(accept, names, gzip_accepted(",".join(request.headers.getall("Accept-Encoding", []))))
        try:
            page = await (self._parts if names else self._pages).page(wanted)
        except PagesBusyError as error:
            return _say(503, f"{error} Ask again later.", {"Retry-After": "5"})
        answer = web.StreamResponse(headers={"Content-Type": content_type, "Vary": "Accept, Accept-Encoding"})
        if wanted.zipped:
            answer.headers["Content-Encoding"] = "gzip"
        answer.content_length = len(page)
        await answer.prepare(request)
        if request.method != "HEAD":
            pieces = memoryview(page)
            for start in range(0, len(page), _PIECE_BYTES):
                await answer.write(pieces[start : start + _PIECE_BYTES])
        return answer

    async def _admits(self, header: str | None, host: str | None) -> bool | None:
        """Whether whoever asks may see the page; None where too many of the same host ask to be looked at."""
        if self._auth is None or self._auth.remembers(header):
            return True
        async with self._turns.turn(host) as has_turn:
            if not has_turn:
                return None
            return await asyncio.get_running_loop().run_in_executor(self._checks, self._auth.admits, header)

    def _rendered(self, wanted: _Wanted) -> bytes:
        encode, _ = choose_encoder(wanted.accept)
        body = encode(self._registry.restricted_registry(wanted.names) if wanted.names else self._registry)
        return gzip.compress(body, _GZIP_LEVEL) if wanted.zipped else body


def _format_of(accept: str) -> tuple[str, str]:
    """The least header that asks for the format that a header asks for, and the format's content type.

    One format is one page, however Prometheus and browsers word what else they would take.
    """
    _, content_type = choose_encoder(accept)
    least = content_type.replace("; charset=utf-8", "")
    return (least, content_type) if choose_encoder(least)[1] == content_type else (accept, content_type)


def _say(status: int, text: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(status=status, text=f"{text}\n", headers=headers)


@contextlib.contextmanager
def _on_own_thread(service: AbstractAsyncContextManager[None], name: str) -> Iterator[None]:
    """Holds a service open on a thread and an event loop of its own for as long as the block runs."""
    started: concurrent.futures.Future[None] = concurrent.futures.Future()
    stop = asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def hold() -> None:
        loops.append(asyncio.get_running_loop())
        async with service:
            started.set_result(None)
            await stop.wait()

    def run() -> None:
        try:
            asyncio.run(hold())
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        started.result()
        yield
    finally:
        if started.exception() is None:
            loops[0].call_soon_threadsafe(stop.set)
        thread.join()
