"""`python -m tests.benchmarks.exporter_load`: whether the exporter's bounds hold under a fleet that comes and goes."""

import gc
import gzip
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.request import ProxyHandler, Request, build_opener

import msgspec
import typer
from prometheus_client import CollectorRegistry, Gauge
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from springback.sinks.fleet.series_bounds import SeriesBounds
from springback.sinks.metrics_server import metrics_server
from springback.sinks.prometheus_sink import PrometheusSink
from springback.sinks.sink import DeadLetter
from tests.benchmarks.fleet_readings import MadeUpFleet
from tests.program import run_program

RENDER_BOUND_S = 1.0
GROWTH_BOUND_MB = 15.0
_START_S = 1_700_000_000.0
_SCRAPE_EVERY_S = 5.0
_PLAIN_SERIES = 20_000
_WARM_UP_TICKS = 20
_OPENER = build_opener(ProxyHandler({}))
_HEADERS = {"Accept": "application/openmetrics-text; version=1.0.0", "Accept-Encoding": "gzip"}


class Minute(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen in a minute.

    Attributes:
        minute: which one, from 1.
        agents: agents that ever were.
        readings: readings taken in.
        series: the most series of a page.
        page_s: processor time of a page, the median; as long as it takes on a machine that does nothing else.
        slowest_page_s: the same of the slowest page.
        wall_s: how long the slowest page took on this machine, with whatever else runs on it.
        ratio: processor time of a page, by its number of series, to that of a page of plain gauges.
        memory_mb: memory at the minute's end.
    """

    minute: int
    agents: int
    readings: int
    series: int
    page_s: float
    slowest_page_s: float
    wall_s: float
    ratio: float
    memory_mb: float


class Page(NamedTuple):
    """One answer of the metrics server: processor time of both sides, time by the clock, and how many series."""

    seconds: float
    wall_s: float
    series: int


def scrape(address: str) -> Page:
    """Ask for the page as Prometheus does, and time the answer."""
    gc.collect()
    begun, busy = time.perf_counter(), time.process_time()
    with _OPENER.open(Request(address, headers=_HEADERS), timeout=60) as answer:
        body = answer.read()
    wall_s, seconds = time.perf_counter() - begun, time.process_time() - busy
    lines = gzip.decompress(body).splitlines()
    return Page(seconds, wall_s, sum(not line.startswith(b"#") for line in lines))


def memory_mb() -> float:
    """The resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


class Load:
    """A sink behind its server, a fleet before it, and a clock that runs faster than ours.

    Args:
        agents: agents at any time.
        families: families that they are divided over.
        speed: seconds of the fleet's time in one of ours; each agent takes a step in one of ours.
        leaving: share of the agents that leave in one of our seconds.
        bounds: the exporter's.
    """

    def __init__(self, agents: int, families: int, speed: float, leaving: float, bounds: SeriesBounds) -> None:
        self.now_s = _START_S
        self.speed = speed
        self.readings = 0
        self.fleet = MadeUpFleet(agents, families, leaving)
        self.registry = CollectorRegistry()
        self.bounds = bounds
        self.sink = PrometheusSink(self.registry, bounds=self.bounds, clock=lambda: self.now_s)
        self.sink.caught_up()

    def tick(self) -> None:
        """One of our seconds."""
        self.now_s += self.speed
        for reading in self.fleet.tick(self.now_s):
            self.sink.write(reading)
            self.readings += 1
        self.sink.show_frames_behind(dict.fromkeys(range(8), 3))

    def fill_memory(self) -> Iterator[float]:
        """Bring the memory to where it is after months: all that is remembered, full. Yields the share done."""
        # Each agent of the crowd begins one episode and opens one window; two of three end it. Four times as many as
        # are remembered: tables of what is forgotten again grow beyond what they hold.
        crowd = MadeUpFleet(self.bounds.remembered_agents // 10, 1, leaving=1.0, opening=1.0)
        most = 4 * self.bounds.remembered
        for number in range(most):
            self.sink.write_dead_letter(DeadLetter("late", number.to_bytes(16, "big")))
        while crowd.arrived <= most:
            self.now_s += self.speed
            for reading in crowd.tick(self.now_s):
                self.sink.write(reading)
            yield min(1.0, crowd.arrived / most)
        self.now_s += 2 * 86_400.0  # of that crowd nobody is left


def plain_gauges(series: int) -> CollectorRegistry:
    """So many gauges as Prometheus' client has them."""
    registry = CollectorRegistry()
    gauge = Gauge("plain", "As many series.", ["agent", "state"], registry=registry)
    for number in range(series):
        gauge.labels(f"robot-{number // 7:06d}", str(number % 7)).set(number / 3)
    return registry


def minutes_of(
    load: Load, minutes: int, minute_s: float, plain_series: int, progress: Progress
) -> tuple[float, list[Minute]]:
    """Run for so long, beside a page of so many plain gauges.

    Returns:
        The memory in MB before it, with all that measuring needs, and each minute as it was.
    """
    found = []
    task = progress.add_task("load", total=minutes * minute_s)
    with (
        metrics_server(load.registry, "127.0.0.1", 0) as address,
        metrics_server(plain_gauges(plain_series), "127.0.0.1", 0) as plain_address,
    ):
        for _ in range(_WARM_UP_TICKS):
            load.tick()
            scrape(address)
            scrape(plain_address)
        start_mb = memory_mb()
        for minute in range(1, minutes + 1):
            pages: list[Page] = []
            plain_pages: list[Page] = []
            begun, before = time.monotonic(), load.readings
            scraped = -_SCRAPE_EVERY_S
            while (since := time.monotonic() - begun) < minute_s:
                load.tick()
                if since - scraped >= _SCRAPE_EVERY_S:
                    scraped = since
                    pages.append(scrape(address))
                    plain_pages.append(scrape(plain_address))
                progress.update(task, completed=minute_s * (minute - 1) + since)
                time.sleep(max(0.0, 1.0 - (time.monotonic() - begun - since)))
            progress.update(task, completed=minute_s * minute)
            times = [page.seconds for page in pages]
            found.append(
                Minute(
                    minute=minute,
                    agents=load.fleet.arrived,
                    readings=load.readings - before,
                    series=max(page.series for page in pages),
                    page_s=statistics.median(times),
                    slowest_page_s=max(times),
                    wall_s=max(page.wall_s for page in pages),
                    ratio=_seconds_a_series(pages) / _seconds_a_series(plain_pages),
                    memory_mb=memory_mb(),
                )
            )
    return start_mb, found


def _seconds_a_series(pages: list[Page]) -> float:
    return statistics.median(page.seconds / page.series for page in pages)


def found_table(found: list[Minute], start_mb: float) -> Table:
    """What was seen, minute by minute."""
    table = Table(title=f"Exporter under load (memory after filling: {start_mb:.0f} MB)")
    for heading in ("minute", "agents so far", "readings", "series", "page", "slowest", "by the clock", "memory"):
        table.add_column(heading, justify="right")
    for row in found:
        times = (f"{1000 * seconds:.0f} ms" for seconds in (row.page_s, row.slowest_page_s, row.wall_s))
        counts = f"{row.agents:,}", f"{row.readings:,}", f"{row.series:,}"
        table.add_row(str(row.minute), *counts, *times, f"{row.memory_mb:.0f} MB")
    return table


def broken_bounds(found: list[Minute], start_mb: float, cap: int) -> list[str]:
    """Which bounds did not hold, in words."""
    series, slowest = max(row.series for row in found), max(row.slowest_page_s for row in found)
    grown_mb = found[-1].memory_mb - start_mb
    broken = []
    if series > cap:
        broken.append(f"{series:,} series, stated are at most {cap:,}")
    if slowest >= RENDER_BOUND_S:
        broken.append(f"a page took {slowest:.2f} s of a processor, bound {RENDER_BOUND_S:g} s")
    if grown_mb > GROWTH_BOUND_MB:
        broken.append(f"memory grew by {grown_mb:.0f} MB, bound {GROWTH_BOUND_MB:g} MB")
    return broken


def exporter_load(
    minutes: Annotated[int, typer.Option(min=1, help="How long, after memory is filled.")] = 10,
    agents: Annotated[int, typer.Option(min=1, help="Agents at any time.")] = 5000,
    families: Annotated[int, typer.Option(min=1, help="Families that they are divided over.")] = 20,
    speed: Annotated[float, typer.Option(min=1, help="Seconds of the fleet's time in one of ours.")] = 6.0,
    leaving: Annotated[float, typer.Option(min=0, max=1, help="Share that leaves, and comes, in a second.")] = 0.005,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", dir_okay=False, help="Write the figures here too.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="Some seconds of a small fleet: whether it works.")] = False,
) -> None:
    """Hold the exporter to its bounds: series, page time, memory. Ends with 1 if one does not hold.

    Memory is filled first with all that the exporter remembers, as after months of use; from then on it must be flat.
    A page is asked for every five seconds as Prometheus does it, over HTTP with gzip. Its time is that of a processor,
    reading it included, so that whatever else runs on the machine does not count; the ratio says what it costs beside
    a page of as many plain gauges of Prometheus' client.
    """
    console = Console(width=None if sys.stdout.isatty() else 120)
    bar = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    minute_s, plain_series, bounds = 60.0, _PLAIN_SERIES, SeriesBounds()
    if quick:
        minutes, minute_s, plain_series, agents, families = 1, 2.0, 1_000, min(agents, 200), min(families, 4)
        bounds = SeriesBounds(agents=20, remembered=1_000, remembered_agents=1_000)
    load = Load(agents, families, speed, leaving, bounds)
    with Progress(*bar, console=Console(stderr=True)) as progress:
        task = progress.add_task("fill memory", total=1.0)
        for share in load.fill_memory():
            progress.update(task, completed=share)
        start_mb, found = minutes_of(load, minutes, minute_s, plain_series, progress)
    ratio = statistics.median(row.ratio for row in found)
    console.print(found_table(found, start_mb))
    console.print(
        f"Series at most: {load.bounds.series:,} stated. A page against one of as many plain gauges: {ratio:.2f}."
    )
    broken = broken_bounds(found, start_mb, load.bounds.series)
    if json_file is not None:
        figures = {"start_mb": start_mb, "cap": load.bounds.series, "ratio": ratio, "minutes": found, "broken": broken}
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=1) + b"\n")
    for told in broken:
        console.print(f"Broken: {told}.")
    raise typer.Exit(1 if broken else 0)


if __name__ == "__main__":
    sys.exit(run_program(exporter_load, "exporter_load"))
