"""A recording that is being read: its bytes, what of it is wanted, how far it is, and what could not be read."""

import gzip
import io
import json
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
from springback.producers.mapping_parts.timed_message import TimedMessage
from springback.producers.recording_reader import ReportUnreadable, UnreadablePart
from springback.producers.signal_mapping import SignalMapping

READ_ERRORS: Final = (EOFError, gzip.BadGzipFile, zlib.error)
LARGEST_PART: Final = 1 << 30
"""What claims to be larger, in bytes, is damage rather than data."""
MOST_TOPICS_NAMED: Final = 50


@dataclass(slots=True)
class OpenRecording:
    """What a reader of a format is given.

    Attributes:
        path: the file or folder.
        source: what to call it.
        stream: its bytes, decompressed; for a folder, empty.
        mapping: what will be made of its messages.
        report: told of each part that cannot be read.
        size_bytes: of the file as it is on disk; 0 where it is not known.
        read_share: how much of it has been read, for readers that do not go by `stream`.
        topics: those met so far, and whether the mapping reads them.
    """

    path: Path
    source: str
    stream: io.BufferedIOBase
    mapping: SignalMapping
    report: ReportUnreadable
    raw: io.BufferedIOBase | None = None
    size_bytes: int = 0
    read_share: float | None = None
    topics: dict[str, bool] = field(default_factory=dict)

    def wants(self, topic: str) -> bool:
        """Whether the mapping reads this topic."""
        wanted = self.topics.get(topic)
        if wanted is None:
            wanted = self.mapping.reads(topic)
            if wanted or len(self.topics) < MOST_TOPICS_NAMED:
                self.topics[topic] = wanted
        return wanted

    def unreadable(self, place: int, reason: str, detail: str) -> None:
        """Tell of a part that cannot be read; `place` counts messages, rows or lines from 1."""
        self.report(UnreadablePart(self.source, place, reason, detail))

    def share(self) -> float | None:
        """How much of it has been read, from 0 to 1; None where that is not known."""
        if self.read_share is not None:
            return self.read_share
        if self.raw is None or not self.size_bytes:
            return None
        return min(self.raw.tell() / self.size_bytes, 1.0)

    @contextmanager
    def looking_at(self, place: int) -> Iterator[bool]:
        """For a while, `read` goes on at this byte, from the end where it is negative; then it is back where it was.

        Gives whether that is possible: only a file that is read as it lies on disk can be looked into like that.
        """
        if self.stream is not self.raw or not -self.size_bytes <= place < self.size_bytes:
            yield False
            return
        before = self.stream.tell()
        self.stream.seek(place, io.SEEK_END if place < 0 else io.SEEK_SET)
        yield True
        self.stream.seek(before)

    def read(self, size: int) -> bytes:
        """At most so many bytes, fewer only at the end or where its compression is damaged."""
        pieces: list[bytes] = []
        while size > 0:
            try:
                piece = self.stream.read(min(size, 1 << 20))
            except READ_ERRORS:
                break
            if not piece:
                break
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)


MessageReader = Callable[[OpenRecording], Iterator[TimedMessage]]


def json_value(data: bytes) -> Any:
    """A JSON value; NaN and infinities, which Python clients write, are taken too.

    Raises:
        ValueError: it is none.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        try:
            return json.loads(data.decode(errors="replace"))
        except RecursionError as error:
            message = "nested too deeply"
            raise ValueError(message) from error


def file_size(path: Path) -> int:
    """The size of a file; 0 for what has none, such as a pipe."""
    return os.path.getsize(path) if path.is_file() else 0
