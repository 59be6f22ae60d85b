"""Steps per second through one worker process on a broker, against a bare Faust worker on the same frames.

All frames are in the topic before a worker starts, so that nothing but the worker and the broker is at work. Each run
is a consumer group of its own, which reads the topic from its beginning. What counts as done is what the worker itself
says at its endpoint: frames whose outputs and state the broker has. The clock runs from one rise of that count
to another, so starting up is not in it.
"""

import asyncio
import os
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import aiokafka  # type: ignore[import-untyped]
import msgspec

from springback.deploy.brokers import open_broker
from springback.deploy.child_process import ChildProcess
from springback.deploy.errors import DeployError
from springback.deploy.run_directory import run_directory
from springback.producers.contract.codec import encode_msgpack
from springback.stream_processors.resilience.baseline.codec import dump_baseline
from springback.stream_processors.topics import STEPS, declare_topics, topic_name
from tests.benchmarks.bare_worker import FORWARDED
from tests.benchmarks.bare_worker import STAGE as BARE_STAGE
from tests.benchmarks.fleet_frames import fleet_baseline, fleet_frames

PARTITIONS = 4
_STARTUP_S = 120.0
_REQUEST_S = 30.0
_LOOK_EVERY_S = 0.05

WorkerKind = Literal["springback", "bare"]


@dataclass(frozen=True, slots=True)
class WorkerRun:
    """One run. `core_share` is the processor time that the worker took for each second; None where not to be had."""

    worker: WorkerKind
    size: int
    frames: int
    seconds: float
    core_share: float | None

    @property
    def frames_per_s(self) -> float:
        """Speed in frames."""
        return self.frames / self.seconds

    @property
    def steps_per_s(self) -> float:
        """Speed in steps."""
        return self.frames_per_s * self.size


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """What to run: for each frame size, both workers in turn, `repeats` times."""

    broker: Literal["embedded", "kafka"]
    sizes: tuple[int, ...]
    seconds: float
    repeats: int
    agents: int
    frames: int

    def runs(self) -> int:
        """How many runs there will be."""
        return len(self.sizes) * self.repeats * 2


def worker_runs(plan: WorkerPlan, announce: Callable[[str], None]) -> Iterator[WorkerRun]:
    """Run the plan.

    Args:
        plan: what to run.
        announce: told what is done next.

    Raises:
        DeployError: the broker or a worker failed.
    """
    for size in plan.sizes:
        # A broker for each size: the embedded one holds all in memory, and removes nothing.
        with run_directory("benchmark") as directory, open_broker(plan.broker, directory) as broker:
            announce(f"loading {plan.frames:,} frames of {size}")
            baseline = directory / "fleet.baseline"
            baseline.write_bytes(dump_baseline(fleet_baseline()))
            loaded = asyncio.run(_load(broker.address, plan, size))
            for repeat in range(plan.repeats):
                kinds: tuple[WorkerKind, ...] = ("springback", "bare")
                for kind in kinds:
                    announce(f"{kind} worker, frames of {size}, {repeat + 1} of {plan.repeats}")
                    surroundings = _Surroundings(broker.address, directory, baseline, f"{kind}-{repeat}")
                    yield _run(kind, surroundings, size, loaded, plan.seconds)


@dataclass(frozen=True, slots=True)
class _Surroundings:
    address: str
    directory: Path
    baseline: Path
    app_id: str


class _Sight(NamedTuple):
    """A rise of the count as it was seen; `processor_s` is None where not to be had."""

    time_s: float
    frames: int
    processor_s: float | None


class _Meter:
    """Watches a worker's count of frames; keeps the first and the last instant at which it was seen to rise."""

    def __init__(self, child: ChildProcess, ready_file: Path, stage: str, wanted: int, seconds: float) -> None:
        self._child, self._ready_file, self._stage = child, ready_file, stage
        self._wanted, self._seconds = wanted, seconds
        self._address = ""
        self._count: int | None = None
        self.first: _Sight | None = None
        self.last: _Sight | None = None

    def measured(self) -> bool:
        """Look once more. Returns whether enough has been seen."""
        if not self._address:
            if self._ready_file.exists():
                self._address = msgspec.json.decode(self._ready_file.read_bytes())["health"]
            return False
        time.sleep(_LOOK_EVERY_S)
        try:
            with urllib.request.urlopen(self._address + "live", timeout=_REQUEST_S) as answer:
                count = int(msgspec.json.decode(answer.read())["stages"][self._stage]["events"])
        except OSError:
            return False  # whoever waits looks next whether the worker has ended
        before, self._count = self._count, count
        if before is not None and count != before:
            self.last = _Sight(time.monotonic(), count, processor_seconds(self._child.pid))
            self.first = self.first or self.last
        if self.first is not None and self.last is not None and self.last.frames > self.first.frames:
            return count >= self._wanted or self.last.time_s - self.first.time_s >= self._seconds
        if count >= self._wanted:
            message = f"All {count} frames were read before anything could be measured: ask for more --frames."
            raise DeployError(message)
        return False


def _run(kind: WorkerKind, at: _Surroundings, size: int, loaded: int, seconds: float) -> WorkerRun:
    ready_file = at.directory / f"{at.app_id}.ready"
    command = [sys.executable, "-m", "springback", "worker", "--ready-file", str(ready_file)]
    if kind == "bare":
        command = [sys.executable, "-m", "tests.benchmarks.bare_worker", str(ready_file)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPRINGBACK_")} | {
        "SPRINGBACK_KAFKA__BOOTSTRAP": at.address,
        "SPRINGBACK_APP_ID": at.app_id,
        "SPRINGBACK_PARTITIONS": str(PARTITIONS),
        "SPRINGBACK_FROZEN_BASELINE": str(at.baseline),
    }
    stage = BARE_STAGE if kind == "bare" else "track_steps"
    log = at.directory / f"{at.app_id}.log"
    deadline_s = _STARTUP_S + 4 * seconds
    with ChildProcess(f"The {kind} worker", command, log, environment=environment) as child:
        meter = _Meter(child, ready_file, stage, loaded, seconds)
        child.wait_until(meter.measured, deadline_s, "a measurement, for its count of frames stands still")
    assert meter.first is not None
    assert meter.last is not None
    spent = meter.last.time_s - meter.first.time_s
    share = None
    if meter.first.processor_s is not None and meter.last.processor_s is not None:
        share = (meter.last.processor_s - meter.first.processor_s) / spent
    return WorkerRun(kind, size, meter.last.frames - meter.first.frames, spent, share)


def processor_seconds(pid: int) -> float | None:
    """Processor time that a process has taken so far; None where there is no /proc to tell."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return None
    user, system = stat.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


async def _load(address: str, plan: WorkerPlan, size: int) -> int:
    """Put the frames into the topic, the agents evenly over the partitions. Returns how many there are."""
    for prefix in ("", FORWARDED):
        await declare_topics(address, prefix=prefix, partitions=PARTITIONS)
    topic, sent = topic_name(STEPS), 0
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=address, linger_ms=20) as producer:
        for frame in fleet_frames(plan.agents, plan.frames // plan.agents, size):
            await producer.send(
                topic, encode_msgpack(frame), key=frame.producer.encode(), partition=sent % plan.agents % PARTITIONS
            )
            sent += 1
    return sent
