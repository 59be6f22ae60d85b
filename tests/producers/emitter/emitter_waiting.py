"""What tests wait for: a condition, with a deadline that only a fault reaches."""

import time
from collections.abc import Callable

DEADLINE_S = 60.0


def until(condition: Callable[[], bool]) -> None:
    """Waits until the condition holds."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"it did not come about within {DEADLINE_S:g} s"
        time.sleep(0.001)
