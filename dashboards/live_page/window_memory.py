"""The rebound windows that were heard of lately, over all agents."""

from collections.abc import Iterable

from springback.sinks.bounded_memory import BoundedMemory, fingerprint
from springback.stream_processors.resilience.readings import WindowReading


class WindowMemory:
    """Each window once: as it closed, or as it opened where it has not.

    Args:
        limit: windows remembered.
    """

    def __init__(self, limit: int) -> None:
        self._windows: BoundedMemory[WindowReading] = BoundedMemory(limit)

    def __len__(self) -> int:
        """How many windows are remembered."""
        return len(self._windows)

    def take(self, window: WindowReading) -> bool:
        """Take in a window. False where it was known, or known to have closed."""
        place = fingerprint((window.key, window.number))
        known = self._windows.get(place)
        if known is not None and (known.state != "open" or window.state == "open"):
            return False
        self._windows.put(place, window)
        return True

    def newest_first(self) -> list[WindowReading]:
        """All of them, by the time of the departure."""
        return newest_first(self._windows.values())


def newest_first(windows: Iterable[WindowReading]) -> list[WindowReading]:
    """Windows by the time of the departure; those of one moment in an order that is always the same."""
    return sorted(windows, key=lambda w: (-w.departure_time_s, w.key.agent, w.key.session, w.key.episode, -w.number))
