"""Recordings of any format as step frames: our own as they are, all others by a signal mapping, in any mixture.

The format is told by the content. A file is read as a stream, whatever its size, and what cannot be read of it is
reported. `read_recordings` goes through the recordings once; `RecordedFrames` can be gone through again and again,
without holding the frames in memory.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import shutil
import struct
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO, Final, Optional, cast

from springback.producers.contract.codec import MAX_FRAME_BYTES, decode_frame, encode_json
from springback.producers.contract.frame import StepFrame
from springback.producers.emitter.reports import Report, ReportedStep, build_frame
from springback.producers.errors import MappingError
from springback.producers.install_hints import OURS, MissingExtraError, missing_of
from springback.producers.mapping.assembler import NOTED, EpisodeAssembler, MappedReport, SessionClosed
from springback.producers.mapping.signal_mapping import SignalMapping
from springback.producers.mapping.unread_topics import unread_topics
from springback.producers.recordings.opening import (
    NATIVE,
    OpenRecording,
    file_format,
    file_size,
    folder_format,
    magic_format,
)
from springback.producers.recordings.split_recordings import by_time, goes_on, pieces_of_recordings
from springback.producers.recordings.step_frames import (
    READ_ERRORS,
    RecordedFrame,
    ReportUnreadable,
    UnreadablePart,
    frames_of,
    log_unreadable,
    read_frames,
    recording_lines,
)
from springback.producers.sources import MAGIC_BYTES, find_source, sources_of

ReadingProgress = Callable[[str, Optional[float]], None]
"""Called while a recording is read: what it is called, and how much of it is read, from 0 to 1, or None if unknown."""

STEPS_PER_FRAME: Final = 64
LINGER_S: Final = 1.0
_MESSAGES_PER_TELLING: Final = 256
_LENGTH: Final = struct.Struct("<Q")
_GZIP: Final = b"\x1f\x8b"
_OTHER_FOLDER: Final = "a folder that is neither a ROS 2 bag nor a LeRobot dataset: name the recordings in it"
_OTHER_FILE: Final = (
    "neither step frames nor of a format that `springback sources` lists (JSON Lines have one value a line)"
)


def read_recordings(
    paths: Iterable[str | Path],
    mapping: SignalMapping | None,
    report_unreadable: ReportUnreadable = log_unreadable,
    progress: ReadingProgress = lambda source, share: None,
) -> Iterator[RecordedFrame]:
    """The frames of several recordings, as one input in the order given.

    What was split into files that differ by a number at the end of their names is one recording, in the order of time.

    Args:
        paths: files, or folders of ROS 2 bags and LeRobot datasets; `-` is standard input.
        mapping: what the messages of recordings without step frames mean; None where all have step frames.
        report_unreadable: called for each part that cannot be read and, at a recording's end, for what was left out.
        progress: called with how much has been read.

    Raises:
        OSError: a file cannot be opened.
        MappingError: a recording needs a mapping, or its format is unknown.
        MissingExtraError: a package that a format needs is not installed.
    """
    paths = list(paths)
    missing = extras_of_recordings(paths) if mapping is not None else []
    if missing:
        package = missing_of(missing)[0]
        raise MissingExtraError(extra=",".join(missing), cause=ImportError(name=package))
    for pieces in pieces_of_recordings(map(Path, paths)):
        mapped = _MappedRecording(progress)
        for path in by_time(pieces, partial(_begins_s, mapping)):
            with ExitStack() as stack:
                source = "<stdin>" if str(path) == "-" else str(path)
                if not path.is_file() and not path.is_dir():
                    given = _standard_input() if str(path) == "-" else stack.enter_context(path.open("rb"))
                    path = _copy(given, stack)  # it is read twice: for its format, and for what it holds
                kind, recording = _opened(path, source, mapping, report_unreadable, stack)
                if recording is None:
                    yield from _native_frames(path, source, report_unreadable, stack)
                else:
                    yield from mapped.read(kind, recording)
        yield from mapped.finish()


def in_time_order(paths: Iterable[str | Path]) -> list[Path]:
    """Files of step frames, those that are pieces of one recording in the order of time."""
    groups = pieces_of_recordings(map(Path, paths))
    return [path for pieces in groups for path in by_time(pieces, partial(_begins_s, None))]


class RecordedFrames:
    """The frames of several recordings, as one input in the order given, as `read_recordings` has it.

    Step frames are read from their files again each time. What can be read only once (standard input, a pipe) is held
    in memory instead; what a mapping makes of other recordings is made once, and kept in a temporary file.

    Args:
        paths: files of JSON Lines, plain or gzip; with a mapping, recordings of every format; `-` is standard input.
        report_unreadable: called for each part that cannot be read, the first time that it is met.
        mapping: what the messages of recordings without step frames mean; None where all have step frames.
        progress: called with how much a mapping has been through.
    """

    def __init__(
        self,
        paths: Iterable[str | Path],
        report_unreadable: ReportUnreadable = log_unreadable,
        mapping: SignalMapping | None = None,
        progress: ReadingProgress = lambda source, share: None,
    ) -> None:
        self._paths = [str(path) for path in paths]
        self._in_order: list[Path] | None = None
        self._report_unreadable = report_unreadable
        self._mapping = mapping
        self._progress = progress
        self._told: set[UnreadablePart] = set()
        self._held: dict[str, list[StepFrame]] = {}
        self._made: IO[bytes] | None = None

    def __iter__(self) -> Iterator[StepFrame]:
        """All frames that can be read.

        Raises:
            OSError: a file cannot be opened.
            MappingError: the format of a recording is unknown.
            MissingExtraError: a package that a format needs is not installed.
        """
        if self._mapping is not None:
            yield from self._mapped()
            return
        if self._in_order is None:
            self._in_order = in_time_order(self._paths)
        for path in map(str, self._in_order):
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


def check_without_mapping(path: Path) -> None:
    """Checks that a recording does not plainly need a mapping, so that it is not taken for broken step frames.

    Raises:
        MappingError: it is a folder, or its first bytes are those of MCAP, a bag, Parquet or the like.
        OSError: it cannot be opened.
    """
    if path.is_dir():
        _checked(folder_format(path), str(path), None, _OTHER_FOLDER)
    if path.is_file():
        with path.open("rb") as file:
            kind = magic_format(file.read(MAGIC_BYTES))
        if kind is not None:
            _checked(kind, str(path), None, "")


def extras_of_recordings(paths: Iterable[str | Path]) -> list[str]:
    """The extras of springback that reading these recordings needs and that are not installed, in their order.

    Args:
        paths: files and folders; what is none, or cannot be opened, needs nothing.
    """
    extras: dict[str, None] = {}
    for path in map(Path, paths):
        try:
            kind = _kind(path)
        except OSError:
            continue
        source = sources_of("recording").get(kind or "")
        if source is not None and source.extra is not None and source.distribution == OURS and source.missing:
            extras[source.extra] = None
    return list(extras)


def _kind(path: Path) -> str | None:
    """The format that a folder or a file's first bytes, unpacked, are of; None where it is not known or native."""
    if path.is_dir():
        return folder_format(path)
    if not path.is_file():
        return None
    with ExitStack() as stack:
        return file_format(_start(_stream(path, stack)[1]))


def _opened(
    path: Path, source: str, mapping: SignalMapping | None, report: ReportUnreadable, stack: ExitStack
) -> tuple[str, OpenRecording | None]:
    if path.is_dir():
        kind = folder_format(path)
        known = _checked(kind, source, mapping, _OTHER_FOLDER)
        return str(kind), OpenRecording(path, source, io.BytesIO(), known, report)
    raw, stream = _stream(path, stack)
    start = _start(stream)
    kind = file_format(start)
    if kind == NATIVE:
        return NATIVE, None
    known = _checked(kind, source, mapping, _OTHER_FILE if start else "empty, or nothing of it can be unpacked")
    raw, stream = _stream(path, stack)
    if stream is not raw and find_source(str(kind), "recording").by_name:
        path = _copy(stream, stack)
    return str(kind), OpenRecording(path, source, stream, known, report, raw, file_size(path))


def _checked(kind: str | None, source: str, mapping: SignalMapping | None, otherwise: str) -> SignalMapping:
    if kind is None:
        message = f"{source} is {otherwise}"
    elif mapping is None:
        message = f"{source} is a recording of the format {kind}: say with --mapping which field of it is which signal"
    else:
        return mapping
    raise MappingError(message)


def _standard_input() -> io.BufferedIOBase:
    return cast("io.BufferedReader", sys.stdin.buffer)


def _stream(path: Path, stack: ExitStack) -> tuple[io.BufferedIOBase, io.BufferedIOBase]:
    raw = stack.enter_context(path.open("rb"))
    return raw, gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == _GZIP else raw


def _start(stream: io.BufferedIOBase) -> bytes:
    try:
        start = stream.read(MAGIC_BYTES)
        while start and (not start.strip() or (b"\n" not in start and start.lstrip()[:1] in (b"{", b"["))):
            more = stream.readline(MAX_FRAME_BYTES)
            if not more:
                break
            start = start.lstrip() + more
        return start if start.lstrip()[:1] in (b"{", b"[") else start + stream.read(4096)
    except READ_ERRORS:
        return b""


def _copy(stream: io.BufferedIOBase, stack: ExitStack) -> Path:
    """The path of a temporary copy, for what can be read only once or only by its name."""
    copy = stack.enter_context(tempfile.NamedTemporaryFile(prefix="springback-"))
    try:
        shutil.copyfileobj(stream, copy)
    except READ_ERRORS:
        pass  # what there is of it is read; the reader reports what is missing
    copy.flush()
    return Path(copy.name)


def _native_frames(path: Path, source: str, report: ReportUnreadable, stack: ExitStack) -> Iterator[RecordedFrame]:
    _, stream = _stream(path, stack)
    return frames_of(recording_lines(stream, source, report), source, report)


class _MappedRecording:
    """What a mapping makes of a recording, piece by piece: what runs at the end of one goes on in the next."""

    def __init__(self, progress: ReadingProgress) -> None:
        self._progress = progress
        self._batches = _FrameBatches()
        self._open: tuple[OpenRecording, EpisodeAssembler] | None = None  # the first piece, and what is made of all
        self._ended_s = math.nan
        self._number = 0

    def read(self, kind: str, recording: OpenRecording) -> Iterator[RecordedFrame]:
        """The frames of a piece, but for what its end leaves open."""
        for number, message in enumerate(find_source(kind, "recording").load()(recording), 1):
            if number == 1 and not goes_on(self._ended_s, message.receive_s):
                yield from self.finish()
            _, assembler = self._open or self._begin(recording)
            self._number, self._ended_s = number, message.receive_s
            for frame in self._batches.add(assembler.add(message)):
                yield RecordedFrame(encode_json(frame), recording.source, number, frame)
            if number % _MESSAGES_PER_TELLING == 1:
                self._progress(recording.source, recording.share())
        if self._open is None:
            self._begin(recording)
            yield from self.finish()
        else:
            first, _ = self._open
            first.topics.update(recording.topics)
            first.others.update(recording.others)
        self._progress(recording.source, 1.0)

    def finish(self) -> Iterator[RecordedFrame]:
        """The frames of what is open, and what is told at a recording's end."""
        if self._open is None:
            return
        first, assembler = self._open
        for frame in [*self._batches.add(assembler.finish()), *self._batches.flush()]:
            yield RecordedFrame(encode_json(frame), first.source, self._number, frame)
        _tell_left_out(first, assembler)
        self._open = None

    def _begin(self, recording: OpenRecording) -> tuple[OpenRecording, EpisodeAssembler]:
        self._open = recording, EpisodeAssembler(recording.mapping, session=_session(recording.source), recorded=True)
        return self._open


def _begins_s(mapping: SignalMapping | None, path: Path) -> float | None:
    """When a recording begins; None where that cannot be read, which is told when it is read."""
    if not path.is_file():
        return None
    with ExitStack() as stack:
        try:
            kind, recording = _opened(path, str(path), mapping, _tell_nobody, stack)
        except (MappingError, OSError):
            return None
        if recording is not None:
            return next((m.receive_s for m in find_source(kind, "recording").load()(recording)), None)
        frames = _native_frames(path, str(path), _tell_nobody, stack)
        times = (recorded.frame.numbers("time_s") for recorded in frames)
        return next((float(column[0]) for column in times if column is not None and len(column)), None)


def _tell_nobody(part: UnreadablePart) -> None:
    """Passes over what cannot be read: it is told when the recording is read."""


def _session(source: str) -> str:
    """The session's id: the same each time the recording is read, another for one of the same name elsewhere."""
    digest = hashlib.blake2s(source.encode(errors="replace"), digest_size=4).hexdigest()
    return f"{Path(source).name[:100]}-{digest}"


def _tell_left_out(recording: OpenRecording, assembler: EpisodeAssembler) -> None:
    report, mapping = assembler.report, recording.mapping
    there = ", ".join(repr(topic) if topic else "rows without one" for topic in sorted(recording.topics))
    if not there:
        recording.unreadable(0, "no_messages", "not one message in it can be read")
    elif not any(recording.topics.values()):
        recording.unreadable(0, "no_topic_matches", f"topics in it: {there}; {mapping.file} reads none of them")
    elif absent := [
        one.text for one in mapping.patterns if all(one.match(topic) is None for topic in recording.topics)
    ]:
        named = ", ".join(map(repr, absent))
        recording.unreadable(0, "no_such_topic", f"{mapping.file} also reads {named}; topics in it: {there}")
    for said in unread_topics(mapping.patterns, sorted({*recording.topics, *recording.others}), mapping.file):
        recording.unreadable(0, "topic_not_read", said)
    for told, count in sorted(report.by_key.items()):
        if told != "not_mapped":
            reason, _, key = told.partition(" of ")
            first = f"{key}: {report.examples[told]}" if key else report.examples[told]
            tell = recording.note if reason in NOTED else partial(recording.unreadable, 0)
            tell(reason, f"{count} times; the first: {first}")


class _FrameBatches:
    """Collects reports into frames by session, each of about a second."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], list[Report]] = {}

    def add(self, reports: Iterable[MappedReport]) -> Iterator[StepFrame]:
        for producer, session, report in reports:
            key = (producer, session)
            if isinstance(report, SessionClosed):
                yield from self._flush(key)
                continue
            waiting = self._waiting.setdefault(key, [])
            waiting.append(report)
            if not isinstance(report, ReportedStep) or len(waiting) >= STEPS_PER_FRAME or _spans(waiting) >= LINGER_S:
                yield from self._flush(key)

    def flush(self) -> Iterator[StepFrame]:
        for key in list(self._waiting):
            yield from self._flush(key)

    def _flush(self, key: tuple[str, str]) -> Iterator[StepFrame]:
        waiting = self._waiting.pop(key, None)
        if waiting:
            yield build_frame(*key, waiting)


def _spans(waiting: list[Report]) -> float:
    first, last = waiting[0], waiting[-1]
    if not isinstance(first, ReportedStep) or not isinstance(last, ReportedStep):
        return 0.0
    return float(last.signals["time_s"]) - float(first.signals["time_s"])
