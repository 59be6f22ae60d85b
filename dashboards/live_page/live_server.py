"""The live page behind `springback live`: readings in, page out, until it is told to stop."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import uvicorn
from fastapi import FastAPI
from nicegui import ui

from springback.dashboards.errors import DashboardError
from springback.dashboards.live_page.access import LoginGate, page_url
from springback.dashboards.live_page.alerts.alertmanager import AlertmanagerAddress, AlertmanagerWatch
from springback.dashboards.live_page.comparing.shared_comparisons import SharedComparisons
from springback.dashboards.live_page.episodes.episode_reader import EpisodeReader
from springback.dashboards.live_page.fleet_view import FleetView
from springback.dashboards.live_page.live_sink import LiveSink, run_on_own_thread
from springback.dashboards.live_page.pages.alerts_page import AlertSources, Runbook
from springback.dashboards.live_page.pages.live_pages import LivePages
from springback.producers.http_server import ConnectionGuard, ConnectionLimits, listen
from springback.producers.serving import is_loopback, tls_context
from springback.sinks.broker_lag import BrokerLag, watch_lag
from springback.sinks.fleet.agent_state import DEFAULT_TIMES, StateTimes
from springback.sinks.sink_runner import ReadingTopics, ReadyObserver, SinkRunner
from springback.stream_processors.service.run import run_until
from springback.stream_processors.settings import WorkerSettings

_log = logging.getLogger(__name__)

_GOODBYE_S = 1
_RECONNECT_S = 10.0
# For a browser that comes back within that time; there are one or two a second, of up to 50 kB.
_MESSAGES_KEPT = 40
_ALERTS_INTERVAL_S = 2.0
_POLL_S = 0.02
_MOST_READ_BACK = 200_000
"""Of the windows, of the summaries and of the dead letters: some 200 times what a page can show, in some 20 s."""
_LIMITS = ConnectionLimits(most_connections=500, silence_s=15.0, request_s=60.0)


class TlsFiles(NamedTuple):
    """A certificate and its key, in PEM files; the key is None where the certificate's file holds it too."""

    certificate: Path
    key: Path | None = None


class _Server(uvicorn.Server):
    """Without uvicorn's own signal handling and sockets: when to end is the caller's affair, connections are guarded.

    Nor with its trust in `X-Forwarded-For`: anybody on this machine could claim any address, and what comes through a
    proxy would be no connection that the guard knows.

    Args:
        config: uvicorn's.
        guard: watches its connections.
    """

    def __init__(self, config: uvicorn.Config, guard: ConnectionGuard) -> None:
        super().__init__(config)
        config.proxy_headers = False
        self._guard = guard

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts the application, then listens."""
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            message = "the live page's application could not start; its log says why"
            raise DashboardError(message)
        config = self.config

        def speaker() -> asyncio.Protocol:
            made: asyncio.Protocol = config.http_protocol_class(  # type: ignore[call-arg]
                config=config, server_state=self.server_state, app_state=self.lifespan.state
            )
            return made

        self._guard.guard(speaker)
        self.servers = [await listen(self._guard, at, config.ssl, _LIMITS.silence_s) for at in sockets or ()]
        self.started = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve_live_page(
    settings: WorkerSettings,
    listening: socket.socket,
    stop: asyncio.Event,
    *,
    password: str | None = None,
    tls: TlsFiles | None = None,
    times: StateTimes = DEFAULT_TIMES,
    runbook: str = "",
    alertmanager: AlertmanagerAddress | None = None,
    ready_file: Path | None = None,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Serves until `stop` is set. Once in a process: NiceGUI has one application.

    It waits for a broker that is away, and the page says so.

    Args:
        settings: where the readings are, and what the workers score by.
        listening: where the page is served; closed at the end.
        stop: ends it.
        password: what is asked for; None asks for none.
        tls: the certificate for HTTPS; None for plain HTTP.
        times: after how long an agent is silent, or stalled.
        runbook: what alerts lead to, as Markdown; empty where there is none.
        alertmanager: whose alerts are shown too; None for none.
        ready_file: written once the page is served: `{"live": "http://…/"}`.
        on_ready: called at the same moment with the page's address.

    Raises:
        CertificateError: the certificate or its key cannot be used.
    """
    with listening:
        if tls is not None:
            tls_context(*tls)  # the server reads them again, and would ask for a password
        if password is not None and tls is None and not is_loopback(listening.getsockname()[0]):
            _log.warning("The page and its password can be read by others on the network; give --tls-cert too.")
        sink = LiveSink(FleetView(times=times))
        comparisons = SharedComparisons(sink, settings.resilience.aggregate)
        watch = None if alertmanager is None else AlertmanagerWatch(alertmanager)
        alerts = AlertSources(Runbook(runbook), watch)
        reader = EpisodeReader(settings)
        LivePages(sink, settings.kafka.bootstrap, settings.resilience.window, comparisons, alerts, reader).register()
        address = page_url(listening, "http" if tls is None else "https")
        ready = ReadyObserver("live", address, ready_file, on_ready)
        server = _server(password, tls)
        reading = run_on_own_thread(lambda: _read(sink, settings, watch), "springback-reader")
        try:
            await run_until(stop, reading, _serve(server, listening, address, ready.caught_up))
        finally:
            _log.info("The live page at %s has ended.", address)


def _server(password: str | None, tls: TlsFiles | None) -> _Server:
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    ui.run_with(
        app,
        title="springback",
        dark=None,
        language="en-US",
        favicon="\N{LEFTWARDS ARROW WITH HOOK}",
        reconnect_timeout=_RECONNECT_S,
        message_history_length=_MESSAGES_KEPT,
        binding_refresh_interval=None,
        tailwind=False,
        show_welcome_message=False,
    )
    guard = ConnectionGuard(_LIMITS)
    config = uvicorn.Config(
        guard.watched_asgi(LoginGate(app, password)),
        lifespan="on",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GOODBYE_S,
        ssl_certfile=None if tls is None else tls.certificate,
        ssl_keyfile=None if tls is None else tls.key,
    )
    return _Server(config, guard)


async def _serve(server: _Server, listening: socket.socket, address: str, tell: Callable[[], None]) -> None:
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    try:
        while not server.started and not serving.done():
            await asyncio.sleep(_POLL_S)
        if server.started:
            _log.info("The live page is served at %s.", address)
            tell()
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        await serving


async def _read(sink: LiveSink, settings: WorkerSettings, alertmanager: AlertmanagerWatch | None) -> None:
    """Folds the readings, and watches the broker, the alerts and the Alertmanager, for ever."""
    options: Mapping[str, Any] = settings.kafka.client_options()
    bootstrap = settings.kafka.bootstrap
    topics = ReadingTopics.of_prefix(settings.prefix, judged=settings.judged)
    runner = SinkRunner(
        bootstrap, topics, [sink], sink, client_options=options, faults=sink.faults, most=_MOST_READ_BACK
    )

    def broker_lag() -> BrokerLag:
        return BrokerLag(bootstrap, topics.steps, settings.group, client_options=options)

    watched = [runner.run(), watch_lag(sink, broker_lag), _watch_alerts(sink)]
    if alertmanager is not None:
        watched.append(alertmanager.run())
    await run_until(asyncio.Event(), *watched)


async def _watch_alerts(sink: LiveSink) -> None:
    """Has the alerts worked out also while nobody looks, so that since when is known."""
    while True:
        sink.alerts()
        await asyncio.sleep(_ALERTS_INTERVAL_S)
