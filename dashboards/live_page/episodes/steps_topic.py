"""The steps of one episode, back from the workers' input, and the baselines that scored them.

Of an episode the page remembers how it ended, not its steps: these lie in the topic for as long as its retention lets
them. They are looked for from about when the episode began, further back step by step if it began before, within
bounds. What cannot be had is told, in words.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped]
from aiokafka.partitioner import DefaultPartitioner  # type: ignore[import-untyped]

from springback.producers.contract.codec import decode_frame
from springback.producers.errors import UnreadableFrameError
from springback.sinks.fleet.labels import clean_label_value
from springback.stream_processors.errors import StateFormatError
from springback.stream_processors.intake.step_table import ArrivedFrame
from springback.stream_processors.offline.episode_trace import only_episode
from springback.stream_processors.offline.switched_evaluation import PlacedFrame
from springback.stream_processors.resilience.readings import EpisodeKey
from springback.stream_processors.settings import WorkerSettings
from springback.stream_processors.stages.scoring_baseline import BaselineSwitch, family_switches
from springback.stream_processors.topics import JUDGED_STEPS, STEPS, SWITCHES, topic_name

_CONNECT_S = 10.0
_POLL_MS = 500
_RECORDS_AT_ONCE = 1000
_LOOK_BACK_S = (60.0, 900.0, 14_400.0, 172_800.0, float("inf"))
"""How long before the time that is known an episode's beginning is looked for, one after the other."""


class ReadingBounds(NamedTuple):
    """What one reading may take.

    Attributes:
        messages: of all producers of the partition that are passed over.
        bytes: of these.
        seconds: in all.
        steps: of the episode.
    """

    messages: int = 500_000
    bytes: int = 512 * 1024 * 1024
    seconds: float = 60.0
    steps: int = 20_000


BOUNDS = ReadingBounds()


class WantedEpisode(NamedTuple):
    """What is known of an episode before its steps are read.

    `producer` sends its agent's steps. `about_s` is the earliest that is known to lie in it, by the broker's clock in
    seconds since 1970. `over` says that it is over, so that no more steps of it are to come.
    """

    key: EpisodeKey
    producer: str
    family: str
    about_s: float
    over: bool = False


@dataclass
class EpisodeSteps:
    """What was found.

    Attributes:
        frames: the parts of frames that are of the episode, in order.
        switches: from which offset on which baseline scored them.
        told: what is missing, and why, in sentences.
    """

    frames: list[PlacedFrame] = field(default_factory=list)
    switches: list[BaselineSwitch] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    @property
    def steps(self) -> int:
        """How many rows there are, copies among them."""
        return sum(frame.arrived.frame.n_steps for frame in self.frames)

    @property
    def lowest_step(self) -> int | None:
        """The first step that is there; None without any."""
        firsts: list[Any] = [f.arrived.frame.steps["step"] for f in self.frames if f.arrived.frame.n_steps]
        return min((int(steps.min()) for steps in firsts), default=None)


class _OutOfBoundsError(Exception):
    """The reading has taken all that it may."""


async def read_episode(
    settings: WorkerSettings,
    wanted: WantedEpisode,
    progress: Callable[[int], None] = lambda messages: None,
    bounds: ReadingBounds = BOUNDS,
) -> EpisodeSteps:
    """Reads the steps of an episode, and what scored them, with a connection of its own.

    Args:
        settings: where the topics are, and of which grid baselines are.
        wanted: the episode.
        progress: told how many messages have been looked at.
        bounds: of the reading.

    Raises:
        KafkaError: the broker cannot be used.
        TimeoutError: it does not answer.
    """
    consumer = AIOKafkaConsumer(
        bootstrap_servers=settings.kafka.bootstrap,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        **settings.kafka.client_options(),
    )
    try:
        async with asyncio.timeout(_CONNECT_S):
            await consumer.start()
        return await _Reading(consumer, settings, wanted, progress, bounds).read()
    finally:
        await consumer.stop()


class _Reading:
    def __init__(
        self,
        consumer: AIOKafkaConsumer,
        settings: WorkerSettings,
        wanted: WantedEpisode,
        progress: Callable[[int], None],
        bounds: ReadingBounds,
    ) -> None:
        self._consumer, self._settings, self._wanted = consumer, settings, wanted
        self._progress, self._bounds = progress, bounds
        self._deadline_s = asyncio.get_running_loop().time() + bounds.seconds
        self._messages = self._bytes = self._steps = 0
        self._cut = False
        self._found = EpisodeSteps()

    async def read(self) -> EpisodeSteps:
        found, name = self._found, topic_name(JUDGED_STEPS if self._settings.judged else STEPS, self._settings.prefix)
        partitions = await self._partitions(name)
        if not partitions:
            found.told.append(f"There is no topic {name}.")
            return found
        key = self._wanted.producer.encode("utf-8", "replace")
        own = TopicPartition(name, DefaultPartitioner()(key, partitions, partitions))
        begin = (await self._consumer.beginning_offsets([own]))[own]
        try:
            await self._read_steps(own, key, begin)
        except _OutOfBoundsError:
            self._cut = True
            bounds = self._bounds
            found.told.append(
                f"{'Not all' if found.frames else 'None'} of its steps are here: reading stops after {bounds.steps:,} "
                f"steps, {bounds.messages:,} messages, {bounds.bytes / 2**20:,.0f} MiB or {bounds.seconds:.0f} s."
            )
        self._tell_beginning(own, begin)
        if found.frames:
            await self._read_switches(own.partition)
        return found

    async def _read_steps(self, own: TopicPartition, key: bytes, begin: int) -> None:
        end = (await self._consumer.end_offsets([own]))[own]
        for back_s in _LOOK_BACK_S:
            start = max(begin, await self._offset_at(own, self._wanted.about_s - back_s, begin, end))
            if start < end:
                before: list[PlacedFrame] = []
                try:
                    await self._read(own, key, start, end, before)
                finally:
                    self._found.frames = before + self._found.frames
                end = start
            if start == begin or self._found.lowest_step == 0:
                return

    async def _read(self, own: TopicPartition, key: bytes, start: int, stop: int, frames: list[PlacedFrame]) -> None:
        known = {frame.offset for frame in self._found.frames}
        async for record in self._records({own: start}, {own: stop}):
            if record.key != key or record.value is None or record.offset in known:
                continue
            try:
                part = only_episode(decode_frame(record.value), self._wanted.key)
            except UnreadableFrameError:
                continue  # it is among the dead letters
            if part is None:
                continue
            frames.append(PlacedFrame(record.offset, ArrivedFrame(part, record.timestamp / 1000)))
            self._steps += part.n_steps
            if self._steps > self._bounds.steps:
                raise _OutOfBoundsError
            if part.ends:
                return

    async def _read_switches(self, partition: int) -> None:
        found, name = self._found, topic_name(SWITCHES, self._settings.prefix)
        places = [TopicPartition(name, number) for number in await self._partitions(name)]
        begins, ends = await self._consumer.beginning_offsets(places), await self._consumer.end_offsets(places)
        own, records = b"%d/" % partition, []
        stretch = range(found.frames[0].offset, found.frames[-1].offset + 1)
        try:
            async for record in self._records(begins, ends):
                if record.key is not None and record.key.startswith(own):
                    records.append((record.key, record.value))
            found.switches = family_switches(
                records, partition, self._wanted.family, stretch, self._settings.resilience.grid
            )
        except _OutOfBoundsError:
            found.told.append("What its steps were scored by takes too long to read: g is not known here.")
        except StateFormatError as error:
            found.told.append(f"What its steps were scored by cannot be had, so that g is not known here: {error}")
        else:
            if any(begins.values()) and (not found.switches or found.switches[0].from_offset > stretch.start):
                found.told.append(f"What its first steps were scored by is no longer in the topic {name}.")

    async def _records(self, begins: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> Any:
        """The records of partitions from these offsets on, to these or a little beyond, within the bounds.

        Tansu says of some logs that they end one message early: so whatever one more poll brings is taken too.
        """
        if not begins:
            return
        self._consumer.assign(list(begins))
        for place, begin in begins.items():
            self._consumer.seek(place, begin)
        last = False
        while not last:
            if asyncio.get_running_loop().time() > self._deadline_s or self._messages > self._bounds.messages:
                raise _OutOfBoundsError
            last = all([await self._consumer.position(place) >= ends[place] for place in begins])
            batches = await self._consumer.getmany(timeout_ms=_POLL_MS, max_records=_RECORDS_AT_ONCE)
            for batch in batches.values():
                for record in batch:
                    self._messages += 1
                    self._bytes += len(record.value or b"")
                    yield record
            if self._bytes > self._bounds.bytes:
                raise _OutOfBoundsError
            self._progress(self._messages)

    async def _partitions(self, name: str) -> list[int]:
        # Asked for by name, a broker may make the topic; asked for all, it cannot.
        if name not in await self._consumer.topics():
            return []
        first = TopicPartition(name, 0)
        self._consumer.assign([first])
        self._consumer.pause(first)
        await self._consumer.end_offsets([first])
        return sorted(self._consumer.partitions_for_topic(name) or {0})

    async def _offset_at(self, own: TopicPartition, at_s: float, begin: int, end: int) -> int:
        if at_s <= 0:
            return begin
        found = (await self._consumer.offsets_for_times({own: int(at_s * 1000)}))[own]
        return end if found is None or found.offset < 0 else int(found.offset)

    def _tell_beginning(self, own: TopicPartition, begin: int) -> None:
        if self._cut:
            return  # what was not looked at may be there or not
        lowest = self._found.lowest_step
        if lowest is None:
            producer = clean_label_value(self._wanted.producer)
            gone = (
                f"they are no longer in the topic {own.topic}"
                if begin
                else f"the topic {own.topic} has none from the producer {producer}"
            )
            self._found.told.append(f"None of its steps can be shown: {gone}.")
        elif lowest > 0:
            self._found.told.append(
                f"The steps before {lowest:,} are {'no longer' if begin else 'not'} in the topic {own.topic}: what is "
                "drawn begins there, as if the episode did."
            )
