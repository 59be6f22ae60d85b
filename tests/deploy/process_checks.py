"""What tests of processes look at and wait for."""

import subprocess
import time
from collections.abc import Callable


def exists(pid: int) -> bool:
    """Whether the process runs (a zombie that nobody has reaped does not)."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return state.returncode == 0 and not state.stdout.startswith("Z")


def becomes_true(condition: Callable[[], bool], deadline_s: float) -> bool:
    """Whether the condition holds before so many seconds have gone by."""
    end_s = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.02)
    return True
