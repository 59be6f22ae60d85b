"""A publisher in front of another one: what is not acknowledged soon is kept on disk, and sent in order later.

A frame that Kafka acknowledges within `interval_s` never touches the disk. Any other is written there and synced, so a
process that is killed, or a machine without power, loses no more than the frames of that interval. Then the frame
counts as taken (`on_done`): whoever published it need not keep it. What is in the spool goes before all that comes
later, also in the next process: what an earlier one has left goes first, and nothing new before all of it has arrived.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from springback.producers.backoff import Backoff
from springback.producers.contract.codec import decode_frame
from springback.producers.emitter.delivery import FramesUnderWay
from springback.producers.emitter.publishers import FramePublisher, OnDone
from springback.producers.emitter.reports import SpoolReport, error_text
from springback.producers.emitter.spool_log import SpoolCounts, SpooledFrame, SpoolLog, record_bytes
from springback.producers.errors import FrameRefusedError, PublishError, SpoolInUseError, UnreadableFrameError

log = logging.getLogger(__name__)

MOST_BYTES: Final = 64 * 1024 * 1024
INTERVAL_S: Final = 0.5
_MOST_FRAMES_IN_MEMORY: Final = 256
_MOST_BYTES_IN_MEMORY: Final = 16 * 1024 * 1024
_DISK_AGAIN: Final = Backoff(1.0, 30.0)
_MOST_READ: Final = 16
_ROOM_AGAIN: Final = 0.9  # of what a full spool may take: below that there is room again
_NOTE_S: Final = 1.0


@dataclass(eq=False)
class _Held:
    frame: SpooledFrame
    on_done: OnDone
    since: float
    stored: bool = False


class SpooledPublisher:
    """Publishes frames through another publisher, and keeps on disk what that one does not acknowledge soon.

    Args:
        publisher: where frames go; closed with this one.
        folder: where they are kept; made where it is not there. One publisher at a time may have it.
        most_bytes: the most that is kept on disk. When it is full, frames stay in memory; when that is full too, they
            are answered with a `PublishError`, which makes a `StepEmitter` drop and count the newest steps.
        interval_s: how long a frame may be unacknowledged before it is written and synced, s.
        close_timeout_s: how long a close waits for Kafka before the rest is left on disk, s.
        clock: seconds of a clock that only rises.

    Raises:
        SpoolInUseError: another publisher that runs has the folder.
        ValueError: a bound is not positive.
    """

    def __init__(
        self,
        publisher: FramePublisher,
        folder: str | os.PathLike[str],
        *,
        most_bytes: int = MOST_BYTES,
        interval_s: float = INTERVAL_S,
        close_timeout_s: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if most_bytes < 1 or interval_s <= 0:
            message = f"most_bytes and interval_s must be more than 0, got {most_bytes} and {interval_s}"
            raise ValueError(message)
        self._publisher = publisher
        self._folder = folder
        self._most_bytes = most_bytes
        self._interval_s = interval_s
        self._close_timeout_s = close_timeout_s
        self._clock = clock
        self._under_way = FramesUnderWay(
            publisher, most_frames=_MOST_FRAMES_IN_MEMORY, most_bytes=_MOST_BYTES_IN_MEMORY, clock=clock
        )
        self._changed = self._under_way.changed
        self._arrived: deque[_Held] = deque()  # not yet under way
        self._arrived_bytes = 0
        self._in_memory: dict[_Held, None] = {}  # under way, and not on disk
        self._settled: deque[tuple[_Held, FrameRefusedError | None]] = deque()
        self._refused = self._left_refused = SpoolCounts()
        self._store_at_once = self._stopping = self._closed = False
        self._problem: str | None = None
        self._disk_failures = 0
        self._disk_again_at = self._note_at = 0.0
        self._report = SpoolReport()
        self._log: SpoolLog | None = None
        try:
            self._log = SpoolLog(folder)  # its files are read by the thread
        except OSError as error:
            self._disk_failed(error)
        self._tell()
        self._thread = threading.Thread(target=self._run, name="spool", daemon=True)
        self._thread.start()

    @property
    def spool_report(self) -> SpoolReport:
        """What is in the spool."""
        with self._changed:
            return self._report

    def publish(self, key: bytes, frame_bytes: bytes, on_done: OnDone) -> None:
        """Takes the frame; `on_done` is called once it is acknowledged or on disk. Never waits."""
        if len(frame_bytes) > _MOST_BYTES_IN_MEMORY:
            on_done(
                FrameRefusedError(f"a frame of {len(frame_bytes)} bytes; at most {_MOST_BYTES_IN_MEMORY} are taken")
            )
            return
        held = _Held(SpooledFrame(-1, key, frame_bytes, 0, 0), on_done, self._clock())
        with self._changed:
            problem = self._refusal(len(frame_bytes))
            if problem is None:
                self._arrived.append(held)
                self._arrived_bytes += len(frame_bytes)
                self._changed.notify_all()
        if problem is not None:
            on_done(PublishError(problem))

    def flush(self, timeout_s: float) -> None:
        """Waits for Kafka for `interval_s`, then has the rest written to disk; for at most `timeout_s` in all."""
        until = self._clock() + timeout_s
        self._publisher.flush(min(timeout_s, self._interval_s))
        with self._changed:
            if not self._changed.wait_for(self._safe, min(self._interval_s, max(0.0, until - self._clock()))):
                self._store_at_once = True
                self._changed.notify_all()
                self._changed.wait_for(self._safe, max(0.0, until - self._clock()))

    def close(self) -> None:
        """Waits for Kafka for `close_timeout_s`, leaves the rest on disk for the next process, and disconnects."""
        if self._closed:
            return
        self.flush(self._close_timeout_s)
        with self._changed:
            self._closed = self._stopping = True
            self._changed.notify_all()
        self._thread.join(self._close_timeout_s)
        self._publisher.close()

    def _refusal(self, size: int) -> str | None:
        if self._closed:
            return f"the spool {str(self._folder)!r} is closed"
        if len(self._arrived) < _MOST_FRAMES_IN_MEMORY and self._arrived_bytes + size <= _MOST_BYTES_IN_MEMORY:
            return None
        return f"{self._arrived_bytes} bytes wait in memory for the spool; {self._problem or 'it is being written'}"

    def _safe(self) -> bool:
        return not (self._arrived or self._in_memory)

    def _run(self) -> None:
        self._recover()
        while True:
            with self._changed:
                while not self._stopping and (pause := self._pause()) != 0.0:
                    self._changed.wait(pause)
                stopping = self._stopping
            self._settle()
            if self._log is None and self._clock() >= self._disk_again_at:
                self._open()
                self._recover()
            if not stopping:
                self._offer()
            if stopping or self._due_to_store_in_s() == 0.0:
                self._store()
            self._note_done()
            self._try_disk()
            self._tell()
            if stopping:
                self._end()
                return

    def _pause(self) -> float | None:
        """How long there is nothing to do: 0 when there is, None until something changes."""
        if self._settled or self._can_offer():
            return 0.0
        pauses = [self._under_way.due_in_s(), self._due_to_store_in_s()]
        if self._log is None or self._log.undone:
            pauses.append(max(0.0, max(self._disk_again_at, self._note_at) - self._clock()))
        if self._problem is not None and self._safe():
            pauses.append(max(0.0, self._disk_again_at - self._clock()))
        return min((pause for pause in pauses if pause is not None), default=None)

    def _due_to_store_in_s(self) -> float | None:
        first = next(iter(self._in_memory), self._arrived[0] if self._arrived else None)
        if first is None:
            return None
        crowded = 2 * len(self._arrived) >= _MOST_FRAMES_IN_MEMORY or 2 * self._arrived_bytes >= _MOST_BYTES_IN_MEMORY
        due_at = first.since if self._store_at_once or crowded else first.since + self._interval_s
        return max(0.0, max(due_at, self._disk_again_at) - self._clock())

    def _settle(self) -> None:
        """Lets go of what has arrived, or was refused for good."""
        while self._settled:
            held, refusal = self._settled.popleft()
            if not held.stored:
                with self._changed:
                    del self._in_memory[held]
                    self._changed.notify_all()
                held.on_done(refusal)
            elif self._log is not None:
                if refusal is not None:
                    self._note_refused(held.frame, refusal)
                try:
                    self._log.settle(held.frame)
                except OSError as error:
                    self._disk_failed(error)

    def _note_refused(self, frame: SpooledFrame, refusal: FrameRefusedError) -> None:
        """Whoever published it has been told that it was taken, so this is told as a loss."""
        if self._log is not None and self._log.is_own(frame):
            self._refused = self._refused.changed(frame.counts)
            return
        if not self._left_refused.frames:
            log.warning("what was left in the spool %s is not taken, and lost (said once): %s", self._folder, refusal)
        self._left_refused = self._left_refused.changed(frame.counts)

    def _can_offer(self) -> bool:
        spool = self._log
        if self._under_way.held_back or not self._under_way.has_room():
            return False
        if spool is not None and spool.left.frames:
            return spool.unread_left
        return bool(self._arrived) or (spool is not None and spool.unread)

    def _offer(self) -> None:
        """Hands over what may go now: what earlier processes have left, then what is on disk, then the rest."""
        while self._can_offer():
            spool = self._log
            if spool is not None and spool.unread:
                # What is new would make what is old late, should a crash have the old ones sent again.
                for frame in spool.read_on(_MOST_READ, _MOST_BYTES_IN_MEMORY, own=not spool.left.frames):
                    self._hand_over(_Held(frame, _nobody_waits, 0.0, stored=True))
            else:
                with self._changed:
                    held = self._arrived.popleft()
                    self._arrived_bytes -= len(held.frame.frame_bytes)
                    self._in_memory[held] = None
                self._hand_over(held)
        self._under_way.push()

    def _hand_over(self, held: _Held) -> None:
        def settled(refusal: FrameRefusedError | None) -> None:
            self._settled.append((held, refusal))

        self._under_way.offer(held.frame.key, held.frame.frame_bytes, settled)

    def _store(self) -> None:
        """Writes what is only in memory, as far as there is room for it."""
        with self._changed:
            self._store_at_once = False
            unsafe = [*self._in_memory, *self._arrived]
        spool = self._log
        if spool is None or not unsafe:
            return
        room, fitting = self._most_bytes - spool.size_bytes, list[_Held]()
        for held in unsafe:
            room -= record_bytes(held.frame)
            if room < 0:
                break
            held.frame = counted(held.frame)
            fitting.append(held)
        try:
            under_way = min(len(fitting), len(self._in_memory))
            numbers = spool.append([held.frame for held in fitting], under_way) if fitting else []
        except OSError as error:
            self._disk_failed(error)
            return
        with self._changed:
            for held, number in zip(fitting, numbers):
                held.frame, held.stored = held.frame._replace(number=number), True
                if held in self._in_memory:
                    del self._in_memory[held]
                else:
                    self._arrived.popleft()
                    self._arrived_bytes -= len(held.frame.frame_bytes)
            self._changed.notify_all()
        self._tell()
        for held in fitting:
            held.on_done(None)
        if len(fitting) < len(unsafe):
            self._disk_failed(f"it is full: {spool.size_bytes} of {self._most_bytes} bytes")
        else:
            self._disk_works()

    def _open(self) -> None:
        try:
            self._log = SpoolLog(self._folder)
        except (OSError, SpoolInUseError) as error:
            self._disk_failed(error)

    def _recover(self) -> None:
        """Reads what earlier processes have left."""
        if self._log is None:
            return
        try:
            self._log.recover()
        except OSError as error:
            self._disk_failed(error)
            self._log.close()
            self._log = None
            return
        if self._log.left.frames or self._log.damaged_bytes:
            log.info("the spool %s holds %d frames (%d steps) that were not sent before, which go first; %d bytes at "
                     "the ends of its files cannot be read", self._folder, self._log.left.frames, self._log.left.steps,
                     self._log.damaged_bytes)  # fmt: skip
        self._disk_works()
        self._tell()

    def _note_done(self) -> None:
        spool = self._log
        if spool is None or not spool.undone or self._clock() < max(self._note_at, self._disk_again_at):
            return
        self._note_at = self._clock() + _NOTE_S
        try:
            spool.note_done()
        except OSError as error:
            self._disk_failed(error)

    def _try_disk(self) -> None:
        """Looks whether a trouble is over when there is nothing to write that would show it."""
        spool = self._log
        if self._problem is None or spool is None or not self._safe() or self._clock() < self._disk_again_at:
            return
        if spool.size_bytes > _ROOM_AGAIN * self._most_bytes:
            self._disk_failed(self._problem)
            return
        try:
            spool.try_to_write()
        except OSError as error:
            self._disk_failed(error)
        else:
            self._disk_works()

    def _disk_failed(self, problem: Exception | str) -> None:
        self._disk_failures += 1
        self._disk_again_at = self._clock() + _DISK_AGAIN.pause_s(self._disk_failures)
        if self._problem is None:
            log.warning("the spool %s keeps nothing more for now: %s", self._folder, problem)
        self._problem = str(problem)

    def _disk_works(self) -> None:
        if self._problem is not None:
            log.info("the spool %s takes frames again", self._folder)
        self._disk_failures, self._problem = 0, None

    def _tell(self) -> None:
        spool = self._log
        with self._changed:
            errors, last_error = self._under_way.errors, error_text(self._under_way.last_error)
            if spool is None:
                self._report = SpoolReport(problem=self._problem, errors=errors, last_error=last_error)
                return
            self._report = SpoolReport(
                frames=spool.own.frames,
                steps=spool.own.steps,
                ends=spool.own.ends,
                left_frames=spool.left.frames,
                left_steps=spool.left.steps,
                left_ends=spool.left.ends,
                size_bytes=spool.size_bytes,
                refused_steps=self._refused.steps,
                refused_ends=self._refused.ends,
                lost_steps=spool.lost.steps,
                lost_ends=spool.lost.ends,
                left_gone_steps=self._left_refused.steps + spool.left_lost.steps,
                left_gone_ends=self._left_refused.ends + spool.left_lost.ends,
                damaged_bytes=spool.damaged_bytes,
                problem=self._problem,
                errors=errors,
                last_error=last_error,
            )

    def _end(self) -> None:
        with self._changed:
            unsafe = [*self._in_memory, *self._arrived]
            self._in_memory.clear()
            self._arrived.clear()
            self._under_way.give_up()
        spool = self._log
        if spool is not None:
            try:
                spool.close()
            except OSError as error:
                self._disk_failed(error)
            kept = spool.own.changed(spool.left)
            if kept.frames:
                log.info("%d frames (%d steps) stay in the spool %s, and go first from it next time",
                         kept.frames, kept.steps, self._folder)  # fmt: skip
        for held in unsafe:
            held.on_done(PublishError(f"the spool {str(self._folder)!r} was closed: {self._problem}"))


def counted(frame: SpooledFrame) -> SpooledFrame:
    """The frame with the counts of what is in it; of bytes that are no frame, 0."""
    try:
        read = decode_frame(frame.frame_bytes)
    except UnreadableFrameError:
        return frame
    return frame._replace(steps=read.n_steps, ends=len(read.ends))


def _nobody_waits(_: Exception | None) -> None:
    """Whoever published it was told when it was on disk."""
