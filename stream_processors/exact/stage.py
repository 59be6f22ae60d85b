"""Exactly once in effect, from at-least-once delivery: the state knows how far its input has been read.

The state, not the committed offset, says where reading goes on. Every batch goes through the same steps: drop what is
left over from before a rebalance; pass over what the state covers, and go back where messages are missing; apply;
send the outputs and wait for the broker to have them; give up if the partitions may have gone to another worker
meanwhile; write the buckets, then the positions, and wait for the broker to have those; then acknowledge.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar

from springback.stream_processors.errors import TransientBrokerError
from springback.stream_processors.exact.port import Arrival, Output, StageEvent, StagePort, StageReducer
from springback.stream_processors.exact.state import Bucket, PartitionState, StageState, StateTable
from springback.stream_processors.exact.watches import AheadWatch, HoleWatch, PartitionClock, StageCounts

S = TypeVar("S")
R = TypeVar("R")
_SESSION_SHARE = 0.8
"""A batch may take this share of the session timeout: beyond it the partitions may be another worker's."""
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
        encoded: the buckets to be written, with their states as the reducer encodes them.
    """

    def __init__(self, epoch: int, started: float) -> None:
        self.epoch = epoch
        self.started = started
        self.handled: list[int] = []
        self.work: list[tuple[StageEvent, PartitionState[S], Bucket[S]]] = []
        self.moved: dict[int, PartitionState[S]] = {}
        self.outputs: list[Output] = []
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
        session_timeout_s: silence after which the group takes a worker for dead.
        stall_s: silence of a partition with unread messages after which it is read again.
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
        session_timeout_s: float = 10.0,
        stall_s: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.counts = StageCounts()
        self._port = port
        self._reducer = reducer
        self._state = StageState(table, reducer)
        self._bucket_of = bucket_of
        self._batch_max = self._limit = batch_max
        self._patience_s = _SESSION_SHARE * session_timeout_s
        self._stall_s = stall_s
        self._clock = clock
        self._lock = asyncio.Lock()
        self._generation: int | None = None
        self._epoch = 0
        self._holes = HoleWatch(name, port, self.counts, clock)
        self._times = PartitionClock()
        self._ahead = AheadWatch(name, port)

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
                chunk = arrivals[start : start + self._limit]
                handled += [start + i for i in await self._guarded(self._process(chunk))]
                start += len(chunk)
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

    async def _process(self, arrivals: Sequence[Arrival]) -> list[int]:
        batch = self._begin()
        if batch is None:
            return []
        for index, arrival in enumerate(arrivals):
            if arrival.generation != self._generation:
                self.counts.left_over += 1
            elif await self._take(batch, arrival.event):
                batch.handled.append(index)
            if batch.epoch != self._epoch:
                return []
        self._apply(batch)
        return batch.handled if await self._finish(batch) else []

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
        bucket = self._state.bucket(partition, self._bucket_of(event.key))
        if event.offset > bucket.applied:
            bucket.applied = event.offset
            batch.work.append((event, partition, bucket))
        return True

    def _apply(self, batch: StageBatch[S]) -> None:
        if not batch.work:
            return
        try:
            batch.outputs = self._reducer.apply([e for e, _, _ in batch.work], [b.state for _, _, b in batch.work])
            for _, partition, bucket in batch.work:
                if (partition.number, bucket.number) not in batch.encoded:
                    batch.changed(partition, bucket, self._reducer.encode(bucket.state))
        except Exception:
            _log.exception("batch_failed stage=%s events=%d retry=one_by_one", self.name, len(batch.work))
            self._apply_one_by_one(batch)

    def _apply_one_by_one(self, batch: StageBatch[S]) -> None:
        batch.outputs = []
        for _, partition, bucket in batch.work:
            self._state.reload(partition, bucket)
            batch.changed(partition, bucket, self._reducer.encode(bucket.state))
        for event, partition, bucket in batch.work:
            try:
                outputs = self._reducer.apply([event], [bucket.state])
                batch.changed(partition, bucket, self._reducer.encode(bucket.state))
            except Exception as error:
                place = (self.name, event.partition, event.offset)
                _log.exception("event_rejected stage=%s partition=%d offset=%d", *place)
                self.counts.rejected += 1
                bucket.state = self._reducer.decode(batch.encoded[partition.number, bucket.number][2])
                outputs = self._reducer.reject(event, error)
            batch.outputs += outputs

    async def _finish(self, batch: StageBatch[S]) -> bool:
        """Sends, checks and writes, and says whether the batch counts."""
        if not batch.moved:
            return True
        try:
            await self._port.send(batch.outputs)
        except TransientBrokerError as error:
            _log.warning("outputs_not_taken stage=%s error=%s", self.name, error)
            await self._abandon(batch)
            return False
        late = self._clock() - batch.started > self._patience_s
        if late or not self._current(batch):
            # Late: a process that was paused. But should the batch be too much for the time, the next is smaller.
            self._limit = max(1, self._limit // 2) if late else self._limit
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
        self._limit = min(self._batch_max, 2 * self._limit)
        return True

    def _drop(self) -> None:
        self._epoch += 1
        self._state.forget()
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
                    batch.outputs += outputs
                    batch.changed(partition, bucket, self._reducer.encode(bucket.state))
            except Exception:
                _log.exception("tick_failed stage=%s partition=%d", self.name, partition.number)
                self.counts.tick_failures += 1
                self._state.reload(partition, bucket)
