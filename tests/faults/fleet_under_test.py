"""Everything that runs in a faulted run: a broker, emitters, workers and an exporter, each a process of its own.

Whoever ends of its own accord is started again, as a process manager would, and that is noted with the reason that its
log gives. The fleet also knows how far it is: `Watch` says when all that is in the topic has been taken in.
"""

import asyncio
import contextlib
import os
import signal
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import aiokafka  # type: ignore[import-untyped]
import msgspec
from aiokafka.errors import KafkaError  # type: ignore[import-untyped]

from springback.deploy.broker_process import BrokerProcess
from springback.deploy.child_process import ChildProcess
from springback.stream_processors.topics import CONTRIBUTIONS, STEPS, SUMMARIES, declare_topics
from tests.faults.playing_emitter import FINISH, EmitterPlan
from tests.faults.worker_process import write_offset
from tests.house import ROOT

SESSION_S = 6.0
"""The shortest session that Kafka allows: so long a dead worker's partitions wait."""
PARTITIONS = 4
_READY_S = 150.0
_LOOK_S = 0.25
_REQUEST_S = 5.0
_STAGES = {"track_steps": STEPS, "learn_baselines": CONTRIBUTIONS, "aggregate_families": SUMMARIES}


class OwnEnd(NamedTuple):
    """A process that ended though nobody had told it to."""

    name: str
    exit_code: int
    reason: str


class Service:
    """A process of the fleet, and whether it should be running."""

    def __init__(self, name: str, command: Sequence[str], log: Path, environment: dict[str, str]) -> None:
        self.name = name
        self.log = log
        self.started_at = time.monotonic()
        self.wanted = True
        self.ready_file = log.with_suffix(".ready")
        self.clock_file = log.with_suffix(".clock")
        self.child = ChildProcess(name, command, log, environment=environment, directory=ROOT)

    @property
    def running(self) -> bool:
        """Whether the process has not ended."""
        return self.child.exit_code is None

    def address(self, name: str) -> str | None:
        """Where it answers, once it has said so."""
        if not self.ready_file.exists():
            return None
        return str(msgspec.json.decode(self.ready_file.read_bytes())[name])

    def signal(self, number: signal.Signals) -> None:
        """Sends it a signal; it is no longer expected to run if that ends it."""
        if number in (signal.SIGKILL, signal.SIGTERM):
            self.wanted = False
        os.kill(self.child.pid, number)

    def end(self, grace_s: float = 60.0) -> int:
        """Ends it in good order, and gives its exit code."""
        self.wanted = False
        return self.child.terminate(grace_s)

    def kill(self) -> None:
        """Ends it as kill -9 does."""
        self.wanted = False
        self.child.kill()

    def reason(self) -> str:
        """What its log says last of why it ended."""
        tail = self.child.log_tail(200)
        told = [line for line in tail if "worker_failed" in line or "Error" in line]
        return (told or tail or ["nothing in its log"])[-1][:400]


class FleetUnderTest:
    """The processes of one run.

    Args:
        broker: the broker, started.
        directory: the run's own; logs stay there.
        seed: of the workload.
        producers: how many emitter processes there are.
        agents: how many agents each of them has.
        steps_per_s: steps of all emitters together.
        worker_settings: settings of the workers, by the names of the environment without their prefix.
        spools: the folder of the spool of each producer that has one.
    """

    def __init__(
        self,
        broker: BrokerProcess,
        directory: Path,
        *,
        seed: int,
        producers: int,
        agents: int,
        steps_per_s: float,
        worker_settings: dict[str, str],
        spools: Mapping[str, Path],
    ) -> None:
        self.broker = broker
        self.directory = directory
        self.own_ends: list[OwnEnd] = []
        self.workers: list[Service] = []
        self.emitters: dict[str, Service] = {}
        self.exporter: Service | None = None
        self._seed = seed
        self._producers = producer_names(producers)
        self._agents = agents
        self._steps_per_s = steps_per_s / producers
        self._starts: dict[str, int] = {}
        self.spools = spools
        self._worker_settings = worker_settings
        self._numbers: dict[str, int] = {}

    @property
    def producers(self) -> Sequence[str]:
        """The ids of the emitter processes."""
        return self._producers

    @property
    def journals(self) -> list[list[Path]]:
        """Of each producer the journals of its processes, in the order in which they were started."""
        return [
            [self.directory / f"{producer}.{number + 1}.journal" for number in range(self._numbers.get(producer, 0))]
            for producer in self._producers
        ]

    async def declare(self) -> None:
        """Declares the topics."""
        await declare_topics(self.broker.address, app_id="springback", partitions=PARTITIONS)

    def start_worker(self) -> Service:
        """Starts one more worker."""
        log = self._log("worker")
        clock = log.with_suffix(".clock")
        write_offset(clock, 0.0)
        own = {
            "KAFKA__BOOTSTRAP": self.broker.address,
            "SESSION_TIMEOUT_S": str(SESSION_S),
            "RECOVERY_BOUND_S": str(_READY_S),
            "PARTITIONS": str(PARTITIONS),
            **self._worker_settings,
        }
        environment = clean_environment() | {f"SPRINGBACK_{name}": value for name, value in own.items()}
        command = [sys.executable, "-m", "tests.faults.worker_process", str(log.with_suffix(".ready")), str(clock)]
        worker = Service(log.stem, command, log, environment)
        self.workers.append(worker)
        return worker

    async def scale_to(self, number: int) -> list[Service]:
        """Starts or ends workers until there are so many, all of them ready; returns those that there are."""
        live = self.live_workers()
        for worker in live[number:]:
            await asyncio.to_thread(self.end_worker, worker)
        started = [self.start_worker() for _ in range(number - len(live))]
        for worker in started:
            await self.until_ready(worker, "health")
        return self.live_workers()

    def end_worker(self, worker: Service) -> int:
        """Ends a worker in good order, and notes an exit code that is not 0."""
        code = worker.end()
        if code != 0:
            self.own_ends.append(OwnEnd(f"{worker.name} (told to end)", code, worker.reason()))
        return code

    def live_workers(self) -> list[Service]:
        """The workers that should be running."""
        return [worker for worker in self.workers if worker.wanted]

    def start_emitter(self, producer: str) -> Service:
        """Starts an emitter process, perhaps once more."""
        start = self._starts[producer] = self._starts.get(producer, -1) + 1
        log = self._log(producer)
        number = self._producers.index(producer)
        plan = EmitterPlan(
            bootstrap=self.broker.address,
            topic=STEPS,
            producer=producer,
            agents=tuple(f"robot-{number}-{place}" for place in range(self._agents)),
            seed=self._seed,
            start=start,
            steps_per_s=self._steps_per_s,
            directory=str(self.directory),
            journal=str(log.with_suffix(".journal")),
            spool=str(self.spools.get(producer, "")),
        )
        file = log.with_suffix(".plan")
        file.write_bytes(msgspec.json.encode(plan))
        emitter = Service(log.stem, [sys.executable, "-m", "tests.faults.playing_emitter", str(file)], log,
                          clean_environment())  # fmt: skip
        self.emitters[producer] = emitter
        return emitter

    def start_exporter(self) -> Service:
        """Starts the exporter, perhaps once more."""
        log = self._log("exporter")
        command = [
            *(sys.executable, "-m", "springback", "export", "--broker", self.broker.address),
            *("--port", "0", "--ready-file", str(log.with_suffix(".ready"))),
        ]
        self.exporter = Service(log.stem, command, log, clean_environment())
        return self.exporter

    async def until_ready(self, service: Service, name: str) -> str:
        """Waits until a service has said where it answers.

        Raises:
            TimeoutError: it has not within a generous time.
        """
        await until(lambda: service.address(name) is not None or not service.wanted or not service.running, _READY_S)
        address = service.address(name)
        if address is None:
            message = f"{service.name} was not ready within {_READY_S:.0f} s: {service.reason()}"
            raise TimeoutError(message)
        return address

    async def finish_emitters(self, timeout_s: float) -> None:
        """Has all emitters end their episodes and close, and waits for them.

        Raises:
            TimeoutError: one still runs after so many seconds.
        """
        (self.directory / FINISH).touch()
        for emitter in self.emitters.values():
            emitter.wanted = False
        await until(lambda: not any(emitter.running for emitter in self.emitters.values()), timeout_s)
        for emitter in self.emitters.values():
            if emitter.running or emitter.child.exit_code != 0:
                message = f"{emitter.name} did not end well ({emitter.child.exit_code}): {emitter.reason()}"
                raise TimeoutError(message)

    async def supervise(self) -> None:
        """Starts again what has ended of its own accord, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            for worker in self.live_workers():
                if not worker.running:
                    self._note_end(worker)
                    worker.wanted = False
                    self.start_worker()
            for producer, emitter in list(self.emitters.items()):
                if emitter.wanted and not emitter.running:
                    self._note_end(emitter)
                    self.start_emitter(producer)
            if self.exporter is not None and self.exporter.wanted and not self.exporter.running:
                self._note_end(self.exporter)
                self.start_exporter()

    def end_all(self) -> None:
        """Kills what still runs."""
        exporter = [] if self.exporter is None else [self.exporter]
        for service in [*self.workers, *self.emitters.values(), *exporter]:
            if service.running:
                service.kill()

    def progress(self) -> dict[str, dict[int, int]]:
        """The next offset wanted by partition, stage by stage, as the workers that answer say."""
        found: dict[str, dict[int, int]] = {stage: {} for stage in _STAGES}
        for worker in self.live_workers():
            address = worker.address("health") if worker.running else None
            if address is None:
                continue
            try:
                with urllib.request.urlopen(address + "live", timeout=_REQUEST_S) as answer:
                    report = msgspec.json.decode(answer.read())
            except OSError:
                continue
            for stage, places in found.items():
                for partition, place in report["stages"][stage]["partitions"].items():
                    places[int(partition)] = max(places.get(int(partition), 0), place["wanted"])
        return found

    def _note_end(self, service: Service) -> None:
        self.own_ends.append(OwnEnd(service.name, service.child.exit_code or 0, service.reason()))

    def _log(self, name: str) -> Path:
        number = self._numbers[name] = self._numbers.get(name, 0) + 1
        return self.directory / f"{name}.{number}.log"


class Watch:
    """How far the fleet is, asked of the broker and of the workers.

    Args:
        fleet: the fleet.
        consumer: reads no topic; it only asks where topics end.
    """

    def __init__(self, fleet: FleetUnderTest, consumer: aiokafka.AIOKafkaConsumer) -> None:
        self._fleet = fleet
        self._consumer = consumer

    async def ends(self, topic: str) -> dict[int, int] | None:
        """The offsets after the last messages of a topic's partitions; None where the broker does not say."""
        places = [aiokafka.TopicPartition(topic, number) for number in range(PARTITIONS)]
        try:
            async with asyncio.timeout(_REQUEST_S):
                found = await self._consumer.end_offsets(places)
        except (KafkaError, TimeoutError, OSError):
            return None
        return {place.partition: end for place, end in found.items()}

    async def caught_up(self, *stages: str) -> bool:
        """Whether the workers have done all that the topics of these stages hold now."""
        for stage in stages:
            ends = await self.ends(_STAGES[stage])
            if ends is None:
                return False
            done = (await asyncio.to_thread(self._fleet.progress))[stage]
            if any(end > 0 and done.get(partition, 0) < end for partition, end in ends.items()):
                return False
        return True

    async def settled(self, timeout_s: float) -> None:
        """Waits until all stages have done all that there is.

        Raises:
            TimeoutError: they have not within so many seconds.
        """
        deadline = time.monotonic() + timeout_s
        while not await self.caught_up(*_STAGES):
            if time.monotonic() > deadline:
                message = f"not all was taken in within {timeout_s:.0f} s: {self._fleet.progress()}"
                raise TimeoutError(message)
            await asyncio.sleep(_LOOK_S)

    async def recovered(self, since: dict[int, int], timeout_s: float) -> float:
        """Waits until new steps have come and all steps are done; returns how long that took, in seconds.

        Args:
            since: where the topic of steps ended when the fault did.
            timeout_s: after which it is taken for never.

        Raises:
            TimeoutError: it has not recovered by then.
        """
        begun = time.monotonic()
        while True:
            ends = await self.ends(STEPS)
            new = ends is not None and sum(ends.values()) > sum(since.values())
            if new and await self.caught_up("track_steps"):
                return time.monotonic() - begun
            if time.monotonic() - begun > timeout_s:
                ends_of = f"steps end at {ends}, done {self._fleet.progress()['track_steps']}"
                message = f"not recovered within {timeout_s:.0f} s: {ends_of}"
                raise TimeoutError(message)
            await asyncio.sleep(_LOOK_S)


@contextlib.asynccontextmanager
async def watching(fleet: FleetUnderTest) -> AsyncIterator[Watch]:
    """A watch of the fleet, for the block."""
    consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=fleet.broker.address, enable_auto_commit=False)
    await consumer.start()
    try:
        yield Watch(fleet, consumer)
    finally:
        await consumer.stop()


def producer_names(number: int) -> list[str]:
    """The ids of so many producers."""
    return [f"producer-{place}" for place in range(number)]


def clean_environment() -> dict[str, str]:
    """Ours, without settings of springback that somebody may have exported."""
    return {name: value for name, value in os.environ.items() if not name.startswith("SPRINGBACK_")}


async def until(holds: Callable[[], bool], timeout_s: float) -> None:
    """Waits until it holds, or the time is over."""
    deadline = time.monotonic() + timeout_s
    while not holds() and time.monotonic() < deadline:
        await asyncio.sleep(_LOOK_S / 5)
