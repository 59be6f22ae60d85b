"""One run of the harness: a fleet, a seeded shuffle of faults while it works, and the comparison at the end.

Started as a program with a plan; it tells how far it is, and what it found, as lines of JSON on its standard output.
"""

import asyncio
import bisect
import contextlib
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import aiokafka  # type: ignore[import-untyped]
import msgspec

from springback.deploy.apache_kafka import ApacheKafka
from springback.deploy.broker_process import BrokerProcess
from springback.deploy.brokers import EmbeddedBroker
from springback.sinks.fleet.memory import fingerprint
from springback.sinks.sink import DeadLetter
from springback.stream_processors.resilience.baseline.codec import dump_baseline
from springback.stream_processors.resilience.baseline.estimates import MaterialisedBaseline, materialise
from springback.stream_processors.resilience.baseline.stage_baseline import StageBaseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import EpisodeSummary
from springback.stream_processors.stages.scoring_baseline import baseline_switches
from springback.stream_processors.topics import DEAD_LETTER, FAMILIES, STATUS, STEPS, SWITCHES
from tests.faults.exporter_counts import count_differences, counts_of_page, counts_of_readings
from tests.faults.fault_kinds import FaultKind, kinds_of
from tests.faults.fault_workload import frozen_baseline
from tests.faults.fleet_under_test import FleetUnderTest, Watch, producer_names, until, watching
from tests.faults.offline_oracle import (
    READ_TOPICS,
    Expected,
    ScoredBy,
    TopicRecord,
    Topics,
    baseline_differences,
    differences,
    expected_of,
    family_differences,
    family_readings,
    statuses_of,
)
from tests.faults.playing_emitter import JournalFrame, read_journal
from tests.faults.sent_frames import sent_differences

BaselineMode = Literal["frozen", "live"]
_RECOVERY_S = 240.0
_FINISH_S = 240.0
_SETTLED_S = 120.0
_LEAST_TRIES = 5
_MOST_TOLD = 40
_LONGEST_TOLD = 1000
_SMALL_DISK_BYTES = 8 * 1024 * 1024
_OWN_MOUNTS = "SPRINGBACK_FAULTS_OWN_MOUNTS"
# A Kafka of a run lives for minutes, beside others: no optimising compiler, no threads for collecting garbage.
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# What a worker says when its broker was away, and a process manager is to start it again.
_ENDS_OF_OUTAGES = ("RecoveryTimeoutError", "StateWriteError", "WorkerStoppedError")


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What one run does.

    Attributes:
        seed: of the workload, the order of the faults and their instants.
        mode: the baseline: of a file, or learned live.
        kinds: the faults, by name.
        times: how often each of them is done.
        broker: the broker to start.
        episodes: how many episodes there are at least.
        steps_per_s: steps of all emitters together.
        producers: emitter processes.
        agents: agents of each of them.
        directory: where everything of the run is; left there if something was wrong.
    """

    seed: int
    mode: BaselineMode
    kinds: tuple[str, ...]
    times: int = 1
    broker: Literal["kafka", "embedded"] = "kafka"
    episodes: int = 300
    steps_per_s: float = 80.0
    producers: int = 3
    agents: int = 3
    directory: str


class StruckFault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault that was done, and how long after its end everything was taken in again; None if never."""

    kind: str
    recovery_s: float | None


class RunReport(msgspec.Struct, kw_only=True, tag="report"):
    """What a run found.

    Attributes:
        seed, mode: of the plan.
        faults: those that were done, in their order.
        mismatches: what is not as it must be, in words; empty if all is well.
        left_out: faults that cannot be done on this machine, by this user.
        own_ends: workers that ended because their broker was away, and were started again.
        episodes, windows: how many were compared.
        frames, sent, taken_in, rejected, unused: what became of the rows.
        switches: of the baseline that scores, of all partitions together.
        repeated: outputs that came more than once, each like the first.
        seconds: how long it took.
    """

    seed: int
    mode: BaselineMode
    faults: list[StruckFault] = []
    mismatches: list[str] = []
    left_out: list[str] = []
    own_ends: list[str] = []
    episodes: int = 0
    windows: int = 0
    frames: int = 0
    sent: int = 0
    taken_in: int = 0
    rejected: int = 0
    unused: int = 0
    switches: int = 0
    repeated: int = 0
    seconds: float = 0.0


class RunProgress(msgspec.Struct, frozen=True, kw_only=True, tag="progress"):
    """What a run does just now."""

    seed: int
    mode: BaselineMode
    doing: str
    done: int
    total: int


RunLine = RunProgress | RunReport
Tell = Callable[[RunLine], None]


class FaultRun:
    """One run.

    Args:
        plan: what it does.
        tell: told how far it is.
    """

    def __init__(self, plan: RunPlan, tell: Tell) -> None:
        self._plan = plan
        self._tell = tell
        self._directory = Path(plan.directory)
        self._chance = random.Random(f"{plan.seed} {plan.mode}")
        self._config = ResilienceConfig()
        self._report = RunReport(seed=plan.seed, mode=plan.mode)
        self._frozen: StageBaseline | None = None
        self._judged = 0
        self._small_disk = small_disk(self._directory / "small-disk")

    def run(self) -> RunReport:
        """Does it. Whatever goes wrong is a mismatch of the report."""
        begun = time.monotonic()
        try:
            with self._broker() as broker:
                asyncio.run(self._with(broker))
        except Exception as error:
            self._report.mismatches.append(f"the run failed: {type(error).__name__}: {error}")
        self._report.seconds = time.monotonic() - begun
        return self._report

    @contextlib.contextmanager
    def _broker(self) -> Iterator[BrokerProcess]:
        kind = ApacheKafka if self._plan.broker == "kafka" else EmbeddedBroker
        with kind(self._directory) as broker:
            yield broker

    async def _with(self, broker: BrokerProcess) -> None:
        fleet = FleetUnderTest(
            broker,
            self._directory,
            seed=self._plan.seed,
            producers=self._plan.producers,
            agents=self._plan.agents,
            steps_per_s=self._plan.steps_per_s,
            worker_settings=self._worker_settings(),
            spools=self._spools(),
        )
        await fleet.declare()
        try:
            async with watching(fleet) as watch:
                supervisor = asyncio.create_task(fleet.supervise())
                try:
                    await self._work(fleet, watch)
                finally:
                    supervisor.cancel()
                    await asyncio.gather(supervisor, return_exceptions=True)
            await self._compare(fleet)
        finally:
            await asyncio.to_thread(fleet.end_all)

    def _spools(self) -> dict[str, Path]:
        """The spools of all producers but the last; the first one's is a small disk of its own, where that can be."""
        spools = {name: self._directory / f"{name}.spool" for name in producer_names(self._plan.producers)[:-1]}
        if self._small_disk is not None and spools:
            spools[next(iter(spools))] = self._small_disk
        return spools

    def _worker_settings(self) -> dict[str, str]:
        if self._plan.mode == "live":
            return {}
        self._frozen = frozen_baseline(self._plan.seed, self._config)
        file = self._directory / "frozen.baseline"
        file.write_bytes(dump_baseline(self._frozen))
        return {"FROZEN_BASELINE": str(file)}

    async def _work(self, fleet: FleetUnderTest, watch: Watch) -> None:
        kinds = kinds_of(self._plan.kinds) * self._plan.times
        if self._small_disk is None:
            self._report.left_out = sorted({kind.name for kind in kinds if kind.small_disk})
            kinds = [kind for kind in kinds if not kind.small_disk]
        self._chance.shuffle(kinds)
        self._doing("starting", 0, len(kinds))
        await fleet.scale_to(self._chance.randint(*kinds[0].workers) if kinds else 1)
        for producer in fleet.producers:
            fleet.start_emitter(producer)
        await fleet.until_ready(fleet.start_exporter(), "metrics")
        await until(lambda: all(files[-1].exists() for files in fleet.journals), _RECOVERY_S)
        for number, kind in enumerate(kinds):
            await self._strike(fleet, watch, kind, number, len(kinds))
        self._doing("finishing", len(kinds), len(kinds))
        begun = time.monotonic()
        while await self._episodes_ended(fleet) < self._plan.episodes:
            if time.monotonic() - begun > _FINISH_S:
                message = f"fewer than {self._plan.episodes} episodes after {_FINISH_S:.0f} s without faults"
                raise TimeoutError(message)
            await asyncio.sleep(1.0)
        await fleet.finish_emitters(_FINISH_S)
        await watch.settled(_SETTLED_S)
        self._judge_ends(fleet, "finishing")

    async def _strike(self, fleet: FleetUnderTest, watch: Watch, kind: FaultKind, number: int, total: int) -> None:
        self._doing(kind.name, number, total)
        await fleet.scale_to(self._chance.randint(*kind.workers))
        await asyncio.sleep(self._chance.uniform(0.5, 3.0))
        await kind.strike(fleet, self._chance)
        since = await self._ends_now(watch)
        try:
            recovery_s: float | None = await watch.recovered(since, _RECOVERY_S)
        except TimeoutError as error:
            recovery_s = None
            for worker in fleet.live_workers():
                worker.signal(signal.SIGUSR1)
            self._report.mismatches.append(f"{kind.name}: {error}")
        self._report.faults.append(StruckFault(kind=kind.name, recovery_s=recovery_s))
        self._judge_ends(fleet, kind.name, outage=kind.broker)

    def _judge_ends(self, fleet: FleetUnderTest, when: str, *, outage: bool = False) -> None:
        """Only while the broker is away may a worker end by itself, and say so."""
        for end in fleet.own_ends[self._judged :]:
            told = f"{when}: {end.name} ended with {end.exit_code}: {end.reason}"
            allowed = outage and any(name in end.reason for name in _ENDS_OF_OUTAGES)
            (self._report.own_ends if allowed else self._report.mismatches).append(told)
        self._judged = len(fleet.own_ends)

    async def _ends_now(self, watch: Watch) -> dict[int, int]:
        deadline = time.monotonic() + _RECOVERY_S
        while (ends := await watch.ends(STEPS)) is None:
            if time.monotonic() > deadline:
                message = f"the broker does not say where {STEPS} ends"
                raise TimeoutError(message)
        return ends

    async def _episodes_ended(self, fleet: FleetUnderTest) -> int:
        return await asyncio.to_thread(lambda: sum(_ends_in(file) for files in fleet.journals for file in files))

    async def _compare(self, fleet: FleetUnderTest) -> None:
        """Compares until nothing is wrong, or what is last told of agents, families and pages should long be there.

        A family goes on to tell what time alone brings: there may be more of it between looking at the topics and at
        the page.
        """
        self._doing("comparing", len(self._report.faults), len(self._report.faults))
        deadline = time.monotonic() + _SETTLED_S / 2
        for tries in itertools.count(1):
            found = await read_topics(fleet.broker.address, READ_TOPICS)
            expected = expected_of(found[STEPS], self._config, self._scored_by(found))
            wrong = [
                *sent_differences(fleet.journals, found[STEPS]),
                *differences(found, expected),
                *family_differences(found, self._config),
                *baseline_differences(found, self._config),
                *await self._count_differences(fleet, found, expected),
            ]
            if not wrong or (tries >= _LEAST_TRIES and time.monotonic() > deadline):
                break
            await asyncio.sleep(1.0)
        for service in [*fleet.live_workers(), fleet.exporter]:
            assert service is not None
            code = await asyncio.to_thread(service.end)
            if code != 0:
                wrong.append(f"{service.name}, told to end, ended with {code}: {service.reason()}")
        self._fill(found, expected, wrong)
        if wrong:
            (self._directory / "topics.msgpack").write_bytes(msgspec.msgpack.encode(found))

    async def _count_differences(self, fleet: FleetUnderTest, found: Topics, expected: Expected) -> list[str]:
        assert fleet.exporter is not None
        address = await fleet.until_ready(fleet.exporter, "metrics")
        readings = [*expected.readings(), *statuses_of(found[STATUS]), *family_readings(found[FAMILIES])]
        letters = [DeadLetter(identity[0], fingerprint(identity)) for identity in expected.outputs[DEAD_LETTER]]
        page = await asyncio.to_thread(counts_of_page, address)
        return count_differences(page, counts_of_readings(readings, letters))

    def _scored_by(self, found: Topics) -> ScoredBy:
        """The baseline of the file; or, live, those that the workers say that they have switched to."""
        if self._frozen is not None:
            ready = self._ready(self._frozen)
            return lambda partition, offset: ready
        records = [(record.key, record.value) for record in found[SWITCHES]]
        switches = baseline_switches(records, self._config.grid)
        self._report.switches = sum(map(len, switches.values()))
        places = {number: [switch.from_offset for switch in own] for number, own in switches.items()}
        nothing = self._ready(StageBaseline(grid=self._config.grid))
        baselines = {
            number: [nothing, *(self._ready(switch.baseline) for switch in own)] for number, own in switches.items()
        }

        def scored_by(partition: int, offset: int) -> MaterialisedBaseline:
            own = baselines.get(partition, [nothing])
            return own[bisect.bisect_right(places.get(partition, []), offset)]

        return scored_by

    def _ready(self, baseline: StageBaseline) -> MaterialisedBaseline:
        return materialise(baseline, self._config.baseline, self._config.window.fixed_bounds())

    def _fill(self, found: Topics, expected: Expected, wrong: Sequence[str]) -> None:
        report, account = self._report, expected.account
        readings = expected.readings()
        report.mismatches += [text[:_LONGEST_TOLD] for text in wrong[:_MOST_TOLD]]
        if len(wrong) > _MOST_TOLD:
            report.mismatches.append(f"and {len(wrong) - _MOST_TOLD} more")
        report.episodes = sum(isinstance(reading, EpisodeSummary) for reading in readings)
        report.windows = len(expected.outputs["rebound-windows"])
        report.frames = len(found[STEPS])
        report.sent, report.taken_in = account.sent, account.taken_in
        report.rejected, report.unused = account.rejected, account.unused
        report.repeated = sum(len(found[topic]) - len(known) for topic, known in expected.outputs.items())

    def _doing(self, what: str, done: int, total: int) -> None:
        self._tell(RunProgress(seed=self._plan.seed, mode=self._plan.mode, doing=what, done=done, total=total))


def small_disk(place: Path) -> Path | None:
    """A file system of a few megabytes at a place, for as long as this process lives; None where none can be made.

    It needs root, and a mount namespace of the process' own, so that it goes with it: see `run_command`.
    """
    place.mkdir(exist_ok=True)
    if os.environ.get(_OWN_MOUNTS) != "1":
        return None
    command = ["mount", "-t", "tmpfs", "-o", f"size={_SMALL_DISK_BYTES}", "springback-faults", str(place)]
    return place if subprocess.run(command, capture_output=True, check=False).returncode == 0 else None


def run_command(plan: Path) -> list[str]:
    """The command that does the run of a plan's file, with mounts of its own where that can be."""
    command = [sys.executable, "-m", "tests.faults.fault_run", str(plan)]
    own = ["unshare", "--mount", "--propagation", "private"]
    can = shutil.which("unshare") and subprocess.run([*own, "true"], capture_output=True, check=False).returncode == 0
    return [*own, "env", f"{_OWN_MOUNTS}=1", *command] if can else command


def _ends_in(journal: Path) -> int:
    return sum(line.ends for line in read_journal(journal) if isinstance(line, JournalFrame))


async def read_topics(address: str, topics: Sequence[str]) -> dict[str, list[TopicRecord]]:
    """All that the topics hold now, each by partition and offset."""
    found: dict[str, list[TopicRecord]] = {topic: [] for topic in topics}
    consumer = aiokafka.AIOKafkaConsumer(
        *topics, bootstrap_servers=address, auto_offset_reset="earliest", enable_auto_commit=False
    )
    await consumer.start()
    try:
        ends = await consumer.end_offsets(consumer.assignment())
        while [place for place, end in ends.items() if await consumer.position(place) < end]:
            for records in (await consumer.getmany(timeout_ms=500)).values():
                for r in records:
                    headers = tuple((name, bytes(value)) for name, value in r.headers)
                    kept = TopicRecord(r.partition, r.offset, r.timestamp / 1000, r.key or b"", r.value, headers)
                    found[r.topic].append(kept)
    finally:
        await consumer.stop()
    for records in found.values():
        records.sort(key=lambda record: record[:2])
    return found


def main() -> None:
    """Does the run of a plan's file."""
    os.environ.setdefault("JAVA_TOOL_OPTIONS", _JAVA_OPTIONS)
    plan = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=RunPlan)

    def tell(line: RunLine) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(line) + b"\n")
        sys.stdout.buffer.flush()

    tell(FaultRun(plan, tell).run())


if __name__ == "__main__":
    main()
