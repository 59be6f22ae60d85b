"""Readings gathered in the background of a program that does something else: a sink runner on a thread of its own."""

import asyncio
import contextlib
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from springback.sinks.sink import ReadingBack, Sink
from springback.sinks.sink_runner import ReadingTopics, SinkRunner

_START_TIMEOUT_S = 30.0


class BackgroundReader:
    """Writes all readings, from the topics' beginning on, into sinks for as long as a `with` block runs.

    The sinks are written to from the reader's thread.

    Args:
        bootstrap: HOST:PORT of the broker, several with commas between.
        sinks: what to write to.
        prefix: what the topics' names begin with.
        client_options: further options of aiokafka's consumer (security).

    Raises:
        Exception: whatever ended the reading early, on leaving the block or on `check`.
    """

    def __init__(
        self,
        bootstrap: str,
        sinks: Sequence[Sink],
        *,
        prefix: str = "",
        client_options: Mapping[str, Any] | None = None,
    ) -> None:
        self._runner = SinkRunner(
            bootstrap, ReadingTopics.of_prefix(prefix), sinks, self, client_options=client_options
        )
        self._caught_up = threading.Event()
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="springback-reader", daemon=True)
        self.unreadable_messages = 0

    def check(self) -> None:
        """Raises what has ended the reading, if anything has."""
        if self._error is not None:
            raise self._error

    def reading_back(self, progress: ReadingBack) -> None:
        """Whoever waits is told of the end alone."""

    def unreadable(self, topic: str) -> None:
        """Counts a message that is no reading."""
        self.unreadable_messages += 1

    def retried(self, sink: str) -> None:
        """A sink was unavailable and is tried again: the runner has logged it."""

    def caught_up(self) -> None:
        """Ends the wait: everything that was in the topics at the start has been written."""
        self._caught_up.set()

    def __enter__(self) -> Self:
        """Starts, and waits until what is in the topics already has been read."""
        self._thread.start()
        try:
            if not self._caught_up.wait(_START_TIMEOUT_S):
                why = self._runner.faults.text or "no fault of the broker is known"
                message = f"The topics of readings were not read to their ends in {_START_TIMEOUT_S:.0f} s ({why})"
                raise TimeoutError(message)
            self.check()
        except BaseException:
            self._stop.set()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Stops reading."""
        self._stop.set()
        self._thread.join()
        if error is None:
            self.check()

    def _run(self) -> None:
        try:
            asyncio.run(self._read())
        except Exception as error:
            self._error = error
        finally:
            self._caught_up.set()  # so that `__enter__` sees the error

    async def _read(self) -> None:
        reading = asyncio.create_task(self._runner.run())
        while not self._stop.is_set():
            done, _ = await asyncio.wait([reading], timeout=0.1)
            if done:
                return await reading
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reading
