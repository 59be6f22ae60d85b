"""Reads the topics of readings from their beginning and writes them to sinks, for as long as it is let.

It belongs to no consumer group and commits nothing: a sink drops repetitions by identity, so that reading all again is
always right, and any number of runners may stand side by side.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition  # type: ignore[import-untyped]
from aiokafka.errors import KafkaError  # type: ignore[import-untyped]

from sinks.bounded_memory import fingerprint
from sinks.errors import SinkUnavailableError
from sinks.reading_topics import ReadingTopics
from sinks.sink import DeadLetter, RunnerObserver, Sink
from stream_processors.resilience.readings import decode_reading

_log = logging.getLogger(__name__)

UNREADABLE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for bytes that are no reading."""

_POLL_MS = 500
_METADATA_AGE_MS = 10_000
_SHORTEST_WAIT_S = 0.25
_LONGEST_WAIT_S = 10.0
_ASSIGNMENT_POLL_S = 0.02


class SinkRunner:
    """The loop between the topics and the sinks.

    Args:
        bootstrap: HOST:PORT of the broker, several with commas between.
        topics: what to read.
        sinks: what to write to.
        observer: who is told how it goes.
        client_options: further options of aiokafka's consumer (security).
    """

    def __init__(
        self,
        bootstrap: str,
        topics: ReadingTopics,
        sinks: Sequence[Sink],
        observer: RunnerObserver,
        *,
        client_options: Mapping[str, Any] | None = None,
    ) -> None:
        self._bootstrap = bootstrap
        self._topics = topics
        self._sinks = sinks
        self._observer = observer
        self._client_options = client_options or {}
        self._next_offsets: dict[TopicPartition, int] = {}
        self._told_unreadable: set[str] = set()

    async def run(self) -> None:
        """Read and write until cancelled; a broker that is away is waited for. The sinks are closed at the end.

        Raises:
            Exception: whatever a sink raises that is not `SinkUnavailableError`.
        """
        wait_s = _SHORTEST_WAIT_S
        try:
            while True:
                try:
                    async with self._consumer() as consumer:
                        wait_s = _SHORTEST_WAIT_S
                        await self._follow(consumer)
                except KafkaError as error:
                    level = logging.WARNING if wait_s == _SHORTEST_WAIT_S else logging.DEBUG
                    _log.log(level, "Readings cannot be read for now: %s. Trying again until they can.", error)
                    await asyncio.sleep(wait_s)
                    wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
        finally:
            for sink in self._sinks:
                sink.close()

    @contextlib.asynccontextmanager
    async def _consumer(self) -> Any:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            metadata_max_age_ms=_METADATA_AGE_MS,
            **self._client_options,
        )
        try:
            await consumer.start()
            await self._join_topics(consumer)
            yield consumer
        finally:
            await consumer.stop()

    async def _join_topics(self, consumer: AIOKafkaConsumer) -> None:
        """Subscribe once all topics are there: a broker set to do so would make them, with partitions of its own."""
        wanted = set(self._topics.read)
        told = False
        while missing := wanted - await consumer.topics():
            if not told:
                told = True
                _log.warning("Waiting for topics: %s. `springback topics` declares them.", ", ".join(sorted(missing)))
            await asyncio.sleep(_SHORTEST_WAIT_S)
        consumer.subscribe(self._topics.read)
        while wanted - {partition.topic for partition in consumer.assignment()}:
            await asyncio.sleep(_ASSIGNMENT_POLL_S)

    async def _follow(self, consumer: AIOKafkaConsumer) -> None:
        known = consumer.assignment()
        for partition in known & self._next_offsets.keys():
            consumer.seek(partition, self._next_offsets[partition])
        ends: Mapping[TopicPartition, int] | None = await consumer.end_offsets(known)
        while True:
            for partition, records in (await consumer.getmany(timeout_ms=_POLL_MS)).items():
                for record in records:
                    # When a topic gets more partitions aiokafka begins all of them anew.
                    if record.offset >= self._next_offsets.get(partition, 0):
                        await self._write(record)
                        self._next_offsets[partition] = record.offset + 1
                for sink in self._sinks:
                    await self._insist(sink, sink.flush)
            if ends is not None and await _reached(consumer, ends):
                ends = None
                self._observer.caught_up()

    async def _write(self, record: ConsumerRecord) -> None:
        if record.topic == self._topics.dead_letters:
            letter = _dead_letter(record)
            for sink in self._sinks:
                await self._insist(sink, partial(sink.write_dead_letter, letter))
            return
        if record.value is None:
            return  # a tombstone of the compacted topic
        try:
            reading = decode_reading(record.value)
        except UNREADABLE_ERRORS as error:
            self._tell_unreadable(record, error)
            return
        for sink in self._sinks:
            await self._insist(sink, partial(sink.write, reading))

    async def _insist(self, sink: Sink, write: Callable[[], None]) -> None:
        """Write, as often as it takes: what comes after waits, and nothing is left out."""
        wait_s = _SHORTEST_WAIT_S
        while True:
            try:
                return write()
            except SinkUnavailableError as error:
                level = logging.WARNING if wait_s == _SHORTEST_WAIT_S else logging.DEBUG
                _log.log(level, "Sink %s is unavailable: %s. Trying again until it can.", sink.name, error)
                self._observer.retried(sink.name)
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    def _tell_unreadable(self, record: ConsumerRecord, error: Exception) -> None:
        self._observer.unreadable(record.topic)
        if record.topic not in self._told_unreadable:
            self._told_unreadable.add(record.topic)
            _log.warning(
                "A message of %s (partition %d, offset %d) is no reading: %s. It is passed over; more of them are "
                "counted, not logged.",
                record.topic,
                record.partition,
                record.offset,
                error,
            )


async def _reached(consumer: AIOKafkaConsumer, ends: Mapping[TopicPartition, int]) -> bool:
    assigned = consumer.assignment()
    for partition, end in ends.items():
        if partition not in assigned or await consumer.position(partition) < end:
            return False
    return True


def _dead_letter(record: ConsumerRecord) -> DeadLetter:
    headers = sorted((key, bytes(value or b"")) for key, value in record.headers)
    reason = dict(headers).get("reason", b"").decode("utf-8", "replace")
    return DeadLetter(reason, fingerprint((headers, record.value)))
