"""A worker as its own process, on a broker and a prefix of its own, and recorded frames to feed it."""

import asyncio
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import aiokafka  # type: ignore[import-untyped]
import msgspec
import pytest

from springback.producers.contract.codec import encode_msgpack
from springback.producers.contract.frame import StepFrame
from springback.producers.recordings.step_frames import read_frames
from springback.stream_processors.offline.evaluation import Evaluation, evaluate_frames
from springback.stream_processors.resilience.baseline.codec import dump_baseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import EpisodeSummary, Reading, WindowReading, decode_reading
from springback.stream_processors.topics import STEPS, SUMMARIES, WINDOWS, declare_topics
from tests.house import DATA

RECORDING = DATA / "habitat_lab_pointnav.frames.jsonl.gz"
DEADLINE_S = 150.0
"""For what must come in the end; how long it takes on a busy machine is not the point of any test."""
FLEETS = "abcd"
PROGRAM = (
    "import pathlib, sys\n"
    "from springback.stream_processors.worker.app import run_worker\n"
    "from springback.stream_processors.settings import load_settings\n"
    "from springback.stream_processors.service.log import configure_logging\n"
    "configure_logging()\n"
    "run_worker(load_settings(), pathlib.Path(sys.argv[1]))\n"
)


class Record(NamedTuple):
    """A record of an output topic."""

    key: bytes
    value: bytes
    headers: dict[str, bytes]


class Recorded(NamedTuple):
    """Recorded frames of several fleets, what they come to offline, and the baseline that says so."""

    frames: list[StepFrame]
    offline: Evaluation
    baseline: bytes


class WorkerProcess:
    """One worker."""

    def __init__(self, environment: dict[str, str], directory: Path) -> None:
        self.ready_file = directory / f"ready-{uuid.uuid4().hex}"
        self.log_file = directory / f"worker-{uuid.uuid4().hex}.log"
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(self.ready_file)],
                env=os.environ | environment,
                stdout=log,
                stderr=log,
            )

    def log(self) -> str:
        return self.log_file.read_text()

    def wait_until_ready(self) -> str:
        wait_until(lambda: self.ready_file.exists() or self.process.poll() is not None, "the worker is ready")
        assert self.ready_file.exists(), self.log()
        return str(msgspec.json.decode(self.ready_file.read_bytes())["health"])

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(DEADLINE_S)


class Stream:
    """A worker's surroundings: a broker, topics with a prefix of their own, and the workers started there."""

    def __init__(self, address: str, directory: Path, **options: str) -> None:
        self.address = address
        self.prefix = f"t{uuid.uuid4().hex[:8]}."
        self.directory = directory
        self.workers: list[WorkerProcess] = []
        self.environment = {
            "SPRINGBACK_KAFKA__BOOTSTRAP": address,
            "SPRINGBACK_PREFIX": self.prefix,
            "SPRINGBACK_RECOVERY_BOUND_S": str(DEADLINE_S),
            **{f"SPRINGBACK_{key.upper()}": value for key, value in options.items()},
        }
        copies = int(options.get("replication", "1"))
        app_id = self.prefix + "springback"
        asyncio.run(declare_topics(address, prefix=self.prefix, app_id=app_id, replication=copies))

    def start(self, **options: str) -> WorkerProcess:
        more = {f"SPRINGBACK_{key.upper()}": value for key, value in options.items()}
        worker = WorkerProcess(self.environment | more, self.directory)
        self.workers.append(worker)
        return worker

    def freeze(self, recorded: Recorded) -> None:
        file = self.directory / "frozen.baseline"
        file.write_bytes(recorded.baseline)
        self.environment["SPRINGBACK_FROZEN_BASELINE"] = str(file)

    async def send_frames(self, frames: Sequence[StepFrame], pause_s: float = 0.0) -> None:
        await self.send([(frame.producer.encode(), encode_msgpack(frame)) for frame in frames], pause_s=pause_s)

    async def send(self, messages: Sequence[tuple[bytes, bytes]], topic: str = STEPS, pause_s: float = 0.0) -> None:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=self.address) as producer:
            for key, value in messages:
                await producer.send(self.prefix + topic, value, key=key)
                if pause_s:
                    await asyncio.sleep(pause_s)

    def consumer(self, topic: str) -> aiokafka.AIOKafkaConsumer:
        return aiokafka.AIOKafkaConsumer(
            self.prefix + topic,
            bootstrap_servers=self.address,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )

    async def read(self, topic: str) -> list[Record]:
        """All that the topic holds now."""
        async with self.consumer(topic) as consumer:
            ends = await consumer.end_offsets(consumer.assignment())
            found = []
            while [place for place, end in ends.items() if await consumer.position(place) < end]:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    found += [Record(r.key, r.value, dict(r.headers)) for r in records]
            return found

    async def readings(self, topic: str) -> dict[Any, Reading]:
        """The topic's readings by identity, the first of each: what a sink makes of them."""
        found: dict[Any, Reading] = {}
        for record in await self.read(topic):
            reading = decode_reading(record.value)
            if isinstance(reading, EpisodeSummary | WindowReading):
                found.setdefault(reading.identity, reading)
        return found

    async def wait_for_episodes(self, recorded: Recorded) -> None:
        wanted = {summary.identity for summary in recorded.offline.summaries}

        async def all_there() -> bool:
            for records in (await consumer.getmany(timeout_ms=200)).values():
                for record in records:
                    reading = decode_reading(record.value)
                    if isinstance(reading, EpisodeSummary):
                        wanted.discard(reading.identity)
            return not wanted

        async with self.consumer(SUMMARIES) as consumer:
            try:
                await until(all_there, "every episode has its summary")
            except AssertionError as error:
                missing = sorted(wanted, key=str)
                error.add_note(f"{len(wanted)} of {len(recorded.offline.summaries)} are missing: {missing}")
                for worker in self.workers:
                    error.add_note(f"worker {worker.process.pid}, {worker.process.poll()=}:\n{worker.log()}")
                raise

    async def differences(self, recorded: Recorded) -> list[str]:
        """Where the streamed windows and episodes are not those of the offline run, to 1e-9; nothing may be missing."""
        streamed = await self.readings(SUMMARIES) | await self.readings(WINDOWS)
        closed = {
            identity: reading
            for identity, reading in streamed.items()
            if not (isinstance(reading, WindowReading) and reading.state == "open")
        }
        offline: dict[Any, Reading] = {summary.identity: summary for summary in recorded.offline.summaries}
        offline |= {window.identity: window for window in recorded.offline.windows}
        wrong = [f"missing: {identity}" for identity in offline.keys() - closed.keys()]
        wrong += [f"not expected: {identity}" for identity in closed.keys() - offline.keys()]
        for identity in offline.keys() & closed.keys():
            if not alike(essentials(closed[identity]), essentials(offline[identity])):
                wrong.append(f"{closed[identity]}\n is not\n{offline[identity]}")
        return wrong


def essentials(reading: Reading) -> Any:
    """The reading without instants: where a recording has none the broker's stand in, and they are of today."""
    content = msgspec.to_builtins(reading)
    for name in ("started_s", "ended_s", "departure_time_s", "reentry_time_s", "length_s"):
        content.pop(name, None)
    return content


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 1e-9 * max(1.0, abs(other))
    return bool(one == other)


async def until(holds: Callable[[], Awaitable[bool]], what: str, deadline_s: float = DEADLINE_S) -> None:
    deadline = time.monotonic() + deadline_s
    while not await holds():
        assert time.monotonic() < deadline, f"not within {deadline_s} s: {what}"
        await asyncio.sleep(0.1)


def wait_until(holds: Callable[[], bool], what: str) -> None:
    async def asked() -> bool:
        return holds()

    asyncio.run(until(asked, what))


@pytest.fixture(scope="session")
def recorded() -> Recorded:
    """The recording four times over, as four fleets: so it spreads over the partitions."""
    one = [found.frame for found in read_frames([RECORDING])]
    frames = [renamed(frame, f"{fleet}-") for frame in one for fleet in FLEETS]
    config = ResilienceConfig()
    baseline = evaluate_frames(one, config).baseline
    return Recorded(frames, evaluate_frames(frames, config, baseline, lagged=True), dump_baseline(baseline))


def renamed(frame: StepFrame, prefix: str) -> StepFrame:
    episodes = tuple(msgspec.structs.replace(header, agent=prefix + header.agent) for header in frame.episodes)
    return msgspec.structs.replace(frame, producer=prefix + frame.producer, episodes=episodes)


MakeStream = Callable[..., Stream]


@pytest.fixture
def make_stream(tmp_path: Path) -> Iterator[MakeStream]:
    """Makes a stream at a broker's address; options are the worker's settings. Its workers end with the test."""
    made: list[Stream] = []

    def make(address: str, **options: str) -> Stream:
        made.append(Stream(address, tmp_path, **options))
        return made[-1]

    yield make
    for worker in [worker for stream in made for worker in stream.workers]:
        if worker.process.poll() is None:
            worker.process.kill()
            worker.process.wait(DEADLINE_S)


@pytest.fixture
def kafka_stream(apache_kafka: str, make_stream: MakeStream) -> Stream:
    # A worker that was killed holds its partitions until its session has ended: the shortest that Kafka allows.
    return make_stream(apache_kafka, session_timeout_s="6")


@pytest.fixture
def embedded_stream(embedded_broker: str, make_stream: MakeStream) -> Stream:
    return make_stream(embedded_broker)
