"""Tells of what could not be read of a recording, without flooding the terminal where that is nearly all of it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from springback.producers.recording_reader import UnreadablePart

_MOST_SHOWN = 20


class LeftOut:
    """Takes each part that is left out, shows the first ones and counts all.

    Args:
        tell: Prints one line.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self.count = 0

    def __call__(self, part: "UnreadablePart") -> None:
        """Show the part, if not too many were shown before."""
        self.count += 1
        if self.count <= _MOST_SHOWN:
            self._tell(f"left out  {part}")

    def finish(self) -> None:
        """Say how many were not shown, if any."""
        if self.count > _MOST_SHOWN:
            self._tell(f"left out  {self.count - _MOST_SHOWN} more, not shown here")
