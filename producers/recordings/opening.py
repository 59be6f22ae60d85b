"""Opening a recording: which format it has, told by its content, and what the reader of that format is given.

The name of a file plays no part. What is read is bounded, and what cannot be read is reported rather than raised.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from springback.producers.mapping.signal_mapping import SignalMapping, TimedMessage
from springback.producers.recordings.step_frames import READ_ERRORS, ReportUnreadable, UnreadablePart
from springback.producers.sources import sources_of

NATIVE: Final = "frames"
"""Step frames as JSON Lines: what springback itself writes."""

LARGEST_PART: Final = 1 << 30
"""What claims to be larger, in bytes, is damage rather than data."""

MOST_TOPICS_NAMED: Final = 50
MOST_TOPICS_KEPT: Final = 1000
_FRAME_KEYS: Final = frozenset({"producer", "session"})
_FRAME_PARTS: Final = frozenset({"episodes", "steps", "ends"})
_CELLS: Final = re.compile(rb"[^\x00-\x08\x0e-\x1f]+[,;\t][^\x00-\x08\x0e-\x1f]*")


def folder_format(folder: Path) -> str | None:
    """The format of a folder: `lerobot`, `rosbag2`, or None for any other folder."""
    if (folder / "meta" / "info.json").is_file():
        return "lerobot"
    bag = any(file.suffix in (".db3", ".mcap") for file in folder.iterdir()) or (folder / "metadata.yaml").is_file()
    return "rosbag2" if bag else None


def magic_format(start: bytes) -> str | None:
    """The format that the first `MAGIC_BYTES` of a file give away; None where they do not."""
    formats = sources_of("recording").values()
    return next((source.name for source in formats if source.magic and start.startswith(source.magic)), None)


def file_format(start: bytes) -> str | None:
    r"""The format of a file that begins like this; None if it is not a known one. Text must have its first line whole.

    >>> file_format(b"#ROSBAG V2.0\n"), file_format(b'{"x": 1}'), file_format(b"time,x\n0,1")
    ('rosbag1', 'jsonl', 'csv')
    """
    known = magic_format(start)
    if known is not None:
        return known
    line = start.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0].strip()
    if line in (b"{", b"["):
        return None  # JSON, but one value over many lines
    if line[:1] in (b"{", b"["):
        try:
            record = json_value(line)
        except ValueError:
            return "jsonl"
        return NATIVE if is_frame(record) else "jsonl"
    return "csv" if _CELLS.fullmatch(line) else None


def is_frame(record: object) -> bool:
    """Whether a JSON value is meant to be a step frame."""
    return isinstance(record, dict) and record.keys() >= _FRAME_KEYS and bool(record.keys() & _FRAME_PARTS)


@dataclass
class OpenRecording:
    """A recording that is being read: what the reader of its format is given.

    Attributes:
        path: the file or folder.
        source: what to call it.
        stream: its bytes, decompressed; empty for a folder.
        mapping: what its messages mean.
        report: called for each part that cannot be read.
        raw: its bytes as they are on disk; None for a folder.
        size_bytes: the size of the file on disk; 0 where it is not known.
        read_share: how much of it has been read, from 0 to 1, for readers that do not go by `stream`.
        topics: those met so far, and whether the mapping reads them.
        others: further ones that it does not read.
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
    others: set[str] = field(default_factory=set)

    def wants(self, topic: str) -> bool:
        """Whether the mapping reads this topic."""
        wanted = False if topic in self.others else self.topics.get(topic)
        if wanted is None:
            wanted = self.mapping.reads(topic)
            if wanted or len(self.topics) < MOST_TOPICS_NAMED:
                self.topics[topic] = wanted
            elif len(self.others) < MOST_TOPICS_KEPT:
                self.others.add(topic)
        return wanted

    def unreadable(self, place: int, reason: str, detail: str) -> None:
        """Reports a part that cannot be read; `place` counts messages, rows or lines from 1."""
        self.report(UnreadablePart(self.source, place, reason, detail))

    def note(self, reason: str, detail: str) -> None:
        """Says how the recording is read, where nothing is left out."""
        self.report(UnreadablePart(self.source, 0, reason, detail, note=True))

    def share(self) -> float | None:
        """How much of it has been read, from 0 to 1; None where that is not known."""
        if self.read_share is not None:
            return self.read_share
        if self.raw is None or not self.size_bytes:
            return None
        return min(self.raw.tell() / self.size_bytes, 1.0)

    @contextmanager
    def looking_at(self, place: int) -> Iterator[bool]:
        """Lets `read` go on at this byte (counted from the end if negative) for as long as the context is open.

        Yields:
            whether that is possible: only a file that is read as it is on disk can be looked into like this.
        """
        if self.stream is not self.raw or not -self.size_bytes <= place < self.size_bytes:
            yield False
            return
        before = self.stream.tell()
        self.stream.seek(place, io.SEEK_END if place < 0 else io.SEEK_SET)
        yield True
        self.stream.seek(before)

    def read(self, size: int) -> bytes:
        """The next bytes, so many or, at the end or where its compression is damaged, fewer."""
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
"""What reads a format: the messages of a recording, in order."""


def json_value(data: bytes) -> Any:
    """The value of a JSON text; NaN and infinities, which Python clients write, are accepted too.

    Raises:
        ValueError: it is not JSON.
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
