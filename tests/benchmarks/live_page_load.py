"""`python -m tests.benchmarks.live_page_load`: what a live page of many agents costs whoever looks, and who serves it.

A broker, a `springback live`, agents that each report once a second, a browser that opens the page, and viewers that
follow it as a browser does, without drawing it. All of them reach the page through a proxy that counts bytes.
"""

import ast
import asyncio
import contextlib
import math
import re
import shutil
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import aiohttp
import msgspec
import psutil  # type: ignore[import-untyped]
import socketio  # type: ignore[import-untyped]
import typer
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]
from msgspec.structs import replace
from playwright.async_api import async_playwright
from rich.console import Console
from rich.table import Table

from springback.deploy.brokers import EmbeddedBroker
from springback.sinks.sink_runner import ReadingTopics
from springback.stream_processors.resilience.readings import AgentCounts, Reading, encode_reading
from springback.stream_processors.topics import declare_topics
from tests.dashboards.live_page.fake_fleet import family, status, summary, window
from tests.dashboards.live_page.live_process import LiveProcess
from tests.program import run_program

FIRST_VIEW_BOUND_S = 2.0
KB_A_SECOND_BOUND = 60.0
_PREFIX = "load-"
_TICKS_A_SECOND = 10
_EPISODE_S = 60
_CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
_DEADLINE_S = 60.0
_LINK_BYTES = 64 * 1024


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen.

    Attributes:
        agents: that reported once a second.
        viewers: that followed the page, the browser among them.
        first_view_s: from asking for the page until its rows were shown, in a browser that knew nothing of it.
        first_view_kb: bytes until then, in kB.
        kb_a_second: what each viewer got, compressed as browsers have it.
        unpacked_kb_a_second: the same before it was compressed.
        updates_a_second: messages of it.
        page_share: processor time of the page, as a share of one core.
        without_viewers_share: the same while nobody looked.
        memory_mb: memory of the page at the end.
    """

    agents: int
    viewers: int
    first_view_s: float
    first_view_kb: float
    kb_a_second: float
    unpacked_kb_a_second: float
    updates_a_second: float
    page_share: float
    without_viewers_share: float
    memory_mb: float


class MovingFleet:
    """Agents that each report once a second, and go through episodes with windows in them."""

    def __init__(self, agents: int) -> None:
        self._names = [f"robot-{number}" for number in range(agents)]
        self._taken = 0

    def tick(self, now_s: float) -> Iterator[tuple[str, str, Reading]]:
        """What a tenth of the agents say: topic, key and reading."""
        topics = ReadingTopics.of_prefix(_PREFIX)
        tick = self._taken
        self._taken += 1
        second = tick // _TICKS_A_SECOND
        for number in range(tick % _TICKS_A_SECOND, len(self._names), _TICKS_A_SECOND):
            agent, at = self._names[number], second + number
            step, episode = at % _EPISODE_S, str(at // _EPISODE_S)
            disturbed = number % 3 == 0 and 20 <= step < 40
            intensity = 0.5 + 0.4 * math.sin(at / 3) + (4.0 if disturbed else 0.0)
            told = status(
                agent,
                step,
                family=f"family-{number % 5}",
                seen_s=now_s,
                departed=20 if disturbed else None,
                cost=0.13 * (step - 20) if disturbed else 0.0,
                intensity=intensity,
                counts=AgentCounts(steps=at),
            )
            key = replace(told.episodes[0].key, episode=episode)
            yield topics.statuses, agent, replace(told, episodes=(replace(told.episodes[0], key=key),))
            if disturbed and step in (20, 39):
                state = "open" if step == 20 else "recovered"
                shown = replace(window(agent, state=state, departure_time_s=now_s - step + 20), key=key)
                yield topics.windows, agent, shown
            if step == _EPISODE_S - 1:
                yield topics.summaries, "navigation", replace(summary(agent, episode), ended_s=now_s)
        if tick % (2 * _TICKS_A_SECOND) == 0:
            for number in range(5):
                yield topics.families, "f", family(f"family-{number}", second + 1, success_rate=0.9 + second % 7 / 100)


class CountingProxy:
    """Passes connections on to the page, and counts the bytes that come from it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.received = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            to_page, from_page = (await asyncio.open_connection("127.0.0.1", self._port))[::-1]
            await asyncio.gather(self._pass_on(reader, to_page, 0), self._pass_on(from_page, writer, 1))
        except ConnectionError:
            writer.close()  # one side has gone, and so goes the other
        except asyncio.CancelledError:
            pass  # at the end, with the program

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, counted: int) -> None:
        while data := await reader.read(_LINK_BYTES):
            self.received += counted * len(data)
            writer.write(data)
            await writer.drain()
        writer.close()

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        """The address, for as long as the block runs."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()


@contextlib.asynccontextmanager
async def following(address: str, path: str, updates: Counter[str]) -> AsyncIterator[None]:
    """A viewer that gets the page, and then all that changes in it, as a browser does.

    Args:
        address: of the page.
        path: which page.
        updates: counts the messages, by their names, and the characters that they are as JSON.
    """
    async with aiohttp.ClientSession() as session, session.get(address + path) as answer:
        page = await answer.text()
    found = re.search(r"query: (\{.*?\}),\n", page)
    if found is None:
        message = f"{address}{path} is no page of NiceGUI as it was known: it has no query"
        raise ValueError(message)
    own = {"document_id": str(uuid.uuid4()), "tab_id": str(uuid.uuid4()), "old_tab_id": ""}
    asked = ast.literal_eval(found[1]) | own
    query = "&".join(f"{name}={str(value).lower() if value is True else value}" for name, value in asked.items())
    # Compressed, as browsers ask for it.
    client = socketio.AsyncClient(websocket_extra_options={"compress": 15})

    @client.on("*")  # type: ignore[untyped-decorator]
    def came(event: str, data: object) -> None:
        updates[event] += 1
        updates["characters"] += len(str(data))

    await client.connect(
        f"{address}?{query}",
        socketio_path="/_nicegui_ws/socket.io",
        transports=["websocket"],
        wait_timeout=_DEADLINE_S,  # by itself a second, which a busy machine takes
    )
    try:
        yield
    finally:
        await client.disconnect()


class Seen(NamedTuple):
    """How long something took, or went on, and the bytes meanwhile."""

    seconds: float
    received: int


async def first_view(address: str, path: str, proxy: CountingProxy, agents: int) -> Seen:
    """Opens the page in a browser that has nothing of it."""
    program = next(filter(None, map(shutil.which, _CHROMIUM)), None)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = await browser.new_page()
        await page.goto("about:blank")
        before, started = proxy.received, time.perf_counter()
        await page.goto(address + path)
        await page.locator(".sb-fleet tbody tr").nth(min(agents, 50) - 1).wait_for(timeout=1000 * _DEADLINE_S)
        seen = Seen(time.perf_counter() - started, proxy.received - before)
        await browser.close()
    return seen


async def feed(broker: str, agents: int) -> None:
    """Lets the fleet move, for ever."""
    fleet, clock = MovingFleet(agents), asyncio.get_running_loop().time
    async with AIOKafkaProducer(bootstrap_servers=broker, linger_ms=20) as producer:
        due = clock()
        while True:
            for topic, key, reading in fleet.tick(time.time()):
                await producer.send(topic, encode_reading(reading), key=key.encode())
            due += 1 / _TICKS_A_SECOND
            await asyncio.sleep(max(0.0, due - clock()))


async def measure(agents: int, viewers: int, seconds: float, path: str, directory: Path) -> Figures:
    """Starts all of it, and looks on."""
    async with contextlib.AsyncExitStack() as stack:
        broker = stack.enter_context(EmbeddedBroker())
        await declare_topics(broker.address, prefix=_PREFIX, partitions=2)
        live = stack.enter_context(LiveProcess(broker.address, _PREFIX, directory))
        process = psutil.Process(live.child.pid)
        feeding = asyncio.ensure_future(feed(broker.address, agents))
        stack.callback(feeding.cancel)
        proxy = CountingProxy(live.port)
        address = await stack.enter_async_context(proxy.open())
        await asyncio.sleep(min(seconds, 5.0))  # until each agent has reported
        alone = await _share(process, seconds / 2)
        shown = await first_view(address, path, proxy, agents)
        updates: Counter[str] = Counter()
        for _ in range(viewers):
            await stack.enter_async_context(following(address, path, updates))
        await asyncio.sleep(2.0)  # what is sent at the beginning is the first view
        updates.clear()
        before, started = proxy.received, time.perf_counter()
        share = await _share(process, seconds)
        received, took = proxy.received - before, time.perf_counter() - started
        memory = process.memory_info().rss
        if feeding.done():
            feeding.result()
    return Figures(
        agents=agents,
        viewers=viewers,
        first_view_s=shown.seconds,
        first_view_kb=shown.received / 1000,
        kb_a_second=received / 1000 / took / viewers,
        unpacked_kb_a_second=updates.pop("characters", 0) / 1000 / took / viewers,
        updates_a_second=updates.total() / took / viewers,
        page_share=share,
        without_viewers_share=alone,
        memory_mb=memory / 1e6,
    )


async def _share(process: psutil.Process, seconds: float) -> float:
    used, started = sum(process.cpu_times()[:2]), time.perf_counter()
    await asyncio.sleep(seconds)
    return float((sum(process.cpu_times()[:2]) - used) / (time.perf_counter() - started))


def live_page_load(
    agents: Annotated[int, typer.Option(min=1, help="Agents, each of which reports once a second.")] = 300,
    viewers: Annotated[int, typer.Option(min=1, help="Viewers of the page at once.")] = 20,
    seconds: Annotated[float, typer.Option(min=1, help="For how long to look on.")] = 30.0,
    path: Annotated[str, typer.Option(help="Which page; the fleet's if not given.")] = "/",
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", dir_okay=False, help="Write the figures here too.")
    ] = None,
) -> None:
    """Measures a live page under load; fails if a view takes, or sends, more than it may.

    The bounds are for a machine that does nothing else; of a busy one only the bytes and the processor time say much.

    Example: python -m tests.benchmarks.live_page_load --agents 300 --viewers 20
    """
    with tempfile.TemporaryDirectory() as directory:
        found = asyncio.run(measure(agents, viewers, seconds, path, Path(directory)))
    table = Table("figure", "found", "bound", title=f"{agents} agents, {viewers} viewers of {path}")
    table.add_row("first view, s", f"{found.first_view_s:.2f}", f"{FIRST_VIEW_BOUND_S:g}")
    table.add_row("first view, kB", f"{found.first_view_kb:,.0f}", "")
    table.add_row("kB a second for each viewer", f"{found.kb_a_second:.1f}", f"{KB_A_SECOND_BOUND:g}")
    table.add_row("before compression", f"{found.unpacked_kb_a_second:.1f}", "")
    table.add_row("messages a second for each viewer", f"{found.updates_a_second:.2f}", "")
    table.add_row("processor time of the page, cores", f"{found.page_share:.2f}", "")
    table.add_row("the same while nobody looks", f"{found.without_viewers_share:.2f}", "")
    table.add_row("memory of the page, MB", f"{found.memory_mb:.0f}", "")
    Console().print(table)
    if json_file is not None:
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(found)))
    raise typer.Exit(int(found.first_view_s > FIRST_VIEW_BOUND_S or found.kb_a_second > KB_A_SECOND_BOUND))


if __name__ == "__main__":
    sys.exit(run_program(live_page_load, "live_page_load"))
