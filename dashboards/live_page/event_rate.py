"""How many of something there were a second, over the last seconds."""

from collections import deque


class EventRate:
    """Counts in whole seconds, in bounded memory.

    >>> rate = EventRate(window_s=10)
    >>> for second in range(20):
    ...     rate.count(3, float(second))
    >>> rate.per_second(20.0)
    3.0
    """

    def __init__(self, window_s: int = 10) -> None:
        self._window_s = window_s
        self._counts: deque[tuple[int, int]] = deque(maxlen=window_s + 1)

    def count(self, events: int, now_s: float) -> None:
        """So many happened now."""
        second = int(now_s)
        if self._counts and self._counts[-1][0] >= second:
            second, events = self._counts[-1][0], self._counts[-1][1] + events
            self._counts.pop()
        self._counts.append((second, events))

    def per_second(self, now_s: float) -> float:
        """Events a second, over the last whole seconds."""
        now = int(now_s)
        return sum(n for second, n in self._counts if now - self._window_s <= second < now) / self._window_s
