"""The judge between its two topics, for as long as the broker is there: frames of `steps` in, the same judged out.

Delivery is at least once. A frame goes to the partition that it came from, under its key and with its time; an offset
is committed only when the broker has all that came before it. Each partition has one batch under way at a time, so
that a batch that fails has none behind it. What ends a session (the broker is away) loses nothing: the next one reads
on from the offsets that were committed.

Order is kept for each key, that is for each producer, and only there: a frame that waits for its scores holds back the
later ones of its producer, never another producer's. So frames of a partition may go on in an order other than that of
their arrival; the offset that is committed is therefore that of the first one that the broker does not have yet. After
a crash the frames behind it are sent again, in their order, and the tracker drops the steps that it knows.

Why that loses nothing: for each producer an unbroken run of frames is sent, from at or before the committed offset on,
and a repetition is such a run too. However two runs mingle, no step appears for the first time after a later one.
"""

import asyncio
import functools
import logging
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka import (  # type: ignore[import-untyped]
    AIOKafkaConsumer,
    AIOKafkaProducer,
    ConsumerRebalanceListener,
    ConsumerRecord,
    TopicPartition,
)
from aiokafka.errors import KafkaError  # type: ignore[import-untyped]

from springback.stream_processors.judging.counts import JudgeCounts
from springback.stream_processors.judging.frame_judging import FrameJudging
from springback.stream_processors.judging.step_judge import StepJudge
from springback.stream_processors.judging.step_selection import StepSelection
from springback.stream_processors.settings import WorkerSettings
from springback.stream_processors.topics import JUDGED_STEPS, LARGEST_RECORD_BYTES, STEPS, judge_group, topic_name

_log = logging.getLogger(__name__)
_POLL_MS = 200
_FETCH_WAIT_MS = 100
_BATCH_BYTES = 1024 * 1024
_REQUEST_TIMEOUT_MS = 15_000
_HAND_OVER_S = 5.0


@dataclass(slots=True, eq=False)
class Passage:
    """A message between its arrival and the broker's acknowledgement of its judged form.

    Attributes:
        offset: the message's offset in its partition.
        timestamp: the message's time, ms.
        key, headers: those of the message.
        size: the message's size, bytes.
        judging: what it waits for; None once it has been sent.
    """

    offset: int
    timestamp: int
    key: bytes | None
    headers: Sequence[tuple[str, bytes]]
    size: int
    judging: FrameJudging | None = None


class FrameLine:
    """The messages of one partition under way: in which order they go on, and how far the input is done with."""

    def __init__(self) -> None:
        self._of_key: dict[bytes | None, deque[Passage]] = {}
        self._under_way: deque[Passage] = deque()
        self._sent: set[int] = set()
        self._sendable: deque[Passage] = deque()
        self.done_to: int | None = None
        """The offset of the first message that is not done with; None before any is."""

    def join(self, passage: Passage) -> None:
        """Takes in a message; offsets must rise."""
        self._of_key.setdefault(passage.key, deque()).append(passage)
        self._under_way.append(passage)

    def settled(self, passage: Passage) -> bool:
        """Takes notice that a message need not wait any longer; returns whether there is something to send."""
        line = self._of_key.get(passage.key)
        while line and line[0].judging is not None and line[0].judging.settled:
            self._sendable.append(line.popleft())
        if not line:
            self._of_key.pop(passage.key, None)
        return bool(self._sendable)

    def next_to_send(self) -> Passage | None:
        """The message to send next, which stays the same until `taken` is called; None where there is none."""
        return self._sendable[0] if self._sendable else None

    def taken(self) -> Passage:
        """Takes that message out."""
        return self._sendable.popleft()

    def acknowledged(self, passages: Sequence[Passage]) -> None:
        """Takes notice that the broker has these."""
        self._sent.update(passage.offset for passage in passages)
        while self._under_way and self._under_way[0].offset in self._sent:
            offset = self._under_way.popleft().offset
            self._sent.remove(offset)
            self.done_to = offset + 1


class JudgeSession(ConsumerRebalanceListener):  # type: ignore[misc]
    """One connection to the broker, from joining the group to leaving it.

    Args:
        settings: those of the stream, with those of the judge in them.
        judge: gives the scores.
        counts: counts what becomes of frames and steps.
    """

    def __init__(self, settings: WorkerSettings, judge: StepJudge, counts: JudgeCounts) -> None:
        self.joined = self.ever_joined = False
        self._settings = settings
        self._judge = judge
        self._counts = counts
        self._source = topic_name(STEPS, settings.prefix)
        self._target = topic_name(JUDGED_STEPS, settings.prefix)
        self._selection = StepSelection(settings.judge, counts)
        self._lines: dict[int, FrameLine] = {}
        self._wakes: dict[int, asyncio.Event] = {}
        self._writers: list[asyncio.Task[None]] = []
        self._committed: dict[int, int] = {}
        self._arrived: deque[Passage] = deque()
        self._held_frames = 0
        self._held_bytes = 0
        self._room = asyncio.Event()
        self._generation = 0
        common = {"bootstrap_servers": settings.kafka.bootstrap, **settings.kafka.client_options()}
        self._producer = AIOKafkaProducer(
            acks="all",
            max_batch_size=_BATCH_BYTES,
            max_request_size=LARGEST_RECORD_BYTES,
            request_timeout_ms=_REQUEST_TIMEOUT_MS,
            **common,
        )
        self._consumer = AIOKafkaConsumer(
            group_id=judge_group(settings.group),
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=int(1000 * settings.session_timeout_s),
            heartbeat_interval_ms=int(200 * settings.session_timeout_s),
            rebalance_timeout_ms=int(1000 * settings.rebalance_timeout_s),
            fetch_max_wait_ms=_FETCH_WAIT_MS,
            **common,
        )

    def report(self) -> dict[str, Any]:
        """What is under way, for the health endpoint."""
        return {"partitions": sorted(self._lines), "waiting_frames": self.waiting_frames}

    @property
    def waiting_frames(self) -> int:
        """Frames taken in whose judged form the broker does not have yet."""
        return self._held_frames

    async def run(self, stop: asyncio.Event) -> None:
        """Passes frames on until `stop` is set; what is then under way is sent and committed before the end.

        Raises:
            ExceptionGroup: with KafkaError, the broker is away; with anything else, it is a fault of ours.
        """
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                await self._producer.start()
                await self._consumer.start()
                self._consumer.subscribe([self._source], listener=self)
                working = [group.create_task(self._read()), group.create_task(self._commit_regularly())]
                await stop.wait()
                working[0].cancel()
                await self._hand_over()
                for task in (*working, *self._writers):
                    task.cancel()
            finally:
                self.joined = False
                for passage in self._arrived:
                    _give_up(passage)
                await self._consumer.stop()
                await self._producer.stop()

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Finishes what is under way, then forgets all: the next owner reads on from what is committed."""
        await self._hand_over()
        for writer in self._writers:
            writer.cancel()
        self._writers.clear()
        self._lines.clear()
        self._wakes.clear()
        self._committed.clear()
        self._arrived.clear()
        self._held_frames = self._held_bytes = 0
        self._selection.forget()

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Makes a line and its writer for each partition."""
        for place in assigned:
            self._lines[place.partition] = FrameLine()
            self._wakes[place.partition] = asyncio.Event()
            self._writers.append(self._group.create_task(self._write(place.partition)))
        self.joined = self.ever_joined = True

    async def _read(self) -> None:
        while True:
            batches = await self._consumer.getmany(timeout_ms=_POLL_MS)
            generation = self._generation
            for place, records in batches.items():
                for record in records:
                    await self._make_room()
                    if generation != self._generation:
                        break  # these partitions have meanwhile been handed over, and their new owner reads them
                    self._take_in(place.partition, record)

    async def _make_room(self) -> None:
        """Waits until one more frame may be held; meanwhile those that have waited longest go on without scores."""
        limits = self._settings.judge
        while self._held_frames >= limits.waiting_frames or self._held_bytes >= limits.waiting_bytes:
            for passage in self._arrived:
                if passage.judging is not None and not passage.judging.settled:
                    passage.judging.give_up("crowded_out")
                    break
            self._room.clear()
            await self._room.wait()

    def _take_in(self, partition: int, record: ConsumerRecord) -> None:
        line = self._lines[partition]
        data = record.value or b""
        passage = Passage(record.offset, record.timestamp, record.key, record.headers, len(data))
        line.join(passage)
        self._held_frames += 1
        self._held_bytes += passage.size
        while self._arrived and self._arrived[0].judging is None:
            self._arrived.popleft()
        self._arrived.append(passage)
        go_on = functools.partial(self._go_on, partition, line, passage)
        deadline = asyncio.get_running_loop().time() + self._settings.judge.deadline_s
        passage.judging = FrameJudging(data, self._selection, self._judge, self._counts, deadline, go_on)
        go_on()

    def _go_on(self, partition: int, line: FrameLine, passage: Passage) -> None:
        if line.settled(passage) and partition in self._wakes:
            self._wakes[partition].set()

    async def _write(self, partition: int) -> None:
        line, wake = self._lines[partition], self._wakes[partition]
        while True:
            await wake.wait()
            wake.clear()
            while line.next_to_send() is not None:
                await self._send_some(partition, line)

    async def _send_some(self, partition: int, line: FrameLine) -> None:
        batch = self._producer.create_batch()
        some: list[Passage] = []
        while (passage := line.next_to_send()) is not None and passage.judging is not None:
            record = {"timestamp": passage.timestamp, "key": passage.key, "value": passage.judging.output}
            if batch.append(**record, headers=list(passage.headers)) is None:
                break
            some.append(line.taken())
        await (await self._producer.send_batch(batch, self._target, partition=partition))
        line.acknowledged(some)
        for passage in some:
            passage.judging = None
        self._held_frames -= len(some)
        self._held_bytes -= sum(passage.size for passage in some)
        self._room.set()

    async def _hand_over(self) -> None:
        """Lets all frames go on at once and commits them, as far as that is possible within a few seconds."""
        self._generation += 1
        for passage in list(self._arrived):
            _give_up(passage)
        try:
            async with asyncio.timeout(_HAND_OVER_S):
                while self._held_frames:
                    self._room.clear()
                    await self._room.wait()
        except TimeoutError:
            _log.warning("judge_hand_over frames=%d sent_again=yes", self._held_frames)
        await self._commit()

    async def _commit_regularly(self) -> None:
        while True:
            await asyncio.sleep(self._settings.commit_interval_s)
            await self._commit()

    async def _commit(self) -> None:
        done = {
            number: line.done_to
            for number, line in self._lines.items()
            if line.done_to is not None and line.done_to != self._committed.get(number)
        }
        if not done:
            return
        try:
            await self._consumer.commit(
                {TopicPartition(self._source, number): offset for number, offset in done.items()}
            )
        except KafkaError as error:
            # The partitions have gone to another judge, or the broker is away: the frames are sent again.
            _log.warning("judge_commit_failed error=%s sent_again=yes", type(error).__name__)
        else:
            self._committed |= done


def _give_up(passage: Passage) -> None:
    if passage.judging is not None:
        passage.judging.give_up("handed_over")
