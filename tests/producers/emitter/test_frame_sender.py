import threading

import pytest

from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter


def test_a_publisher_that_cannot_flush_is_closed_all_the_same() -> None:
    class FullDisk(MemoryPublisher):
        def flush(self, timeout_s: float) -> None:
            message = "no space left"
            raise OSError(message)

    publisher = FullDisk()
    emitter = StepEmitter(publisher, producer="full")
    with pytest.raises(OSError, match="no space left"):
        emitter.close()
    assert publisher.closed
    assert "frame-sender-full" not in {thread.name for thread in threading.enumerate()}
