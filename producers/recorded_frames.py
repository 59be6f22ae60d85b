"""Recordings as frames that can be gone through more than once, without holding them in memory."""

import struct
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Final

from springback.producers.frame_decoding import decode_frame
from springback.producers.frame_parts import StepFrame
from springback.producers.mapped_recordings import Progress, read_recordings
from springback.producers.recording_reader import ReportUnreadable, UnreadablePart, log_unreadable, read_frames
from springback.producers.signal_mapping import SignalMapping

_LENGTH: Final = struct.Struct("<Q")


class RecordedFrames:
    """The frames of several recordings, as one input in the order given.

    Step frames are read anew from their files each time through. What can be read only once (standard input, a pipe) is
    held in memory instead; what a mapping makes of other recordings is made once, and kept in a file of its own.

    Args:
        paths: files of JSON Lines, plain or gzip; with a mapping, recordings of every format; `-` is standard input.
        report_unreadable: called for each part that cannot be read, the first time that it is met.
        mapping: what the messages of recordings mean that hold no step frames.
        progress: told how far the making of frames by the mapping is.
    """

    def __init__(
        self,
        paths: Iterable[str | Path],
        report_unreadable: ReportUnreadable = log_unreadable,
        mapping: SignalMapping | None = None,
        progress: Progress = lambda source, share: None,
    ) -> None:
        self._paths = [str(path) for path in paths]
        self._report_unreadable = report_unreadable
        self._mapping = mapping
        self._progress = progress
        self._told: set[UnreadablePart] = set()
        self._held: dict[str, list[StepFrame]] = {}
        self._made: IO[bytes] | None = None

    def __iter__(self) -> Iterator[StepFrame]:
        """All frames that can be read.

        Raises:
            OSError: A file cannot be opened.
            MappingError: A recording is of no known format.
            MissingExtraError: A package that a format needs is not installed.
        """
        if self._mapping is not None:
            yield from self._mapped()
            return
        for path in self._paths:
            if path != "-" and Path(path).is_file():
                yield from self._read(path)
            else:
                if path not in self._held:
                    self._held[path] = list(self._read(path))
                yield from self._held[path]

    def _mapped(self) -> Iterator[StepFrame]:
        if self._made is None:
            made = tempfile.TemporaryFile(prefix="springback-")
            weakref.finalize(self, made.close)
            for recorded in read_recordings(self._paths, self._mapping, self._report_once, self._progress):
                made.write(_LENGTH.pack(len(recorded.data)) + recorded.data)
            self._made = made
        place = 0
        while True:
            self._made.seek(place)
            head = self._made.read(_LENGTH.size)
            if len(head) < _LENGTH.size:
                return
            (length,) = _LENGTH.unpack(head)
            data = self._made.read(length)
            place = self._made.tell()
            yield decode_frame(data)

    def _read(self, path: str) -> Iterator[StepFrame]:
        return (recorded.frame for recorded in read_frames([path], self._report_once))

    def _report_once(self, part: UnreadablePart) -> None:
        if part not in self._told:
            self._told.add(part)
            self._report_unreadable(part)
