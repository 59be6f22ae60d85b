"""The process behind `springback judge`: frames of `steps` go to `judged-steps` with scores, until a signal.

It outlives its broker and its endpoint, and measures itself by the judge's metrics of `metrics.services`.
"""

import asyncio
import functools
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiokafka.errors import KafkaError  # type: ignore[import-untyped]
from prometheus_client import CollectorRegistry

from springback.producers.backoff import Backoff
from springback.producers.broker_fault import FaultLog
from springback.stream_processors.access_rights import topics_of
from springback.stream_processors.errors import BrokerFaultError
from springback.stream_processors.judging.counts import JudgeCounts
from springback.stream_processors.judging.endpoint import JudgeEndpoint
from springback.stream_processors.judging.session import JudgeSession
from springback.stream_processors.judging.step_judge import StepJudge
from springback.stream_processors.metrics import services as metrics
from springback.stream_processors.metrics.services import JUDGE_METRICS
from springback.stream_processors.service.broker_watch import fault_of, watch_broker
from springback.stream_processors.service.health import Measurement, MetricsPage, health_endpoint
from springback.stream_processors.service.run import run_until, run_until_signalled, write_ready_file
from springback.stream_processors.settings import WorkerSettings
from springback.stream_processors.topics import declare_topics_for

_log = logging.getLogger(__name__)
_LOG_INTERVAL_S = 60.0
_LOOK_INTERVAL_S = 0.1
_BACKOFF = Backoff(0.5, 10.0)


def run_judge(settings: WorkerSettings, ready_file: Path | None = None) -> None:
    """Judges until SIGTERM or SIGINT, which it handles itself.

    Args:
        settings: those of the stream, with those of the judge in them.
        ready_file: written, as JSON with the health endpoint's address, once it has joined the judges' group.

    Raises:
        SettingsError: no endpoint or model is named, or the key cannot be read.
        TopicMismatchError: the topics' partitions differ from those in the settings.
        ServerAddressError: the health endpoint cannot listen where the settings say.
    """
    run_until_signalled(lambda stop: judge_steps(settings, stop, ready_file))
    _log.info("stopping reason=signal")


async def judge_steps(settings: WorkerSettings, stop: asyncio.Event, ready_file: Path | None = None) -> None:
    """Judges until `stop` is set; waits for a broker or an endpoint that is away.

    The other arguments, and what is raised, are those of `run_judge`.
    """
    counts = JudgeCounts()
    sessions: list[JudgeSession] = []
    faults = FaultLog("the judge", _log)
    async with JudgeEndpoint(settings.judge) as endpoint:
        judge = StepJudge(endpoint, settings.judge, counts)
        report = functools.partial(_report, sessions, judge, counts, faults)
        page = MetricsPage(
            CollectorRegistry(),
            JUDGE_METRICS,
            lambda: measure_judge(
                counts,
                ready=_ready(sessions, judge),
                endpoint_down=judge.endpoint_down,
                useless_calls=judge.useless_calls,
                waiting_frames=sessions[0].waiting_frames if sessions else 0,
            ),
        )
        async with health_endpoint(settings.health_host, settings.health_port, report, page.render) as address:
            beside = [
                asyncio.create_task(_tell_ready(sessions, address, ready_file)),
                asyncio.create_task(_log_regularly(judge, counts)),
            ]
            try:
                await _sessions(settings, judge, counts, stop, sessions, faults)
            finally:
                for task in beside:
                    task.cancel()
                await asyncio.gather(*beside, return_exceptions=True)
                _log_counts(judge, counts)


async def _sessions(
    settings: WorkerSettings,
    judge: StepJudge,
    counts: JudgeCounts,
    stop: asyncio.Event,
    sessions: list[JudgeSession],
    faults: FaultLog,
) -> None:
    """Runs one session after another, as often as the broker goes away; `sessions` has the current one."""
    failures = 0
    while not stop.is_set():
        try:
            declared: dict[str, int] = {}
            if not await run_until(stop, _declare(settings, declared)):
                return
            sessions.append(JudgeSession(settings, judge, counts))
            # What the watch finds ends the session; what ends the session otherwise ends the watch.
            await run_until(asyncio.Event(), sessions[0].run(stop), watch_broker(settings.kafka, declared, faults))
        except* (BrokerFaultError, KafkaError, OSError) as errors:
            if sessions and sessions[0].ever_joined:
                failures = 0
            faults.note(fault_of(_first(errors)))
        sessions.clear()
        failures += 1
        await run_until(stop, asyncio.sleep(_BACKOFF.pause_s(failures)))


async def _declare(settings: WorkerSettings, declared: dict[str, int]) -> None:
    declared |= await declare_topics_for(settings, topics_of("judge", settings))


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


async def _tell_ready(sessions: list[JudgeSession], address: str, ready_file: Path | None) -> None:
    while not _joined(sessions):
        await asyncio.sleep(_LOOK_INTERVAL_S)
    _log.info("ready health=%s", address)
    if ready_file is not None:
        write_ready_file(ready_file, {"health": address})


async def _log_regularly(judge: StepJudge, counts: JudgeCounts) -> None:
    while True:
        await asyncio.sleep(_LOG_INTERVAL_S)
        _log_counts(judge, counts)


def _log_counts(judge: StepJudge, counts: JudgeCounts) -> None:
    told = " ".join(f"{name}={number}" for name, number in (counts.events | counts.steps).items() if number)
    _log.info("judge endpoint_down=%s %s", "yes" if judge.endpoint_down else "no", told)


def _joined(sessions: list[JudgeSession]) -> bool:
    return bool(sessions) and sessions[0].joined


def _ready(sessions: list[JudgeSession], judge: StepJudge) -> bool:
    """One whose calls bring no scores is not ready, though frames go on; one that has asked nothing yet is."""
    return _joined(sessions) and not judge.calls_are_useless


def _report(sessions: list[JudgeSession], judge: StepJudge, counts: JudgeCounts, faults: FaultLog) -> dict[str, Any]:
    session = sessions[0] if sessions else None
    return {
        "ready": _ready(sessions, judge),
        "joined": _joined(sessions),
        "endpoint_down": judge.endpoint_down,
        "useless_calls": judge.useless_calls,
        "broker_fault": faults.text,
        **({} if session is None else session.report()),
        **counts.report(),
    }


def measure_judge(
    counts: JudgeCounts, *, ready: bool, endpoint_down: bool, useless_calls: int, waiting_frames: int
) -> Iterator[Measurement]:
    """All that a judge measures of itself.

    Args:
        counts: the judge's counts since its start.
        ready: whether it has joined its group, and its calls bring scores as far as is known.
        endpoint_down: whether the endpoint counts as down.
        useless_calls: calls in a row, up to the latest, that have brought no scores.
        waiting_frames: how many frames it holds.
    """
    events = counts.events
    yield Measurement(metrics.JUDGE_READY, ready)
    yield Measurement(metrics.JUDGE_ENDPOINT_DOWN, endpoint_down)
    yield Measurement(metrics.JUDGE_USELESS_CALLS, useless_calls)
    yield Measurement(metrics.JUDGE_FRAMES, events["frames"])
    yield Measurement(metrics.JUDGE_JUDGED_FRAMES, events["judged_frames"])
    yield Measurement(metrics.JUDGE_UNJUDGEABLE_FRAMES, events["unreadable_frames"], ("unreadable",))
    yield Measurement(metrics.JUDGE_UNJUDGEABLE_FRAMES, events["faulty_frames"], ("faulty",))
    yield Measurement(metrics.JUDGE_UNJUDGEABLE_FRAMES, events["oversized_frames"], ("oversized",))
    for cause, steps in counts.steps.items():
        yield Measurement(metrics.JUDGE_STEPS, steps, (cause,))
    yield Measurement(metrics.JUDGE_CALLS, events["calls"])
    yield Measurement(metrics.JUDGE_RETRIES, events["retries"])
    yield Measurement(metrics.JUDGE_WAITING_FRAMES, waiting_frames)
