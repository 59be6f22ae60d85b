"""The view as a sink: readings come in on one thread, and are looked at from another.

They have a thread of their own because a topic with a long past must not keep the page from answering.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from springback.dashboards.live_page.alerts.alert_book import Alert, AlertBook
from springback.dashboards.live_page.alerts.conditions import Condition, conditions_of
from springback.dashboards.live_page.fleet_rows import FleetRow, fleet_rows
from springback.dashboards.live_page.fleet_view import FleetView
from springback.producers.broker_fault import FaultLog
from springback.sinks.sink import DeadLetter, ReadingBack
from springback.stream_processors.resilience.readings import Reading

_ROWS_AGE_S = 0.5
_ALERTS_AGE_S = 2.0


class LiveSink:
    """A sink, and the observer of its runner and of the broker.

    Args:
        view: what readings are folded into.
        clock: seconds since 1970.

    Attributes:
        faults: why the broker cannot be used, as the runner finds out.
    """

    def __init__(self, view: FleetView | None = None, clock: Callable[[], float] = time.time) -> None:
        self.faults = FaultLog("the live page")
        self._view = view or FleetView()
        self._clock = clock
        self._lock = threading.Lock()
        self._rows: list[FleetRow] = []
        self._rows_s = float("-inf")
        self._book = AlertBook()
        self._alerts: list[Alert] = []
        self._alerts_s = float("-inf")

    @property
    def name(self) -> str:
        """What the sink is called."""
        return "live page"

    @contextmanager
    def look(self) -> Iterator[tuple[FleetView, float]]:
        """The view and the present, for as long as the block; nothing changes meanwhile, so let it be short."""
        with self._lock:
            yield self._view, self._clock()

    def fleet_rows(self) -> list[FleetRow]:
        """A row for each agent, at most half a second old: however many look at the page, it is worked out once."""
        with self._lock:
            now_s = self._clock()
            if not 0 <= now_s - self._rows_s < _ROWS_AGE_S:
                self._rows, self._rows_s = fleet_rows(self._view, now_s), now_s
            return self._rows

    def alerts(self) -> list[Alert]:
        """The alerts, at most two seconds old: they are to be asked for at least as often, by whoever."""
        with self._lock:
            now_s = self._clock()
            if not 0 <= now_s - self._alerts_s < _ALERTS_AGE_S:
                self._alerts = self._book.step(conditions_of(self._view, now_s, self._view.times), now_s)
                self._alerts_s = now_s
            return self._alerts

    def waiting_for_alerts(self) -> list[Condition]:
        """What held when the alerts were last asked for, and not yet for as long as its alert takes."""
        with self._lock:
            return self._book.waiting

    def write(self, reading: Reading) -> None:
        """Folds one reading in, which the broker got just now."""
        self.write_at(reading, self._clock())

    def write_at(self, reading: Reading, sent_s: float) -> None:
        """Folds one reading in."""
        with self._lock:
            self._view.take(reading, self._clock(), sent_s)

    def write_dead_letter(self, letter: DeadLetter) -> None:
        """Counts that something could not be used."""
        with self._lock:
            self._view.take_dead_letter(letter)

    def flush(self) -> None:
        """Does nothing: the page looks by itself."""

    def close(self) -> None:
        """Does nothing: there is nothing to let go of."""

    def reading_back(self, progress: ReadingBack) -> None:
        """Takes in how far what was in the topics at the start has been read."""
        with self._lock:
            self._view.read_back = progress

    def unreadable(self, topic: str) -> None:
        """Counts a message that is no reading."""
        with self._lock:
            self._view.unreadable += 1

    def retried(self, sink: str) -> None:
        """Does nothing: this sink is never unavailable."""

    def caught_up(self) -> None:
        """Takes in that all is read that the topics hold."""
        with self._lock:
            self._view.sight.caught_up = True

    def show_frames_behind(self, behind: Mapping[int, int]) -> None:
        """Takes in that the broker has answered."""
        with self._lock:
            self._view.sight.show_frames_behind(behind, self._clock())

    def show_broker_away(self) -> None:
        """Takes in that the broker does not answer."""
        with self._lock:
            self._view.sight.show_broker_away(self._clock())


async def run_on_own_thread(part: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
    """Runs a coroutine on a thread and an event loop of its own, to its end, or until this one is cancelled.

    Args:
        part: makes the coroutine.
        name: of the thread.

    Raises:
        Exception: what the coroutine raised.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name=name, daemon=True)
    thread.start()
    running = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(part(), loop))
    try:
        await running
    finally:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_end_the_others(), loop))
        loop.call_soon_threadsafe(loop.stop)
        await asyncio.to_thread(thread.join)
        loop.close()


async def _end_the_others() -> None:
    """Cancels what still runs on this loop, and waits until it has cleaned up."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
