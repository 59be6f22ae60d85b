"""Turns reports into frames and gets them published, from a thread of its own that no agent ever waits for."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from functools import partial
from typing import Final

import msgspec

from springback.producers.contract.codec import encode_msgpack
from springback.producers.contract.salvage import MAX_FRAME_EPISODES
from springback.producers.emitter.delivery import FramesUnderWay
from springback.producers.emitter.publishers import FramePublisher
from springback.producers.emitter.reports import (
    NO_SPOOL,
    Report,
    ReportedBatch,
    ReportedEnd,
    ReportedStep,
    SpoolReport,
    build_frame,
    error_text,
    steps_and_ends,
)
from springback.producers.errors import FrameRefusedError

log = logging.getLogger(__name__)

_FLUSH_SHARE: Final = 0.8  # of the time for a close; the rest is for ending threads and connections


class EmitterReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of everything that was reported so far.

    `steps_sent` and `frames_sent` have been acknowledged; `steps_buffered` are waiting, or on their way;
    `steps_dropped` and `ends_dropped` found the buffer full, were refused, or were given up at the close.

    With a spool, `steps_spooled` are on disk and not acknowledged yet, `steps_left` the same of earlier processes, and
    `spool_problem` says why nothing can be written there. Each step that was reported is in one of `steps_sent`,
    `steps_dropped`, `steps_buffered` and `steps_spooled`.
    """

    steps_sent: int
    frames_sent: int
    steps_dropped: int
    ends_dropped: int
    steps_buffered: int
    publish_errors: int
    last_error: str | None
    steps_spooled: int = 0
    steps_left: int = 0
    spool_problem: str | None = None


class FrameSender:
    """Batches reports by count and by time, and keeps each frame until the publisher has acknowledged it.

    A frame that failed is published again, in order, after a growing pause; one that was refused is dropped.

    Args:
        publisher: where the frames go; closed with the sender. One that keeps frames on disk says so (`spool_report`).
        producer: the frames' producer, and the key.
        session: the frames' session.
        max_steps: steps per frame at most.
        linger_s: how long a report waits for others, s.
        buffer_steps: steps held at most; a tenth of that (1000 at least) are the reserve for ends.
    """

    def __init__(
        self,
        publisher: FramePublisher,
        *,
        producer: str,
        session: str,
        max_steps: int,
        linger_s: float,
        buffer_steps: int,
    ) -> None:
        self._publisher = publisher
        self._producer = producer
        self._session = session
        self._max_steps = max_steps
        self._linger_s = linger_s
        self._frames = FramesUnderWay(publisher)
        self._changed = self._frames.changed
        self._buffer = StepBuffer(buffer_steps, max(1000, buffer_steps // 10))
        self._urgent = False
        self._closed = self._stopping = False
        self._due_at = 0.0
        self._steps_sent = self._steps_dropped = self._ends_dropped = 0
        self._thread = threading.Thread(target=self._run, name=f"frame-sender-{producer}", daemon=True)
        self._thread.start()

    @property
    def report(self) -> EmitterReport:
        """The counts so far."""
        spool = self._spool_report
        gone = spool.refused_steps + spool.lost_steps
        with self._changed:
            return EmitterReport(
                steps_sent=max(0, self._steps_sent - spool.steps - gone),  # never more than what has arrived
                frames_sent=max(0, self._frames.arrived - spool.frames),
                steps_dropped=self._steps_dropped + gone,
                ends_dropped=self._ends_dropped + spool.refused_ends + spool.lost_ends,
                steps_buffered=self._buffer.steps,
                publish_errors=self._frames.errors + spool.errors,
                last_error=spool.last_error or self._last_error,
                steps_spooled=spool.steps,
                steps_left=spool.left_steps,
                spool_problem=spool.problem,
            )

    @property
    def _spool_report(self) -> SpoolReport:
        return getattr(self._publisher, "spool_report", NO_SPOOL)

    @property
    def _last_error(self) -> str | None:
        return error_text(self._frames.last_error)

    def add(self, report: ReportedStep | ReportedEnd) -> None:
        """Takes a report in, or drops and counts it when there is no room. An end has everything sent at once."""
        with self._changed:
            if self._closed:  # as the process ends, while other threads go on
                self._steps_dropped += isinstance(report, ReportedStep)
                self._ends_dropped += isinstance(report, ReportedEnd)
                return
            if not self._buffer.waiting:
                self._due_at = time.monotonic() + self._linger_s
                self._changed.notify_all()
            if isinstance(report, ReportedEnd):
                self._ends_dropped += not self._buffer.add_end(report)
                self._urgent = True
                self._changed.notify_all()
            else:
                self._steps_dropped += not self._buffer.add_step(report)
                if self._buffer.waiting_steps == self._max_steps:
                    self._changed.notify_all()

    def add_batch(self, batch: ReportedBatch) -> None:
        """Takes a batch in, or drops and counts what of it there is no room for. It is sent at once, as one frame."""
        with self._changed:
            steps, ends = steps_and_ends(batch) if self._closed else self._buffer.add_batch(batch)
            self._steps_dropped += steps
            self._ends_dropped += ends
            self._urgent = True
            self._changed.notify_all()

    def flush(self, timeout_s: float) -> bool:
        """Sends what waits and waits for the acknowledgements; whether all came within `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            if self._buffer.waiting:  # else the next step would be sent at once, in a frame of its own
                self._urgent = True
                self._changed.notify_all()
                self._changed.wait_for(lambda: not self._buffer.waiting, timeout_s)
        self._publisher.flush(max(0.0, deadline - time.monotonic()))
        with self._changed:
            return self._changed.wait_for(lambda: self._buffer.empty, max(0.0, deadline - time.monotonic()))

    def close(self, timeout_s: float) -> None:
        """Flushes, ends the thread and closes the publisher, in no more than the time given.

        What is still not acknowledged is dropped and counted.
        """
        deadline = time.monotonic() + timeout_s
        with self._changed:
            self._closed = True
        try:
            self.flush(_FLUSH_SHARE * timeout_s)
        finally:  # a file on a full disk, say, cannot be flushed
            with self._changed:
                self._stopping = True
                self._changed.notify_all()
            closing = _Closing(self._publisher)
            self._thread.join(max(0.0, deadline - time.monotonic()))
            closing.wait(max(0.0, deadline - time.monotonic()))
        with self._changed:
            self._frames.give_up()
            steps, ends = self._buffer.clear()
            self._steps_dropped += steps
            self._ends_dropped += ends
        if steps or ends:
            log.warning(
                "%s closed with %d steps and %d episode ends undelivered; last error: %s",
                self._producer, steps, ends, self._last_error,
            )  # fmt: skip

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._stopping and (pause := self._pause()) != 0.0:
                    self._changed.wait(pause)
                if self._stopping:
                    return
                reports = [] if self._frames.held_back else self._take()
            if reports:
                self._send(reports)
            else:
                self._frames.push()

    def _pause(self) -> float | None:
        """How long there is nothing to do: 0 when there is, None until something changes."""
        if self._frames.held_back:
            return self._frames.due_in_s()
        if not self._buffer.waiting or not self._frames.has_room():
            return None
        if self._urgent or self._buffer.waiting_steps >= self._max_steps:
            return 0.0
        return max(0.0, self._due_at - time.monotonic())

    def _take(self) -> list[Report]:
        reports = self._buffer.take(self._max_steps)
        if not self._buffer.waiting:
            self._urgent = False
            self._changed.notify_all()
        self._due_at = time.monotonic() + self._linger_s
        return reports

    def _send(self, reports: list[Report]) -> None:
        counts = [steps_and_ends(report) for report in reports]
        settle = partial(self._settle, sum(steps for steps, _ in counts), sum(ends for _, ends in counts))
        try:
            frame = build_frame(self._producer, self._session, reports)
            steps_lost, ends_lost = self._lost()
            frame_bytes = encode_msgpack(msgspec.structs.replace(frame, lost_steps=steps_lost, lost_ends=ends_lost))
        except Exception as error:  # what the checks have let through must not end the thread either
            refusal = FrameRefusedError(f"{type(error).__name__}: {error}")
            self._frames.note_error(refusal)
            with self._changed:
                settle(refusal)
                self._changed.notify_all()
        else:
            self._frames.offer(self._producer.encode(), frame_bytes, settle)

    def _lost(self) -> tuple[int, int]:
        """What the next frame says is lost, steps and ends: nobody else tells of what earlier processes had left."""
        report, spool = self.report, self._spool_report
        return report.steps_dropped + spool.left_gone_steps, report.ends_dropped + spool.left_gone_ends

    def _settle(self, steps: int, ends: int, refusal: FrameRefusedError | None) -> None:
        self._buffer.release(steps, ends)
        if refusal is None:
            self._steps_sent += steps
        else:
            self._steps_dropped += steps
            self._ends_dropped += ends


class _Closing:
    """The close of a publisher, in a thread: one that waits longer for its broker than may be goes on without us."""

    def __init__(self, publisher: FramePublisher) -> None:
        self._publisher = publisher
        self._error: Exception | None = None
        self._thread: threading.Thread | None = threading.Thread(target=self._run, name="publisher-close", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the interpreter is at its end, where Python 3.12 and newer begin no thread
            self._thread = None
            self._run()

    def wait(self, timeout_s: float) -> None:
        """Waits for so long, and raises what the close has raised."""
        if self._thread is not None:
            self._thread.join(timeout_s)
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._publisher.close()
        except Exception as error:  # to be raised where it is waited for
            self._error = error


class StepBuffer:
    """What an emitter holds, bounded: when it is full the newest steps are refused. It has no lock of its own.

    A report is held until the frame that it went into is done with. Ends have a reserve of their own, as each of them
    closes an episode that would otherwise stay open for long.

    Args:
        max_steps: how many steps are held at most, those in frames on their way among them.
        max_ends: the same for ends.
    """

    def __init__(self, max_steps: int, max_ends: int) -> None:
        self._max_steps = max_steps
        self._max_ends = max_ends
        self._waiting: deque[Report] = deque()
        self.waiting_steps = 0
        self.steps = 0
        self.ends = 0

    @property
    def waiting(self) -> bool:
        """Whether anything waits for a frame."""
        return bool(self._waiting)

    @property
    def empty(self) -> bool:
        """Whether everything that was taken in is done with."""
        return not (self.steps or self.ends)

    def add_step(self, report: ReportedStep) -> bool:
        """Takes a step in, if there is room."""
        if self.steps >= self._max_steps:
            return False
        self._waiting.append(report)
        self.waiting_steps += 1
        self.steps += 1
        return True

    def add_end(self, report: ReportedEnd) -> bool:
        """Takes an end in, if there is room."""
        if self.ends >= self._max_ends:
            return False
        self._waiting.append(report)
        self.ends += 1
        return True

    def add_batch(self, batch: ReportedBatch) -> tuple[int, int]:
        """Takes a batch in, its steps and its ends each as a whole if there is room; how many of them found none."""
        steps, ends = steps_and_ends(batch)
        refused_steps = steps if self.steps + steps > self._max_steps else 0
        refused_ends = ends if self.ends + ends > self._max_ends else 0
        kept = ReportedBatch(batch.headers, {} if refused_steps else batch.steps, () if refused_ends else batch.ends)
        if kept.steps or kept.ends:
            self._waiting.append(kept)
            self.waiting_steps += steps - refused_steps
            self.steps += steps - refused_steps
            self.ends += ends - refused_ends
        return refused_steps, refused_ends

    def take(self, most_steps: int) -> list[Report]:
        """The oldest reports for a frame of so many steps, with the ends that follow them at once; or one batch.

        There are no more of them than a frame may have episodes, since each may be of another one.
        """
        taken: list[Report] = []
        room = most_steps
        while self._waiting and not isinstance(self._waiting[0], ReportedBatch) and len(taken) < MAX_FRAME_EPISODES:
            if not room and isinstance(self._waiting[0], ReportedStep):
                break
            report = self._waiting.popleft()
            room -= isinstance(report, ReportedStep)
            taken.append(report)
        self.waiting_steps -= most_steps - room
        if self._waiting and not taken:
            batch = self._waiting.popleft()
            self.waiting_steps -= steps_and_ends(batch)[0]
            taken.append(batch)
        return taken

    def release(self, steps: int, ends: int) -> None:
        """Makes room again: what was taken is done with."""
        self.steps -= steps
        self.ends -= ends

    def clear(self) -> tuple[int, int]:
        """Gives up all that is held; how many steps and ends that is."""
        given_up = self.steps, self.ends
        self._waiting.clear()
        self.waiting_steps = self.steps = self.ends = 0
        return given_up
