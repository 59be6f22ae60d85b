"""Whether the worker lives and is ready: what it says of itself, and a small endpoint on loopback that says it.

`GET /live` answers 200 while the worker runs; `GET /ready` 200 once its partitions are assigned, its tables recovered
and the baselines read, else 503. Both answer with the same JSON.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from stream_processors.errors import RecoveryTimeoutError

_REQUEST_TIMEOUT_S = 5.0
_LARGEST_REQUEST_BYTES = 8192
_WATCH_INTERVAL_S = 0.2


class Readiness:
    """Whether the worker is ready, and since when it has been as it is.

    Args:
        missing: says what is not ready yet, an empty list when nothing is.
        bound_s: longest time to become ready.
        clock: seconds that never go back.
    """

    def __init__(self, missing: Callable[[], list[str]], bound_s: float, clock: Callable[[], float]) -> None:
        self.ready = False
        self._missing = missing
        self._bound_s = bound_s
        self._clock = clock
        self._since = clock()

    def check(self) -> list[str]:
        """Look again. Returns what is missing.

        Raises:
            RecoveryTimeoutError: the worker has not been ready for longer than its bound.
        """
        missing = self._missing()
        if self.ready != (not missing):
            self.ready = not missing
            self._since = self._clock()
        waited_s = self._clock() - self._since
        if missing and waited_s > self._bound_s:
            message = (
                f"Not ready for {waited_s:.0f} s, at most {self._bound_s:.0f} s are allowed (recovery_bound_s): still "
                f"waiting for {', '.join(missing)}. Look at the brokers and at the changelog topics."
            )
            raise RecoveryTimeoutError(message)
        return missing

    async def watch(self, on_ready: Callable[[], None]) -> None:
        """Look again and again; `on_ready` is called whenever the worker has become ready.

        Raises:
            RecoveryTimeoutError: as `check`.
        """
        was_ready = False
        while True:
            self.check()
            if self.ready and not was_ready:
                on_ready()
            was_ready = self.ready
            await asyncio.sleep(_WATCH_INTERVAL_S)


@contextlib.asynccontextmanager
async def health_endpoint(host: str, port: int, report: Callable[[], dict[str, Any]]) -> AsyncIterator[str]:
    """Serve the report while the block lasts; its address is the block's value. Port 0 takes a free one.

    `report()` must have the key `ready`.
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(_REQUEST_TIMEOUT_S):
                request = await reader.readuntil(b"\r\n\r\n")
                writer.write(_response(request, report()))
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, host, port, limit=_LARGEST_REQUEST_BYTES)
    async with server:
        address, bound_port = server.sockets[0].getsockname()[:2]
        yield f"http://{f'[{address}]' if ':' in address else address}:{bound_port}/"


def _response(request: bytes, report: dict[str, Any]) -> bytes:
    method, _, rest = request.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0]
    if method not in (b"GET", b"HEAD"):
        return _http("405 Method Not Allowed", {"error": "only GET"})
    if path in (b"/", b"/live"):
        return _http("200 OK", report)
    if path == b"/ready":
        return _http("200 OK" if report["ready"] else "503 Service Unavailable", report)
    return _http("404 Not Found", {"error": "expected /live or /ready"})


def _http(status: str, content: dict[str, Any]) -> bytes:
    body = msgspec.json.encode(content) + b"\n"
    head = ("HTTP/1.1 " + status, "Content-Type: application/json", f"Content-Length: {len(body)}", "Connection: close")
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body
