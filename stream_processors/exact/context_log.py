"""What outputs are made by besides events and states, as part of the state: its switches, and the place of each.

A stage may need more than its events, for example the baseline that scores. It changes while events are taken in, and
an event that is taken in again after a crash must be taken in by what it was taken in by the first time. So this is
state too: a *context* is parts with a name each, known by their digests; a *switch* says from which offset of a
partition on a context counts. Both are records of the stage's table, written before anything is made by them.

Records of a worker that was paused for long may be written after those of its successor. So each worker that takes a
partition over begins a new *term*, and its switches stand above those of every earlier term from where it took over:
what comes late from before cannot change what is read here.
"""

import hashlib
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from springback.stream_processors.errors import StateFormatError
from springback.stream_processors.topics import LARGEST_RECORD_BYTES

CONTEXT_SCHEMA_VERSION = 1
KEPT_CONTEXTS = 8
"""How many contexts a partition keeps, the one in force among them: a bucket that fell behind is read again by them."""
KEPT_SWITCHES = 64
"""How many switches a partition keeps at most, those that only begin a term among them."""
MOST_UNPACKED_BYTES = 16 * LARGEST_RECORD_BYTES
"""What a record of the state may be unpacked: one of 16 MiB that somebody has made could be 16 GiB."""
_COMPRESS_FROM_BYTES = 4096
_DIGEST_BYTES = 16
_SWITCH, _CONTENT = b"switch", b"content"

Parts = Mapping[str, bytes]
"""A context: the digest of each of its parts, by the part's name."""


class Switch(msgspec.Struct, frozen=True, array_like=True):
    """From which offset of a partition on a context counts.

    Attributes:
        schema_version: version of this record's form.
        partition: of the input.
        term: how many workers have had the partition, this one included, for all that it knew.
        generation: the consumer group's when the worker wrote it; tells two workers apart that took over from the same.
        from_offset: the first offset that the context counts for.
        parts: the context.
    """

    schema_version: int
    partition: int
    term: int
    generation: int
    from_offset: int
    parts: dict[str, bytes]

    @property
    def reign(self) -> tuple[int, int]:
        """Who wrote it: the greater one counts."""
        return self.term, self.generation


class Content(msgspec.Struct, frozen=True, array_like=True):
    """The content of a part, under the key that carries its digest."""

    schema_version: int
    compressed: bool
    data: bytes


class _Version(msgspec.Struct, array_like=True):
    schema_version: int


class ContextKey(NamedTuple):
    """What a key means: the content with a digest, or (None) a switch."""

    partition: int
    digest: bytes | None


_encode = msgspec.msgpack.Encoder().encode
_decode_switch = msgspec.msgpack.Decoder(Switch).decode
_decode_content = msgspec.msgpack.Decoder(Content).decode
_decode_version = msgspec.msgpack.Decoder(_Version).decode


def digest_of(content: bytes) -> bytes:
    """The digest that a part's content is known by.

    >>> len(digest_of(b"navigation"))
    16
    """
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()


def switch_key(switch: Switch) -> bytes:
    """The table's key of a switch: one of its own for each, so that no late writer can write over another's.

    >>> switch_key(Switch(1, partition=3, term=2, generation=9, from_offset=170, parts={}))
    b'3/switch/2/9/170'
    """
    return b"%d/%s/%d/%d/%d" % (switch.partition, _SWITCH, *switch.reign, switch.from_offset)


def content_key(partition: int, digest: bytes) -> bytes:
    r"""The table's key of a part's content.

    >>> content_key(3, bytes.fromhex("beef"))
    b'3/content/beef'
    """
    return b"%d/%s/%s" % (partition, _CONTENT, digest.hex().encode())


def read_context_key(key: bytes) -> ContextKey | None:
    """What a key means, None if it is not one of these.

    >>> read_context_key(b"3/content/4142"), read_context_key(b"3/next")
    (ContextKey(partition=3, digest=b'AB'), None)
    """
    partition, _, rest = key.partition(b"/")
    kind, _, place = rest.partition(b"/")
    if not partition.isdigit():
        return None
    if kind == _SWITCH and [number.isdigit() for number in place.split(b"/")] == [True, True, True]:
        return ContextKey(int(partition), None)
    if kind == _CONTENT:
        try:
            return ContextKey(int(partition), bytes.fromhex(place.decode("ascii")))
        except ValueError:
            return None
    return None


def is_content_of(partition: int, key: bytes) -> bool:
    """Whether a key is that of a content of the partition."""
    place = read_context_key(key)
    return place is not None and place.partition == partition and place.digest is not None


def encode_switch(switch: Switch) -> bytes:
    """A switch's record."""
    return _encode(switch)


def encode_content(data: bytes) -> bytes:
    """The record of a part's content; a large one is compressed."""
    compressed = len(data) >= _COMPRESS_FROM_BYTES
    return _encode(Content(CONTEXT_SCHEMA_VERSION, compressed, zlib.compress(data, 1) if compressed else data))


def unpacked(data: bytes) -> bytes:
    """What zlib has packed.

    Raises:
        zlib.error: it is none of zlib's, is cut off, or would be larger than `MOST_UNPACKED_BYTES`.
    """
    unpacker = zlib.decompressobj()
    found = unpacker.decompress(data, MOST_UNPACKED_BYTES)
    if not unpacker.eof:
        message = f"it is cut off, or would be more than {MOST_UNPACKED_BYTES} bytes unpacked"
        raise zlib.error(message)
    return found


def decode_switch(key: bytes, record: bytes) -> Switch:
    """The switch in a record.

    Raises:
        StateFormatError: this version cannot read it.
    """
    check_version(key, record, CONTEXT_SCHEMA_VERSION)
    try:
        return _decode_switch(record)
    except msgspec.DecodeError as error:
        raise unreadable(key, record, error) from error


def decode_content(key: bytes, record: bytes) -> bytes:
    """The content in a record.

    Raises:
        StateFormatError: this version cannot read it.
    """
    check_version(key, record, CONTEXT_SCHEMA_VERSION)
    try:
        content = _decode_content(record)
        return unpacked(content.data) if content.compressed else content.data
    except (msgspec.DecodeError, zlib.error) as error:
        raise unreadable(key, record, error) from error


def check_version(key: bytes, record: bytes, expected: int) -> None:
    """Checks the `schema_version` that every record of the state begins with.

    Raises:
        StateFormatError: it is another, or there is none.
    """
    try:
        version = _decode_version(record).schema_version
    except msgspec.DecodeError as error:
        raise unreadable(key, record, error) from error
    if version != expected:
        message = (
            f"State record {key!r} has schema_version {version}, this worker reads {expected}. It was "
            "written by another version of springback: run that version, or start anew under another app_id."
        )
        raise StateFormatError(message)


def unreadable(key: bytes, record: bytes, error: Exception) -> StateFormatError:
    """The error of a record of the state that has the right version and makes no sense."""
    message = (
        f"State record {key!r} ({len(record)} bytes, beginning {record[:16]!r}) cannot be read: {error}. Its changelog "
        "is damaged: restore the topic, or start anew under another app_id."
    )
    return StateFormatError(message)


class ContextLog:
    """The switches of one partition, and which of them counts where.

    At an offset that switch counts, of those from there or before, that the latest worker has written, and of its the
    last one.

    Args:
        switches: those that were written, in any order.
    """

    def __init__(self, switches: Iterable[Switch] = ()) -> None:
        self._path: list[Switch] = []
        self.reign = (0, 0)
        """The latest worker's of all that have written here; (0, 0) if none has."""
        self._hidden: list[Switch] = []
        for switch in sorted(switches, key=lambda s: (s.from_offset, s.reign)):
            self.add(switch)

    @property
    def path(self) -> tuple[Switch, ...]:
        """The switches that count, in order of their offsets."""
        return tuple(self._path)

    def add(self, switch: Switch) -> None:
        """Takes in a switch. One that begins below others of its own or a later worker must be added before them."""
        self.reign = max(self.reign, switch.reign)
        if self._path and self._path[-1].reign > switch.reign and self._path[-1].from_offset <= switch.from_offset:
            self._hidden.append(switch)
            return
        while self._path and self._path[-1].from_offset >= switch.from_offset:
            self._hidden.append(self._path.pop())
        self._path.append(switch)

    def at(self, offset: int) -> Switch | None:
        """The switch that counts at an offset; None below the first one."""
        before = bisect_right(self._path, offset, key=lambda switch: switch.from_offset)
        return self._path[before - 1] if before else None

    def after(self, offset: int) -> Iterator[Switch]:
        """The switches that count from a later offset on."""
        return (switch for switch in self._path if switch.from_offset > offset)

    def let_go(self) -> list[Switch]:
        """Drops what nothing goes back to any more, and returns it: what does not count, and what is too old."""
        contexts: list[dict[str, bytes]] = []
        kept = 0
        for switch in reversed(self._path):
            if switch.parts not in contexts:
                contexts.append(switch.parts)
            if len(contexts) > KEPT_CONTEXTS or kept == KEPT_SWITCHES:
                break
            kept += 1
        gone = self._hidden + self._path[: len(self._path) - kept]
        self._hidden, self._path = [], self._path[len(self._path) - kept :]
        return gone
