"""The worker: a Faust application with its stages, run until a signal or a failure."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import faust
from aiokafka.errors import KafkaError  # type: ignore[import-untyped]
from faust.tables.manager import TableManager
from prometheus_client import CollectorRegistry

from springback.producers.broker_fault import FaultLog
from springback.stream_processors.access_rights import topics_of
from springback.stream_processors.errors import BrokerFaultError, RecoveryTimeoutError, WorkerStoppedError
from springback.stream_processors.exact.stage import ExactStage
from springback.stream_processors.metrics.services import WORKER_METRICS, WORKER_READY
from springback.stream_processors.service.broker_watch import fault_of, watch_broker
from springback.stream_processors.service.health import Measurement, MetricsPage, Readiness, health_endpoint
from springback.stream_processors.service.kafka_connection import KafkaConnection
from springback.stream_processors.service.run import run_until, run_until_signalled, write_ready_file
from springback.stream_processors.settings import WorkerSettings
from springback.stream_processors.topics import BASELINES, LARGEST_RECORD_BYTES, declare_topics_for, topic_name
from springback.stream_processors.worker.agents import Stages, add_stages
from springback.stream_processors.worker.baselines import BaselineFeed, BaselineSource, FrozenBaseline
from springback.stream_processors.worker.measurements import measure_worker
from springback.stream_processors.worker.transport import PromptTransport

_RETRY_S = 0.5
_STOP_TIMEOUT_S = 20.0
_log = logging.getLogger(__name__)


class WorkerApp(faust.App):
    """Faust's application, but for the directories that it makes and, with its state in memory, never writes to.

    A worker that is killed would leave them behind.
    """

    def _create_directories(self) -> None:
        pass


def create_app(settings: WorkerSettings) -> faust.App:
    """The Faust application, without stages yet.

    State is kept in memory and in changelogs. Faust's web server is never started: it would listen on every interface.
    """
    app = WorkerApp(
        settings.group,
        broker=[f"kafka://{address.strip()}" for address in settings.kafka.bootstrap.split(",")],
        broker_credentials=_credentials(settings.kafka),
        broker_session_timeout=settings.session_timeout_s,
        broker_heartbeat_interval=settings.session_timeout_s / 5,
        broker_rebalance_timeout=settings.rebalance_timeout_s,
        broker_request_timeout=max(30.0, settings.session_timeout_s),
        broker_commit_interval=settings.commit_interval_s,
        broker_max_poll_records=settings.batch_max,
        consumer_auto_offset_reset="earliest",
        producer_acks=-1,
        producer_max_request_size=LARGEST_RECORD_BYTES,
        stream_buffer_maxsize=4 * settings.batch_max,  # messages, and one may be large
        stream_wait_empty=False,
        store="memory://",
        topic_partitions=settings.partitions,
        topic_replication_factor=settings.replication,
        topic_disable_leader=True,
        table_standby_replicas=settings.standby_replicas,
        web_enabled=False,
        autodiscover=False,
    )
    app.boot_strategy.enable_web = False
    app.transport = PromptTransport(app.conf.broker_consumer, app)
    return app


def run_worker(settings: WorkerSettings, ready_file: Path | None = None) -> None:
    """Runs one worker until SIGTERM or SIGINT. It takes those signals for itself.

    Args:
        settings: of the worker.
        ready_file: written, as JSON with the health endpoint's address, once the worker is ready.

    Raises:
        StreamError: the worker cannot start or go on; the message says why. Its state is safe: start it again.
    """
    try:
        run_until_signalled(lambda stop: _run(settings, ready_file, stop))
    except Exception as error:
        _log.error("worker_failed kind=%s reason=%s", type(error).__name__, error)
        raise


async def _run(settings: WorkerSettings, ready_file: Path | None, stop: asyncio.Event) -> None:
    baselines: BaselineSource = (
        FrozenBaseline(Path(settings.frozen_baseline), settings.resilience)
        if settings.frozen_baseline
        else BaselineFeed(settings.kafka, topic_name(BASELINES, settings.prefix), settings.resilience)
    )
    async with contextlib.AsyncExitStack() as opened:
        faults = FaultLog("the worker", _log)
        started: list[_Started] = []
        page = MetricsPage(
            CollectorRegistry(),
            WORKER_METRICS,
            lambda: started[0].measure() if started else (Measurement(WORKER_READY, False),),
        )

        def report() -> dict[str, Any]:
            if not started:
                return {"ready": False, "waiting_for": ["broker"], "broker_fault": faults.text}
            refused = [stage.counts.not_taken for stage in started[0].stages.all() if stage.counts.not_taken]
            return {**started[0].report(), "broker_fault": faults.text or next(iter(refused), None)}

        address = await opened.enter_async_context(
            health_endpoint(settings.health_host, settings.health_port, report, page.render)
        )
        declared: dict[str, int] = {}
        if not await run_until(stop, _declare_until_answered(settings, faults, declared)):
            return
        app = create_app(settings)
        failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def fail(error: BaseException) -> None:
            if not failure.done():
                failure.set_exception(error)

        stages = add_stages(app, settings, baselines, fail)
        readiness = Readiness(lambda: _missing(app, baselines), settings.recovery_bound_s, time.monotonic)
        started.append(_Started(app, stages, readiness, baselines))

        def on_ready() -> None:
            _log.info("ready health=%s generation=%d", address, app.consumer_generation_id)
            if ready_file is not None:
                write_ready_file(ready_file, {"health": address})

        opened.push_async_callback(_stop, app)
        await run_until(
            stop,
            failure,
            baselines.run(),
            _serve(app),
            readiness.watch(on_ready),
            watch_broker(settings.kafka, declared, faults),
            *(_tick(stage, readiness, settings.tick_interval_s) for stage in stages.all()),
        )
        _log.info("stopping reason=signal")


class _Started(NamedTuple):
    """A worker whose broker has answered: what it says of itself."""

    app: faust.App
    stages: Stages
    readiness: Readiness
    baselines: BaselineSource

    def report(self) -> dict[str, Any]:
        return {
            "ready": self.readiness.ready,
            "waiting_for": _missing(self.app, self.baselines),
            "generation": self.app.consumer_generation_id,
            "baseline_version": self.baselines.version,
            "ignored_contributions": self.stages.learner.ignored,
            "groups_let_go": self.stages.families.groups_let_go,
            "stages": {stage.name: stage.counts.report() for stage in self.stages.all()},
        }

    def measure(self) -> Iterator[Measurement]:
        return measure_worker(
            self.stages,
            self.readiness,
            baseline_cells=self.baselines.cells,
            rebalances=self.app.rebalancing_count,
            now=time.monotonic(),
        )


async def _declare_until_answered(settings: WorkerSettings, faults: FaultLog, declared: dict[str, int]) -> None:
    """Declares the topics, into `declared`; tries again while the broker cannot be used, up to the recovery bound."""
    deadline = time.monotonic() + settings.recovery_bound_s
    while True:
        try:
            declared |= await declare_topics_for(settings, topics_of("worker", settings))
        except (BrokerFaultError, KafkaError, OSError) as error:
            faults.note(fault_of(error))
            if time.monotonic() > deadline:
                message = (
                    f"The broker at {settings.kafka.bootstrap} could not be used for "
                    f"{settings.recovery_bound_s:.0f} s: {faults.text}"
                )
                raise RecoveryTimeoutError(message) from error
            await asyncio.sleep(_RETRY_S)
        else:
            faults.clear()
            return


async def _serve(app: faust.App) -> None:
    await app.start()
    while not app.should_stop:
        await asyncio.sleep(_RETRY_S)
    message = f"The stream engine has ended of its own accord; start the worker again. Cause: {app.crash_reason!r}"
    raise WorkerStoppedError(message) from app.crash_reason


async def _stop(app: faust.App) -> None:
    try:
        async with asyncio.timeout(_STOP_TIMEOUT_S):
            await app.stop()
    except TimeoutError:
        _log.error("stop_timed_out after_s=%.0f", _STOP_TIMEOUT_S)


async def _tick(stage: ExactStage[Any], readiness: Readiness, interval_s: float) -> None:
    while True:
        await asyncio.sleep(interval_s)
        if readiness.ready:
            await stage.tick()


def _missing(app: faust.App, baselines: BaselineSource) -> list[str]:
    missing = []
    recovery = cast(TableManager, app.tables).recovery
    if not recovery.completed.is_set() or app.rebalancing:
        missing.append("partitions")
    if app.in_recovery:
        missing.append("tables")
    if not baselines.ready.is_set():
        missing.append("baselines")
    return missing


def _credentials(kafka: KafkaConnection) -> Any:
    context = kafka.tls_context()
    if kafka.uses_token:
        return faust.OAuthCredentials(oauth_cb=kafka.token_provider(), ssl_context=context)
    if kafka.uses_sasl:
        return faust.SASLCredentials(
            username=kafka.sasl_username,
            password=kafka.password(),
            ssl_context=context,
            mechanism=kafka.sasl_mechanism,
        )
    return faust.SSLCredentials(context) if context is not None else None
