"""An event loop whose time passes only while nothing happens: a test waits for no timer, and no stall sets one off."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

LOOK_S = 0.01
"""How long it looks for events before time jumps: what was written to a socket may take that long on a busy machine."""


class _JumpingSelector(selectors.DefaultSelector):
    now_s = 0.0

    def select(self, timeout: float | None = None) -> Any:
        events = super().select(None if timeout is None else min(timeout, LOOK_S))
        if not events and timeout is not None and timeout > 0.0:
            self.now_s += timeout
        return events


class JumpingLoop(asyncio.SelectorEventLoop):
    """Jumps to the next timer when no socket has anything to say. Not for tests that wait for a thread or a process."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Seconds that were waited for, not those that have passed."""
        return self._jumping.now_s


def run_jumping(main: Coroutine[Any, Any, T]) -> T:
    """Runs like `asyncio.run`, on a `JumpingLoop`."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(main)
