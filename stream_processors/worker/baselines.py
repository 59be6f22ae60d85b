"""The stage baselines as every worker has them, and their way out of and into a running fleet.

A worker reads all records of the compacted topic with a plain consumer: no consumer group, and no Faust GlobalTable,
which misbehaves with several instances. An export reads the same topic. An import does not write to it: it asks the one
stage that does, and waits until the topic shows the result.
"""

import asyncio
import uuid
from collections.abc import Collection
from contextlib import aclosing
from pathlib import Path
from typing import Protocol

import aiokafka  # type: ignore[import-untyped]
import msgspec

from springback.stream_processors.baseline_file import read_baseline
from springback.stream_processors.errors import BaselineImportError, StateFormatError
from springback.stream_processors.resilience.anchor import AnchorGrid
from springback.stream_processors.resilience.baseline.codec import (
    BaselineFormatError,
    BaselineReplacement,
    apply_record,
    dump_baseline,
    encode_contribution,
    family_record_key,
    load_baseline,
)
from springback.stream_processors.resilience.baseline.stage_baseline import FamilyBaseline, StageBaseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.service.broker_watch import check_broker
from springback.stream_processors.service.kafka_connection import KafkaConnection
from springback.stream_processors.service.topic_look import plain_consumer, records_until_now, started
from springback.stream_processors.topics import BASELINES, CONTRIBUTIONS, LARGEST_RECORD_BYTES, topic_name

_POLL_MS = 500


class BaselineSource(Protocol):
    """Where a worker gets its baseline. `version` rises with every change; `ready` is set once it may be used.

    `pinned` says that it is to be scored by exactly as it is.
    """

    ready: asyncio.Event
    version: int
    pinned: bool

    @property
    def cells(self) -> int:
        """How many cells of all families it has read."""

    async def run(self) -> None:
        """Keeps it up to date, until cancelled."""

    def usable(self) -> StageBaseline:
        """The families that may be scored by, as they are just now."""


class FrozenBaseline:
    """The baseline of a file, pinned: what the fleet learns meanwhile plays no part.

    A worker that is started with another file goes over to it as it would to a newer baseline: where nothing has been
    sent of yet.

    Args:
        file: what `springback baseline export` wrote.
        config: settings of the core, whose anchor grid must be the file's.

    Raises:
        SettingsError: the file cannot be read, or was made with another anchor grid.
    """

    def __init__(self, file: Path, config: ResilienceConfig) -> None:
        self._baseline = read_baseline(file, config.grid, "frozen_baseline")
        self.version = 0
        self.pinned = True
        self.ready = asyncio.Event()
        self.ready.set()

    @property
    def cells(self) -> int:
        """How many cells the file holds."""
        return _count_cells(self._baseline)

    async def run(self) -> None:
        """Waits until cancelled: nothing ever changes."""
        await asyncio.Event().wait()

    def usable(self) -> StageBaseline:
        """The file's baseline."""
        return self._baseline


class BaselineFeed:
    """The baselines that the fleet learns, as they come.

    Args:
        kafka: how to reach the broker.
        topic: name of the compacted topic, with its prefix.
        config: settings of the core.
    """

    def __init__(self, kafka: KafkaConnection, topic: str, config: ResilienceConfig) -> None:
        self.ready = asyncio.Event()
        self.version = 0
        self.pinned = False
        self._kafka = kafka
        self._topic = topic
        self._config = config
        self._learned = StageBaseline(grid=config.grid)

    @property
    def cells(self) -> int:
        """How many cells have been read, of families too that are not scored by yet."""
        return _count_cells(self._learned)

    async def run(self) -> None:
        """Reads the topic from its beginning, for ever.

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

    def usable(self) -> StageBaseline:
        """The families that have learned enough to be scored by, or are frozen."""
        return self._learned.mature(self._config.baseline)

    def _take(self, key: bytes | None, value: bytes | None) -> None:
        try:
            apply_record(self._learned, key or b"", value)
        except BaselineFormatError as error:
            message = (
                f"{self._topic}: {error}. A newer springback wrote it, or another program: upgrade the worker, or use "
                "another prefix."
            )
            raise StateFormatError(message) from error
        self.version += 1


def _count_cells(baseline: StageBaseline) -> int:
    return sum(len(family.cells) for family in baseline.families.values())


async def export_baseline(kafka: KafkaConnection, *, prefix: str = "", grid: AnchorGrid | None = None) -> bytes:
    """All that the fleet has learned, as a baseline file's content.

    Args:
        kafka: how to reach the brokers.
        prefix: what the topics' names begin with.
        grid: the anchor grid that the workers learn with; the default one where not given.

    Raises:
        BaselineFormatError: a record of the topic cannot be read.
        BrokerFaultError: the broker cannot be used, and why.
    """
    return dump_baseline(await _learned(kafka, prefix, grid))


async def unfreeze_baseline(
    kafka: KafkaConnection,
    names: Collection[str] = (),
    *,
    prefix: str = "",
    grid: AnchorGrid | None = None,
    timeout_s: float = 60.0,
) -> list[str]:
    """Lets families that an import has frozen learn again, from what they hold. A worker must be running.

    Args:
        kafka: how to reach the brokers.
        names: the families; all that are frozen if none is named.
        prefix: what the topics' names begin with.
        grid: the anchor grid that the workers learn with; the default one where not given.
        timeout_s: how long to wait for the workers.

    Returns:
        the families that were frozen, and learn now.

    Raises:
        BaselineImportError: a family that is named is not frozen, or no worker has done it in time.
        BrokerFaultError: the broker cannot be used, and why.
    """
    learned = await _learned(kafka, prefix, grid)
    frozen = {name: family for name, family in learned.families.items() if family.frozen}
    if others := sorted(set(names) - set(frozen)):
        message = f"Not frozen: {', '.join(map(repr, others))}. Frozen are: {', '.join(sorted(frozen)) or 'none'}."
        raise BaselineImportError(message)
    chosen = StageBaseline(grid=learned.grid)
    chosen.families.update({name: family for name, family in frozen.items() if not names or name in names})
    if not chosen.families:
        return []
    return await import_baseline(kafka, dump_baseline(chosen), prefix=prefix, grid=learned.grid, timeout_s=timeout_s)


async def _learned(kafka: KafkaConnection, prefix: str, grid: AnchorGrid | None) -> StageBaseline:
    """All that the fleet has learned until now."""
    await check_broker(kafka)
    learned = StageBaseline(grid=grid or AnchorGrid())
    async with aclosing(records_until_now(kafka, topic_name(BASELINES, prefix))) as records:
        async for record in records:
            apply_record(learned, record.key, record.value)
    return learned


async def import_baseline(
    kafka: KafkaConnection,
    data: bytes,
    *,
    prefix: str = "",
    grid: AnchorGrid | None = None,
    frozen: bool = False,
    timeout_s: float = 60.0,
) -> list[str]:
    """Puts a baseline file's families in the place of what the fleet has learned of them.

    Families that the file does not name stay as they are. A worker must be running: it does the work.

    Args:
        kafka: how to reach the brokers.
        data: the file's content.
        prefix: what the topics' names begin with.
        grid: the anchor grid that the workers learn with; the default one where not given.
        frozen: keep the families as imported: later contributions to them are ignored and counted.
        timeout_s: how long to wait for the workers.

    Returns:
        the families.

    Raises:
        BaselineImportError: the file cannot be used, or no worker has taken it up in time.
        BrokerFaultError: the broker cannot be used, and why.
    """
    families = _families_of(data, grid or AnchorGrid())
    await check_broker(kafka)
    request = uuid.uuid4().hex
    reader = plain_consumer(kafka, topic_name(BASELINES, prefix))
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=kafka.bootstrap, max_request_size=LARGEST_RECORD_BYTES, **kafka.client_options()
    )
    async with started(reader), started(producer):
        await reader.seek_to_end(*reader.assignment())
        for place in reader.assignment():  # where the end is must be known before the request is sent
            await reader.position(place)
        for family, baseline in families.items():
            baseline.frozen = frozen
            value = encode_contribution(BaselineReplacement(family=family, request=request, baseline=baseline))
            key = family.encode("utf-8", "replace")
            await producer.send_and_wait(topic_name(CONTRIBUTIONS, prefix), value, key=key)
        waiting = set(families)
        try:
            async with asyncio.timeout(timeout_s):
                await _see_done(reader, request, waiting)
        except TimeoutError as error:
            text = (
                f"No worker has taken up the baselines of {sorted(waiting)} within {timeout_s:.0f} s. The request is "
                "in the topic, and will be done once a worker runs; start one and look at its log."
            )
            raise BaselineImportError(text) from error
    return sorted(families)


def _families_of(data: bytes, grid: AnchorGrid) -> dict[str, FamilyBaseline]:
    try:
        found = load_baseline(data)
    except BaselineFormatError as error:
        message = f"The baseline cannot be imported: {error}."
        raise BaselineImportError(message) from error
    if found.grid != grid:
        message = f"The baseline cannot be imported: it has the grid {found.grid}, the workers have {grid}."
        raise BaselineImportError(message)
    return found.families


async def _see_done(reader: aiokafka.AIOKafkaConsumer, request: str, waiting: set[str]) -> None:
    while waiting:
        for records in (await reader.getmany(timeout_ms=_POLL_MS)).values():
            for record in records:
                family = msgspec.msgpack.decode(record.key)[0]
                if record.key != family_record_key(family) or record.value is None:
                    continue
                shown = apply_record(StageBaseline(), record.key, record.value)
                if shown is not None and shown.request == request:
                    waiting.discard(family)
