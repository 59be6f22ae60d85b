"""How the state of a stage lies in its table: records of buckets and of positions, versioned, as plain bytes.

Faust skips a changelog record that it cannot decode and goes on with a blank state; so keys and values are bytes to
Faust, they are decoded here, and a record that cannot be read is an error that stops the worker.
"""

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import msgspec
from springback.stream_processors.errors import StateFormatError

T = TypeVar("T")
STATE_SCHEMA_VERSION = 1
_COMPRESS_FROM_BYTES = 16_384
_POSITION_SUFFIX = b"next"


class TableKey(NamedTuple):
    """What a key of the table means: a bucket of a partition, or (`bucket` None) the partition's position."""

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
    """

    schema_version: int
    wanted: int
    time_s: float
    applied: dict[int, int]


class _Version(msgspec.Struct, array_like=True):
    schema_version: int


_encode = msgspec.msgpack.Encoder().encode
_decode_bucket = msgspec.msgpack.Decoder(BucketRecord).decode
_decode_position = msgspec.msgpack.Decoder(PositionRecord).decode
_decode_version = msgspec.msgpack.Decoder(_Version).decode


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
    if separator and partition.isdigit() and (rest == _POSITION_SUFFIX or rest.isdigit()):
        return TableKey(int(partition), None if rest == _POSITION_SUFFIX else int(rest))
    message = f"State key {key[:64]!r}: expected PARTITION/BUCKET or PARTITION/next. Whose changelog is this?"
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
    _check_version(key, data)
    try:
        record = _decode_bucket(data)
        return record.applied, zlib.decompress(record.state) if record.compressed else record.state
    except (msgspec.DecodeError, zlib.error) as error:
        raise _unreadable(key, data, error) from error


def encode_position(wanted: int, time_s: float, applied: dict[int, int]) -> bytes:
    """A partition's position record."""
    return _encode(PositionRecord(STATE_SCHEMA_VERSION, wanted, time_s, applied))


def decode_position(key: bytes, data: bytes) -> PositionRecord:
    """A partition's position.

    Raises:
        StateFormatError: the record cannot be read by this version.
    """
    _check_version(key, data)
    try:
        return _decode_position(data)
    except msgspec.DecodeError as error:
        raise _unreadable(key, data, error) from error


class _Versioned(msgspec.Struct):
    schema_version: int


def decode_versioned(data: bytes, kind: type[T], version: int, dec_hook: Callable[[type, Any], Any] | None = None) -> T:
    """A reducer's own state, a struct that carries its `schema_version`. `dec_hook` is msgspec's.

    Raises:
        StateFormatError: it is of another version, or cannot be read.
    """
    what = f"State of kind {kind.__name__}"
    try:
        found = msgspec.msgpack.decode(data, type=_Versioned).schema_version
        if found == version:
            return msgspec.msgpack.decode(data, type=kind, dec_hook=dec_hook)
    except msgspec.DecodeError as error:
        message = f"{what} ({len(data)} bytes) cannot be read: {error}. Its changelog is damaged: restore the topic."
        raise StateFormatError(message) from error
    message = (
        f"{what} has schema_version {found}, this worker reads {version}. It was written by another version of "
        "springback: run that version, or start anew under another app_id."
    )
    raise StateFormatError(message)


def _check_version(key: bytes, data: bytes) -> None:
    try:
        version = _decode_version(data).schema_version
    except msgspec.DecodeError as error:
        raise _unreadable(key, data, error) from error
    if version != STATE_SCHEMA_VERSION:
        message = (
            f"State record {key!r} has schema_version {version}, this worker reads {STATE_SCHEMA_VERSION}. It was "
            "written by another version of springback: run that version, or start anew under another app_id."
        )
        raise StateFormatError(message)


def _unreadable(key: bytes, data: bytes, error: Exception) -> StateFormatError:
    message = (
        f"State record {key!r} ({len(data)} bytes, beginning {data[:16]!r}) cannot be read: {error}. Its changelog is "
        "damaged: restore the topic, or start anew under another app_id."
    )
    return StateFormatError(message)
