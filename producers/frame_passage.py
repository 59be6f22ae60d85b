"""Frames that come from elsewhere, on their way to the publisher: in order, bounded, kept until they have arrived."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from springback.producers.errors import FrameRefusedError
from springback.producers.frame_publisher import FramePublisher

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
