"""Serves the metrics page over HTTP, or HTTPS.

What the metrics server answers: `/metrics` to whoever may read it, and how the exporter is to anybody.

`/-/healthy` answers 200 while the server runs, `/-/ready` 200 once the readings were read to their end, else 503.
Neither tells anything else, so probes need no password.
"""

import contextlib
import gzip
import ipaddress
import logging
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any, NamedTuple
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.exposition import gzip_accepted

from springback.sinks.basic_auth import BasicAuth
from springback.sinks.errors import MetricsAddressError
from springback.sinks.tls_files import tls_context

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
WsgiApp = Callable[[Environ, StartResponse], Iterable[bytes]]

_GZIP_LEVEL = 2
"""A page of 2 MB in some 15 ms; the highest level takes ten times as long and saves a quarter."""

_TEXT = ("Content-Type", "text/plain; charset=utf-8")


def metrics_app(registry: CollectorRegistry, ready: Callable[[], bool], auth: BasicAuth | None = None) -> WsgiApp:
    """The server's answers.

    Args:
        registry: what the page shows.
        ready: whether the page shows all that it should.
        auth: who may read it; None for anybody.
    """
    page: WsgiApp = make_wsgi_app(registry, disable_compression=True)

    def answer(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        def say(status: str, text: str, *headers: tuple[str, str]) -> Iterable[bytes]:
            start_response(status, [_TEXT, *headers])
            return [f"{text}\n".encode()]

        path = environ.get("PATH_INFO", "")
        if path == "/-/healthy":
            return say("200 OK", "springback exporter is healthy.")
        if path == "/-/ready":
            if ready():
                return say("200 OK", "springback exporter is ready.")
            return say("503 Service Unavailable", "springback exporter has not read all readings yet.")
        if auth is not None and not auth.admits(environ.get("HTTP_AUTHORIZATION")):
            challenge = ("WWW-Authenticate", 'Basic realm="springback", charset="UTF-8"')
            return say("401 Unauthorized", "This page wants a user and a password.", challenge)
        if path != "/metrics":
            return say("404 Not Found", "Metrics are at /metrics.")
        return _zipped(page, environ, start_response)

    return answer


def _zipped(page: WsgiApp, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    found: list[Any] = []
    body = b"".join(page(environ, lambda *head: found.extend(head)))
    status, headers = found
    if gzip_accepted(environ.get("HTTP_ACCEPT_ENCODING", "")):
        body = gzip.compress(body, _GZIP_LEVEL)
        headers = [*headers, ("Content-Encoding", "gzip")]
    start_response(status, [*headers, ("Vary", "Accept, Accept-Encoding")])
    return [body]


_log = logging.getLogger(__name__)

_CLIENT_TIMEOUT_S = 30.0


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
) -> Iterator[str]:
    """Serve the registry's page for as long as the block runs.

    Args:
        registry: what the page shows.
        host: where to listen.
        port: its port; 0 takes a free one.
        ready: whether the page shows all that it should.
        access: who may read it, and how.

    Yields:
        The page's address, with the port that was taken.

    Raises:
        MetricsAddressError: the address cannot be listened at.
        CertificateError: the certificate or its key cannot be used.
        AuthFileError: the auth file cannot be used.
    """
    auth = None if access.auth_file is None else BasicAuth.of_file(access.auth_file)
    context = None if access.certificate is None else tls_context(access.certificate, access.key)
    if auth is not None and context is None and not _is_loopback(host):
        _log.warning("Passwords for the metrics page travel unencrypted to %s; give a certificate too.", host)
    try:
        server = _server_at(host, port, context)
    except OSError as error:
        message = (
            f"The metrics page cannot be served at {host}:{port} ({error.strerror or error}). "
            "Choose another port, or 0 for any free one."
        )
        raise MetricsAddressError(message) from error
    server.set_app(metrics_app(registry, ready, auth))
    thread = threading.Thread(target=server.serve_forever, name="springback-metrics", daemon=True)
    thread.start()
    try:
        scheme = "http" if context is None else "https"
        yield f"{scheme}://{f'[{host}]' if ':' in host else host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 64
    tls: ssl.SSLContext | None = None

    def get_request(self) -> tuple[Any, Any]:
        """Take a connection; hands are shaken on its own thread, so that a silent client holds up no other."""
        connection, address = super().get_request()
        if self.tls is not None:
            connection = self.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up, or does not speak TLS, is none of our errors; anything else is."""
        error = sys.exc_info()[1]
        level = logging.DEBUG if isinstance(error, OSError) else logging.ERROR
        _log.log(level, "A request for metrics from %s failed.", client_address, exc_info=error)


class _SilentHandler(WSGIRequestHandler):
    timeout = _CLIENT_TIMEOUT_S

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged: there is one every few seconds."""


def _server_at(host: str, port: int, context: ssl.SSLContext | None) -> _Server:
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    kind = type("_ServerOfFamily", (_Server,), {"address_family": family, "tls": context})
    server: _Server = kind(address[:2], _SilentHandler)
    return server


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
