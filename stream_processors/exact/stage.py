"""Exactly once in effect, from at-least-once delivery: the state knows how far its input has been read.

The state, not the committed offset, says where reading goes on. Every batch goes through the same steps: drop what is
left over from before a rebalance; see that what events are applied by is written (`contexts`); pass over what the
state covers, and go back where messages are missing; apply; send the outputs and wait for the broker to have them; give
up if the partitions may have gone to another worker meanwhile; write the buckets, then the positions, and wait for the
broker to have those; then acknowledge.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar

from springback.stream_processors.errors import (
    StateFormatError,
    StateFullError,
    TooCostlyError,
    TransientBrokerError,
)
from springback.stream_processors.exact.contexts import ContextSource, StageContexts
from springback.stream_processors.exact.port import Arrival, Output, StageEvent, StagePort, StageReducer
from springback.stream_processors.exact.state import Bucket, PartitionState, StageState, StateTable
from springback.stream_processors.exact.watches import AheadWatch, HoleWatch, PartitionClock, StageCounts

S = TypeVar("S")
R = TypeVar("R")
_SESSION_SHARE = 0.8
"""A batch may take this share of the session timeout: beyond it the partitions may be another worker's."""
SLICE_BYTES = 512 * 1024
"""Messages are applied in slices of about so many bytes: between two, the group's heartbeats have their turn."""
_BATCH_SHARE = 0.25
"""A batch that has taken this share of its time is not gone on with: what is left of it is the next."""
_MOST_OUTPUTS = 8192
"""Nor is one with so many outputs, since they take time to send."""
TRIES = 3
"""A message that alone takes too long is passed over after so many times, and goes whole to the dead letters."""
_log = logging.getLogger(__name__)


class StageBatch(Generic[S]):
    """What one pass through the protocol, a batch or a tick, has to apply, send and write.

    Attributes:
        epoch: the stage's epoch at its start: in another one its states have been forgotten.
        started: when it began, on the stage's clock.
        handled: which arrivals may be acknowledged once all is written.
        work: the events to apply, with the live states that they go to.
        moved: the partitions whose position is to be written.
        outputs: what is to be sent.
        refused: besides, what stands for events that find no room.
        applied: how many of the events have been applied.
        applying_s: how long applying the events has taken.
        encoded: the buckets to be written, with their states as the reducer encodes them.
    """

    def __init__(self, epoch: int, started: float) -> None:
        self.epoch = epoch
        self.started = started
        self.handled: list[int] = []
        self.work: list[tuple[StageEvent, PartitionState[S], Bucket[S]]] = []
        self.moved: dict[int, PartitionState[S]] = {}
        self.outputs: list[Output] = []
        self.refused: list[Output] = []
        self.applied = 0
        self.applying_s = 0.0
        self.encoded: dict[tuple[int, int], tuple[PartitionState[S], Bucket[S], bytes]] = {}

    def changed(self, partition: PartitionState[S], bucket: Bucket[S], encoded: bytes) -> None:
        """Notes that a bucket has changed and is to be written."""
        self.moved[partition.number] = partition
        self.encoded[partition.number, bucket.number] = partition, bucket, encoded


class ExactStage(Generic[S]):
    """One stage of the stream under the exact protocol.

    Args:
        name: for the log.
        port: the stream engine.
        table: the state's table.
        reducer: what the stage computes.
        bucket_of: the bucket of a message's key.
        batch_max: most events applied at once.
        most_buckets: buckets that a partition may have; an event of one more is refused.
        input_partitions: how many partitions the input has; state of another number is refused. 0 where nobody looks.
        session_timeout_s: silence after which the group takes a worker for dead.
        stall_s: silence of a partition with unread messages after which it is read again.
        contexts: what events are applied by besides the states, and what applies them then; None for the reducer alone.
        settled: called with True when what the reducer has applied is written, with False when it will come again.
        clock: seconds that never go back.
    """

    def __init__(
        self,
        name: str,
        port: StagePort,
        table: StateTable,
        reducer: StageReducer[S],
        bucket_of: Callable[[bytes], int],
        *,
        batch_max: int = 500,
        most_buckets: int = 1_000_000,
        input_partitions: int = 0,
        session_timeout_s: float = 10.0,
        stall_s: float = 5.0,
        contexts: ContextSource[S] | None = None,
        settled: Callable[[bool], None] = lambda written: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.counts = StageCounts()
        self._port = port
        self._reducer = reducer
        self._state = StageState(table, reducer, input_partitions)
        self._bucket_of = bucket_of
        self._batch_max = self._limit = batch_max
        self._most_buckets = most_buckets
        self._patience_s = _SESSION_SHARE * session_timeout_s
        self._stall_s = stall_s
        self._clock = clock
        self._settled = settled
        self._lock = asyncio.Lock()
        self._generation: int | None = None
        self._epoch = 0
        self._tries: dict[tuple[int, int], int] = {}
        self._holes = HoleWatch(name, port, self.counts, clock)
        self._times = PartitionClock()
        self._ahead = AheadWatch(name, port)
        self._contexts = None if contexts is None else StageContexts(name, port, table, contexts, clock)

    def states(self) -> list[S] | None:
        """The live states of all partitions held, for reading only; None while some of them are not live."""
        return self._state.states(self.counts.ends) if self.counts.ends else None

    def forget(self) -> None:
        """Drops every live state, as when partitions are revoked. A batch that is under way gives up."""
        self._drop()
        self.counts.forget_partitions()

    async def process(self, arrivals: Sequence[Arrival]) -> list[int]:
        """Takes in a batch of messages.

        Returns:
            which of them, by index, may be acknowledged.

        Raises:
            StateFormatError: a record of the state cannot be read, or be written for its size.
            StateWriteError: the changelog has not taken the state.
        """
        async with self._lock:
            handled: list[int] = []
            start = 0
            while start < len(arrivals):
                looked_at, taken = await self._guarded(self._process(arrivals[start : start + self._limit]))
                handled += [start + i for i in taken]
                start += looked_at
            return handled

    async def tick(self) -> None:
        """Closes what has been silent for long, and reads stalled partitions again.

        Raises:
            StateAheadError: the state has read further than the topic reaches.
            StateFormatError, StateWriteError: as `process`.
        """
        async with self._lock:
            batch = self._begin()
            if batch is None:
                return
            before = {number: self._state.partition(number).wanted for number in self._port.assigned()}
        try:
            # Not under the lock: the answer waits for the fetch that the consumer is at, and batches must not.
            ends = await self._port.ends(before)
        except TransientBrokerError as error:
            _log.warning("ends_unknown stage=%s error=%s", self.name, error)
            self._times.cut_off()
            return
        async with self._lock:
            await self._guarded(self._tick(batch.epoch, before, ends))

    async def _guarded(self, work: Awaitable[R]) -> R:
        # Whatever goes wrong in the middle, also a cancellation, the live states may be ahead of what is written.
        try:
            return await work
        except BaseException:
            self.forget()
            raise

    def _begin(self) -> StageBatch[S] | None:
        if not self._port.stable():
            self._times.cut_off()
            return None
        if self._generation != self._port.generation():
            self.forget()
            self._generation = self._port.generation()
        return StageBatch(self._epoch, self._clock())

    async def _process(self, arrivals: Sequence[Arrival]) -> tuple[int, list[int]]:
        """Takes in the first of the messages: how many were looked at, and which of those may be acknowledged."""
        batch = self._begin()
        if batch is None:
            return len(arrivals), []
        here = {arrival.event.partition for arrival in arrivals if arrival.generation == self._generation}
        if self._contexts is not None and not await self._settle(self._contexts, batch, here):
            return len(arrivals), []
        waiting = 0
        for index, arrival in enumerate(arrivals):
            if arrival.generation != self._generation:
                self.counts.left_over += 1
            elif await self._take(batch, arrival.event):
                batch.handled.append(index)
                waiting += len(arrival.event.value)
            if batch.epoch != self._epoch:
                return len(arrivals), []
            if waiting >= SLICE_BYTES:
                waiting = 0
                self._apply(batch)
                await asyncio.sleep(0)
                if batch.epoch != self._epoch:
                    return len(arrivals), []
                if batch.applying_s > _BATCH_SHARE * self._patience_s or len(batch.outputs) > _MOST_OUTPUTS:
                    return index + 1, batch.handled if await self._finish(batch) else []
        self._apply(batch)
        return len(arrivals), batch.handled if await self._finish(batch) else []

    async def _settle(self, contexts: StageContexts[S], batch: StageBatch[S], partitions: set[int]) -> bool:
        """Sees to the contexts of the partitions that a batch comes from, and of those that are live already."""
        batch.moved = {number: self._state.partition(number) for number in partitions}
        try:
            settled = await contexts.settle(self._state.wanted(), lambda: self._current(batch))
            # Paused meanwhile: its successor may have begun anew, by another context.
            settled = settled and not self._late(batch)
        except TransientBrokerError as error:
            _log.warning("context_not_taken stage=%s error=%s", self.name, error)
            self.counts.not_taken = str(error)
            settled = False
        if not settled:
            await self._abandon(batch)
            return False
        batch.moved, self.counts.switches = {}, contexts.switches
        return True

    async def _take(self, batch: StageBatch[S], event: StageEvent) -> bool:
        partition = self._state.partition(event.partition)
        self._times.heard(event.partition, self._clock())
        if event.offset < partition.wanted:
            self.counts.covered += 1
            return True
        if event.offset > partition.wanted:
            if not await self._holes.passes(event.partition, partition.wanted, event.offset):
                return False
            self._pass_over(partition, event.offset)
        self._holes.closed(event.partition)
        partition.wanted = event.offset + 1
        partition.time_s = event.time_s
        batch.moved[event.partition] = partition
        number = self._bucket_of(event.key)
        if number not in partition.buckets and len(partition.buckets) >= self._most_buckets:
            self._refuse(batch, event)
            return True
        bucket = self._state.bucket(partition, number)
        if event.offset > bucket.applied:
            bucket.applied = event.offset
            batch.work.append((event, partition, bucket))
        return True

    def _refuse(self, batch: StageBatch[S], event: StageEvent) -> None:
        message = (
            f"key {event.key[:64]!r} is one more than the {self._most_buckets} that partition {event.partition} may "
            "have: somebody invents families, or the setting `families` is too small"
        )
        error = StateFullError(message)
        if not self.counts.too_large:
            _log.error("event_refused stage=%s offset=%d reason=%s", self.name, event.offset, error)
        self.counts.refused(error)
        batch.refused += self._reducer.reject(event, error)

    def _apply(self, batch: StageBatch[S]) -> None:
        """Applies what has been taken since the last slice."""
        work = batch.work[batch.applied :]
        if not work:
            return
        began, batch.applied = self._clock(), len(batch.work)
        try:
            if self._tries and any(self._given_up(event) for event, _, _ in work):
                raise TooCostlyError
            batch.outputs += self._reduce(work)
            for partition, bucket in {id(bucket): (partition, bucket) for _, partition, bucket in work}.values():
                batch.changed(partition, bucket, self._encoded(bucket))
        except StateFormatError:
            raise
        except Exception as error:
            if not isinstance(error, TooCostlyError | StateFullError):
                _log.exception("batch_failed stage=%s events=%d retry=one_by_one", self.name, len(batch.work))
            self._apply_one_by_one(batch)
        batch.applying_s += self._clock() - began
        if batch.applying_s > self._patience_s and len(batch.work) == 1:
            event = batch.work[0][0]
            place = event.partition, event.offset
            self._tries[place] = self._tries.get(place, 0) + 1

    def _encoded(self, bucket: Bucket[S]) -> bytes:
        return self._state.check_size(bucket, self._reducer.encode(bucket.state))

    def _given_up(self, event: StageEvent) -> bool:
        return self._tries.get((event.partition, event.offset), 0) >= TRIES

    def _reduce(self, work: Sequence[tuple[StageEvent, PartitionState[S], Bucket[S]]]) -> list[Output]:
        if self._contexts is not None:
            return self._contexts.apply(work)
        return self._reducer.apply([event for event, _, _ in work], [bucket.state for _, _, bucket in work])

    def _apply_one_by_one(self, batch: StageBatch[S]) -> None:
        batch.outputs = []
        self._settled(False)
        for _, partition, bucket in batch.work:
            self._state.reload(partition, bucket)
            batch.changed(partition, bucket, self._reducer.encode(bucket.state))
        for event, partition, bucket in batch.work:
            try:
                self._check_tries(event)
                outputs = self._reduce([(event, partition, bucket)])
                batch.changed(partition, bucket, self._encoded(bucket))
            except StateFormatError:
                raise
            except Exception as error:
                place = (self.name, event.partition, event.offset)
                if isinstance(error, TooCostlyError | StateFullError):
                    _log.error("event_refused stage=%s partition=%d offset=%d reason=%s", *place, error)
                else:
                    _log.exception("event_rejected stage=%s partition=%d offset=%d", *place)
                self.counts.refused(error)
                bucket.state = self._reducer.decode(batch.encoded[partition.number, bucket.number][2])
                outputs = self._reducer.reject(event, error)
            batch.outputs += outputs

    def _check_tries(self, event: StageEvent) -> None:
        if self._given_up(event):
            message = (
                f"{len(event.value)} bytes took longer than {self._patience_s:.1f} s to apply, {TRIES} times: send "
                "smaller messages, or give the workers a longer session_timeout_s"
            )
            raise TooCostlyError(message)

    async def _finish(self, batch: StageBatch[S]) -> bool:
        """Sends, checks and writes, and says whether the batch counts."""
        if not batch.moved:
            return True
        try:
            # What alone takes too long comes again: its outputs are not sent each time. And what a worker sends whose
            # partitions are another's would stand above what that one has sent.
            if self._current(batch) and not self._late(batch):
                await self._port.send([*batch.outputs, *batch.refused])
                self.counts.not_taken = None
        except TransientBrokerError as error:
            _log.warning("outputs_not_taken stage=%s error=%s", self.name, error)
            self.counts.not_taken = str(error)
            await self._abandon(batch)
            return False
        late = self._late(batch)
        if late or not self._current(batch):
            # Late: a process that was paused. But should the batch be too much for the time, the next is smaller.
            if late:
                self._limit = 1 if batch.applying_s > self._patience_s else max(1, self._limit // 2)
            await self._abandon(batch)
            return False
        for partition, bucket, encoded in batch.encoded.values():
            self._state.write_bucket(partition, bucket, encoded)
        for partition in batch.moved.values():
            self._state.write_position(partition)
        await self._port.written()
        if not self._current(batch):
            return False
        self.counts.processed(((partition.number, partition.wanted) for _, partition, _ in batch.work), self._clock())
        self._settled(True)
        self._limit = min(self._batch_max, 2 * self._limit)
        for event, _, _ in batch.work if self._tries else ():
            self._tries.pop((event.partition, event.offset), None)
        return True

    def _late(self, batch: StageBatch[S]) -> bool:
        return self._clock() - batch.started > self._patience_s

    def _drop(self) -> None:
        self._epoch += 1
        self._settled(False)
        self._state.forget()
        if self._contexts is not None:
            self._contexts.forget()
        self._holes.forget()
        self._times.forget()
        self._ahead.forget()

    def _current(self, batch: StageBatch[S]) -> bool:
        return batch.epoch == self._epoch and self._port.stable() and self._port.generation() == self._generation

    async def _abandon(self, batch: StageBatch[S]) -> None:
        took_s = self._clock() - batch.started
        _log.warning("batch_abandoned stage=%s events=%d took_s=%.1f", self.name, len(batch.work), took_s)
        self.counts.abandoned += 1
        stays = self._current(batch)
        self._drop()
        for number in batch.moved if stays else ():
            self.counts.sent_back += 1
            await self._port.seek(number, self._state.partition(number).wanted)

    async def _tick(self, epoch: int, before: Mapping[int, int], ends: Mapping[int, int]) -> None:
        batch = self._begin()
        if batch is None or batch.epoch != epoch:
            return
        for number, end in ends.items():
            partition = self._state.partition(number)
            self.counts.wanted[number], self.counts.ends[number] = partition.wanted, max(end, partition.wanted)
            if self._contexts is not None:
                self._contexts.ends_at(number, max(end, partition.wanted))
            ahead = await self._ahead.check(number, before[number], end)
            if not self._current(batch):
                return
            if ahead:
                continue
            if partition.wanted < end:
                await self._look_for_stall(batch, partition, end)
                if not self._current(batch):
                    return
            elif partition.wanted == max(before[number], end):
                quiet_s = self._times.at_end(number, self._clock())
                self._tick_partition(batch, partition, partition.time_s + quiet_s)
        await self._finish(batch)

    async def _look_for_stall(self, batch: StageBatch[S], partition: PartitionState[S], end: int) -> None:
        if self._times.behind(partition.number, self._clock()) > self._stall_s:
            self._times.heard(partition.number, self._clock())
            if await self._holes.reaches_end(partition.number, partition.wanted, end):
                self._pass_over(partition, end)
                batch.moved[partition.number] = partition

    def _pass_over(self, partition: PartitionState[S], offset: int) -> None:
        if partition.known:
            gone = offset - partition.wanted
            self.counts.passed_over(gone)
            _log.warning("offsets_gone stage=%s partition=%d count=%d", self.name, partition.number, gone)
        partition.wanted = offset

    def _tick_partition(self, batch: StageBatch[S], partition: PartitionState[S], now_s: float) -> None:
        for bucket in partition.buckets.values():
            try:
                outputs = self._reducer.tick(bucket.state, now_s)
                if outputs is not None:
                    batch.changed(partition, bucket, self._encoded(bucket))
                    batch.outputs += outputs
            except Exception:
                _log.exception("tick_failed stage=%s partition=%d", self.name, partition.number)
                self.counts.tick_failures += 1
                self._state.reload(partition, bucket)
