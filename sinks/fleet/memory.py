"""A memory of what was seen that cannot grow without end."""

import hashlib
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

Place = tuple[float, str, str, str, int]
"""Where an entry stands among others: a time, then what tells those of one moment apart."""

_PRUNE_AT = 1.25


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


class NewestMemory(Generic[K, V]):
    """A mapping that keeps the `limit` entries of the latest places, in whatever order they are put.

    So two readers of the same readings keep the same, however the readings were mixed. An entry that is put again takes
    its new place, which must be no earlier; at times it holds a quarter more than it tells of.

    >>> memory: NewestMemory[str, str] = NewestMemory(2)
    >>> for key, time_s in (("b", 2.0), ("c", 3.0), ("a", 1.0)):
    ...     memory.put(key, key.upper(), (time_s, key, "", "", 0))
    >>> memory.newest()
    ['C', 'B']
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: dict[K, tuple[Place, V]] = {}

    def get(self, key: K) -> V | None:
        """The value, or None if there is none, or none any more."""
        held = self._entries.get(key)
        return None if held is None else held[1]

    def put(self, key: K, value: V, place: Place) -> None:
        """Keeps the value at its place, unless all that are kept stand later."""
        self._entries[key] = place, value
        if len(self._entries) > self._limit * _PRUNE_AT:
            self._entries = dict(self._ordered()[: self._limit])

    def pop(self, key: K) -> None:
        """Forgets the entry, if it is held."""
        self._entries.pop(key, None)

    def newest(self) -> list[V]:
        """The values, the latest place first."""
        return [value for _, value in self.newest_items()]

    def newest_items(self) -> list[tuple[K, V]]:
        """The keys and values, the latest place first."""
        return [(key, value) for key, (_, value) in self._ordered()[: self._limit]]

    def _ordered(self) -> list[tuple[K, tuple[Place, V]]]:
        return sorted(self._entries.items(), key=lambda entry: entry[1][0], reverse=True)
