"""How many calls may be made: a token bucket that no minute of any position exceeds.

Whether the endpoint is worth asking: after failures in a row nobody waits for it, and one call at times looks.

A memory of bounded size: what has not been asked for the longest is let go.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar


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


class CircuitBreaker:
    """Open after `failures` failed calls in a row; then one call in `pause_s` is let through, and a success closes it.

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
        """Whether no call may be made now. Asking costs nothing."""
        return self.open and now < self._next_probe

    def allows(self, now: float) -> bool:
        """Whether a call may be made now; while it is open, the caller is then the one that looks."""
        if self.blocks(now):
            return False
        # Set ahead of the answer: a look that never ends must not be the last one.
        self._next_probe = now + self._pause_s
        return True

    def failed(self, now: float) -> None:
        """A call has failed."""
        self._in_row += 1
        self._next_probe = now + self._pause_s

    def succeeded(self) -> None:
        """A call was answered."""
        self._in_row = 0


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """The values used last.

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
        """How many it holds."""
        return len(self._values)

    def get(self, key: K) -> V | None:
        """The value, or None; it then counts as used."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        """Keep the value."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._size:
            self._values.popitem(last=False)

    def drop(self, key: K) -> None:
        """Forget the value, if it is there."""
        self._values.pop(key, None)

    def clear(self) -> None:
        """Forget all."""
        self._values.clear()
