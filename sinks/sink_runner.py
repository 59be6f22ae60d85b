"""Reads the topics of readings from their beginning and writes them to sinks, for as long as it is let.

It belongs to no consumer group and commits nothing: a sink drops repetitions by identity, so that reading all again is
always right, and any number of runners may stand side by side. A topic that was made anew, or whose broker lost what it
had, is read from its new beginning: how far each partition was read tells its log from another one.
"""

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition  # type: ignore[import-untyped]
from aiokafka.errors import KafkaError  # type: ignore[import-untyped]

from springback.producers.backoff import Backoff
from springback.producers.broker_fault import BrokerFault, FaultLog, access_fault, find_fault_soon
from springback.sinks.errors import SinkUnavailableError
from springback.sinks.fleet.memory import fingerprint
from springback.sinks.log_places import LogPlaces, LogReach, first_offsets
from springback.sinks.sink import DeadLetter, ReadingBack, RunnerObserver, Sink, TimedSink
from springback.stream_processors import topics
from springback.stream_processors.dead_letters.letters import SENT_AGAIN
from springback.stream_processors.resilience.readings import Reading, decode_reading
from springback.stream_processors.service.run import write_ready_file

_log = logging.getLogger(__name__)

UNREADABLE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for bytes that are no reading."""

_POLL_MS = 500
_METADATA_AGE_MS = 10_000
_BACKOFF = Backoff(0.25, 10.0)
_ASSIGNMENT_POLL_S = 0.02
_LOOK_INTERVAL_S = 3.0
_LOOK_TIMEOUT_S = 2.0


class ReadingTopics(NamedTuple):
    """The names of the topics that sinks read, and of the workers' input."""

    windows: str
    summaries: str
    statuses: str
    families: str
    dead_letters: str
    steps: str

    @classmethod
    def of_prefix(cls, prefix: str, *, judged: bool = False) -> Self:
        """The topics of an installation, whose workers read judged steps or steps as they come.

        >>> ReadingTopics.of_prefix("lab-").windows
        'lab-rebound-windows'
        >>> ReadingTopics.of_prefix("lab-", judged=True).steps
        'lab-judged-steps'
        """
        steps = topics.JUDGED_STEPS if judged else topics.STEPS
        names = (topics.WINDOWS, topics.SUMMARIES, topics.STATUS, topics.FAMILIES, topics.DEAD_LETTER, steps)
        return cls(*(topics.topic_name(name, prefix) for name in names))

    @property
    def read(self) -> tuple[str, ...]:
        """The topics that a sink runner reads: all but the workers' input."""
        return self.windows, self.summaries, self.statuses, self.families, self.dead_letters


class ReadyObserver:
    """Tells the outside that all is caught up, by a file and a call; of the rest the runner's log says enough.

    Args:
        name: what the service is called in the file.
        address: where it is.
        ready_file: written when all is caught up: `{name: address}`.
        on_ready: called then with the address.
    """

    def __init__(
        self, name: str, address: str, ready_file: Path | None, on_ready: Callable[[str], None] | None
    ) -> None:
        self._name = name
        self._address = address
        self._ready_file = ready_file
        self._on_ready = on_ready

    def reading_back(self, progress: ReadingBack) -> None:
        """Leaves it to whoever asks."""

    def unreadable(self, topic: str) -> None:
        """Leaves it to the log."""

    def retried(self, sink: str) -> None:
        """Leaves it to the log."""

    def caught_up(self) -> None:
        """Tells it, again too when a broker that was away is caught up with."""
        if self._ready_file is not None:
            write_ready_file(self._ready_file, {self._name: self._address})
        if self._on_ready is not None:
            self._on_ready(self._address)


class SinkRunner:
    """The loop between the topics and the sinks.

    Args:
        bootstrap: HOST:PORT of the broker, several with commas between.
        topics: what to read.
        sinks: what to write to.
        observer: learns how it goes.
        client_options: further options of aiokafka's consumer (security).
        faults: learns why the broker cannot be used, when it cannot; a new one where not given.
        most: of each topic that is not compacted, so many of the newest messages are read at the start; all where not
            given. Of a compacted one all must be read: the only word of an agent may be an old one.

    Attributes:
        faults: why the broker cannot be used just now, for health pages.
    """

    def __init__(
        self,
        bootstrap: str,
        topics: ReadingTopics,
        sinks: Sequence[Sink],
        observer: RunnerObserver,
        *,
        client_options: Mapping[str, Any] | None = None,
        faults: FaultLog | None = None,
        most: int | None = None,
    ) -> None:
        self.faults = faults or FaultLog("the reading of topics", _log)
        self._bootstrap = bootstrap
        self._topics = topics
        self._sinks = sinks
        self._observer = observer
        self._client_options = client_options or {}
        self._most = most
        self._writers = [_writer(sink) for sink in sinks]
        self._places = LogPlaces()
        self._reach = LogReach()
        self._ends: dict[TopicPartition, int] | None = None
        self._told_unreadable: set[str] = set()

    async def run(self) -> None:
        """Reads and writes until cancelled; waits for a broker that is away. Closes the sinks at the end.

        Raises:
            Exception: whatever a sink raises that is not `SinkUnavailableError`.
        """
        failures = 0
        try:
            while True:
                if await self._look_at_broker() is None:
                    try:
                        async with self._consumer() as consumer:
                            failures = 0
                            await self._follow(consumer)
                    except KafkaError as error:
                        if await self._look_at_broker(error) is None:
                            level = logging.WARNING if failures == 0 else logging.DEBUG
                            _log.log(
                                level, "Readings cannot be read for now: %s. Trying again until they can be.", error
                            )
                failures += 1
                await asyncio.sleep(_BACKOFF.pause_s(failures))
        finally:
            for sink in self._sinks:
                sink.close()

    async def _look_at_broker(self, error: KafkaError | None = None) -> BrokerFault | None:
        """Why the broker cannot be used, told and returned; None if it can."""
        fault = access_fault(error) or await find_fault_soon(self._bootstrap, self._client_options)
        self.faults.note(fault)
        return fault

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
        """Subscribes once all topics are there: a broker might make them, with partitions of its own."""
        wanted = set(self._topics.read)
        told = False
        while missing := wanted - await consumer.topics():
            if not told:
                told = True
                _log.warning(
                    "Waiting for topics: %s. `springback topics` declares them; where they exist, this user may not "
                    "see them (`springback topics --acls`).",
                    ", ".join(sorted(missing)),
                )
            await asyncio.sleep(_BACKOFF.first_s)
        consumer.subscribe(self._topics.read)
        while wanted - {partition.topic for partition in consumer.assignment()}:
            await asyncio.sleep(_ASSIGNMENT_POLL_S)

    async def _follow(self, consumer: AIOKafkaConsumer) -> None:
        known = consumer.assignment()
        self._ends = await consumer.end_offsets(known)
        firsts = await self._choose_firsts(consumer, self._ends)
        self._look_back(consumer, known)
        self._tell_progress(firsts)
        loop = asyncio.get_running_loop()
        looked_s = loop.time()
        while True:
            batches = await consumer.getmany(timeout_ms=_POLL_MS)
            if self._ends is not None:
                self.faults.clear()
            for partition, records in batches.items():
                for record in records:
                    if self._places.is_of_another_log(partition, record):
                        self._begin_anew(consumer, [partition])
                        break
                    # When a topic gets more partitions aiokafka begins all of them anew.
                    if self._places.is_new(partition, record):
                        await self._write(record)
                        self._places.passed(partition, record)
                        self._reach.passed(partition, record)
                    else:
                        self._places.comes_again(partition, record)
                for sink in self._sinks:
                    await self._insist(sink, sink.flush)
            self._tell_progress(firsts)
            if self._ends is not None and await _reached(consumer, self._ends):
                self._ends = None
                self._observer.caught_up()
            if loop.time() - looked_s >= _LOOK_INTERVAL_S:
                await self._look_at_logs(consumer)
                looked_s = loop.time()

    async def _choose_firsts(
        self, consumer: AIOKafkaConsumer, ends: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """Where each log is read from: where we were or, of those not read yet, from where there is room for it."""
        firsts = {p: 0 if (last := self._places.last_offset(p)) is None else last + 1 for p in ends}
        unread = {partition for partition in ends if self._places.last_offset(partition) is None}
        begins: Mapping[TopicPartition, int] = await consumer.beginning_offsets(unread) if unread else {}
        bounded = (self._topics.windows, self._topics.summaries, self._topics.dead_letters)
        for topic in self._topics.read:
            of_topic = {partition: begin for partition, begin in begins.items() if partition.topic == topic}
            if self._most is not None and topic in bounded:
                firsts |= first_offsets(of_topic, ends, self._most)
            else:
                firsts |= of_topic
            for partition, begin in of_topic.items():
                self._reach.begins(partition, begin, firsts[partition])
                consumer.seek(partition, firsts[partition])
        return firsts

    def _tell_progress(self, firsts: Mapping[TopicPartition, int]) -> None:
        """Tells how far what was there has been read, as long as it is not."""
        if self._ends is None:
            return
        read = total = 0
        for partition, end in self._ends.items():
            first, last = firsts[partition], self._places.last_offset(partition)
            total += max(0, end - first)
            read += 0 if last is None else max(0, min(end, last + 1) - first)
        self._observer.reading_back(ReadingBack(read, total, self._reach.reaches()))

    async def _look_at_logs(self, consumer: AIOKafkaConsumer) -> None:
        """Checks that the logs are still those that were read: not every broker says so when asked for more."""
        assigned = consumer.assignment()
        try:
            async with asyncio.timeout(_LOOK_TIMEOUT_S):
                ends = await consumer.end_offsets(assigned)
        except (KafkaError, TimeoutError) as error:
            _log.debug("The ends of the topics are unknown for now: %s", error)
            await self._look_at_broker(error if isinstance(error, KafkaError) else None)
            self._look_back(consumer, assigned)
            return
        self.faults.clear()
        self._begin_anew(consumer, self._places.ended_before(ends))
        self._look_back(consumer, self._places.doubted)

    def _look_back(self, consumer: AIOKafkaConsumer, assigned: AbstractSet[TopicPartition]) -> None:
        """Reads on where we were, the last message once more: the log is recognised by it once the broker is back."""
        for partition in assigned:
            last = self._places.last_offset(partition)
            if last is not None:
                consumer.seek(partition, last)

    def _begin_anew(self, consumer: AIOKafkaConsumer, remade: Iterable[TopicPartition]) -> None:
        for partition in remade:
            _log.warning(
                "Partition %d of %s begins anew: the topic was made again, or the broker lost what it had. It is read "
                "from its beginning.",
                partition.partition,
                partition.topic,
            )
            self._places.forget(partition)
            self._reach.forget(partition)
            if self._ends is not None:
                self._ends.pop(partition, None)
            consumer.seek(partition, 0)  # before a log's beginning the client goes to the beginning

    async def _write(self, record: ConsumerRecord) -> None:
        if record.topic == self._topics.dead_letters:
            if any(name == SENT_AGAIN for name, _ in record.headers):
                return  # no letter, but a note that one was sent again
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
        for sink, write in zip(self._sinks, self._writers, strict=True):
            await self._insist(sink, partial(write, reading, record.timestamp / 1000))

    async def _insist(self, sink: Sink, write: Callable[[], None]) -> None:
        """Writes, as often as it takes: what comes after waits, and nothing is left out."""
        for failures in itertools.count(1):
            try:
                return write()
            except SinkUnavailableError as error:
                level = logging.WARNING if failures == 1 else logging.DEBUG
                _log.log(level, "The sink %s is unavailable: %s. Trying again until it is there.", sink.name, error)
                self._observer.retried(sink.name)
                await asyncio.sleep(_BACKOFF.pause_s(failures))

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


def _writer(sink: Sink) -> Callable[[Reading, float], None]:
    if isinstance(sink, TimedSink):
        return sink.write_at
    return lambda reading, _: sink.write(reading)


async def _reached(consumer: AIOKafkaConsumer, ends: Mapping[TopicPartition, int]) -> bool:
    assigned = consumer.assignment()
    for partition, end in ends.items():
        if partition not in assigned or await consumer.position(partition) < end:
            return False
    return True


def _dead_letter(record: ConsumerRecord) -> DeadLetter:
    headers = sorted((key, bytes(value or b"")) for key, value in record.headers)
    reason = dict(headers).get("reason", b"").decode("utf-8", "replace")
    return DeadLetter(
        reason, fingerprint((headers, record.value)), record.timestamp / 1000 if record.timestamp else None
    )
