"""The exporter on a broker: readings in by Kafka, the page out by HTTP."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped]
from prometheus_client.parser import text_string_to_metric_families

from springback.producers.errors import ServerAddressError
from springback.sinks.exporter import export_readings
from springback.sinks.sink_runner import ReadingTopics
from springback.stream_processors.topics import declare_topics
from tests.house import ROOT

Make = Callable[..., Any]
Send = Callable[..., Awaitable[None]]
Until = Callable[[Callable[[], Awaitable[bool]]], Awaitable[None]]
Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]

DEADLINE_S = 30.0
UNFOLDED = ("exporter", "last_event_age", "frames_behind")
OPENER = build_opener(ProxyHandler({}))


def scrape(address: str) -> Series:
    text = OPENER.open(address, timeout=10).read().decode("utf-8")
    return {
        (sample.name.removeprefix("springback_"), tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(series: Series, name: str, **labels: str) -> float | None:
    return series.get((name, tuple(sorted(labels.items()))))


def folded(series: Series) -> Series:
    return {key: found for key, found in series.items() if not key[0].startswith(UNFOLDED)}


@asynccontextmanager
async def exporting(broker: str, prefix: str, **options: Any) -> AsyncIterator[str]:
    """An exporter that is ready; yields the page's address."""
    stop = asyncio.Event()
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    running = asyncio.ensure_future(
        export_readings(broker, stop, port=0, prefix=prefix, on_ready=ready.set_result, **options)
    )
    try:
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.wait((running, ready), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        yield ready.result()
    finally:
        stop.set()
        await running


@pytest.mark.broker
def test_readings_reach_the_page(
    embedded_broker: str,
    prefix: str,
    tmp_path: Path,
    send: Send,
    until: Until,
    window: Make,
    summary: Make,
    status: Make,
    running: Make,
) -> None:
    topics = ReadingTopics.of_prefix(prefix)
    group = {"family": "navigation", "method": "default", "version": "0"}

    async def scenario() -> None:
        await declare_topics(embedded_broker, prefix=prefix, partitions=2)
        await send(embedded_broker, topics.windows, [window(state="open"), window(), window()])
        await send(embedded_broker, topics.summaries, [summary(), summary()])
        ready_file = tmp_path / "ready.json"
        async with exporting(embedded_broker, prefix, ready_file=ready_file) as address:
            assert json.loads(ready_file.read_text()) == {"metrics": address}
            assert address.startswith("http://127.0.0.1:")
            first = await asyncio.to_thread(scrape, address)
            assert value(first, "steps_total", **group) == 20
            assert (
                value(first, "rebound_windows_total", **group, perturbation="none", cause="effort", state="recovered")
                == 1
            )
            assert value(first, "exporter_caught_up") == 1

            # What comes later, with everything in between that is no reading.
            garbage = [b"", b"\x00garbage", b"{}", b"\x91" * 5000, b"\xc1"]
            await send(embedded_broker, topics.statuses, garbage)
            later = status(seen_s=1e9, episodes=(running(episode="2", steps=7),))
            await send(embedded_broker, topics.statuses, [later])
            await send(embedded_broker, topics.windows, [window(episode="2", state="open")])
            letter = [("reason", b"not_finite"), ("offset", b"4")]
            await send(embedded_broker, topics.dead_letters, [b"{}", b"{}"], letter)
            await send(embedded_broker, topics.steps, [b"frame"] * 3)

            async def all_shown() -> bool:
                page = await asyncio.to_thread(scrape, address)
                return (
                    value(page, "steps_total", **group) == 27
                    and value(page, "open_rebound_windows", **group) == 0  # its agent is long silent
                    and value(page, "dead_letters_total", reason="not_finite") == 1
                    and value(page, "rebound_windows_opened_total", **group, perturbation="none") == 2
                    and value(page, "exporter_unreadable_messages_total", topic=topics.statuses) == len(garbage)
                    and sum(found for (name, _), found in page.items() if name == "frames_behind") == 3
                )

            await until(all_shown)
            one = await asyncio.to_thread(scrape, address)
            async with exporting(embedded_broker, prefix) as beside:
                other = await asyncio.to_thread(scrape, beside)
            assert folded(one) == folded(other)

    asyncio.run(scenario())


@pytest.mark.broker
def test_readings_of_families_reach_the_page_and_outlive_a_restart(
    embedded_broker: str, prefix: str, send: Send, until: Until, family: Make, begun: Make
) -> None:
    topics = ReadingTopics.of_prefix(prefix)
    group = {"family": "navigation", "method": "default", "version": "0"}

    async def scenario() -> None:
        await declare_topics(embedded_broker, prefix=prefix, partitions=2)
        await send(embedded_broker, topics.summaries, [begun(), begun()])
        await send(embedded_broker, topics.families, [family(sequence=1, breaches=1), family(sequence=2, breaches=2)])
        async with exporting(embedded_broker, prefix) as address:
            first = await asyncio.to_thread(scrape, address)
            assert value(first, "stress_breaches_total", **group) == 2
            assert value(first, "stress_margin", **group, stress="0.2") == -0.5
            assert value(first, "episodes_begun_total", **group, perturbation="none") == 1

            # A worker that fell sends again what it had sent, then what is new.
            told = [family(sequence=1, breaches=1), family(sequence=2, breaches=2), b"\xc1"]
            await send(embedded_broker, topics.families, [*told, family(sequence=3, breaches=3, live_stress=None)])

            async def shown() -> bool:
                page = await asyncio.to_thread(scrape, address)
                return value(page, "stress_breaches_total", **group) == 3

            await until(shown)
            one = await asyncio.to_thread(scrape, address)
            assert value(one, "live_stress", **group) is None
            assert value(one, "exporter_repeated_readings_total", kind="family") == 2
            assert value(one, "exporter_unreadable_messages_total", topic=topics.families) == 1
        async with exporting(embedded_broker, prefix) as restarted:
            assert folded(await asyncio.to_thread(scrape, restarted)) == folded(one)

    asyncio.run(scenario())


@pytest.mark.broker
def test_frames_behind_follow_the_groups_commits(embedded_broker: str, prefix: str, send: Send, until: Until) -> None:
    topics = ReadingTopics.of_prefix(prefix)

    async def scenario() -> None:
        await declare_topics(embedded_broker, prefix=prefix, partitions=1)
        await send(embedded_broker, topics.steps, [b"frame"] * 5)
        worker = AIOKafkaConsumer(
            bootstrap_servers=embedded_broker, group_id=f"{prefix}springback", enable_auto_commit=False
        )
        await worker.start()
        partition = TopicPartition(topics.steps, 0)
        worker.assign([partition])
        try:
            async with exporting(embedded_broker, prefix) as address:

                async def behind(frames: int) -> bool:
                    return value(await asyncio.to_thread(scrape, address), "frames_behind", partition="0") == frames

                await until(lambda: behind(5))
                await worker.commit({partition: 4})
                await until(lambda: behind(1))
        finally:
            await worker.stop()

    asyncio.run(scenario())


def test_a_broker_that_is_away_is_waited_for_and_shown(until: Until) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        nobody = f"127.0.0.1:{listening.getsockname()[1]}"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

    async def scenario() -> None:
        stop = asyncio.Event()
        running = asyncio.ensure_future(export_readings(nobody, stop, port=port))

        async def shown() -> bool:
            await asyncio.sleep(0)
            page = await asyncio.to_thread(scrape, f"http://127.0.0.1:{port}/metrics")
            assert value(page, "exporter_broker_reachable") == 0
            assert value(page, "exporter_caught_up") == 0
            return True

        await asyncio.sleep(0)  # the server binds in the first step of the task
        await until(shown)
        assert not running.done()
        stop.set()
        await running

    asyncio.run(scenario())


def test_a_port_that_is_taken_is_told_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(ServerAddressError, match=rf"127\.0\.0\.1:{port}.*[Cc]hoose another port"):
            asyncio.run(export_readings("127.0.0.1:1", asyncio.Event(), port=port))


@pytest.mark.broker
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_exporter_cleanly(
    embedded_broker: str, prefix: str, tmp_path: Path, until: Until, number: signal.Signals
) -> None:
    ready_file = tmp_path / "ready.json"
    program = (
        "import sys, pathlib\n"
        "from springback.sinks.exporter import export_readings\n"
        "from springback.stream_processors.service.run import run_until_signalled\n"
        "options = {'port': 0, 'prefix': sys.argv[2], 'ready_file': pathlib.Path(sys.argv[3])}\n"
        "run_until_signalled(lambda stop: export_readings(sys.argv[1], stop, **options))\n"
    )

    async def scenario() -> tuple[int, bytes]:
        await declare_topics(embedded_broker, prefix=prefix, partitions=1)
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-W", "error", "-c", program, embedded_broker, prefix, str(ready_file)),
            cwd=ROOT,
            env=os.environ,
            stderr=asyncio.subprocess.PIPE,
        )
        try:

            async def ready() -> bool:
                return ready_file.exists() or child.returncode is not None

            await until(ready)
            child.send_signal(number)
            async with asyncio.timeout(DEADLINE_S):
                _, errors = await child.communicate()
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
        assert child.returncode is not None
        return child.returncode, errors

    assert asyncio.run(scenario()) == (0, b"")
    assert list(tmp_path.iterdir()) == [ready_file]
