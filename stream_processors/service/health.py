"""Whether a process lives and is ready, and its metrics: what it says of itself, and the endpoint that says it.

`GET /live` answers 200 while the process runs; `GET /ready` 200 once a worker's partitions are assigned, its tables
recovered and the baselines read, else 503. Both answer with the same JSON. `GET /metrics` answers with metrics for
Prometheus. All is computed when it is asked for, on the event loop that the numbers live on: nothing is kept twice.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder

from springback.producers.http_server import ConnectionLimits, http_server
from springback.producers.serving import open_socket, server_url
from springback.stream_processors.errors import RecoveryTimeoutError
from springback.stream_processors.metrics.spec import MetricSpec

_LIMITS = ConnectionLimits(most_connections=100, silence_s=5.0, request_s=5.0, most_request_bytes=8192)
_OTHER_PORT = (
    "Give each worker and judge of a machine a port of its own (health_port, SPRINGBACK_HEALTH_PORT), or 0 for any "
    "free one."
)
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
        """Looks again. Returns what is missing.

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
        """Looks again and again; `on_ready` is called whenever the worker has become ready.

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
    """Serves the report, and the metrics if there are any, for as long as the block runs.

    Args:
        host: where to listen.
        port: its port; 0 takes a free one.
        report: must have the key `ready`.
        metrics: renders the metrics page.

    Yields:
        the endpoint's address.

    Raises:
        ServerAddressError: the address cannot be listened at.
    """
    at = open_socket(host, port, what="health endpoint", remedy=_OTHER_PORT)
    address, taken = at.getsockname()[:2]
    async with http_server(_health_app(report, metrics), at, _LIMITS):
        yield f"{server_url('http', address, taken)}/"


def _health_app(report: Callable[[], dict[str, Any]], metrics: RenderMetrics | None) -> web.Application:
    def page(request: web.Request) -> web.Response:
        if request.method not in ("GET", "HEAD"):
            return _json(405, {"error": "only GET"})
        if request.path in ("/", "/live"):
            return _json(200, report())
        if request.path == "/ready":
            found = report()
            return _json(200 if found["ready"] else 503, found)
        if request.path == "/metrics" and metrics is not None:
            content_type, body = metrics(",".join(request.headers.getall("Accept", [])))
            return web.Response(body=body, headers={"Content-Type": content_type})
        return _json(404, {"error": "expected /live, /ready or /metrics"})

    async def answer(request: web.Request) -> web.Response:
        try:
            response = page(request)
        except Exception:
            _log.exception("health_failed")  # a fault of ours: the worker itself goes on
            response = _json(500, {"error": "a fault of springback: its log has it"})
        response.force_close()
        return response

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    return app


def _json(status: int, content: dict[str, Any]) -> web.Response:
    body = msgspec.json.encode(content) + b"\n"
    return web.Response(status=status, body=body, content_type="application/json")


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
