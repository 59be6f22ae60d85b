"""What an emitter hands its frames to: Kafka, a recording, memory; later a spool on disk in front of one of them."""

from collections.abc import Callable
from typing import Protocol

OnDone = Callable[[Exception | None], None]
"""Called once for a frame, from any thread: None when it is safely there, else why it is not.

`FrameRefusedError` says that it will never be; after anything else the emitter publishes the frame again.
"""


class FramePublisher(Protocol):
    """Takes encoded frames, in order, without waiting for them to arrive."""

    def publish(self, key: bytes, frame_bytes: bytes, on_done: OnDone) -> None:
        """Takes a frame. Returns soon, or calls `on_done` with an error soon; never waits for a broker for long."""

    def flush(self, timeout_s: float) -> None:
        """Sends what is held back, and waits for it for at most `timeout_s`."""

    def close(self) -> None:
        """Gives up what cannot be delivered within a short bounded time, and frees what is held."""
