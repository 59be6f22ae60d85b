"""The topic of dead letters on a broker: reading it, and sending again what a letter came of."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Self

import aiokafka  # type: ignore[import-untyped]
import msgspec
from aiokafka.admin import AIOKafkaAdminClient  # type: ignore[import-untyped]

from springback.producers.contract.codec import decode_frame
from springback.producers.contract.frame import StepFrame
from springback.producers.errors import UnreadableFrameError
from springback.stream_processors.dead_letters.fates import Forecast, KnownEpisodes, forecast
from springback.stream_processors.dead_letters.letters import (
    SENT_AGAIN,
    SENT_AGAIN_OF,
    Letter,
    Place,
    letter_of,
)
from springback.stream_processors.errors import DeadLetterError
from springback.stream_processors.resilience.readings import decode_reading
from springback.stream_processors.service.broker_watch import check_broker
from springback.stream_processors.service.topic_look import plain_consumer, records_until_now, started
from springback.stream_processors.settings import WorkerSettings
from springback.stream_processors.topics import (
    DEAD_LETTER,
    JUDGED_STEPS,
    LARGEST_RECORD_BYTES,
    STATUS,
    STEPS,
    SUMMARIES,
    partitions_of_all,
    topic_name,
)

_RECORD_MS: Final = 3000
_ANSWER_S: Final = 10.0


@dataclass(slots=True)
class FoundLetters:
    """What lay in the topic.

    Attributes:
        letters: those that were asked for, partition by partition in the order of their arrival.
        sent_again: the places of the messages that have been sent again.
    """

    letters: list[Letter] = field(default_factory=list)
    sent_again: set[Place] = field(default_factory=set)


@dataclass(slots=True)
class Resending:
    """A message that is to be sent again, and what would become of it.

    Attributes:
        letter: the dead letter.
        value: what would be sent; None where there is nothing to send.
        frame: that as a frame; None where it cannot be read.
        outlook: what would become of it; None where it cannot be read.
        problem: why it cannot be sent; empty where it can.
    """

    letter: Letter
    value: bytes | None = None
    frame: StepFrame | None = None
    outlook: Forecast | None = None
    problem: str = ""

    @property
    def useful(self) -> bool:
        """Whether something of it would count, and nothing be harmed."""
        return self.outlook is not None and self.outlook.fate in ("counts", "in part")


class DeadLetterTopic:
    """The dead letters of an installation, and the topics around them.

    Args:
        settings: those of the installation.
    """

    def __init__(self, settings: WorkerSettings) -> None:
        self._kafka = settings.kafka
        self._prefix = settings.prefix
        self.name = topic_name(DEAD_LETTER, settings.prefix)
        self._inputs = frozenset(topic_name(name, settings.prefix) for name in (STEPS, JUDGED_STEPS))
        self._partitions: dict[str, int] = {}

    @classmethod
    async def open(cls, settings: WorkerSettings) -> Self:
        """The topic on the broker of the settings.

        Raises:
            BrokerFaultError: the broker cannot be used, and why.
            DeadLetterError: there is no such topic.
        """
        topic = cls(settings)
        await check_broker(settings.kafka)
        admin = AIOKafkaAdminClient(bootstrap_servers=settings.kafka.bootstrap, **settings.kafka.client_options())
        async with asyncio.timeout(_ANSWER_S), _closed(admin):
            await admin.start()
            topic._partitions = await partitions_of_all(admin)
        if topic.name not in topic._partitions:
            message = (
                f"There is no topic {topic.name} at {settings.kafka.bootstrap}: is --prefix right? `springback topics` "
                "declares it, and this user must be allowed to see it (`springback topics --acls`)."
            )
            raise DeadLetterError(message)
        return topic

    async def find(self, wanted: Callable[[Letter], bool], named: Iterable[str] = ()) -> FoundLetters:
        """Reads all dead letters that are there now, and keeps those that are wanted.

        Args:
            wanted: which ones.
            named: places, `PARTITION:OFFSET`, at which there must be one, wanted or not.

        Raises:
            DeadLetterError: there is none at a place that is named.
        """
        found = FoundLetters()
        missing = set(named)
        async for record in self._records(self.name):
            each = letter_of(
                record.partition, record.offset, record.timestamp, record.key, record.value, record.headers
            )
            if isinstance(each, Place):
                found.sent_again.add(each)
            elif each is not None:
                missing.discard(each.position)
                if wanted(each):
                    found.letters.append(each)
        if missing:
            places = ", ".join(sorted(missing))
            message = f"There is no dead letter at {places} of {self.name}; `springback dead-letters list` shows some"
            raise DeadLetterError(message)
        return found

    async def message_of(self, letter: Letter) -> bytes | None:
        """The whole message that a letter came of; None where it is not kept any more."""
        if letter.whole:
            return letter.value
        if letter.source is None or letter.source.topic not in self._inputs:
            return None
        record = await self._record(letter.source)
        return None if record is None else record.value

    async def plan(self, letters: Iterable[Letter], corrected: bytes | None = None) -> list[Resending]:
        """What would be sent again for these letters, in the order in which it came, and what would become of it.

        Letters of one message are one: the first stands for them.

        Args:
            letters: the letters.
            corrected: what is sent in place of the message, for a single letter.
        """
        by_source: dict[Place | str, Letter] = {}
        for letter in letters:
            by_source.setdefault(letter.source or letter.position, letter)
        plan = [await self._prepared(letter, corrected) for letter in sorted(by_source.values(), key=_in_order)]
        known = await self._known([each.frame for each in plan if each.frame is not None])
        for each in plan:
            if each.frame is not None:
                each.outlook = forecast(each.frame, known, time.time())
        return plan

    async def send(self, plan: Sequence[Resending], *, edited: bool = False) -> AsyncIterator[tuple[Resending, Place]]:
        """Sends each message, and once it is there notes in the topic of dead letters that it was.

        A run that is broken off between the two leaves a message that the next run sends once more; the workers
        know its steps as copies then.

        Args:
            plan: what is to be sent.
            edited: whether it is a corrected frame in place of the message; the note says so.

        Yields:
            each of them, and where the message lies now.
        """
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=self._kafka.bootstrap,
            acks="all",  # the note that it was sent must not outlive the message
            max_request_size=LARGEST_RECORD_BYTES,
            **self._kafka.client_options(),
        )
        async with started(producer):
            for each in plan:
                if each.frame is None or each.letter.source is None:
                    continue
                key = each.frame.producer.encode("utf-8", "replace")
                target, letter = each.letter.source.topic, each.letter
                sent = await producer.send_and_wait(
                    target, each.value, key=key, headers=[(SENT_AGAIN_OF, letter.position.encode())]
                )
                place = Place(target, sent.partition, sent.offset)
                note = {"dead_letter": letter.position, "sent_to": place.text(), "edited": edited}
                await producer.send_and_wait(
                    self.name,
                    json.dumps(note).encode(),
                    key=letter.key,
                    headers=[(SENT_AGAIN, each.letter.source.text().encode())],
                )
                yield each, place

    async def _prepared(self, letter: Letter, corrected: bytes | None) -> Resending:
        source = letter.source
        if source is None or source.topic not in self._inputs:
            came = "nothing that can be read" if source is None else source.topic
            return Resending(letter, problem=f"it came of {came}, expected {' or '.join(sorted(self._inputs))}")
        value = corrected if corrected is not None else await self.message_of(letter)
        if value is None:
            problem = f"its message {source.text()} is not kept any more; give the frame with --edit FILE"
            return Resending(letter, problem=problem)
        try:
            return Resending(letter, value, decode_frame(value))
        except UnreadableFrameError as error:
            return Resending(letter, value, problem=f"it would be refused again ({error}); mend it with --edit FILE")

    async def _known(self, frames: Collection[StepFrame]) -> KnownEpisodes:
        known = KnownEpisodes()
        agents = {header.agent for frame in frames for header in frame.episodes}
        families = {header.family for frame in frames for header in frame.episodes}
        for name, keys in ((STATUS, agents), (SUMMARIES, families)):
            wanted = {key.encode("utf-8", "replace") for key in keys}
            if not wanted:
                continue
            async for record in self._records(topic_name(name, self._prefix)):
                if record.key in wanted and record.value is not None:
                    try:
                        known.take(decode_reading(record.value))
                    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                        continue  # of another version: less is known then
        return known

    async def _records(self, topic: str) -> AsyncIterator[Any]:
        """The records of a topic, if there is such a one."""
        if topic in self._partitions:
            async for record in records_until_now(self._kafka, topic):
                yield record

    async def _record(self, place: Place) -> Any:
        """One record; None where there is none, or none any more."""
        if place.partition >= self._partitions.get(place.topic, 0):
            return None
        consumer = plain_consumer(self._kafka)
        partition = aiokafka.TopicPartition(place.topic, place.partition)
        async with started(consumer):
            consumer.assign([partition])
            first = (await consumer.beginning_offsets([partition]))[partition]
            end = (await consumer.end_offsets([partition]))[partition]
            if not first <= place.offset <= end:  # see `records_until_now` of the end
                return None
            consumer.seek(partition, place.offset)
            batches = await consumer.getmany(partition, timeout_ms=_RECORD_MS, max_records=1)
            records = batches.get(partition, [])
            return records[0] if records and records[0].offset == place.offset else None


def _in_order(letter: Letter) -> tuple[str, int, int]:
    return letter.source or (letter.position, 0, 0)


@asynccontextmanager
async def _closed(admin: Any) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await admin.close()
