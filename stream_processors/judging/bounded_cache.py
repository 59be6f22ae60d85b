"""A memory of bounded size: what has not been asked for the longest is let go."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

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
