"""Messages of MCAP files, ROS 2 (CDR) and JSON, read from front to back: neither index nor proper end is needed."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Final, NamedTuple

from springback.producers.install_hints import MissingExtraError
from springback.producers.mapping.signal_mapping import TimedMessage
from springback.producers.recordings.opening import LARGEST_PART, OpenRecording, json_value
from springback.producers.recordings.ros_types import RecordedTopic, cdr_decoder

try:
    import lz4.frame  # type: ignore[import-untyped]
    import zstandard
    from mcap.data_stream import ReadDataStream
    from mcap.opcode import Opcode
    from mcap.records import Channel, Schema
except ImportError as error:
    raise MissingExtraError(extra="recordings", cause=error) from error

MAGIC: Final = b"\x89MCAP0\r\n"
_RECORD_HEAD: Final = struct.Struct("<BQ")
_MESSAGE_HEAD: Final = struct.Struct("<HIQQ")
_CHUNK_HEAD: Final = struct.Struct("<QQQII")
_FOOTER: Final = struct.Struct("<BQQQI")
_LENGTH: Final = struct.Struct("<Q")
_NS: Final = 1e-9


class _Record(NamedTuple):
    opcode: int
    data: bytes
    whole: bool


def read_messages(recording: OpenRecording) -> Iterator[TimedMessage]:
    """The messages in the order of the file; of a chunk that was cut off, as many as can be decompressed."""
    return _McapReading(recording).messages()


class _McapReading:
    def __init__(self, recording: OpenRecording) -> None:
        self._recording = recording
        self._schemas: dict[int, Schema] = {}
        self._topics: dict[int, RecordedTopic] = {}
        self._messages = 0

    def messages(self) -> Iterator[TimedMessage]:
        self._know_topics()
        self._recording.read(len(MAGIC))
        closed = False
        for record in _records(self._recording.read):
            if record.opcode == Opcode.DATA_END:
                closed = True
                break
            if record.opcode == Opcode.CHUNK:
                records = BytesIO(self._decompressed(record))
                for inner in _records(records.read):
                    yield from self._of(inner)
            else:
                yield from self._of(record)
        if not closed:
            told = "the file has no end: its recorder was stopped, or it was cut off; the rest is lost"
            self._tell("not_closed", told)

    def _know_topics(self) -> None:
        """Reads the summary, if there is one: the chunk that first names a topic may be damaged."""
        with self._recording.looking_at(-_FOOTER.size - len(MAGIC)) as possible:
            end = self._recording.read(_FOOTER.size + len(MAGIC)) if possible else b""
        if end.endswith(MAGIC) and end[0] == Opcode.FOOTER:
            _, _, summary_at, *_ = _FOOTER.unpack_from(end)
            with self._recording.looking_at(summary_at or self._recording.size_bytes) as possible:
                for record in _records(self._recording.read) if possible else ():
                    if record.opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
                        list(self._of(record))

    def _of(self, record: _Record) -> Iterator[TimedMessage]:
        if not record.whole:
            if record.opcode == Opcode.MESSAGE:
                self._tell("cut_off", f"only {len(record.data)} bytes of a message are there")
            return
        try:
            if record.opcode == Opcode.SCHEMA:
                schema = Schema.read(ReadDataStream(BytesIO(record.data)))
                self._schemas[schema.id] = schema
            elif record.opcode == Opcode.CHANNEL:
                channel = Channel.read(ReadDataStream(BytesIO(record.data)))
                if channel.id not in self._topics:
                    self._topics[channel.id] = self._topic(channel)
            elif record.opcode == Opcode.MESSAGE:
                channel_id, _, log_ns, _ = _MESSAGE_HEAD.unpack_from(record.data)
                self._messages += 1
                topic = self._topics.get(channel_id)
                if topic is None:
                    self._topics[channel_id] = topic = RecordedTopic(f"channel {channel_id}", None)
                    self._tell("unknown_channel", f"{topic.name} was described in a part that is lost; it is left out")
                if topic.decode is not None:
                    value = topic.decode(record.data[_MESSAGE_HEAD.size :])
                    yield TimedMessage(topic.name, log_ns * _NS, value)
        except Exception as error:  # rosbags raises whatever its generated code runs into
            self._tell("unreadable_message", f"{type(error).__name__}: {error}")

    def _topic(self, channel: Channel) -> RecordedTopic:
        if not self._recording.wants(channel.topic):
            return RecordedTopic(channel.topic, None)
        if channel.message_encoding == "json":
            return RecordedTopic(channel.topic, json_value)
        schema = self._schemas.get(channel.schema_id)
        decode = None
        if schema is not None and channel.message_encoding == "cdr":
            decode = cdr_decoder(schema.name, schema.encoding, schema.data.decode(errors="replace"))
        if decode is None:
            known = "no schema" if schema is None else f"{schema.encoding} {schema.name}"
            written = f"{channel.topic} is {channel.message_encoding}, {known}"
            self._tell("unknown_encoding", f"{written}; springback reads json, and cdr by its definition")
        return RecordedTopic(channel.topic, decode)

    def _decompressed(self, chunk: _Record) -> bytes:
        try:
            *_, size, _, name_length = _CHUNK_HEAD.unpack_from(chunk.data)
            start = _CHUNK_HEAD.size + name_length
            compression = chunk.data[_CHUNK_HEAD.size : start].decode()
            packed = chunk.data[start + _LENGTH.size :]
            if size > LARGEST_PART:
                self._tell("damaged_chunk", f"it claims to hold {size} bytes")
            elif compression == "":
                return packed
            elif compression == "zstd":
                return zstandard.ZstdDecompressor().decompressobj().decompress(packed)
            elif compression == "lz4":
                return bytes(lz4.frame.LZ4FrameDecompressor().decompress(packed))
            else:
                self._tell("unknown_compression", f"{compression!r}; springback reads zstd and lz4")
        except (zstandard.ZstdError, RuntimeError, struct.error, ValueError) as error:
            self._tell("damaged_chunk", str(error))
        return b""

    def _tell(self, reason: str, detail: str) -> None:
        self._recording.unreadable(self._messages, reason, detail)


def _records(read: Callable[[int], bytes]) -> Iterator[_Record]:
    """Records one after another, the last one perhaps incomplete."""
    while len(head := read(_RECORD_HEAD.size)) == _RECORD_HEAD.size:
        opcode, length = _RECORD_HEAD.unpack(head)
        data = read(min(length, LARGEST_PART))
        yield _Record(opcode, data, len(data) == length)
        if len(data) < length:
            return
