"""Whether the endpoint is worth asking: after failures in a row nobody waits for it, and one call at times looks."""


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
