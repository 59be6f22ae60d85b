"""Recordings of step frames: read from JSON Lines, plain or gzip, as far as they can be.

A recording holds one JSON step frame a line. Files from the field are taken as they are: one that was cut off or
damaged gives all that can be read of it, and each part that cannot be read is reported by file, line and reason.
"""

from __future__ import annotations

import gzip
import io
import logging
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from springback.producers.contract.codec import MAX_FRAME_BYTES, decode_frame
from springback.producers.contract.frame import StepFrame
from springback.producers.errors import UnreadableFrameError

READ_ERRORS: Final = (EOFError, gzip.BadGzipFile, zlib.error)
_GZIP_FIRST_BYTE: Final = b"\x1f"  # no line of JSON begins with it
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RecordedFrame:
    """A step frame and where it stood: `data` is the line as recorded, `line` counts from 1."""

    data: bytes
    source: str
    line: int
    frame: StepFrame


@dataclass(frozen=True)
class UnreadablePart:
    """A part of a recording that could not be used: from `line` on, for the reason given (snake_case).

    A `note` leaves nothing out: it says how the recording is read.
    """

    source: str
    line: int
    reason: str
    detail: str
    note: bool = False

    def __str__(self) -> str:
        """As an editor can jump to it; line 0 stands for the whole."""
        place = f"{self.source}:{self.line}" if self.line else self.source
        return f"{place}: {self.reason}: {self.detail}"


ReportUnreadable = Callable[[UnreadablePart], None]


def log_unreadable(part: UnreadablePart) -> None:
    """Logs the part as a warning, and a note as what it is."""
    if part.note:
        _logger.info("On reading the recording: %s", part)
    else:
        _logger.warning("Left out of the recording: %s", part)


def read_frames(
    paths: Iterable[str | Path], report_unreadable: ReportUnreadable = log_unreadable
) -> Iterator[RecordedFrame]:
    """The frames of several recordings, as one input in the order given.

    Args:
        paths: files of JSON Lines, plain or gzip (told apart by their content); `-` is standard input.
        report_unreadable: called for each part that cannot be read, as it is met.

    Yields:
        each frame that can be read; no more than a line of a file is held at a time.

    Raises:
        OSError: a file cannot be opened.
    """
    for path in paths:
        with _open_recording(path) as (stream, source):
            yield from frames_of(recording_lines(stream, source, report_unreadable), source, report_unreadable)


def frames_of(
    lines: Iterable[tuple[int, bytes]], source: str, report_unreadable: ReportUnreadable
) -> Iterator[RecordedFrame]:
    """The frames that numbered lines of a recording hold."""
    for number, line in lines:
        try:
            frame = decode_frame(line)
        except UnreadableFrameError as error:
            detail = str(error).removeprefix(f"{error.reason}: ")
            report_unreadable(UnreadablePart(source, number, error.reason, detail))
        else:
            yield RecordedFrame(line, source, number, frame)


def count_lines(paths: Iterable[str | Path]) -> int | None:
    """How many lines the recordings have, and so at most how many frames; None where one of them is standard input.

    Raises:
        OSError: a file cannot be opened.
    """
    paths = [str(path) for path in paths]
    if "-" in paths:
        return None
    count = 0
    for path in paths:
        with _open_recording(path) as (stream, source):
            count += sum(1 for _ in recording_lines(stream, source, lambda part: None))
    return count


@contextmanager
def _open_recording(path: str | Path) -> Iterator[tuple[io.BufferedIOBase, str]]:
    if str(path) == "-":
        yield _decompressed(cast("io.BufferedReader", sys.stdin.buffer)), "<stdin>"  # not ours to close
    else:
        with open(path, "rb") as raw:
            yield _decompressed(raw), str(path)


def _decompressed(raw: io.BufferedReader) -> io.BufferedIOBase:
    return gzip.GzipFile(fileobj=raw) if raw.peek(1)[:1] == _GZIP_FIRST_BYTE else raw


def recording_lines(stream: io.BufferedIOBase, source: str, report: ReportUnreadable) -> Iterator[tuple[int, bytes]]:
    """The numbers of the lines that are not blank, and the lines without their ends."""
    number = 0
    while True:
        number += 1
        try:
            line = stream.readline(MAX_FRAME_BYTES)
            if len(line) == MAX_FRAME_BYTES and not line.endswith(b"\n"):
                report(UnreadablePart(source, number, "line_too_long", f"more than {MAX_FRAME_BYTES} bytes"))
                while line and not line.endswith(b"\n"):
                    line = stream.readline(MAX_FRAME_BYTES)
                continue
        except READ_ERRORS as error:
            report(UnreadablePart(source, number, "damaged_gzip", f"nothing can be read from here on ({error})"))
            return
        if not line:
            return
        stripped = line.removeprefix(_BYTE_ORDER_MARK).strip()
        if stripped:
            yield number, stripped
