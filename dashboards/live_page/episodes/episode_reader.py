"""Episodes step by step for all who look: each is read once, one after the other, and kept for a while."""

import asyncio
import gzip
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from aiokafka.errors import KafkaError  # type: ignore[import-untyped]
from nicegui import background_tasks

from springback.dashboards.live_page.episodes.steps_topic import EpisodeSteps, WantedEpisode, read_episode
from springback.producers.broker_fault import access_fault
from springback.producers.contract.codec import encode_json
from springback.stream_processors.offline.episode_trace import EpisodeTrace, trace_episode
from springback.stream_processors.resilience.readings import EpisodeKey
from springback.stream_processors.settings import WorkerSettings

MOST_KEPT = 100
"""Episodes that are kept."""
MOST_STEPS_KEPT = 80_000
"""Their steps in all, some 1.3 kB each: 100 MB. An episode has up to 20,000."""
AGAIN_AFTER_S = 15.0
"""An episode that is open, or could not be read, is read again after so long, if somebody looks at it."""
REST = 10.0
"""It is left alone for at least so many times as long as the last reading of it took."""
FORGOTTEN_AFTER_S = 10.0
"""An episode that waits to be read, and that nobody has asked for since, is not read."""
_log = logging.getLogger(__name__)


@dataclass
class ReadEpisode:
    """An episode as far as it has been read.

    Attributes:
        steps: what the topic has of it.
        trace: what the core makes of that; None before it has been read for the first time.
        told: what is missing, and why.
        version: another one after every reading that has ended; 0 before the first.
        reading: whether it is being read, or waits for that.
        messages: how many messages the reading has looked at.
        kept: how many steps are held.
        due_s: from when on it may be read again, by the reader's clock; `asked_s` is when somebody asked for it last.
        whole: whether it was over already when it was read last.
    """

    steps: EpisodeSteps = field(default_factory=EpisodeSteps)
    trace: EpisodeTrace | None = None
    told: list[str] = field(default_factory=list)
    version: int = 0
    reading: bool = False
    messages: int = 0
    kept: int = 0
    due_s: float = float("-inf")
    asked_s: float = float("-inf")
    whole: bool = False

    def recording(self) -> bytes:
        """The steps as a recording: JSON Lines of step frames, packed by gzip."""
        lines = b"".join(encode_json(frame.arrived.frame) + b"\n" for frame in self.steps.frames)
        return gzip.compress(lines, mtime=0)


class EpisodeReader:
    """Reads episodes for all pages, on a thread beside the page's own.

    Args:
        settings: where the topics are, and what the core is set to.
        clock: seconds that only rise.
    """

    def __init__(self, settings: WorkerSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings, self._clock = settings, clock
        self._known: OrderedDict[EpisodeKey, ReadEpisode] = OrderedDict()
        self._versions = count(1)
        self._turn = asyncio.Lock()

    def ask(self, wanted: WantedEpisode) -> ReadEpisode:
        """What is known of an episode just now; it is read where that is due, and whoever asks again sees more."""
        read, now_s = self._known.setdefault(wanted.key, ReadEpisode()), self._clock()
        self._known.move_to_end(wanted.key)
        self._forget()
        read.asked_s = now_s
        settled = read.trace is not None and (read.trace.summary is not None or (wanted.over and read.whole))
        if not read.reading and not settled and now_s >= read.due_s:
            read.reading, read.messages = True, 0
            background_tasks.create(self._read(wanted, read), name="read episode")
        return read

    def _forget(self) -> None:
        """Forgets those that were asked for longest ago, where there are too many.

        None that is being read, or waits for that: whoever looks at it asks again in a second, and each time one more
        reading would wait.
        """
        steps = sum(read.kept for read in self._known.values())
        for key, read in list(self._known.items())[:-1]:
            if len(self._known) <= MOST_KEPT and steps <= MOST_STEPS_KEPT:
                return
            if not read.reading:
                steps -= read.kept
                del self._known[key]

    async def finished(self, wanted: WantedEpisode) -> ReadEpisode:
        """The episode when its reading has ended."""
        while (read := self.ask(wanted)).reading:
            await asyncio.sleep(0.05)
        return read

    async def _read(self, wanted: WantedEpisode, read: ReadEpisode) -> None:
        def progress(messages: int) -> None:
            read.messages = messages

        async with self._turn:
            began_s = self._clock()
            try:
                if began_s - read.asked_s <= FORGOTTEN_AFTER_S:
                    await self._read_now(wanted, read, progress)
                    ended_s = self._clock()
                    read.due_s = ended_s + max(AGAIN_AFTER_S, REST * (ended_s - began_s))
            finally:
                read.reading = False
                self._forget()

    async def _read_now(self, wanted: WantedEpisode, read: ReadEpisode, progress: Callable[[int], None]) -> None:
        try:
            steps = await asyncio.to_thread(_run, read_episode(self._settings, wanted, progress))
            read.trace = await asyncio.to_thread(_traced, wanted.key, steps, self._settings)
            read.steps, read.told, read.kept, read.whole = steps, steps.told, steps.steps, wanted.over
        except TimeoutError:
            read.told = ["The broker did not give its steps: it does not answer in time."]
            _log.warning("The steps of an episode could not be read: the broker does not answer in time.")
        except KafkaError as error:
            read.told = [f"The broker did not give its steps: {access_fault(error) or error}"]
            _log.warning("The steps of an episode could not be read: %s", error)
        except Exception:
            read.told = ["Its steps could not be worked out; the log of the live page says why."]
            _log.exception("The steps of an episode could not be worked out.")
        read.version = next(self._versions)


def _run(reading: Coroutine[Any, Any, EpisodeSteps]) -> EpisodeSteps:
    return asyncio.run(reading)


def _traced(key: EpisodeKey, steps: EpisodeSteps, settings: WorkerSettings) -> EpisodeTrace:
    return trace_episode(key, steps.frames, steps.switches, settings.resilience)
