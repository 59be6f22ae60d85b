"""A memory of what was seen that cannot grow without end."""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from typing import Generic, TypeVar

V = TypeVar("V")


def fingerprint(identity: object) -> bytes:
    """Sixteen bytes that stand for an identity, however long its ids are.

    >>> len(fingerprint(("robot", "session", "x" * 10_000)))
    16
    """
    return hashlib.blake2b(repr(identity).encode(), digest_size=16).digest()


class BoundedMemory(Generic[V]):
    """A mapping that forgets the entry that was put longest ago once it holds more than `limit`.

    About 300 bytes an entry with a fingerprint as the key: 30 MB at 100,000.

    >>> memory: BoundedMemory[int] = BoundedMemory(2)
    >>> for number, key in enumerate([b"a", b"b", b"c"]):
    ...     memory.put(key, number)
    >>> memory.get(b"a"), memory.get(b"c"), len(memory)
    (None, 2, 2)
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # A plain dict looks for its oldest entry past all that were deleted before it: slower with each.
        self._entries: OrderedDict[bytes, V] = OrderedDict()

    def __len__(self) -> int:
        """How many entries are held."""
        return len(self._entries)

    def __contains__(self, key: bytes) -> bool:
        """Whether the key is held."""
        return key in self._entries

    def get(self, key: bytes) -> V | None:
        """The value, or None if there is none, or none any more."""
        return self._entries.get(key)

    def values(self) -> Iterable[V]:
        """All values, the newest last."""
        return self._entries.values()

    def put(self, key: bytes, value: V) -> None:
        """Keeps the value as the newest entry."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._limit:
            self._entries.popitem(last=False)

    def pop(self, key: bytes) -> V | None:
        """Forgets the entry, and returns its value, or None if there was none."""
        return self._entries.pop(key, None)

    def add(self, key: bytes, value: V) -> bool:
        """Keeps the value unless the key is known, and returns whether it was new."""
        if key in self._entries:
            return False
        self.put(key, value)
        return True
