"""Frames on disk, in order: append-only files with checksums, in a folder that belongs to one publisher at a time.

A frame is written once, and what is done with goes by the removal of whole files, which needs no room on a full disk.
(SQLite wrote 4.7 times the bytes of the frames, of which the card of a robot bears only so many, and cannot remove
anything without room.) A file that a crash has torn is read up to the tear. A new process never goes on with an old
file. For POSIX systems.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from springback.producers.errors import SpoolInUseError

SEGMENT_BYTES: Final = 1024 * 1024
_HEAD: Final = struct.Struct("<IBQHIII")  # checksum of all that follows; kind, number, key's bytes, steps, ends, bytes
_CHECKSUM_BYTES: Final = 4
_FRAME, _DONE = 0, 1  # a frame; a note that all frames below its number are done with
_SUFFIX: Final = ".frames"

_locks: set[int] = set()


def _leave_locks_to_the_parent() -> None:
    # A child that lives on after its parent would keep the parent's successor out.
    for lock in _locks:
        os.close(lock)
    _locks.clear()


os.register_at_fork(after_in_child=_leave_locks_to_the_parent)


class SpooledFrame(NamedTuple):
    """A frame on disk, or one that is to go there, whose number does not count yet."""

    number: int
    key: bytes
    frame_bytes: bytes
    steps: int
    ends: int

    @property
    def counts(self) -> SpoolCounts:
        """What is in it."""
        return SpoolCounts(1, self.steps, self.ends)


class SpoolCounts(NamedTuple):
    """How many frames, and how many steps and ends of episodes in them."""

    frames: int = 0
    steps: int = 0
    ends: int = 0

    def changed(self, by: SpoolCounts, sign: int = 1) -> SpoolCounts:
        """With these too; without them where the sign is -1."""
        return SpoolCounts(self.frames + sign * by.frames, self.steps + sign * by.steps, self.ends + sign * by.ends)


@dataclass(eq=False)
class _Segment:
    path: Path
    size: int = 0
    last: int = -1  # the number of its last frame
    unread: SpoolCounts = field(default_factory=SpoolCounts)


class SpoolLog:
    """The frames in a folder that are not done with. It has no lock of its own: one thread uses it at a time.

    Args:
        folder: made where it is not there.
        segment_bytes: a file that has grown to so much is followed by another one.

    Attributes:
        own: what this object has put there, as far as it is not done with.
        left: the same of earlier ones, once they are recovered.
        lost: what this object has put there and could not read back.
        left_lost: the same of what earlier ones have left.
        damaged_bytes: how much could not be read at all; it ends where a crash has torn a file, or a disk has failed.

    Raises:
        SpoolInUseError: another one that runs has the folder.
        OSError: the folder cannot be used.
    """

    def __init__(self, folder: str | os.PathLike[str], *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.folder = Path(folder)
        self.own = self.left = self.lost = self.left_lost = SpoolCounts()
        self.damaged_bytes = 0
        self._segment_bytes = segment_bytes
        self._segments: deque[_Segment] = deque()
        self._file: int | None = None  # of the last segment, where it is this object's
        self._settled: set[int] = set()
        self._done = self._done_noted = self._next = self._end = self._first_own = self._read_to = 0
        self._next_file = 0
        self._reading: _Segment | None = None
        self._read_at = 0
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(self.folder)

    @property
    def size_bytes(self) -> int:
        """What all of it takes."""
        return sum(segment.size for segment in self._segments)

    @property
    def unread(self) -> bool:
        """Whether there are frames that `read_on` has not given out, and does not leave out."""
        return self._read_to < self._end

    @property
    def unread_left(self) -> bool:
        """Whether some of them are of earlier ones."""
        return self._read_to < self._first_own

    @property
    def undone(self) -> bool:
        """Whether there is something for `note_done` to note."""
        return bool(self._segments) and self._done > self._done_noted

    def is_own(self, frame: SpooledFrame) -> bool:
        """Whether this object has put it there."""
        return frame.number >= self._first_own

    def recover(self) -> None:
        """Takes up what earlier ones have left; to be called once, before anything else.

        Raises:
            OSError: it cannot be read. Then this object can only be closed.
        """
        found: dict[int, tuple[_Segment, SpoolCounts]] = {}
        try:
            for path in sorted(path for path in self.folder.glob(f"*{_SUFFIX}") if path.stem.isdecimal()):
                self._take_up(path, found)
                self._next_file = int(path.stem) + 1
        except OSError:
            self._segments.clear()  # nothing is to be noted or removed by what a part of them says
            raise
        self._next = self._end = max(self._done, max(found, default=-1) + 1)
        self._done = min((number for number in found if number >= self._done), default=self._next)
        self._settled = {number for number in range(self._done, self._next) if number not in found}
        self._first_own = self._next
        self._read_to = self._done_noted = self._done
        for number, (segment, counts) in found.items():
            if number >= self._done:
                segment.unread = segment.unread.changed(counts)
                self.left = self.left.changed(counts)
        self._remove_done()

    def append(self, frames: Sequence[SpooledFrame], under_way: int = 0) -> list[int]:
        """Writes frames behind all others; their numbers, once they are safe from a loss of power.

        Args:
            frames: in order; their own numbers do not count.
            under_way: how many of them, the first, `read_on` leaves out. Then it must have given out all before them.

        Raises:
            OSError: it cannot be written, a full disk say. Then nothing has been.
        """
        numbers = list(range(self._next, self._next + len(frames)))
        data = b"".join(_record(_FRAME, frame._replace(number=number)) for number, frame in zip(numbers, frames))
        self._next += len(frames)
        try:
            segment = self._write(data)
        except OSError:
            for number in numbers:  # a disk that fails may have kept them all the same: no other frame is called so
                self._settle_number(number)
            raise
        segment.last = numbers[-1]
        self._end = self._next
        if under_way:
            self._read_to = numbers[under_way - 1] + 1
        for place, frame in enumerate(frames):
            self.own = self.own.changed(frame.counts)
            if place >= under_way:
                segment.unread = segment.unread.changed(frame.counts)
        return numbers

    def read_on(self, most_frames: int, most_bytes: int, *, own: bool = True) -> list[SpooledFrame]:
        """The next frames in order, within these bounds but for the last one; without `own`, only those left before."""
        read: list[SpooledFrame] = []
        size = 0
        end = self._end if own else self._first_own
        while self._read_to < end and len(read) < most_frames and size < most_bytes:
            frame = self._read_one()
            if frame is not None:
                self._read_to = frame.number + 1
                size += len(frame.frame_bytes)
                read.append(frame)
        return read

    def settle(self, frame: SpooledFrame) -> None:
        """Takes notice that a frame is done with; a file goes once all its frames, and those before, are."""
        if self.is_own(frame):
            self.own = self.own.changed(frame.counts, -1)
        else:
            self.left = self.left.changed(frame.counts, -1)
        self._settle_number(frame.number)
        self._remove_done()

    def note_done(self) -> None:
        """Writes down what is done with, so that it is not sent again after a crash.

        Raises:
            OSError: it cannot be written.
        """
        if self.undone:
            self._write(_record(_DONE, SpooledFrame(self._done, b"", b"", 0, 0)))
            self._done_noted = self._done

    def try_to_write(self) -> None:
        """Writes a page and takes it away again.

        Raises:
            OSError: it cannot be written.
        """
        trial = self.folder / "trial"
        try:
            with trial.open("wb") as file:
                file.write(bytes(4096))
                file.flush()
                os.fsync(file.fileno())
        finally:
            trial.unlink(missing_ok=True)

    def close(self) -> None:
        """Gives the folder free; what is left is taken up by the next one."""
        try:
            self.note_done()
        finally:
            self._end_file()
            if self._lock in _locks:
                _locks.remove(self._lock)
                os.close(self._lock)

    def _take_up(self, path: Path, found: dict[int, tuple[_Segment, SpoolCounts]]) -> None:
        segment = _Segment(path)
        for kind, frame, end in _records(path):
            segment.size = end
            if kind == _DONE:
                self._done = max(self._done, frame.number)
            else:
                segment.last = frame.number
                found.setdefault(frame.number, (segment, frame.counts))
        self.damaged_bytes += path.stat().st_size - segment.size
        self._segments.append(segment)

    def _read_one(self) -> SpooledFrame | None:
        """The next record's frame; None where it is none, or cannot be read any more."""
        if self._reading is None or self._reading not in self._segments:
            self._reading, self._read_at = self._segments[0], 0
        segment = self._reading
        if self._read_at >= segment.size:
            self._reading, self._read_at = self._segments[self._segments.index(segment) + 1], 0
            return None
        try:
            kind, frame, end = next(_records(segment.path, self._read_at))
        except (StopIteration, OSError):
            self._give_up(segment)
            return None
        self._read_at = end
        if kind != _FRAME or frame.number < self._read_to:
            return None
        segment.unread = segment.unread.changed(frame.counts, -1)
        return frame

    def _give_up(self, segment: _Segment) -> None:
        """The disk has lost what it had."""
        self.damaged_bytes += segment.size - self._read_at
        self._read_at = segment.size
        if segment.last >= self._first_own:
            self.lost = self.lost.changed(segment.unread)
            self.own = self.own.changed(segment.unread, -1)
        else:
            self.left_lost = self.left_lost.changed(segment.unread)
            self.left = self.left.changed(segment.unread, -1)
        segment.unread = SpoolCounts()
        for number in range(self._read_to, segment.last + 1):
            self._settle_number(number)
        self._read_to = max(self._read_to, segment.last + 1)

    def _settle_number(self, number: int) -> None:
        if number >= self._done:
            self._settled.add(number)
        while self._done in self._settled:
            self._settled.remove(self._done)
            self._done += 1

    def _remove_done(self) -> None:
        removed = False
        while self._segments and self._segments[0].last < self._done:
            if len(self._segments) == 1:
                if self._done < self._next:
                    break
                self._end_file()
            self._segments[0].path.unlink(missing_ok=True)
            self._segments.popleft()
            removed = True
        if removed:
            _sync_folder(self.folder)

    def _write(self, data: bytes) -> _Segment:
        if self._file is None or self._segments[-1].size >= self._segment_bytes:
            self._begin_file()
        segment, file = self._segments[-1], self._file
        assert file is not None
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(file, rest) :]
            os.fsync(file)
        except OSError:
            self._leave_file()
            raise
        segment.size += len(data)
        return segment

    def _begin_file(self) -> None:
        self._end_file()
        path = self.folder / f"{self._next_file:012d}{_SUFFIX}"
        self._next_file += 1
        self._file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._segments.append(_Segment(path))
        try:
            _sync_folder(self.folder)
        except OSError:
            self._leave_file()
            raise

    def _leave_file(self) -> None:
        """Takes back what was just written. What became of it is not known, so nothing is ever written behind it."""
        segment, file = self._segments[-1], self._file
        assert file is not None
        with contextlib.suppress(OSError):
            os.ftruncate(file, segment.size)
        self._end_file()
        if not segment.size:  # else each try to write to a full disk would leave one
            self._segments.pop()
            with contextlib.suppress(OSError):
                segment.path.unlink()

    def _end_file(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _locked(folder: Path) -> int:
    lock = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        message = (
            f"the spool {str(folder)!r} is in use by another publisher that runs; give each one a folder of its own"
        )
        raise SpoolInUseError(message) from None
    except BaseException:
        os.close(lock)
        raise
    _locks.add(lock)
    return lock


def _sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def record_bytes(frame: SpooledFrame) -> int:
    """What a frame takes on disk."""
    return _HEAD.size + len(frame.key) + len(frame.frame_bytes)


def _record(kind: int, frame: SpooledFrame) -> bytes:
    fields = kind, frame.number, len(frame.key), frame.steps, frame.ends, len(frame.frame_bytes)
    body = _HEAD.pack(0, *fields)[_CHECKSUM_BYTES:] + frame.key + frame.frame_bytes
    return zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "little") + body


def _records(path: Path, start: int = 0) -> Iterator[tuple[int, SpooledFrame, int]]:
    """The records from there on, as far as they can be read: kind, frame, and where it ends."""
    with path.open("rb") as file:
        file.seek(start)
        room = os.fstat(file.fileno()).st_size - start
        end = start
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            checksum, kind, number, key_size, steps, ends, size = _HEAD.unpack(head)
            room -= _HEAD.size + key_size + size
            if room < 0:
                return
            key, frame_bytes = file.read(key_size), file.read(size)
            if zlib.crc32(frame_bytes, zlib.crc32(key, zlib.crc32(head[_CHECKSUM_BYTES:]))) != checksum:
                return
            end += _HEAD.size + key_size + size
            yield kind, SpooledFrame(number, key, frame_bytes, steps, ends), end
