"""How far each partition was read, and whether its log still is the one that was read."""

from collections.abc import Mapping, Set
from typing import NamedTuple

from aiokafka import ConsumerRecord, TopicPartition  # type: ignore[import-untyped]


class _Place(NamedTuple):
    next_offset: int
    newest_ms: int


class LogPlaces:
    """The places in the logs up to which all was read.

    A topic that was made anew, or whose broker lost what it had, counts its offsets from 0 again. Nothing but the
    offsets and times of its messages tells it from the one before.
    """

    def __init__(self) -> None:
        self._places: dict[TopicPartition, _Place] = {}
        self._short: set[TopicPartition] = set()

    def is_new(self, partition: TopicPartition, record: ConsumerRecord) -> bool:
        """Whether a message was not read before."""
        place = self._places.get(partition)
        return place is None or record.offset >= place.next_offset

    def is_of_another_log(self, partition: TopicPartition, record: ConsumerRecord) -> bool:
        """Whether a message stands where another one was read: it is newer than all that was read there."""
        place = self._places.get(partition)
        return place is not None and record.offset < place.next_offset and record.timestamp > place.newest_ms

    def ended_before(self, ends: Mapping[TopicPartition, int]) -> list[TopicPartition]:
        """The partitions that end before their places, now and when last asked: a new leader may be late for a moment.

        One whose last message has come again in between (`comes_again`) is not among them: Tansu says of some logs
        that they end one message early, and keeps to it.

        Args:
            ends: the offsets after their last messages.
        """
        short = {p for p, end in ends.items() if p in self._places and end < self._places[p].next_offset}
        found = short & self._short
        self._short = short - found
        return sorted(found)

    @property
    def doubted(self) -> Set[TopicPartition]:
        """The partitions that ended before their places when last asked: their last message shall be read again."""
        return frozenset(self._short)

    def comes_again(self, partition: TopicPartition, record: ConsumerRecord) -> None:
        """A message that was read has come again; if it is the last one, the log is all there, whatever its end."""
        if record.offset == self.last_offset(partition):
            self._short.discard(partition)

    def last_offset(self, partition: TopicPartition) -> int | None:
        """The offset of the last message that was read; None before the first."""
        place = self._places.get(partition)
        return None if place is None else place.next_offset - 1

    def passed(self, partition: TopicPartition, record: ConsumerRecord) -> None:
        """A message was read."""
        known = self._places.get(partition)
        newest_ms = record.timestamp if known is None else max(record.timestamp, known.newest_ms)
        self._places[partition] = _Place(record.offset + 1, newest_ms)

    def forget(self, partition: TopicPartition) -> None:
        """Nothing of the log was read."""
        self._places.pop(partition, None)
