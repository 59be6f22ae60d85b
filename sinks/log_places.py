"""Where in the logs of the topics a reader is: up to where it has read, from where on, and what was before.

A program that starts anew reads back what the topics hold. What was before is gone with their retention or by
compaction, or left unread where more is there than is wanted.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import NamedTuple

from aiokafka import ConsumerRecord, TopicPartition  # type: ignore[import-untyped]

from springback.sinks.sink import Earlier, TopicReach


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
        """The partitions that end before their places, now and when last asked: a new leader may lag for a moment.

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
        """The partitions that ended before their places when last asked: their last message must be read again."""
        return frozenset(self._short)

    def comes_again(self, partition: TopicPartition, record: ConsumerRecord) -> None:
        """Notes that a message has come again: if it is the last one, the log is all there, whatever its end."""
        if record.offset == self.last_offset(partition):
            self._short.discard(partition)

    def last_offset(self, partition: TopicPartition) -> int | None:
        """The offset of the last message that was read; None before the first."""
        place = self._places.get(partition)
        return None if place is None else place.next_offset - 1

    def passed(self, partition: TopicPartition, record: ConsumerRecord) -> None:
        """Notes that a message was read."""
        known = self._places.get(partition)
        newest_ms = record.timestamp if known is None else max(record.timestamp, known.newest_ms)
        self._places[partition] = _Place(record.offset + 1, newest_ms)

    def forget(self, partition: TopicPartition) -> None:
        """Forgets a log, which is then read from its beginning."""
        self._places.pop(partition, None)


def first_offsets(
    begins: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], most: int
) -> dict[TopicPartition, int]:
    """Where to begin in the partitions of one topic so that no more than so many messages are read.

    Of each partition the same share is read, so that they begin at about the same time.

    >>> one, two = TopicPartition("t", 0), TopicPartition("t", 1)
    >>> first_offsets({one: 0, two: 20}, {one: 300, two: 120}, 40) == {one: 270, two: 110}
    True
    """
    held = sum(ends[partition] - begin for partition, begin in begins.items())
    if held <= most:
        return dict(begins)
    return {p: ends[p] - (ends[p] - begin) * most // held for p, begin in begins.items()}


@dataclass(slots=True)
class _PartitionReach:
    earlier: Earlier
    next_offset: int
    since_s: float | None = None


class LogReach:
    """Learns from where messages stand how far back the topics reach."""

    def __init__(self) -> None:
        self._partitions: dict[TopicPartition, _PartitionReach] = {}

    def begins(self, partition: TopicPartition, begin: int, first: int) -> None:
        """Notes where a log begins, and where it is read from."""
        earlier: Earlier = "left" if first > begin else "gone" if begin > 0 else "none"
        self._partitions[partition] = _PartitionReach(earlier, first)

    def passed(self, partition: TopicPartition, record: ConsumerRecord) -> None:
        """Notes that a message was read. Where offsets are missing before it, compaction has taken what was there."""
        known = self._partitions.get(partition)
        if known is None:
            known = self._partitions[partition] = _PartitionReach("none", 0)
        if record.offset > known.next_offset:
            known.since_s = None
            known.earlier = "left" if known.earlier == "left" else "gone"
        if known.since_s is None:
            known.since_s = record.timestamp / 1000
        known.next_offset = record.offset + 1

    def forget(self, partition: TopicPartition) -> None:
        """Forgets a log, in whose place there is another one."""
        self._partitions.pop(partition, None)

    def reaches(self) -> tuple[TopicReach, ...]:
        """How far back each topic is read, by name."""
        topics = sorted({partition.topic for partition in self._partitions})
        return tuple(self._reach_of(topic) for topic in topics)

    def _reach_of(self, topic: str) -> TopicReach:
        partitions = [known for partition, known in self._partitions.items() if partition.topic == topic]
        cut = [known for known in partitions if known.earlier != "none"]
        times = [known.since_s for known in cut or partitions if known.since_s is not None]
        earlier: Earlier = "none" if not cut else "left" if any(known.earlier == "left" for known in cut) else "gone"
        # Where something was before, the topic is whole only from the latest of its partitions' beginnings on.
        since_s = (max if cut else min)(times, default=None)
        return TopicReach(topic, since_s, earlier)
