"""The annotator behind `springback annotate`: windows and breaches into Grafana, until it is told to stop."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from springback.sinks.grafana.annotations_sink import AnnotationBounds, GrafanaAnnotationsSink
from springback.sinks.grafana.connection import GrafanaConnection
from springback.sinks.sink_runner import ReadingTopics, SinkRunner
from springback.stream_processors.service.run import run_until, write_ready_file


async def annotate_readings(
    bootstrap: str,
    stop: asyncio.Event,
    grafana: GrafanaConnection,
    *,
    prefix: str = "",
    bounds: AnnotationBounds | None = None,
    ready_file: Path | None = None,
    on_ready: Callable[[str], None] | None = None,
    client_options: Mapping[str, Any] | None = None,
) -> None:
    """Annotates until `stop` is set. Waits for a broker or a Grafana that is away.

    Args:
        bootstrap: HOST:PORT of the broker, several with commas between.
        stop: ends it.
        grafana: where the marks go.
        prefix: what the topics' names begin with.
        bounds: how far back, and how fast.
        ready_file: written when the topics were read to their ends: `{"grafana": "http://…"}`.
        on_ready: called then with Grafana's address, and again when a broker that was away is caught up with.
        client_options: further options of aiokafka's clients (security).

    Raises:
        GrafanaRefusedError: Grafana refuses the token, or will not let it annotate.
    """
    observer = _ReadyObserver(grafana.url, ready_file, on_ready)
    sink = GrafanaAnnotationsSink(grafana, bounds=bounds)
    topics = ReadingTopics.of_prefix(prefix)
    await run_until(stop, SinkRunner(bootstrap, topics, [sink], observer, client_options=client_options).run())


class _ReadyObserver:
    """Tells the outside when all is caught up; the runner's log has the rest."""

    def __init__(self, url: str, ready_file: Path | None, on_ready: Callable[[str], None] | None) -> None:
        self._url = url
        self._ready_file = ready_file
        self._on_ready = on_ready

    def unreadable(self, topic: str) -> None:
        pass

    def retried(self, sink: str) -> None:
        pass

    def caught_up(self) -> None:
        if self._ready_file is not None:
            write_ready_file(self._ready_file, {"grafana": self._url})
        if self._on_ready is not None:
            self._on_ready(self._url)
