"""What keeps a judge within bounds: a budget of calls, a circuit breaker for the endpoint, and a bounded cache.

Time is an argument, in seconds of a clock that never goes back. All of it is ours.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class CallBudget:
    """A token bucket that holds a quarter of a minute's calls and is refilled with the rest over the minute.

    So no 60 s, wherever they begin, have more calls than are allowed, and the calls are spread over them.

    Args:
        per_minute: most calls in any 60 s; at least 2.
        now: the time, s.

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
        """Whether a call may be made now; if so, it is counted."""
        self._tokens = min(self._size, self._tokens + (now - self._filled_at) * self._rate)
        self._filled_at = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True


class CircuitBreaker:
    """Open after `failures` failed calls in a row; it then lets one call through every `pause_s`; a success closes it.

    >>> breaker = CircuitBreaker(failures=2, pause_s=10.0)
    >>> breaker.failed(0.0); breaker.failed(1.0)
    >>> breaker.open, breaker.allows(5.0), breaker.allows(11.0), breaker.allows(11.1)
    (True, False, True, False)
    >>> breaker.succeeded(); breaker.allows(12.0)
    True
    """

    def __init__(self, failures: int, pause_s: float) -> None:
        self._failures = failures
        self._pause_s = pause_s
        self._in_row = 0
        self._next_probe = 0.0

    @property
    def open(self) -> bool:
        """Whether the endpoint counts as down."""
        return self._in_row >= self._failures

    def blocks(self, now: float) -> bool:
        """Whether no call may be made now; asking changes nothing."""
        return self.open and now < self._next_probe

    def allows(self, now: float) -> bool:
        """Whether a call may be made now; while the breaker is open, that call is then the one that probes."""
        if self.blocks(now):
            return False
        # Set before the answer comes: a probe that never ends must not be the last one.
        self._next_probe = now + self._pause_s
        return True

    def failed(self, now: float) -> None:
        """Takes notice of a failed call."""
        self._in_row += 1
        self._next_probe = now + self._pause_s

    def succeeded(self) -> None:
        """Takes notice of an answered call."""
        self._in_row = 0


class BoundedCache(Generic[K, V]):
    """A cache of the values used last; beyond its size, the one unused for longest is dropped.

    >>> cache = BoundedCache[str, int](2)
    >>> for number, name in enumerate("abab"):
    ...     cache.put(name, number)
    >>> cache.put("c", 9)
    >>> cache.get("a"), cache.get("b"), len(cache)
    (None, 3, 2)
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        """How many values it holds."""
        return len(self._values)

    def get(self, key: K) -> V | None:
        """The value, or None; it then counts as used."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        """Keeps the value."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._size:
            self._values.popitem(last=False)

    def drop(self, key: K) -> None:
        """Forgets the value, if it is there."""
        self._values.pop(key, None)

    def clear(self) -> None:
        """Forgets all values."""
        self._values.clear()
