"""Frames that come from elsewhere, on their way to the publisher: in order, bounded, kept until they have arrived.

Publishing with back pressure: a bounded number of frames on their way, for sources that can wait.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from springback.producers.emitter.publishers import FramePublisher
from springback.producers.errors import FrameRefusedError, PublishError

FIRST_RETRY_S, LONGEST_RETRY_S = 0.1, 5.0
MOST_FRAMES: Final = 256


@dataclass(eq=False, slots=True)
class _Passing:
    number: int
    key: bytes
    frame_bytes: bytes
    settle: Callable[[], None]


class FramePassage:
    """Publishes frames; those that failed are published again, in their first order, before any that came later.

    Args:
        publisher: where the frames go; it stays open.
        clock: seconds of a clock that only rises.

    Attributes:
        arrived, refused: frames that Kafka has, and those that it will never take.
        last_error: why one did not arrive, the last time.
    """

    def __init__(self, publisher: FramePublisher, clock: Callable[[], float] = time.monotonic) -> None:
        self.arrived = self.refused = 0
        self.last_error: Exception | None = None
        self._publisher = publisher
        self._clock = clock
        self._changed = threading.Condition()
        self._waiting: deque[_Passing] = deque()
        self._failed: list[_Passing] = []
        self._on_their_way = 0
        self._offered = 0
        self._retry_s = FIRST_RETRY_S
        self._retry_at = 0.0

    @property
    def has_room(self) -> bool:
        """Whether another frame should come."""
        with self._changed:
            return self._pending < MOST_FRAMES

    def offer(self, key: bytes, frame_bytes: bytes, settle: Callable[[], None]) -> None:
        """Take a frame.

        Args:
            key: the producer's id.
            frame_bytes: the encoded frame.
            settle: called once it has arrived, or been refused for good, from any thread.
        """
        with self._changed:
            self._waiting.append(_Passing(self._offered, key, frame_bytes, settle))
            self._offered += 1
        self.push()

    def push(self) -> None:
        """Publish what waits, if it is time; called now and then by the thread that offers."""
        while (frame := self._next()) is not None:
            self._publisher.publish(frame.key, frame.frame_bytes, self._settling(frame))

    def drain(self, timeout_s: float) -> bool:
        """Publish everything; whether all of it is settled within `timeout_s`."""
        until = self._clock() + timeout_s
        while self._clock() < until:
            self.push()
            self._publisher.flush(max(0.0, until - self._clock()))
            with self._changed:
                if self._changed.wait_for(lambda: self._pending == 0, FIRST_RETRY_S):
                    return True
        return False

    @property
    def _pending(self) -> int:
        return len(self._waiting) + len(self._failed) + self._on_their_way

    def _next(self) -> _Passing | None:
        with self._changed:
            if self._failed:
                if self._on_their_way or self._clock() < self._retry_at:
                    return None
                self._waiting.extendleft(sorted(self._failed, key=lambda frame: -frame.number))
                self._failed.clear()
            if not self._waiting:
                return None
            self._on_their_way += 1
            return self._waiting.popleft()

    def _settling(self, frame: _Passing) -> Callable[[Exception | None], None]:
        def settle(error: Exception | None) -> None:
            with self._changed:
                self._on_their_way -= 1
                done = error is None or isinstance(error, FrameRefusedError)
                self.arrived += error is None
                self.refused += done and error is not None
                self.last_error = error or self.last_error
                if not done:
                    self._failed.append(frame)
                    self._retry_at = self._clock() + self._retry_s
                    self._retry_s = min(2.0 * self._retry_s, LONGEST_RETRY_S)
                elif error is None:
                    self._retry_s = FIRST_RETRY_S
                self._changed.notify_all()
            if done:
                frame.settle()

        return settle


LONGEST_SILENCE_S: Final = 60.0


class DeliveryWindow:
    """Hands frames over in order, and waits while too many of them are not acknowledged.

    A robot must not be made to wait, so `StepEmitter` buffers and drops; a recording can wait, so nothing of it is
    dropped but what Kafka refuses for good.

    Args:
        publisher: Where the frames go. It stays open.
        frames: The most on their way at a time.
        size_bytes: The most bytes on their way at a time; below a publisher's own bound, which would be an error.
        longest_silence_s: How long to wait for the next acknowledgement.
    """

    def __init__(
        self,
        publisher: FramePublisher,
        *,
        frames: int = 1000,
        size_bytes: int = 16 * 1024 * 1024,
        longest_silence_s: float = LONGEST_SILENCE_S,
    ) -> None:
        self._publisher = publisher
        self._frames = frames
        self._size_bytes = size_bytes
        self._longest_silence_s = longest_silence_s
        self._changed = threading.Condition()
        self._unsettled = 0
        self._unsettled_bytes = 0
        self._arrived = 0
        self._failure: Exception | None = None

    def publish(self, key: bytes, data: bytes, on_settled: Callable[[FrameRefusedError | None], None]) -> None:
        """Hand a frame over; waits until there is room for it.

        Args:
            key: The producer's id.
            data: The encoded frame.
            on_settled: Called, by one thread at a time, with None once the frame has arrived, or with the reason why
                it never will.

        Raises:
            PublishError: A frame failed, this one or one before it, or nothing is acknowledged any more.
        """
        self._wait_until(lambda: self._has_room(len(data)))
        with self._changed:
            self._unsettled += 1
            self._unsettled_bytes += len(data)

        def settle(error: Exception | None) -> None:
            with self._changed:
                self._unsettled -= 1
                self._unsettled_bytes -= len(data)
                self._arrived += error is None
                if error is None or isinstance(error, FrameRefusedError):
                    on_settled(error)
                else:
                    self._failure = self._failure or error
                self._changed.notify_all()

        self._publisher.publish(key, data, settle)

    def drain(self) -> None:
        """Wait until every frame is acknowledged or refused.

        Raises:
            PublishError: As of `publish`.
        """
        self._publisher.flush(self._longest_silence_s)
        self._wait_until(lambda: self._unsettled == 0)

    def _has_room(self, size_bytes: int) -> bool:
        few = self._unsettled < self._frames and self._unsettled_bytes + size_bytes <= self._size_bytes
        return few or self._unsettled == 0

    def _wait_until(self, done: Callable[[], bool]) -> None:
        with self._changed:
            while self._failure is None and not done():
                if not self._changed.wait(self._longest_silence_s):  # every settled frame wakes it
                    message = (
                        f"Kafka has acknowledged none of {self._unsettled} frames in {self._longest_silence_s:g} s"
                    )
                    raise PublishError(message)
            if self._failure is not None:
                message = f"Kafka did not take a frame ({self._failure}); {self._arrived} frames had arrived"
                raise PublishError(message) from self._failure
