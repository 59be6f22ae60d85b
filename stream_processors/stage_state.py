"""The live state of a stage: buckets and positions of the partitions it holds, read from and written to its table."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar

from springback.stream_processors.errors import StateFormatError
from springback.stream_processors.stage_reducer import StageReducer
from springback.stream_processors.state_codec import (
    bucket_key,
    decode_bucket,
    decode_position,
    encode_bucket,
    encode_position,
    position_key,
    read_key,
)
from springback.stream_processors.topics import LARGEST_RECORD_BYTES

S = TypeVar("S")
_log = logging.getLogger(__name__)
_LARGEST_RECORD = LARGEST_RECORD_BYTES - 4096  # key and batch headers need room too


class StateTable(Protocol):
    """A table as the stage sees it: bytes to bytes. What is put into it is also written to a changelog."""

    def stored(self) -> Mapping[bytes, bytes]:
        """What the table holds."""

    def put(self, key: bytes, value: bytes) -> None:
        """Set a key."""


class Bucket(Generic[S]):
    """Part of a partition's state. `applied` is the offset of the last event applied to it."""

    __slots__ = ("applied", "number", "state")

    def __init__(self, number: int, applied: int, state: S) -> None:
        self.number = number
        self.applied = applied
        self.state = state


class PartitionState(Generic[S]):
    """The live state of one input partition. `known` is False while the table holds no position of it."""

    __slots__ = ("buckets", "known", "number", "time_s", "wanted")

    def __init__(self, number: int, wanted: int, time_s: float, known: bool) -> None:
        self.number = number
        self.wanted = wanted
        self.time_s = time_s
        self.known = known
        self.buckets: dict[int, Bucket[S]] = {}


class StageState(Generic[S]):
    """The live states of one stage's partitions.

    Args:
        table: where they are kept.
        reducer: encodes and decodes the buckets' own states.
    """

    def __init__(self, table: StateTable, reducer: StageReducer[S]) -> None:
        self._table = table
        self._reducer = reducer
        self._partitions: dict[int, PartitionState[S]] = {}

    def forget(self) -> None:
        """Drop every live state: the next use reads the table again."""
        self._partitions.clear()

    def states(self, partitions: Iterable[int]) -> list[S] | None:
        """The buckets' own states, or None unless all of these partitions are live."""
        if not self._partitions.keys() >= set(partitions):
            return None
        return [bucket.state for partition in self._partitions.values() for bucket in partition.buckets.values()]

    def partition(self, number: int) -> PartitionState[S]:
        """The partition's live state, read from the table at its first use.

        Raises:
            StateFormatError: a record cannot be read.
        """
        live = self._partitions.get(number)
        if live is None:
            live = self._partitions[number] = self._read(number)
        return live

    def bucket(self, partition: PartitionState[S], number: int) -> Bucket[S]:
        """A bucket of the partition, blank if nothing was ever applied to it."""
        found = partition.buckets.get(number)
        if found is None:
            found = partition.buckets[number] = Bucket(number, -1, self._reducer.blank())
        return found

    def reload(self, partition: PartitionState[S], bucket: Bucket[S]) -> None:
        """Put a bucket's state back to what the table holds; the offset applied stays."""
        stored = self._table.stored()
        key = bucket_key(partition.number, bucket.number)
        if key in stored:
            bucket.state = self._reducer.decode(decode_bucket(key, stored[key])[1])
        else:
            bucket.state = self._reducer.blank()

    def write_bucket(self, partition: PartitionState[S], bucket: Bucket[S], encoded: bytes) -> None:
        """Write a bucket, given its state as the reducer encodes it.

        Raises:
            StateFormatError: the record would be larger than a changelog takes.
        """
        key = bucket_key(partition.number, bucket.number)
        record = encode_bucket(bucket.applied, encoded)
        if len(record) > _LARGEST_RECORD:
            message = (
                f"State record {key!r} would be {len(record)} bytes, at most {_LARGEST_RECORD} fit a changelog. "
                "Use more buckets or partitions, under another app_id."
            )
            raise StateFormatError(message)
        self._table.put(key, record)

    def write_position(self, partition: PartitionState[S]) -> None:
        """Write how far the partition has been read. Its buckets must have been written before."""
        applied = {bucket.number: bucket.applied for bucket in partition.buckets.values() if bucket.applied >= 0}
        key = position_key(partition.number)
        self._table.put(key, encode_position(partition.wanted, partition.time_s, applied))
        partition.known = True

    def _read(self, number: int) -> PartitionState[S]:
        stored = self._table.stored()
        key = position_key(number)
        record = decode_position(key, stored[key]) if key in stored else None
        live: PartitionState[S] = (
            PartitionState(number, 0, 0.0, known=False)
            if record is None
            else PartitionState(number, record.wanted, record.time_s, known=True)
        )
        for bucket_number, bucket_record in self._bucket_records(number):
            applied, data = decode_bucket(bucket_key(number, bucket_number), bucket_record)
            live.buckets[bucket_number] = Bucket(bucket_number, applied, self._reducer.decode(data))
        for bucket_number, applied in ({} if record is None else record.applied).items():
            found = live.buckets[bucket_number].applied if bucket_number in live.buckets else -1
            if found < applied and found < live.wanted - 1:
                # A worker that had been paused for long has written over it: what it lacks is read again, and what the
                # other buckets have of that already is passed over by their own offsets.
                _log.warning("state_behind partition=%d bucket=%d has=%d of=%d", number, bucket_number, found, applied)
                live.wanted = found + 1
        return live

    def _bucket_records(self, partition: int) -> Iterator[tuple[int, bytes]]:
        for key, value in self._table.stored().items():
            place = read_key(key)
            if place.partition == partition and place.bucket is not None:
                yield place.bucket, value
