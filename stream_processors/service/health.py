"""Whether the worker lives and is ready: what it says of itself, and a small endpoint on loopback that says it.

`GET /live` answers 200 while the worker runs; `GET /ready` 200 once its partitions are assigned, its tables recovered
and the baselines read, else 503. Both answer with the same JSON. `GET /metrics` answers with metrics for Prometheus.

The metrics that a process serves of itself, as Prometheus scrapes them: numbers in, a page out.

The page is computed when it is asked for, on the event loop that the numbers live on: nothing is kept twice.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder

from springback.stream_processors.errors import HealthAddressError, RecoveryTimeoutError
from springback.stream_processors.metrics.spec import MetricSpec

_REQUEST_TIMEOUT_S = 5.0
_LARGEST_REQUEST_BYTES = 8192
_WATCH_INTERVAL_S = 0.2
_log = logging.getLogger(__name__)

RenderMetrics = Callable[[str], tuple[str, bytes]]
"""Given the request's header `Accept`, gives the page's content type and its bytes."""


class Readiness:
    """Whether the worker is ready, and since when it has been as it is.

    Args:
        missing: says what is not ready yet, an empty list when nothing is.
        bound_s: longest time to become ready.
        clock: seconds that never go back.
        wall_clock: seconds since 1970.

    Attributes:
        ready: whether it is.
        changed_s: when that came about, in seconds since 1970.
    """

    def __init__(
        self,
        missing: Callable[[], list[str]],
        bound_s: float,
        clock: Callable[[], float],
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.ready = False
        self.changed_s = wall_clock()
        self._missing = missing
        self._bound_s = bound_s
        self._clock = clock
        self._wall_clock = wall_clock
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
            self.changed_s = self._wall_clock()
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
async def health_endpoint(
    host: str, port: int, report: Callable[[], dict[str, Any]], metrics: RenderMetrics | None = None
) -> AsyncIterator[str]:
    """Serve the report, and the metrics if there are any, while the block lasts; its address is the block's value.

    Args:
        host: where to listen.
        port: its port; 0 takes a free one.
        report: must have the key `ready`.
        metrics: renders the metrics page.

    Raises:
        HealthAddressError: the address cannot be listened at.
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(_REQUEST_TIMEOUT_S):
                request = await reader.readuntil(b"\r\n\r\n")
                writer.write(_response(request, report, metrics))
                await writer.drain()
        writer.close()

    try:
        server = await asyncio.start_server(answer, host, port, limit=_LARGEST_REQUEST_BYTES)
    except OSError as error:
        message = (
            f"The health endpoint cannot listen at {host}:{port} ({error.strerror or error}). Give each worker and "
            "judge of a machine a port of its own (health_port, SPRINGBACK_HEALTH_PORT), or 0 for any free one."
        )
        raise HealthAddressError(message) from error
    async with server:
        address, bound_port = server.sockets[0].getsockname()[:2]
        yield f"http://{f'[{address}]' if ':' in address else address}:{bound_port}/"


def _response(request: bytes, report: Callable[[], dict[str, Any]], metrics: RenderMetrics | None) -> bytes:
    head, *headers = request.split(b"\r\n")
    method, _, rest = head.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0]
    if method not in (b"GET", b"HEAD"):
        return _json("405 Method Not Allowed", {"error": "only GET"})
    try:
        response = _page(path, _accepted(headers), report, metrics)
    except Exception:
        _log.exception("health_failed")  # a fault of ours: the worker itself goes on
        response = _json("500 Internal Server Error", {"error": "a fault of springback: its log has it"})
    return response if method == b"GET" else response.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"


def _page(path: bytes, accept: str, report: Callable[[], dict[str, Any]], metrics: RenderMetrics | None) -> bytes:
    if path in (b"/", b"/live"):
        return _json("200 OK", report())
    if path == b"/ready":
        found = report()
        return _json("200 OK" if found["ready"] else "503 Service Unavailable", found)
    if path == b"/metrics" and metrics is not None:
        return _http("200 OK", *metrics(accept))
    return _json("404 Not Found", {"error": "expected /live, /ready or /metrics"})


def _accepted(headers: Sequence[bytes]) -> str:
    fields = (header.partition(b":") for header in headers)
    return ",".join(value.decode("latin-1") for name, _, value in fields if name.lower() == b"accept")


def _json(status: str, content: dict[str, Any]) -> bytes:
    return _http(status, "application/json", msgspec.json.encode(content) + b"\n")


def _http(status: str, content_type: str, body: bytes) -> bytes:
    head = (f"HTTP/1.1 {status}", f"Content-Type: {content_type}", f"Content-Length: {len(body)}", "Connection: close")
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


class Measurement(NamedTuple):
    """A counter's or gauge's value just now. `labels` are in the order of the metric's."""

    metric: MetricSpec
    value: float
    labels: tuple[str, ...] = ()


class MetricsPage:
    """A page of measurements, with those of the process (`process_*`) and of its Python.

    Args:
        registry: what the page shows; a new one for each process. What else it holds is shown too.
        catalogue: the metrics that are measured, in the order of the page.
        measure: measures them. A metric or series that is left out has no value just now, which is not 0.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        catalogue: Sequence[MetricSpec],
        measure: Callable[[], Iterable[Measurement]],
    ) -> None:
        self._registry = registry
        self._catalogue = catalogue
        self._measure = measure
        registry.register(self)
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)

    def render(self, accept: str) -> tuple[str, bytes]:
        """The page, in the format that a request's header `Accept` asks for: its content type, and its bytes."""
        encode, content_type = choose_encoder(accept)
        return content_type, encode(self._registry)

    def describe(self) -> Iterator[Metric]:
        """The metrics without their series, by which the registry sees clashes of names."""
        return (scalar_family(spec, {}) for spec in self._catalogue)

    def collect(self) -> Iterator[Metric]:
        """The metrics as of now."""
        series: dict[str, dict[tuple[str, ...], float]] = {spec.name: {} for spec in self._catalogue}
        for metric, value, labels in self._measure():
            series[metric.name][labels] = value
        return (scalar_family(spec, series[spec.name]) for spec in self._catalogue)


def scalar_family(spec: MetricSpec, series: Mapping[tuple[str, ...], float]) -> Metric:
    """A counter or gauge as Prometheus' client writes it, with the series given by their labels' values."""
    kind = CounterMetricFamily if spec.kind == "counter" else GaugeMetricFamily
    family = kind(spec.name, spec.help, labels=spec.labels)
    for labels, value in series.items():
        family.add_metric(labels, value)
    return family
