"""The state of a stage: live buckets and positions of the partitions that it holds, and their records in its table.

Faust skips a changelog record that it cannot decode and goes on with a blank state. So keys and values are plain bytes
to Faust; they are versioned and decoded here, and a record that cannot be read is an error that stops the worker.
"""

import logging
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from springback.stream_processors.errors import StateFormatError, StateFullError, TopicMismatchError
from springback.stream_processors.exact.context_log import (
    MOST_UNPACKED_BYTES,
    check_version,
    read_context_key,
    unpacked,
    unreadable,
)
from springback.stream_processors.exact.port import StageReducer
from springback.stream_processors.topics import LARGEST_RECORD_BYTES

S = TypeVar("S")
STATE_SCHEMA_VERSION = 1
_COMPRESS_FROM_BYTES = 16_384
_LARGEST_RECORD = LARGEST_RECORD_BYTES - 4096  # key and batch headers need room too
_POSITION_SUFFIX = b"next"
_log = logging.getLogger(__name__)


class VersionedState(Protocol):
    """The struct of a reducer's state."""

    schema_version: int


T = TypeVar("T", bound=VersionedState)


class TableKey(NamedTuple):
    """What a key of the table means: a bucket of a partition, or (`bucket` None) its position or of its contexts."""

    partition: int
    bucket: int | None


class BucketRecord(msgspec.Struct, frozen=True, array_like=True):
    """A bucket: the offset of the last event applied to it (-1: none yet), and the reducer's own encoded state."""

    schema_version: int
    applied: int
    compressed: bool
    state: bytes


class PositionRecord(msgspec.Struct, frozen=True, array_like=True):
    """How far a partition has been read.

    Attributes:
        schema_version: version of this record's form.
        wanted: the next offset wanted.
        time_s: the broker's time of the last event read, in seconds.
        applied: for each bucket the offset last applied to it when this was written. A bucket that is found behind it
            has been overwritten by a worker that came back from a long pause.
        partitions: how many partitions the input had; 0 in records of before that was written.
    """

    schema_version: int
    wanted: int
    time_s: float
    applied: dict[int, int]
    partitions: int = 0


class _Versioned(msgspec.Struct):
    schema_version: int


_encode = msgspec.msgpack.Encoder().encode
_decode_bucket = msgspec.msgpack.Decoder(BucketRecord).decode
_decode_position = msgspec.msgpack.Decoder(PositionRecord).decode


def bucket_key(partition: int, bucket: int) -> bytes:
    """The table's key of a bucket.

    >>> bucket_key(3, 17)
    b'3/17'
    """
    return b"%d/%d" % (partition, bucket)


def position_key(partition: int) -> bytes:
    """The table's key of a partition's position.

    >>> position_key(3)
    b'3/next'
    """
    return b"%d/%s" % (partition, _POSITION_SUFFIX)


def read_key(key: bytes) -> TableKey:
    """What a key of the table means.

    Raises:
        StateFormatError: the key is none of ours.
    """
    partition, separator, rest = key.partition(b"/")
    if separator and partition.isdigit() and rest.isdigit():
        return TableKey(int(partition), int(rest))
    if separator and partition.isdigit() and (rest == _POSITION_SUFFIX or read_context_key(key) is not None):
        return TableKey(int(partition), None)
    message = (
        f"State key {key[:64]!r}: expected PARTITION/BUCKET, PARTITION/next, PARTITION/switch/… or "
        "PARTITION/content/…. The changelog belongs to another program, or a newer springback: start under another "
        "app_id, or run that version."
    )
    raise StateFormatError(message)


def encode_bucket(applied: int, state: bytes) -> bytes:
    """A bucket's record; a large state is compressed."""
    compressed = len(state) >= _COMPRESS_FROM_BYTES
    held = zlib.compress(state, 1) if compressed else state
    return _encode(BucketRecord(STATE_SCHEMA_VERSION, applied, compressed, held))


def decode_bucket(key: bytes, data: bytes) -> tuple[int, bytes]:
    """The offset last applied to a bucket, and the reducer's own encoded state.

    Raises:
        StateFormatError: the record cannot be read by this version.
    """
    check_version(key, data, STATE_SCHEMA_VERSION)
    try:
        record = _decode_bucket(data)
        return record.applied, unpacked(record.state) if record.compressed else record.state
    except (msgspec.DecodeError, zlib.error) as error:
        raise unreadable(key, data, error) from error


def encode_position(wanted: int, time_s: float, applied: dict[int, int], partitions: int = 0) -> bytes:
    """A partition's position record."""
    return _encode(PositionRecord(STATE_SCHEMA_VERSION, wanted, time_s, applied, partitions))


def decode_position(key: bytes, data: bytes) -> PositionRecord:
    """A partition's position.

    Raises:
        StateFormatError: the record cannot be read by this version.
    """
    check_version(key, data, STATE_SCHEMA_VERSION)
    try:
        return _decode_position(data)
    except msgspec.DecodeError as error:
        raise unreadable(key, data, error) from error


def decode_versioned(
    data: bytes,
    kind: type[T],
    version: int,
    dec_hook: Callable[[type, Any], Any] | None = None,
    *,
    oldest: int | None = None,
    older: Mapping[int, Callable[[bytes], T]] = {},
) -> T:
    """A reducer's own state, a struct that carries its `schema_version`.

    Args:
        data: the state as it was written.
        kind: the struct.
        version: the version that is written now.
        dec_hook: msgspec's.
        oldest: the oldest version that the struct's defaults make one of now; None where only the one of now is read.
        older: what makes one of now of the versions that defaults cannot, by version.

    Raises:
        StateFormatError: it is of another version, or cannot be read.
    """
    what = f"State of kind {kind.__name__}"
    try:
        found = msgspec.msgpack.decode(data, type=_Versioned).schema_version
        if (version if oldest is None else oldest) <= found <= version:
            state = msgspec.msgpack.decode(data, type=kind, dec_hook=dec_hook)
            state.schema_version = version
            return state
        if found in older:
            return older[found](data)
    except msgspec.DecodeError as error:
        message = f"{what} ({len(data)} bytes) cannot be read: {error}. Its changelog is damaged: restore the topic."
        raise StateFormatError(message) from error
    message = (
        f"{what} has schema_version {found}, this worker reads {version}. It was written by another version of "
        "springback: run that version, or start anew under another app_id."
    )
    raise StateFormatError(message)


class StateTable(Protocol):
    """A table as the stage sees it: bytes to bytes. What is put into it is also written to a changelog."""

    def stored(self) -> Mapping[bytes, bytes]:
        """What the table holds."""

    def put(self, key: bytes, value: bytes) -> None:
        """Sets a key."""

    def delete(self, key: bytes) -> None:
        """Takes a key out."""


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
        input_partitions: how many partitions the input has, which must stay so; 0 where nobody looks.
    """

    def __init__(self, table: StateTable, reducer: StageReducer[S], input_partitions: int = 0) -> None:
        self._table = table
        self._reducer = reducer
        self._input_partitions = input_partitions
        self._partitions: dict[int, PartitionState[S]] = {}

    def forget(self) -> None:
        """Drops every live state: the next use reads the table again."""
        self._partitions.clear()

    def states(self, partitions: Iterable[int]) -> list[S] | None:
        """The buckets' own states, or None unless all of these partitions are live."""
        if not self._partitions.keys() >= set(partitions):
            return None
        return [bucket.state for partition in self._partitions.values() for bucket in partition.buckets.values()]

    def wanted(self) -> dict[int, int]:
        """The next offset wanted of each live partition."""
        return {number: partition.wanted for number, partition in self._partitions.items()}

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
        """Puts a bucket's state back to what the table holds; the offset applied stays."""
        stored = self._table.stored()
        key = bucket_key(partition.number, bucket.number)
        if key in stored:
            bucket.state = self._reducer.decode(decode_bucket(key, stored[key])[1])
        else:
            bucket.state = self._reducer.blank()

    def write_bucket(self, partition: PartitionState[S], bucket: Bucket[S], encoded: bytes) -> None:
        """Writes a bucket, given its state as the reducer encodes it.

        `check_size` must have been asked before.
        """
        self._table.put(bucket_key(partition.number, bucket.number), encode_bucket(bucket.applied, encoded))

    def check_size(self, bucket: Bucket[S], encoded: bytes) -> bytes:
        """The bucket's state as the reducer encodes it, given that.

        Raises:
            StateFullError: its record would be larger than a changelog takes.
        """
        size = len(encode_bucket(bucket.applied, encoded)) if len(encoded) > _LARGEST_RECORD else 0
        if size > _LARGEST_RECORD or len(encoded) > MOST_UNPACKED_BYTES:
            message = (
                f"the state of bucket {bucket.number} would be {size} bytes, {len(encoded)} unpacked, a changelog "
                f"takes {_LARGEST_RECORD}, {MOST_UNPACKED_BYTES} unpacked: "
                "use more buckets or partitions, under another app_id, or lower the bounds on what a producer has"
            )
            raise StateFullError(message)
        return encoded

    def write_position(self, partition: PartitionState[S]) -> None:
        """Writes how far the partition has been read. Its buckets must have been written before."""
        applied = {bucket.number: bucket.applied for bucket in partition.buckets.values() if bucket.applied >= 0}
        key = position_key(partition.number)
        self._table.put(key, encode_position(partition.wanted, partition.time_s, applied, self._input_partitions))
        partition.known = True

    def _read(self, number: int) -> PartitionState[S]:
        stored = self._table.stored()
        key = position_key(number)
        record = decode_position(key, stored[key]) if key in stored else None
        if record is not None:
            self._check_input(record)
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

    def _check_input(self, record: PositionRecord) -> None:
        """Keys of an input with other partitions are elsewhere than the state that belongs to them."""
        if 0 in (record.partitions, self._input_partitions) or record.partitions == self._input_partitions:
            return
        now = self._input_partitions
        message = (
            f"The state was made with {record.partitions} partitions, and now there are {now}: producers' keys are in "
            "other partitions than their state. Partitions were added, and Kafka takes none away again: go on under "
            f"another prefix (`springback topics --prefix NEW --partitions {now}`)."
        )
        raise TopicMismatchError(message)

    def _bucket_records(self, partition: int) -> Iterator[tuple[int, bytes]]:
        for key, value in self._table.stored().items():
            place = read_key(key)
            if place.partition == partition and place.bucket is not None:
                yield place.bucket, value
