"""Where an emitter's frames go: the protocol of all publishers, and those that keep frames instead of sending them.

`MemoryPublisher` is for tests, `JsonLinesPublisher` writes a recording; `kafka_publisher` sends.
"""

from __future__ import annotations

import gzip
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Optional, Protocol, cast

from springback.producers.contract.codec import decode_frame, encode_json
from springback.producers.contract.frame import StepFrame
from springback.producers.errors import FrameRefusedError, PublishError

OnDone = Callable[[Optional[Exception]], None]
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


class MemoryPublisher:
    """Keeps what is published, in order.

    Attributes:
        published: (key, frame as bytes) pairs.
        failure: while set, frames are not kept but answered with it; set it to try out an outage.
        closed: whether it was closed.
    """

    def __init__(self) -> None:
        self.published: list[tuple[bytes, bytes]] = []
        self.failure: Exception | None = None
        self.closed = False

    @property
    def frames(self) -> list[StepFrame]:
        """The frames that were published."""
        return [decode_frame(frame_bytes) for _, frame_bytes in self.published]

    def publish(self, key: bytes, frame_bytes: bytes, on_done: OnDone) -> None:
        """Keeps the frame."""
        if self.failure is None:
            self.published.append((key, frame_bytes))
        on_done(self.failure)

    def flush(self, timeout_s: float) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Remembers that it was closed."""
        self.closed = True


class JsonLinesPublisher:
    """Writes each frame as one line of JSON: a recording that `evaluate` and `replay` take.

    Args:
        path: the file, compressed when its name ends in `.gz`. An existing file is continued.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        opened = gzip.open(self._path, "ab") if self._path.suffix == ".gz" else self._path.open("ab")
        self._file = cast(IO[bytes], opened)
        self._lock = threading.Lock()

    def publish(self, key: bytes, frame_bytes: bytes, on_done: OnDone) -> None:
        """Writes the frame; it is done when it is in the file's buffer."""
        try:
            line = encode_json(decode_frame(frame_bytes)) + b"\n"
            with self._lock:
                self._file.write(line)
        except OSError as error:
            problem = f"cannot write to {self._path}: {error}"
            failure = PublishError(problem)
            failure.__cause__ = error
            on_done(failure)
        except ValueError as error:
            problem = f"cannot write to {self._path}: {error}"
            refusal = FrameRefusedError(problem)
            refusal.__cause__ = error
            on_done(refusal)
        else:
            on_done(None)

    def flush(self, timeout_s: float) -> None:
        """Writes the buffer to the file."""
        with self._lock:
            self._file.flush()

    def close(self) -> None:
        """Closes the file; a second time does nothing."""
        with self._lock:
            self._file.close()
