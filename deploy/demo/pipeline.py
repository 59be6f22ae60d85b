"""What the demos have in common: the stack, the readings that come out of it, progress, and a table at the end."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from msgspec.structs import replace
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from springback.dashboards.live_page.links import episode_link
from springback.deploy.errors import DeployError
from springback.deploy.local_stack import LocalStack, live_page_installed, live_page_line
from springback.deploy.table_views import family_table_view, resilience_table_view, window_sentence
from springback.producers.emitter.kafka_publisher import KafkaPublisher
from springback.sinks.background_reader import BackgroundReader
from springback.sinks.memory_sink import MemorySink
from springback.stream_processors.offline.tables import FamilyRow, evaluation_json, family_table
from springback.stream_processors.resilience.readings import EpisodeSummary, WindowReading
from springback.stream_processors.settings import WorkerSettings
from springback.stream_processors.topics import STEPS, topic_name

EXTERNAL_PREFIX = "springback-demo."
"""Begins the topics' names on a broker that is not our own, so that a demo stays out of real data."""

MOST_LEARNING_EPISODES = 200
"""Clean episodes of a family, at most, until enough references stand behind its alarm bounds."""
FLUSH_TIMEOUT_S = 10.0

_ARRIVAL_TIMEOUT_S = 120.0  # far above what a busy machine takes
_POLL_S = 0.1
_REFRESH_S = 1.0
_BETWEEN_LINES_S = 5.0
_CHECK_INTERVAL_S = 1.0


class DemoError(DeployError):
    """The demo did not come to its end as it should."""


class Pace:
    """Waits so that agents that play are slow enough to watch; time that they lose is not made up for."""

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self._due_s = time.monotonic()

    def wait(self) -> float:
        """Waits for the next instant, one period after the last, and returns it, by the monotonic clock in s."""
        self._due_s = max(self._due_s + self._period_s, time.monotonic() - self._period_s)
        time.sleep(max(0.0, self._due_s - time.monotonic()))
        return self._due_s


class DemoPart:
    """How far a part of the demo is: a bar on a terminal, and a line every few seconds anywhere else.

    Args:
        progress: the bars of the demo.
        name: what the part is called.
        total: what its whole is.
        detail: what is counted, or how it stands.
    """

    def __init__(self, progress: Progress, name: str, total: int, detail: str) -> None:
        self._progress, self._name, self._total, self._detail = progress, name, total, detail
        self._bar = progress.add_task(name, total=total, detail=detail)
        self._began_s = self._told_s = time.monotonic()
        self._told = -1
        self._tell(0)

    def update(self, completed: int, detail: str | None = None) -> None:
        """Shows that so much of it is done."""
        self._detail = self._detail if detail is None else detail
        self._progress.update(self._bar, completed=completed, detail=self._detail)
        now_s = time.monotonic()
        done = completed >= self._total > self._told
        if completed != self._told and (done or now_s - self._told_s >= _BETWEEN_LINES_S):
            self._tell(completed)

    def _tell(self, completed: int) -> None:
        self._told, self._told_s = completed, time.monotonic()
        if not self._progress.console.is_terminal:
            seconds = self._told_s - self._began_s
            line = f"{self._name} {completed}/{self._total} {self._detail} ({seconds:.0f} s)"
            self._progress.console.print(line, markup=False, highlight=False, soft_wrap=True)


@dataclass(slots=True)
class DemoRun:
    """A demo under way.

    Attributes:
        stack: the pipeline.
        readings: what has come out of it.
        console: where it says what it does.
        sessions: the producers' sessions of the part that counts for the table.
    """

    stack: LocalStack
    readings: MemorySink
    reader: BackgroundReader
    console: Console
    progress: Progress
    settings: WorkerSettings
    sessions: set[str] = field(default_factory=set)

    def summaries(self, sessions: set[str]) -> list[EpisodeSummary]:
        """The episodes of these sessions that have ended, as the stream found them."""
        return [summary for summary in self.readings.summaries if summary.key.session in sessions]

    def step_publisher(self) -> KafkaPublisher:
        """A publisher to the topic that the pipeline reads steps from."""
        topic = topic_name(STEPS, self.settings.prefix)
        return KafkaPublisher(self.stack.broker_address, topic, **self.settings.kafka.producer_options())

    def part(self, name: str, total: int, detail: str) -> DemoPart:
        """Begins a part of the demo that is to be seen coming along."""
        return DemoPart(self.progress, name, total, detail)

    def check(self) -> None:
        """Raises an error if a part of the pipeline has died."""
        self.stack.check()
        self.reader.check()

    def wait_for(self, arrived: Callable[[], int], expected: int, what: str) -> None:
        """Waits until so many have arrived.

        Raises:
            DemoError: they do not arrive in time.
        """
        deadline = time.monotonic() + _ARRIVAL_TIMEOUT_S
        while (count := arrived()) < expected:
            self.check()
            if time.monotonic() > deadline:
                message = (
                    f"{expected - count} of {expected} {what} did not come out of the pipeline within "
                    f"{_ARRIVAL_TIMEOUT_S:.0f} s. Its logs are in {self.stack.log_directory}"
                )
                raise DemoError(message)
            time.sleep(_POLL_S)

    def still_learning(self, family: str) -> DemoError:
        """The error of a family that has got no alarm bounds in `MOST_LEARNING_EPISODES`."""
        message = (
            f"Family {family!r} is still learning after {MOST_LEARNING_EPISODES} clean episodes. "
            f"The logs are in {self.stack.log_directory}"
        )
        return DemoError(message)

    def windows(self) -> list[WindowReading]:
        """The windows of the part that counts, closed; of those that closed twice the one that holds."""
        closed = sorted(self.readings.closed_windows, key=lambda window: window.revision)
        held = {(window.key, window.number): window for window in closed if window.key.session in self.sessions}
        return list(held.values())

    def table(self) -> list[FamilyRow]:
        """The family table of the part that counts."""
        return family_table(self.summaries(self.sessions), self.windows())

    def show(self, table: list[FamilyRow], title: str, *, keeps: bool) -> None:
        """Prints the table, what families withstand, the dearest window, and where page and metrics are.

        Args:
            table: the rows.
            title: what they are of.
            keeps: whether the page stays open, so that a link to it leads somewhere.
        """
        self.console.print()
        self.console.print(family_table_view(table, title))
        readings = self.readings.families.values()
        self.console.print(resilience_table_view(evaluation_json((), (), readings).resilience))
        counted = len(self.summaries(self.sessions))
        taught = len(self.readings.summaries) - counted
        self.console.print(
            f"\n{taught} clean episodes taught the baselines before these {counted}; they are not in the table."
        )
        for line in [*self._dearest(keeps), *self._whereabouts(keeps)]:
            self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _dearest(self, keeps: bool) -> list[str]:
        dearest = max(self.windows(), key=lambda window: window.recovery_cost, default=None)
        if dearest is None:
            return ["No rebound window was found."]
        lines = [f"The dearest rebound window: {window_sentence(dearest)}"]
        if keeps and self.stack.live_url:
            lines.append(self.stack.live_url.rstrip("/") + episode_link(dearest.key, dearest.number))
        return lines

    def _whereabouts(self, keeps: bool) -> list[str]:
        page, metrics = self.stack.live_url, self.stack.metrics_url
        if keeps:
            where = f"The live page stays at {page}, and the metrics" if page else "The metrics stay"
            return [f"{where} at {metrics}, until Ctrl-C."]
        where = f"The live page was at {page}. " if page else ""
        return [
            f"{where}The metrics were at {metrics}. --keep leaves them open at the end; `springback up` serves them "
            "for agents of your own."
        ]

    def stay(self) -> None:
        """Keeps everything up until Ctrl-C.

        Raises:
            DeployError: a part of the pipeline has died.
        """
        try:
            while True:
                self.check()
                time.sleep(_CHECK_INTERVAL_S)
        except KeyboardInterrupt:
            self.console.print("Stopping ...")


@contextmanager
def demo_run(
    broker: str, console: Console, metrics_port: int, live_port: int, settings: WorkerSettings
) -> Iterator[DemoRun]:
    """The pipeline on the chosen broker, for as long as the block.

    Args:
        broker: `embedded`, `kafka`, or HOST:PORT of one that runs.
        console: where to tell what happens.
        metrics_port: where the metrics are served on 127.0.0.1; 0 takes a free port.
        live_port: where the live page is, in the same way.
        settings: of the worker.

    Raises:
        DeployError: something is missing, or a part did not start.
    """
    console.print(f"Starting a broker ({broker}), a worker, the exporter and the live page (about 10 s) ...")
    # A fleet of minutes: what it learns must count within seconds.
    settings = replace(settings, baseline_refresh_s=min(settings.baseline_refresh_s, _REFRESH_S))
    readings = MemorySink()
    page = live_port if live_page_installed() else None
    with LocalStack(broker, settings, metrics_port=metrics_port, live_port=page) as stack:
        console.print(f"{live_page_line(stack)}\nKafka:   {stack.broker_address}", markup=False)
        console.print(f"Metrics: {stack.metrics_url}\nLogs:    {stack.log_directory}")
        options = settings.kafka.client_options()
        reader = BackgroundReader(stack.broker_address, [readings], prefix=settings.prefix, client_options=options)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[detail]}"),
            TimeElapsedColumn(),
        )
        with reader, Progress(*columns, console=console, disable=not console.is_terminal) as progress:
            yield DemoRun(stack, readings, reader, console, progress, settings)
