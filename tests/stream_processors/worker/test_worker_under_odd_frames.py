"""A real worker under odd and costly frames: it lives, accounts for every step, and keeps nobody beside them waiting.

With `SPRINGBACK_FUZZ_FRAMES=100000` in the environment it throws so many, as `make fuzz` does.
"""

import asyncio
import os
import random
import time
import urllib.request
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import aiokafka  # type: ignore[import-untyped]
import pytest
from prometheus_client.parser import text_string_to_metric_families

from springback.stream_processors.resilience.readings import EpisodeBegun, EpisodeSummary, decode_reading
from springback.stream_processors.topics import DEAD_LETTER, STEPS, SUMMARIES
from tests.fuzz.accounted_core import rows_of
from tests.fuzz.odd_frames import odd_frame
from tests.stream_processors.conftest import DEADLINE_S, until
from tests.stream_processors.costly_frames import costly_frames, episode, frame, rows

if TYPE_CHECKING:
    from tests.stream_processors.conftest import Stream, WorkerProcess

FRAMES = int(os.environ.get("SPRINGBACK_FUZZ_FRAMES", "3000"))
LONGEST_BYTES = 900_000
ROWS_OF_A_RECORD = 60_000
"""What fits the topic's largest record as JSON."""
MOST_MEMORY_MB = 1500
GOOD_BESIDE = 3
"""Episodes of the good producer that must come through while costly frames are still being sent."""


def figures(health: str) -> Counter[str]:
    """What the worker says of itself: sums by name, and by name and fate."""
    with urllib.request.urlopen(health + "metrics", timeout=DEADLINE_S) as answer:
        found: Counter[str] = Counter()
        for family in text_string_to_metric_families(answer.read().decode()):
            for sample in family.samples:
                stage = sample.labels.get("stage", "track_steps")
                if stage == "track_steps":
                    found[sample.name + "".join(f" {sample.labels[k]}" for k in ("fate",) if k in sample.labels)] += (
                        sample.value  # type: ignore[assignment]
                    )
        return found


def fates(found: Counter[str]) -> dict[str, int]:
    name = "springback_worker_step_fates_total "
    return {key.removeprefix(name): int(value) for key, value in found.items() if key.startswith(name)}


def memory_mb(worker: "WorkerProcess") -> int:
    status = Path(f"/proc/{worker.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024


async def wait_until_processed(worker: "WorkerProcess", health: str, frames: int) -> Counter[str]:
    found: Counter[str] = Counter()

    async def all_processed() -> bool:
        assert worker.process.poll() is None, worker.log()
        found.clear()
        found.update(await asyncio.to_thread(figures, health))
        return found["springback_worker_frames_total"] >= frames

    await until(all_processed, f"{frames} frames are processed", max(DEADLINE_S, frames / 100))
    return found


@pytest.mark.broker
@pytest.mark.timeout(max(300, FRAMES // 50))
def test_every_step_of_odd_frames_is_accounted_for(embedded_stream: "Stream") -> None:
    worker = embedded_stream.start(resilience__bounds__agents="6", resilience__bounds__producers="2")
    health = worker.wait_until_ready()
    rng = random.Random(11)
    sent = unreadable = 0
    messages: list[tuple[bytes, bytes]] = []
    for _ in range(FRAMES):
        data = odd_frame(rng)[:LONGEST_BYTES]
        key, count = rows_of(data)
        if count is None:
            unreadable += 1
        sent += count or 0
        messages.append((key, data))

    async def scenario() -> Counter[str]:
        await embedded_stream.send(messages)
        return await wait_until_processed(worker, health, FRAMES)

    found = asyncio.run(scenario())
    told = fates(found)
    assert sum(told.values()) == sent, told
    assert min(told.values()) > 0, told
    for trouble in ("rejected_messages", "too_costly_messages", "state_full_messages", "tick_failures"):
        assert found[f"springback_worker_{trouble}_total"] == 0, worker.log()
    letters = Counter(letter.value for letter in asyncio.run(embedded_stream.read(DEAD_LETTER)))
    whole = Counter(data for key, data in messages if rows_of(data)[1] is None)
    assert sum(whole.values()) == unreadable
    assert not whole - letters
    assert memory_mb(worker) < MOST_MEMORY_MB
    assert worker.end() == 0, worker.log()


@pytest.mark.kafka
@pytest.mark.timeout(600)
def test_a_good_producer_keeps_its_latency_beside_costly_frames_and_a_flood_of_agents(kafka_stream: "Stream") -> None:
    stream = kafka_stream
    # One partition and one bucket: the good producer shares all that can be shared with the others.
    stream = type(stream)(stream.address, stream.directory, session_timeout_s="30", buckets="1")
    worker = stream.start()
    try:
        health = worker.wait_until_ready()
        waits, beside, found = asyncio.run(_beside_the_flood(stream, worker, health))
        assert worker.process.poll() is None, worker.log()
        assert max(waits) < DEADLINE_S, worker.log()
        assert found["springback_worker_too_costly_messages_total"] == 0
        assert found["springback_worker_abandoned_batches_total"] == 0, worker.log()
        assert fates(found)["over_bounds"] > 0
        assert memory_mb(worker) < MOST_MEMORY_MB
        reasons = Counter(r.headers["reason"].decode() for r in asyncio.run(stream.read(DEAD_LETTER)))
        assert reasons["too_many_faults"] >= 3, reasons
        assert beside >= GOOD_BESIDE, "good episodes come through while the others are not all worked on"
        assert worker.end() == 0, worker.log()
    finally:
        worker.process.kill()
        worker.process.wait(DEADLINE_S)


def flood(number: int) -> bytes:
    """A frame of some hundred kilobytes with a few thousand agents that were never seen before."""
    names = [f"{number}-{agent}-{'x' * 200}" for agent in range(2000)]
    steps = rows(2000, episode=list(range(2000)), step=[0] * 2000)
    return frame([episode(agent=name) for name in names], steps, producer=f"flood-{number % 4}")


async def _beside_the_flood(
    stream: "Stream", worker: "WorkerProcess", health: str
) -> tuple[list[float], int, Counter[str]]:
    sent_at: dict[str, float] = {}
    begun_after: list[float] = []
    ended: set[str] = set()
    bad_frames = [*costly_frames(ROWS_OF_A_RECORD).values()] + [flood(number) for number in range(12)]
    done = asyncio.Event()

    async def good() -> None:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=stream.address) as producer:
            while not done.is_set():
                name = str(len(sent_at))
                data = frame([episode(agent="good", episode=name)], rows(5), [{"episode": 0, "outcome": "success"}],
                             producer="good")  # fmt: skip
                sent_at[name] = time.monotonic()
                await producer.send_and_wait(stream.prefix + STEPS, data, key=b"good", partition=0)
                await asyncio.sleep(0.1)

    async def bad() -> None:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=stream.address, max_request_size=2_000_000) as producer:
            for data in bad_frames:
                await producer.send_and_wait(stream.prefix + STEPS, data, key=rows_of(data)[0], partition=0)
                await asyncio.sleep(0.5)  # as a producer that goes on, beside which others go on too

    async def read() -> None:
        async with stream.consumer(SUMMARIES) as consumer:
            async for record in consumer:
                reading = decode_reading(record.value)
                if not isinstance(reading, EpisodeBegun | EpisodeSummary) or reading.key.agent != "good":
                    continue
                if isinstance(reading, EpisodeBegun):
                    begun_after.append(time.monotonic() - sent_at[reading.key.episode])
                else:
                    ended.add(reading.key.episode)

    reader, sender = asyncio.ensure_future(read()), asyncio.ensure_future(good())
    try:
        await until(_true_of(lambda: len(ended) >= 10), "episodes come through before the flood")
        before = len(ended)
        await bad()
        beside = len(ended) - before
        await wait_until_processed(worker, health, len(bad_frames) + len(ended))
        done.set()
        await sender
        await until(_true_of(lambda: ended >= sent_at.keys()), "every good episode has its summary")
    finally:
        reader.cancel()
        sender.cancel()
    return begun_after, beside, await asyncio.to_thread(figures, health)


def _true_of(holds: Callable[[], bool]) -> Callable[[], Awaitable[bool]]:
    async def asked() -> bool:
        return holds()

    return asked
