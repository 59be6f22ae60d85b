"""How many calls may be made: a token bucket that no minute of any position exceeds."""


class CallBudget:
    """A bucket that holds a quarter of a minute's calls and is refilled with the rest over the minute.

    A minute that begins with a full bucket so has exactly the calls that are allowed, and calls are spread over it.

    Args:
        per_minute: most calls in any 60 s; at least 2.
        now: seconds that never go back.

    >>> budget = CallBudget(4, now=0.0)
    >>> [budget.take(now) for now in (0.0, 1.0, 19.9, 20.1)]
    [True, False, False, True]
    """

    def __init__(self, per_minute: int, now: float) -> None:
        self._size = max(1.0, per_minute / 4)
        self._rate = (per_minute - self._size) / 60.0
        self._tokens = self._size
        self._filled_at = now

    def take(self, now: float) -> bool:
        """Whether a call may be made now; it then counts."""
        self._tokens = min(self._size, self._tokens + (now - self._filled_at) * self._rate)
        self._filled_at = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True
