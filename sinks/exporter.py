"""The exporter behind `springback export`: readings in, metrics page out, until it is told to stop."""

import asyncio
import importlib.metadata
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from springback.producers.broker_fault import FaultLog
from springback.sinks.broker_lag import BrokerLag, watch_lag
from springback.sinks.fleet.agent_state import DEFAULT_TIMES, StateTimes
from springback.sinks.fleet.series_bounds import SeriesBounds
from springback.sinks.metrics_server import ANYBODY, ServerAccess, metrics_server
from springback.sinks.prometheus_sink import PrometheusSink
from springback.sinks.sink import ReadingBack, Sink
from springback.sinks.sink_runner import ReadingTopics, ReadyObserver, SinkRunner
from springback.stream_processors.service.run import run_until

_log = logging.getLogger(__name__)

DEFAULT_PORT = 9464
DEFAULT_GROUP = "springback"


async def export_readings(
    bootstrap: str,
    stop: asyncio.Event,
    *,
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    prefix: str = "",
    group: str | None = None,
    judged: bool = False,
    bounds: SeriesBounds | None = None,
    times: StateTimes = DEFAULT_TIMES,
    access: ServerAccess = ANYBODY,
    more_sinks: Sequence[Sink] = (),
    ready_file: Path | None = None,
    on_ready: Callable[[str], None] | None = None,
    client_options: Mapping[str, Any] | None = None,
) -> None:
    """Exports until `stop` is set.

    The page is served from the start. It waits for a broker that is away, and the page shows that.

    Args:
        bootstrap: HOST:PORT of the broker, several with commas between.
        stop: ends it.
        host: where the metrics page is served.
        port: its port; 0 takes a free one.
        prefix: what the topics' names begin with.
        group: the workers' consumer group; by default the prefix and `springback`.
        judged: whether the workers read judged steps; how far they are behind is then read there.
        bounds: how many series there may be.
        times: after how long an agent is in which state.
        access: who may read the page, and how.
        more_sinks: what is written to as well, each at a pace of its own: one that is unavailable holds up no other.
        ready_file: written once the page is served and caught up with the topics: `{"metrics": "http://…/metrics"}`.
        on_ready: called at the same moment with the page's address.
        client_options: further options of aiokafka's clients (security).

    Raises:
        ServerAddressError: the page cannot be served at that address.
        CertificateError, AuthFileError: what `access` names cannot be used.
    """
    registry = CollectorRegistry()
    sink = PrometheusSink(registry, bounds=bounds, times=times, version=_version())
    topics = ReadingTopics.of_prefix(prefix, judged=judged)
    faults = FaultLog("the metrics page", _log)
    with metrics_server(
        registry, host, port, ready=lambda: sink.ready, access=access, why=lambda: faults.text or sink.waits_for
    ) as address:
        _log.info("Metrics are served at %s.", address)
        observer = _CountingObserver(sink, ReadyObserver("metrics", address, ready_file, on_ready))
        runner = SinkRunner(bootstrap, topics, [sink], observer, client_options=client_options, faults=faults)
        lag_group = prefix + DEFAULT_GROUP if group is None else group
        beside = _Beside(sink)
        others = [SinkRunner(bootstrap, topics, [other], beside, client_options=client_options) for other in more_sinks]
        await run_until(
            stop,
            *(one.run() for one in (runner, *others)),
            watch_lag(sink, lambda: BrokerLag(bootstrap, topics.steps, lag_group, client_options=client_options)),
        )


class _CountingObserver:
    """Passes on to the sink what the runner reports, and says once when all is caught up."""

    def __init__(self, sink: PrometheusSink, ready: ReadyObserver) -> None:
        self._sink = sink
        self._ready: ReadyObserver | None = ready
        self.reading_back = sink.reading_back
        self.unreadable = sink.unreadable
        self.retried = sink.retried

    def caught_up(self) -> None:
        self._sink.caught_up()
        if self._ready is not None:  # else the broker was away, and is read on
            self._ready.caught_up()
            self._ready = None


class _Beside:
    """Counts the retries of another sink; the first runner alone says what is no reading, and when all is read."""

    def __init__(self, sink: PrometheusSink) -> None:
        self.retried = sink.retried

    def reading_back(self, progress: ReadingBack) -> None:
        pass

    def unreadable(self, topic: str) -> None:
        pass

    def caught_up(self) -> None:
        pass


def _version() -> str:
    try:
        return importlib.metadata.version("springback")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"  # run from a source tree
