"""What a stage counts about its own running, for the health endpoint and the log."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class StageCounts:
    """Counters of one stage since the worker began.

    Attributes:
        events: messages applied.
        covered: messages that the state held already.
        left_over: messages from before a rebalance, dropped.
        abandoned: batches given up before their state was written.
        sent_back: times that a partition was read again from where the state is.
        holes: times that offsets were passed over because the broker confirmed that it has nothing at them.
        lost_offsets: the offsets in those holes: lost to retention, or transactions' markers.
        rejected: messages that the reducer failed on.
        tick_failures: buckets that a tick failed on.
        wanted: next offset wanted, by partition.
        ends: end of each partition, when last asked for.
        processed_at: when the last message of each partition was done, on the monotonic clock.
        last_processed_at: when the last message of all was done, whoever has its partition now; None before any.
    """

    events: int = 0
    covered: int = 0
    left_over: int = 0
    abandoned: int = 0
    sent_back: int = 0
    holes: int = 0
    lost_offsets: int = 0
    rejected: int = 0
    tick_failures: int = 0
    wanted: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    processed_at: dict[int, float] = field(default_factory=dict)
    last_processed_at: float | None = None

    def processed(self, wanted: Iterable[tuple[int, int]], now: float) -> None:
        """Messages are done: for each of them its partition and the offset wanted there after the batch."""
        for partition, offset in wanted:
            self.events += 1
            self.wanted[partition] = offset
            self.processed_at[partition] = self.last_processed_at = now

    def passed_over(self, offsets: int) -> None:
        """So many offsets make up a hole that the broker has confirmed."""
        self.holes += 1
        self.lost_offsets += offsets

    def behind(self) -> int | None:
        """Messages after the state in all partitions, or None while their ends are not known."""
        return sum(max(0, end - self.wanted[p]) for p, end in self.ends.items()) if self.ends else None

    def forget_partitions(self) -> None:
        """Drop what is known of single partitions: they may go to another worker."""
        self.wanted.clear()
        self.ends.clear()
        self.processed_at.clear()

    def report(self) -> dict[str, object]:
        """The counters and each partition's place, JSON-able."""
        now = time.monotonic()
        return {
            "events": self.events,
            "covered": self.covered,
            "left_over": self.left_over,
            "abandoned": self.abandoned,
            "sent_back": self.sent_back,
            "holes": self.holes,
            "lost_offsets": self.lost_offsets,
            "rejected": self.rejected,
            "tick_failures": self.tick_failures,
            "partitions": {
                str(partition): {
                    "wanted": wanted,
                    "end": self.ends.get(partition),
                    "age_s": None if partition not in self.processed_at else now - self.processed_at[partition],
                }
                for partition, wanted in sorted(self.wanted.items())
            },
        }
