"""A soak: the pipeline at what one core gives for minutes, every process watched, and the counts at the end.

The worker is held to one core; producers send as much as it takes in, found by its lag: a controller lets the rate rise
while the worker follows, and lowers it when it falls behind.
"""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import msgspec
import psutil  # type: ignore[import-untyped]

from springback.deploy.apache_kafka import ApacheKafka
from springback.deploy.broker_process import BrokerProcess
from springback.deploy.brokers import EmbeddedBroker
from springback.stream_processors.topics import STEPS
from tests.faults.exporter_counts import Counts, counts_of_page
from tests.faults.fleet_under_test import FleetUnderTest, Service, Watch, clean_environment, until, watching
from tests.soak.soak_emitter import STOP, SoakCount, SoakEmitterPlan, write_rate

PRODUCERS = 2
SLOTS = 64
_FIRST_RATE = 4000.0
_LEAST_RATE = 500.0
_MOST_BEHIND_S = 3.0
_FEW_BEHIND_S = 1.5
_CLOSE_S = 600.0
_PAGE_S = 120.0


class SoakPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a soak does.

    Attributes:
        minutes: how long.
        broker: the broker to start.
        sample_s: how often the processes are looked at, in seconds.
        most_steps_per_s: the rate never rises above it.
    """

    minutes: float
    broker: Literal["kafka", "embedded"]
    sample_s: float
    most_steps_per_s: float


class ProcessSample(msgspec.Struct, frozen=True, kw_only=True):
    """A process at one instant: resident memory, open descriptors, threads, and the share of a core since the last."""

    memory_mb: float
    descriptors: int
    threads: int
    core_share: float


class SoakSample(msgspec.Struct, frozen=True, kw_only=True):
    """All at one instant.

    Attributes:
        at_s: since the beginning, in seconds.
        processes: by name.
        steps_per_s: taken in since the last sample.
        frames_behind: messages of the topic that no worker has taken in.
    """

    at_s: float
    processes: dict[str, ProcessSample]
    steps_per_s: float
    frames_behind: int


class SoakResult(msgspec.Struct, kw_only=True):
    """What a soak saw.

    Attributes:
        samples: in their order.
        counts: of all producers together.
        wrong: what is not as it must be, in words.
    """

    samples: list[SoakSample] = []
    counts: SoakCount | None = None
    wrong: list[str] = []


class Soak:
    """One soak.

    Args:
        plan: what it does.
        directory: where logs are.
        tell: told each sample.
    """

    def __init__(self, plan: SoakPlan, directory: Path, tell: Callable[[SoakSample], None]) -> None:
        self._plan = plan
        self._directory = directory
        self._tell = tell
        self._result = SoakResult()
        self._watched: dict[str, psutil.Process] = {}
        self._producers: list[Service] = []
        self._rate = min(_FIRST_RATE, plan.most_steps_per_s)

    def run(self) -> SoakResult:
        """Does it."""
        broker_kind = ApacheKafka if self._plan.broker == "kafka" else EmbeddedBroker
        with broker_kind(self._directory) as broker:
            self._watched["broker"] = psutil.Process(broker.pid)
            asyncio.run(self._with(broker))
        return self._result

    async def _with(self, broker: BrokerProcess) -> None:
        fleet = FleetUnderTest(
            broker,
            self._directory,
            seed=1,
            producers=PRODUCERS,
            agents=0,
            steps_per_s=1.0,
            worker_settings={},
            spools={},
        )
        await fleet.declare()
        try:
            async with watching(fleet) as watch:
                await self._start(fleet)
                await self._go_on(fleet, watch)
                await self._stop(fleet, watch)
        finally:
            for producer in self._producers:
                if producer.running:
                    producer.kill()
            await asyncio.to_thread(fleet.end_all)

    async def _start(self, fleet: FleetUnderTest) -> None:
        (worker,) = await fleet.scale_to(1)
        _hold_to_one_core(worker.child.pid)
        self._watched["worker"] = psutil.Process(worker.child.pid)
        exporter = fleet.start_exporter()
        await fleet.until_ready(exporter, "metrics")
        self._watched["exporter"] = psutil.Process(exporter.child.pid)
        for producer in fleet.producers:
            self._start_producer(fleet, producer)

    def _start_producer(self, fleet: FleetUnderTest, name: str) -> None:
        number = len(self._producers)
        log = self._directory / f"{name}.log"
        plan = SoakEmitterPlan(
            bootstrap=fleet.broker.address,
            topic=STEPS,
            producer=name,
            slots=SLOTS,
            seed=number,
            directory=str(self._directory),
            rate_file=str(log.with_suffix(".rate")),
            count_file=str(log.with_suffix(".count")),
        )
        write_rate(Path(plan.rate_file), self._rate / PRODUCERS)
        file = log.with_suffix(".plan")
        file.write_bytes(msgspec.json.encode(plan))
        service = Service(name, [sys.executable, "-m", "tests.soak.soak_emitter", str(file)], log, clean_environment())
        self._producers.append(service)
        self._watched[name] = psutil.Process(service.child.pid)

    async def _go_on(self, fleet: FleetUnderTest, watch: Watch) -> None:
        begun = before_s = time.monotonic()
        done_before = 0
        for process in self._watched.values():
            process.cpu_percent()
        while time.monotonic() - begun < 60 * self._plan.minutes:
            await asyncio.sleep(self._plan.sample_s)
            ends = await watch.ends(STEPS) or {}
            done = sum((await asyncio.to_thread(fleet.progress))["track_steps"].values())
            now = time.monotonic()
            behind = max(0, sum(ends.values()) - done)
            sample = SoakSample(
                at_s=now - begun,
                processes={name: _sample_of(process) for name, process in self._watched.items()},
                steps_per_s=max(0, done - done_before) * SLOTS / (now - before_s),
                frames_behind=behind,
            )
            self._result.samples.append(sample)
            self._tell(sample)
            done_before, before_s = done, now
            self._set_rate(behind * SLOTS / self._rate)

    def _set_rate(self, behind_s: float) -> None:
        if behind_s > _MOST_BEHIND_S:
            self._rate = max(_LEAST_RATE, self._rate * 0.8)
        elif behind_s < _FEW_BEHIND_S:
            self._rate = min(self._rate * 1.1, self._plan.most_steps_per_s)
        for producer in self._producers:
            write_rate(producer.log.with_suffix(".rate"), self._rate / PRODUCERS)

    async def _stop(self, fleet: FleetUnderTest, watch: Watch) -> None:
        (self._directory / STOP).touch()
        await until(lambda: not any(producer.running for producer in self._producers), _CLOSE_S)
        counts = [_count_of(producer) for producer in self._producers]
        self._result.counts = total = _together(counts)
        await watch.settled(_CLOSE_S)
        deadline = time.monotonic() + _PAGE_S
        assert fleet.exporter is not None
        address = await fleet.until_ready(fleet.exporter, "metrics")
        while True:
            wrong = list(page_differences(await asyncio.to_thread(counts_of_page, address), total))
            if not wrong or time.monotonic() > deadline:
                break
            await asyncio.sleep(1.0)
        self._result.wrong += wrong
        for service in [*fleet.live_workers(), fleet.exporter]:
            code = await asyncio.to_thread(service.end)
            if code != 0:
                self._result.wrong.append(f"{service.name}, told to end, ended with {code}: {service.reason()}")


def page_differences(page: Counts, total: SoakCount) -> Iterator[str]:
    """Where the exporter's counters are not what the producers have reported, exactly."""
    if total.steps_dropped or total.ends_dropped or total.steps_sent != total.steps:
        yield f"the producers' own counts: {total}"
    wanted = {
        "springback_steps_total": total.steps - total.refusable,
        "springback_dead_letters_total": total.refusable,
        "springback_episodes_begun_total": total.begun,
        "springback_episodes_total": sum(total.ends.values()),
    }
    found = {name: sum(value for (series, _), value in page.items() if series == name) for name in wanted}
    for name, value in wanted.items():
        if found[name] != value:
            yield f"{name}: the producers reported {value}, the exporter shows {found[name]:g}"


def _count_of(producer: Service) -> SoakCount:
    file = producer.log.with_suffix(".count")
    if not file.exists():
        message = f"{producer.name} has not said what it did: {producer.reason()}"
        raise TimeoutError(message)
    return msgspec.json.decode(file.read_bytes(), type=SoakCount)


def _together(counts: list[SoakCount]) -> SoakCount:
    ends: dict[str, int] = {}
    for count in counts:
        for outcome, number in count.ends.items():
            ends[outcome] = ends.get(outcome, 0) + number
    return SoakCount(
        ends=ends,
        **{
            name: sum(getattr(count, name) for count in counts)
            for name in SoakCount.__struct_fields__
            if name != "ends"
        },
    )


def _sample_of(process: psutil.Process) -> ProcessSample:
    with process.oneshot():
        return ProcessSample(
            memory_mb=process.memory_info().rss / 1e6,
            descriptors=process.num_fds(),
            threads=process.num_threads(),
            core_share=process.cpu_percent() / 100,
        )


def _hold_to_one_core(pid: int) -> None:
    """Where the system can do that; elsewhere the worker's one busy thread is one core at most all the same."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))})
