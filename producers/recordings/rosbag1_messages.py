"""Messages of ROS 1 bags (version 2.0), read from front to back: neither index nor `rosbag reindex` is needed."""

from __future__ import annotations

import bz2
import struct
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Final, NamedTuple

from springback.producers.install_hints import MissingExtraError
from springback.producers.mapping.signal_mapping import TimedMessage
from springback.producers.recordings.opening import LARGEST_PART, OpenRecording
from springback.producers.recordings.ros_types import RecordedTopic, ros1_decoder

try:
    import lz4.frame  # type: ignore[import-untyped]
except ImportError as error:
    raise MissingExtraError(extra="recordings", cause=error) from error

MAGIC: Final = b"#ROSBAG V2.0\n"
_MESSAGE, _BAG_HEADER, _CHUNK, _CONNECTION = 2, 3, 5, 7
_U32: Final = struct.Struct("<I")
_U64: Final = struct.Struct("<Q")
_TIME: Final = struct.Struct("<II")


class _Record(NamedTuple):
    fields: dict[str, bytes]
    data: bytes
    whole: bool


def read_messages(recording: OpenRecording) -> Iterator[TimedMessage]:
    """The messages in the order of the file; of a chunk that was cut off, as many as can be decompressed."""
    return _BagReading(recording).messages()


class _BagReading:
    def __init__(self, recording: OpenRecording) -> None:
        self._recording = recording
        self._topics: dict[bytes, RecordedTopic] = {}
        self._messages = 0

    def messages(self) -> Iterator[TimedMessage]:
        self._recording.read(len(MAGIC))
        closed = True
        for record in _records(self._recording.read):
            if _op(record) == _BAG_HEADER:
                (index_at,) = _U64.unpack(record.fields.get("index_pos", b"")[:8].ljust(8, b"\0"))
                closed = index_at != 0
                self._know_topics(index_at)
            elif _op(record) == _CHUNK:
                for inner in _records(BytesIO(self._decompressed(record)).read):
                    yield from self._of(inner)
            else:
                yield from self._of(record)
            closed = closed and record.whole
        if not closed:
            self._tell("not_closed", "the bag was cut off, or its recorder was stopped (no index); the rest is lost")

    def _know_topics(self, index_at: int) -> None:
        """Reads the index, if there is one: the chunk that first names a topic may be damaged."""
        with self._recording.looking_at(index_at or self._recording.size_bytes) as possible:
            for record in _records(self._recording.read) if possible else ():
                if _op(record) == _CONNECTION:
                    list(self._of(record))

    def _of(self, record: _Record) -> Iterator[TimedMessage]:
        operation = _op(record)
        if not record.whole:
            if operation == _MESSAGE:
                self._tell("cut_off", f"only {len(record.data)} bytes of a message are there")
            return
        try:
            if operation == _CONNECTION:
                connection = record.fields["conn"]
                if connection not in self._topics:
                    self._topics[connection] = self._topic(record)
            elif operation == _MESSAGE:
                self._messages += 1
                connection = record.fields["conn"]
                topic = self._topics.get(connection)
                if topic is None:
                    topic = RecordedTopic(f"connection {int.from_bytes(connection, 'little')}", None)
                    self._topics[connection] = topic
                    self._tell("unknown_channel", f"{topic.name} was described in a part that is lost; it is left out")
                if topic.decode is not None:
                    seconds, nanoseconds = _TIME.unpack(record.fields["time"])
                    yield TimedMessage(topic.name, seconds + nanoseconds * 1e-9, topic.decode(record.data))
        except Exception as error:  # rosbags raises whatever its generated code runs into
            self._tell("unreadable_message", f"{type(error).__name__}: {error}")

    def _topic(self, record: _Record) -> RecordedTopic:
        name = record.fields["topic"].decode()
        if not self._recording.wants(name):
            return RecordedTopic(name, None)
        about = _fields(record.data)
        definition = about["message_definition"].decode(errors="replace")
        return RecordedTopic(name, ros1_decoder(about["type"].decode(), definition))

    def _decompressed(self, chunk: _Record) -> bytes:
        compression = chunk.fields.get("compression", b"").decode(errors="replace")
        try:
            if compression == "none":
                return chunk.data
            if compression == "bz2":
                return bz2.BZ2Decompressor().decompress(chunk.data)
            if compression == "lz4":
                return bytes(lz4.frame.LZ4FrameDecompressor().decompress(chunk.data))
            self._tell("unknown_compression", f"{compression!r}; springback reads none, bz2 and lz4")
        except (OSError, RuntimeError, ValueError) as error:
            self._tell("damaged_chunk", str(error))
        return b""

    def _tell(self, reason: str, detail: str) -> None:
        self._recording.unreadable(self._messages, reason, detail)


def _op(record: _Record) -> int:
    return record.fields.get("op", b"\0")[0]


def _records(read: Callable[[int], bytes]) -> Iterator[_Record]:
    """Records one after another, the last one perhaps incomplete."""
    while len(length := read(_U32.size)) == _U32.size:
        fields = _fields(read(min(*_U32.unpack(length), LARGEST_PART)))
        data_length = read(_U32.size)
        if len(data_length) < _U32.size:
            yield _Record(fields, b"", False)
            return
        (size,) = _U32.unpack(data_length)
        data = read(min(size, LARGEST_PART))
        yield _Record(fields, data, len(data) == size)
        if len(data) < size:
            return


def _fields(data: bytes) -> dict[str, bytes]:
    fields: dict[str, bytes] = {}
    at = 0
    while at + _U32.size <= len(data):
        (length,) = _U32.unpack_from(data, at)
        name, _, value = data[at + _U32.size : at + _U32.size + length].partition(b"=")
        fields[name.decode(errors="replace")] = value
        at += _U32.size + length
    return fields
