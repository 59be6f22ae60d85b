"""Frames on their way to a publisher: in order, bounded, and sent again after a failure.

`FramesUnderWay` stands behind the emitter, which must not make an agent wait, and behind bridges that pass frames on,
whose brokers keep what there is no room for. `DeliveryWindow` is for recordings, which can wait.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Optional

from springback.producers.backoff import Backoff
from springback.producers.emitter.publishers import FramePublisher
from springback.producers.errors import FrameRefusedError, PublishError

MOST_FRAMES: Final = 256
AGAIN: Final = Backoff(0.1, 5.0)

OnSettled = Callable[[Optional[FrameRefusedError]], None]
"""Called once for a frame, by one thread at a time: with None when it has arrived, or with why it never will."""


@dataclass(eq=False)
class _Frame:
    number: int
    key: bytes
    frame_bytes: bytes
    on_settled: OnSettled
    failure: Exception | None = None


class FramesUnderWay:
    """Keeps each frame until it has arrived or was refused for good.

    Frames that failed go again, in their first order, once all others that were published are settled and a pause is
    over. Until then nothing goes that came after them, so the order of one producer survives any outage.

    Args:
        publisher: where the frames go; it stays open.
        most_frames: how many there is room for.
        most_bytes: how many bytes there is room for; a frame that is larger has room when it is alone.
        backoff: the pauses before what failed goes again; None where it never does.
        clock: seconds of a clock that only rises.

    Attributes:
        changed: notified whenever a frame is settled or has failed; its lock guards everything here.
        arrived: frames that the publisher has acknowledged.
        refused: frames that it will never take.
        errors: how often a frame was not taken, refusals among them.
        last_error: why one was not taken, the last time.
    """

    def __init__(
        self,
        publisher: FramePublisher,
        *,
        most_frames: int = MOST_FRAMES,
        most_bytes: float = math.inf,
        backoff: Backoff | None = AGAIN,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.changed = threading.Condition()
        self.arrived = self.refused = self.errors = 0
        self.last_error: Exception | None = None
        self._publisher = publisher
        self._most_frames = most_frames
        self._most_bytes = most_bytes
        self._backoff = backoff
        self._clock = clock
        self._waiting: deque[_Frame] = deque()
        self._published: set[_Frame] = set()
        self._failed: list[_Frame] = []
        self._offered = 0
        self._bytes = 0
        self._failures_in_a_row = 0
        self._again_at = 0.0

    @property
    def pending(self) -> int:
        """How many frames are kept."""
        return len(self._waiting) + len(self._published) + len(self._failed)

    @property
    def held_back(self) -> bool:
        """Whether frames are kept that are not with the publisher."""
        return bool(self._waiting or self._failed)

    @property
    def failure(self) -> Exception | None:
        """Why a frame failed that is to go again; None where there is none."""
        return self._failed[0].failure if self._failed else None

    def has_room(self, size_bytes: int = 0) -> bool:
        """Whether a frame of this size should come now."""
        with self.changed:
            return not self.pending or (
                self.pending < self._most_frames and self._bytes + size_bytes <= self._most_bytes
            )

    def offer(self, key: bytes, frame_bytes: bytes, on_settled: OnSettled) -> None:
        """Takes a frame, also where there is no room, and pushes.

        Args:
            key: the producer's id.
            frame_bytes: the encoded frame.
            on_settled: told once what became of it.
        """
        with self.changed:
            self._waiting.append(_Frame(self._offered, key, frame_bytes, on_settled))
            self._offered += 1
            self._bytes += len(frame_bytes)
        self.push()

    def push(self) -> None:
        """Publishes what is due; called again and again, by the thread that offers."""
        while (frame := self._next()) is not None:
            settle = partial(self._settle, frame)
            try:
                self._publisher.publish(frame.key, frame.frame_bytes, settle)
            except Exception as error:  # a publisher's mistake must not end the thread that all frames go through
                settle(error)

    def due_in_s(self) -> float | None:
        """How long there is nothing to push: 0 when there is something, None until a frame is settled or offered."""
        if not self._failed:
            return 0.0 if self._waiting else None
        if self._published or self._backoff is None:
            return None
        return max(0.0, self._again_at - self._clock())

    def drain(self, timeout_s: float) -> bool:
        """Publishes everything; whether all of it is settled within `timeout_s`."""
        until = self._clock() + timeout_s
        while self._clock() < until:
            self.push()
            self._publisher.flush(max(0.0, until - self._clock()))
            with self.changed:
                if self.changed.wait_for(lambda: not self.pending, AGAIN.first_s):
                    return True
        return False

    def give_up(self) -> None:
        """Forgets all frames; what the publisher still says of them counts for nothing."""
        with self.changed:
            self._waiting.clear()
            self._published.clear()
            self._failed.clear()
            self._bytes = 0

    def note_error(self, error: Exception) -> None:
        """Counts an error; that of a frame, say, that could not even be encoded."""
        with self.changed:
            self.errors += 1
            self.last_error = error

    def _next(self) -> _Frame | None:
        with self.changed:
            if self.due_in_s() != 0.0:
                return None
            self._waiting.extendleft(sorted(self._failed, key=lambda frame: -frame.number))
            self._failed.clear()
            frame = self._waiting.popleft()
            self._published.add(frame)
            return frame

    def _settle(self, frame: _Frame, error: Exception | None) -> None:
        with self.changed:
            if error is not None:
                self.note_error(error)
            if frame not in self._published:
                return  # it was settled before, or given up
            self._published.remove(frame)
            if error is None or isinstance(error, FrameRefusedError):
                self._bytes -= len(frame.frame_bytes)
                if error is None:
                    self.arrived += 1
                    self._failures_in_a_row = 0
                else:
                    self.refused += 1
                frame.on_settled(error)
            else:
                self._fail(frame, error)
            self.changed.notify_all()

    def _fail(self, frame: _Frame, error: Exception) -> None:
        if not self._failed or not self._failures_in_a_row:  # those that were published together fail as one
            self._failures_in_a_row += 1
        frame.failure = error
        self._failed.append(frame)
        if self._backoff is not None:
            self._again_at = self._clock() + self._backoff.pause_s(self._failures_in_a_row)


class DeliveryWindow:
    """Hands frames over in order, and waits while too many of them are not acknowledged.

    A robot must not be made to wait, so `StepEmitter` buffers and drops; a recording can wait, so nothing of it is
    dropped but what Kafka refuses for good. The first failure ends it: the recording can be played again.

    Args:
        publisher: where the frames go; it stays open.
        frames: the most on their way at a time.
        size_bytes: the most bytes on their way at a time; below a publisher's own bound, which would be an error.
        longest_silence_s: how long to wait for the next acknowledgement, s.
    """

    def __init__(
        self,
        publisher: FramePublisher,
        *,
        frames: int = 1000,
        size_bytes: int = 16 * 1024 * 1024,
        longest_silence_s: float = 60.0,
    ) -> None:
        self._publisher = publisher
        self._under_way = FramesUnderWay(publisher, most_frames=frames, most_bytes=size_bytes, backoff=None)
        self._longest_silence_s = longest_silence_s

    def publish(self, key: bytes, frame_bytes: bytes, on_settled: OnSettled) -> None:
        """Hands a frame over; waits until there is room for it.

        Args:
            key: the producer's id.
            frame_bytes: the encoded frame.
            on_settled: told once what became of it.

        Raises:
            PublishError: a frame failed, this one or one before it, or nothing is acknowledged any more.
        """
        self._wait_until(lambda: self._under_way.has_room(len(frame_bytes)))
        self._under_way.offer(key, frame_bytes, on_settled)

    def drain(self) -> None:
        """Waits until every frame is acknowledged or refused.

        Raises:
            PublishError: as for `publish`.
        """
        self._publisher.flush(self._longest_silence_s)
        self._wait_until(lambda: not self._under_way.pending)

    def _wait_until(self, done: Callable[[], bool]) -> None:
        frames = self._under_way
        with frames.changed:
            while frames.failure is None and not done():
                if not frames.changed.wait(self._longest_silence_s):  # every settled frame wakes it
                    message = f"Kafka has acknowledged none of {frames.pending} frames in {self._longest_silence_s:g} s"
                    raise PublishError(message)
            if frames.failure is not None:
                message = f"Kafka did not take a frame ({frames.failure}); {frames.arrived} frames had arrived"
                raise PublishError(message) from frames.failure
