"""The stage baselines as every worker has them: a plain consumer of the whole compacted topic.

No consumer group and no Faust GlobalTable, which misbehaves with several instances: each worker reads every record.
"""

import asyncio
import time
from pathlib import Path
from typing import Protocol

from springback.stream_processors.errors import SettingsError, StateFormatError
from springback.stream_processors.kafka_connection import KafkaConnection
from springback.stream_processors.plain_consumer import plain_consumer, started
from springback.stream_processors.resilience.baseline_codec import BaselineFormatError, apply_record, load_baseline
from springback.stream_processors.resilience.materialised_baseline import MaterialisedBaseline, materialise
from springback.stream_processors.resilience.resilience_config import ResilienceConfig
from springback.stream_processors.resilience.stage_baseline import StageBaseline

_POLL_MS = 500


class BaselineSource(Protocol):
    """Where a worker has its baseline from. `version` rises with every change; `ready` is set once it may be used."""

    ready: asyncio.Event
    version: int

    @property
    def cells(self) -> int:
        """How many cells of all families it has read."""

    async def run(self) -> None:
        """Keep it up to date, until cancelled."""

    def current(self) -> MaterialisedBaseline:
        """The baseline to score by."""


class FrozenBaseline:
    """The baseline of a file, pinned: what others learn meanwhile plays no part.

    Args:
        file: what `springback baseline export` wrote.
        config: settings of the core, whose anchor grid must be the file's.

    Raises:
        SettingsError: the file cannot be read, or was made with another anchor grid.
    """

    def __init__(self, file: Path, config: ResilienceConfig) -> None:
        try:
            baseline = load_baseline(file.read_bytes())
        except OSError as error:
            message = f"frozen_baseline: cannot read {str(file)!r} ({error.strerror})."
            raise SettingsError(message) from error
        except BaselineFormatError as error:
            message = f"frozen_baseline {str(file)!r}: {error}."
            raise SettingsError(message) from error
        if baseline.grid != config.grid:
            message = f"frozen_baseline {str(file)!r} has the grid {baseline.grid}, the settings have {config.grid}."
            raise SettingsError(message)
        self._materialised = materialise(baseline, config.baseline, config.window.fixed_bounds())
        self._cells = _count_cells(baseline)
        self.version = 0
        self.ready = asyncio.Event()
        self.ready.set()

    @property
    def cells(self) -> int:
        """How many cells the file holds."""
        return self._cells

    async def run(self) -> None:
        """Nothing ever changes."""
        await asyncio.Event().wait()

    def current(self) -> MaterialisedBaseline:
        """The file's baseline."""
        return self._materialised


class BaselineFeed:
    """The baselines that the fleet learns, as they come.

    Args:
        kafka: how to reach the broker.
        topic: name of the compacted topic, with its prefix.
        config: settings of the core.
        refresh_s: shortest time between two materialisations.
    """

    def __init__(self, kafka: KafkaConnection, topic: str, config: ResilienceConfig, refresh_s: float) -> None:
        self.ready = asyncio.Event()
        self.version = 0
        self._kafka = kafka
        self._topic = topic
        self._config = config
        self._refresh_s = refresh_s
        self._learned = StageBaseline(grid=config.grid)
        self._materialised = self._materialise()
        self._materialised_version = 0
        self._materialised_at = -refresh_s

    @property
    def cells(self) -> int:
        """How many cells have been read, of families too that are not scored by yet."""
        return _count_cells(self._learned)

    async def run(self) -> None:
        """Read the topic from its beginning, for ever.

        Raises:
            StateFormatError: a record cannot be read by this version.
        """
        consumer = plain_consumer(self._kafka, self._topic)
        async with started(consumer):
            ends = await consumer.end_offsets(consumer.assignment())
            while True:
                for records in (await consumer.getmany(timeout_ms=_POLL_MS)).values():
                    for record in records:
                        self._take(record.key, record.value)
                if not self.ready.is_set() and not [p for p, end in ends.items() if await consumer.position(p) < end]:
                    self.ready.set()

    def current(self) -> MaterialisedBaseline:
        """The baseline to score by: the newest, or one that is at most the refresh time old."""
        due = time.monotonic() - self._materialised_at >= self._refresh_s
        if due and self._materialised_version != self.version:
            self._materialised = self._materialise()
            self._materialised_version = self.version
            self._materialised_at = time.monotonic()
        return self._materialised

    def _take(self, key: bytes | None, value: bytes | None) -> None:
        try:
            apply_record(self._learned, key or b"", value)
        except BaselineFormatError as error:
            message = f"{self._topic}: {error}. Was it written by a newer springback, or by another program?"
            raise StateFormatError(message) from error
        self.version += 1

    def _materialise(self) -> MaterialisedBaseline:
        usable = self._learned.mature(self._config.baseline)
        return materialise(usable, self._config.baseline, self._config.window.fixed_bounds())


def _count_cells(baseline: StageBaseline) -> int:
    return sum(len(family.cells) for family in baseline.families.values())
