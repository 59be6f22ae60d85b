"""What the metrics server answers: `/metrics` to whoever may read it, and how the exporter is to anybody.

`/-/healthy` answers 200 while the server runs, `/-/ready` 200 once the readings were read to their end, else 503.
Neither tells anything else, so probes need no password.
"""

import gzip
from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.exposition import gzip_accepted
from springback.sinks.basic_auth import BasicAuth

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
