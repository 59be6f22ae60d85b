"""Publishing with back pressure: a bounded number of frames on their way, for sources that can wait."""

import threading
from collections.abc import Callable
from typing import Final

from springback.producers.errors import FrameRefusedError, PublishError
from springback.producers.frame_publisher import FramePublisher

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
