"""The judge between its topics, on a broker: all arrives, in each producer's order, wherever the judge is stopped."""

import asyncio
import contextlib
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiokafka  # type: ignore[import-untyped]
import msgspec
import numpy as np
import pytest

from springback.producers.contract.codec import decode_frame, encode_json, encode_msgpack
from springback.stream_processors.judging.process import judge_steps
from springback.stream_processors.settings import WorkerSettings, load_settings
from springback.stream_processors.topics import JUDGED_STEPS, STEPS, SUMMARIES, WINDOWS
from tests.stream_processors.conftest import alike, essentials
from tests.stream_processors.judging.chat_stub import GOOD, Asked, Reply, chat_stub, good
from tests.stream_processors.judging.test_step_selection import frame_of

if TYPE_CHECKING:
    from tests.stream_processors.conftest import Recorded, Stream

pytestmark = [pytest.mark.broker, pytest.mark.timeout(150)]
DEADLINE_S = 60.0
GARBAGE = b"\x00 nothing that anyone can read"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def settings_of(stream: "Stream", base_url: str, **judge: Any) -> WorkerSettings:
    overrides = {
        "judge": {"base_url": base_url, "model": "stub", "which": "every", "calls_per_minute": 100_000}
        | {"deadline_s": DEADLINE_S, "call_timeout_s": 20.0}
        | judge
    }
    quick = {"SPRINGBACK_REBALANCE_TIMEOUT_S": "2", "SPRINGBACK_SESSION_TIMEOUT_S": "4"}
    return load_settings(environment=stream.environment | quick, overrides=overrides)


@contextlib.asynccontextmanager
async def judging(settings: WorkerSettings, *, crash: bool = False) -> AsyncIterator[None]:
    """A judge while the block lasts; at its end it is told to stop, or torn down with all that is under way."""
    stop = asyncio.Event()
    task = asyncio.create_task(judge_steps(settings, stop))
    try:
        yield
    finally:
        if crash:
            task.cancel()
        stop.set()
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.gather(task, return_exceptions=crash)


async def read_until(stream: "Stream", topic: str, enough: Callable[[Sequence[Any]], bool]) -> list[Any]:
    """The topic's records of all partitions, each partition in order, once they are enough."""
    consumer = aiokafka.AIOKafkaConsumer(
        stream.prefix + topic, bootstrap_servers=stream.address, auto_offset_reset="earliest", enable_auto_commit=False
    )
    found: list[Any] = []
    async with consumer, asyncio.timeout(DEADLINE_S):
        while not enough(found):
            for records in (await consumer.getmany(timeout_ms=200)).values():
                found += records
    return found


def so_many(least: int) -> Callable[[Sequence[Any]], bool]:
    return lambda records: len(records) >= least


def messages(producers: str, frames: int) -> list[tuple[bytes, bytes]]:
    """Frames of one step each, of several producers by turns; each third of them as JSON, and garbage between."""
    made = []
    for step in range(frames):
        for name in producers:
            frame = frame_of([step], producer=name, feedback=[f"{name} {step}"])
            made.append((name.encode(), (encode_json if step % 3 == 0 else encode_msgpack)(frame)))
    return [*made[:5], (b"garbage", GARBAGE), *made[5:]]


def steps_by_key(records: Sequence[Any]) -> dict[bytes, list[int]]:
    found: dict[bytes, list[int]] = {}
    for record in records:
        if record.value != GARBAGE:
            found.setdefault(record.key, []).append(int(decode_frame(record.value).steps["step"][0]))  # type: ignore[index]
    return found


def test_steps_become_judged_steps(embedded_stream: "Stream") -> None:
    sent = messages("abcd", 12)

    async def scenario() -> None:
        async with chat_stub(good) as stub:
            settings = settings_of(embedded_stream, stub.base_url)
            async with judging(settings):
                await embedded_stream.send(sent)
                await read_until(embedded_stream, JUDGED_STEPS, so_many(len(sent)))
            # It has committed all: a second judge has nothing to do but what is new.
            async with judging(settings):
                await embedded_stream.send([(b"a", encode_msgpack(frame_of([99], producer="a")))])
                judged = await read_until(embedded_stream, JUDGED_STEPS, so_many(len(sent) + 1))
        taken = await read_until(embedded_stream, STEPS, so_many(len(sent) + 1))
        assert len(judged) == len(taken) == len(sent) + 1
        place = {(record.key, record.partition, record.timestamp) for record in taken}
        assert {(record.key, record.partition, record.timestamp) for record in judged} == place
        assert steps_by_key(judged) == steps_by_key(taken)
        assert [record.value for record in judged if record.key == b"garbage"] == [GARBAGE]
        for record in judged:
            if record.key != b"garbage":
                steps = decode_frame(record.value).steps
                found = [steps[f"judge_{name}"] for name in ("goal", "rationality", "efficiency")]
                np.testing.assert_array_equal(np.concatenate(found), GOOD)  # type: ignore[arg-type]

    asyncio.run(scenario())


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # a judge that is torn down closes neither clients nor sockets
def test_a_judge_that_is_torn_down_loses_and_disorders_nothing(embedded_stream: "Stream") -> None:
    sent = messages("abcd", 15)
    asked = 0

    async def erratic(call: Asked) -> Reply:
        nonlocal asked
        asked += 1
        await asyncio.sleep(3600 if asked % 7 == 0 else 0.02 * (asked % 5))
        return await good(call)

    async def scenario() -> None:
        async with chat_stub(erratic) as stub:
            settings = settings_of(embedded_stream, stub.base_url, deadline_s=1.0, call_timeout_s=0.5)
            await embedded_stream.send(sent)
            for _ in range(2):
                async with judging(settings, crash=True):
                    await read_until(embedded_stream, JUDGED_STEPS, so_many(10))
            async with judging(settings):
                await embedded_stream.send([(b"a", encode_msgpack(frame_of([99], producer="a")))])
                await read_until(
                    embedded_stream, JUDGED_STEPS, lambda records: 99 in steps_by_key(records).get(b"a", [])
                )
        judged = await read_until(embedded_stream, JUDGED_STEPS, so_many(len(sent) + 1))
        for key, steps in steps_by_key(judged).items():
            first_seen = list(dict.fromkeys(steps))
            assert first_seen == [*range(15), *([99] if key == b"a" else [])]

    asyncio.run(scenario())
    gc.collect()  # what it left open complains here, not in a later test


class JudgeProcess:
    """`springback judge` as its own process, at an endpoint where nobody listens."""

    def __init__(self, stream: "Stream", directory: Path) -> None:
        self.ready_file, self.log_file = directory / "judge-ready", directory / "judge.log"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            endpoint = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        options = ["--endpoint", endpoint, "--model", "none", "--ready-file", str(self.ready_file)]
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "springback", "judge", *options],
                env=os.environ | stream.environment | {"SPRINGBACK_JUDGE_API_KEY": "sk-never-told"},
                stderr=log,
            )

    def ask(self, path: str) -> str:
        health = msgspec.json.decode(self.ready_file.read_bytes())["health"]
        with urllib.request.urlopen(health + path, timeout=5) as answer:
            return str(answer.read().decode())

    def report(self) -> dict[str, Any]:
        return dict(json.loads(self.ask("live")))


def test_with_the_endpoint_down_the_worker_finds_what_it_finds_without_a_judge(
    embedded_broker: str, make_stream: Callable[..., "Stream"], recorded: "Recorded", tmp_path: Path
) -> None:
    judged, unjudged = streams = [make_stream(embedded_broker, judged=value) for value in ("true", "false")]
    for stream in streams:
        stream.freeze(recorded)
    workers = [stream.start() for stream in streams]
    judge = JudgeProcess(judged, tmp_path)
    try:
        for worker in workers:
            worker.wait_until_ready()

        async def found(stream: "Stream") -> dict[Any, Any]:
            await stream.send_frames(recorded.frames)
            await stream.wait_for_episodes(recorded)
            readings = await stream.readings(SUMMARIES) | await stream.readings(WINDOWS)
            closed = {key: reading for key, reading in readings.items() if getattr(reading, "state", "") != "open"}
            return {key: essentials(reading) for key, reading in closed.items()}

        async def both() -> tuple[dict[Any, Any], dict[Any, Any]]:
            return await asyncio.gather(found(judged), found(unjudged))

        with_judge, without = asyncio.run(both())
        check(judge.report(), recorded)
        assert f"\nspringback_judge_frames_total {len(recorded.frames)}.0\n" in judge.ask("metrics")
    finally:
        judge.process.send_signal(signal.SIGTERM)
        assert judge.process.wait(DEADLINE_S) == 0
    for worker in workers:
        assert worker.end() == 0, worker.log()
    assert with_judge.keys() == without.keys()
    assert [key for key, reading in without.items() if not alike(with_judge[key], reading)] == []
    told = (tmp_path / "judge.log").read_text()
    assert "sk-never-told" not in told
    assert "level=error" not in told


def check(report: dict[str, Any], recorded: "Recorded") -> None:
    # It does its part, and says that it is of no use.
    assert (report["joined"], report["ready"]) == (True, False)
    assert report["events"]["frames"] == len(recorded.frames)
    assert sum(report["steps"].values()) == sum(frame.n_steps for frame in recorded.frames)
    assert report["steps"]["judged"] == 0
    assert report["steps"]["failed"] + report["steps"]["endpoint_down"] + report["steps"]["over_budget"] > 0
