"""A bound on what is held in memory at a time, over all requests."""


class ByteBudget:
    """Bytes that may be held; who finds no room is told so and waits elsewhere.

    >>> budget = ByteBudget(10)
    >>> budget.take(6), budget.take(6), budget.held
    (True, False, 6)
    >>> budget.give_back(6); budget.take(10)
    True
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.held = 0

    def take(self, size: int) -> bool:
        """Takes so many bytes, if there is room."""
        if self.held + size > self.most_bytes:
            return False
        self.held += size
        return True

    def give_back(self, size: int) -> None:
        """Gives bytes back."""
        self.held -= size
