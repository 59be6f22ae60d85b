"""What a stage watches while it runs: holes in its input, a state ahead of it, quiet partitions, its own counts.

- `HoleWatch`: Faust drops messages that are in flight when a rebalance suspends the flow, and moves its read position
  past them. So an offset above the one wanted first means: read again from there. Offsets can also be missing for good
  (retention, the markers of transactions): then the same later offset comes back, and the broker, asked apart from
  Faust, has no earlier one. A hole is taken for real only when the broker itself confirms it.
- `AheadWatch`: a state that has read further than its topic reaches, so that the topic was made anew.
- `PartitionClock`: what time it is in a partition: the broker's time of its last message, plus how long it has been
  seen to be quiet. No worker's clock is compared with the broker's, and no time counts as silence in which this worker
  could not have heard a message (it was down, catching up, or cut off): an outage closes no episode.
- `StageCounts`: for the health endpoint and the log.
"""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from springback.stream_processors.errors import (
    StateAheadError,
    StateFullError,
    TooCostlyError,
    TransientBrokerError,
)
from springback.stream_processors.exact.port import StagePort

RESEEK_S = 2.0
"""Wait before a partition with a hole is sent back once more."""
_TIMES = 3
"""Looks in a row that must find the state ahead before the broker is asked for the last message."""
_SILENCES = 20
"""Times that it is asked, each with a second to answer in, before nothing is taken for a no."""
_log = logging.getLogger(__name__)


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
        too_costly: messages that took too long time after time, and were passed over.
        too_large: messages that would have made a state too large, and were passed over.
        tick_failures: buckets that a tick failed on.
        switches: times that a partition went over to another context (the baseline that scores).
        not_taken: why the broker has not taken the latest outputs (a right was withdrawn, say); None once it has.
        wanted: next offset wanted, by partition.
        ends: end of each partition, when last asked for.
        processed_at: when the last message of each partition was done, on the monotonic clock.
        last_processed_at: when the last message of all was done, whichever worker has its partition now; None if none.
    """

    events: int = 0
    covered: int = 0
    left_over: int = 0
    abandoned: int = 0
    sent_back: int = 0
    holes: int = 0
    lost_offsets: int = 0
    rejected: int = 0
    too_costly: int = 0
    too_large: int = 0
    tick_failures: int = 0
    switches: int = 0
    not_taken: str | None = None
    wanted: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    processed_at: dict[int, float] = field(default_factory=dict)
    last_processed_at: float | None = None

    def processed(self, wanted: Iterable[tuple[int, int]], now: float) -> None:
        """Counts messages that are done: for each its partition, and the offset wanted there after the batch."""
        for partition, offset in wanted:
            self.events += 1
            self.wanted[partition] = offset
            self.processed_at[partition] = self.last_processed_at = now

    def refused(self, error: Exception) -> None:
        """Counts a message that is passed over for this error."""
        if isinstance(error, TooCostlyError):
            self.too_costly += 1
        elif isinstance(error, StateFullError):
            self.too_large += 1
        else:
            self.rejected += 1

    def passed_over(self, offsets: int) -> None:
        """Counts a hole of so many offsets that the broker has confirmed."""
        self.holes += 1
        self.lost_offsets += offsets

    def behind(self) -> int | None:
        """Messages after the state in all partitions, or None while their ends are not known."""
        return sum(max(0, end - self.wanted[p]) for p, end in self.ends.items()) if self.ends else None

    def forget_partitions(self) -> None:
        """Drops what is known of single partitions: they may go to another worker."""
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
            "too_costly": self.too_costly,
            "too_large": self.too_large,
            "tick_failures": self.tick_failures,
            "switches": self.switches,
            "not_taken": self.not_taken,
            "partitions": {
                str(partition): {
                    "wanted": wanted,
                    "end": self.ends.get(partition),
                    "age_s": None if partition not in self.processed_at else now - self.processed_at[partition],
                }
                for partition, wanted in sorted(self.wanted.items())
            },
        }


@dataclass(slots=True)
class _Hole:
    wanted: int
    nearest: int
    sought_at: float


class HoleWatch:
    """The holes that one stage's partitions have just now.

    Args:
        stage: its name, for the log.
        port: the stream engine.
        counts: where holes are counted.
        clock: seconds that never go back.
    """

    def __init__(self, stage: str, port: StagePort, counts: StageCounts, clock: Callable[[], float]) -> None:
        self._stage = stage
        self._port = port
        self._counts = counts
        self._clock = clock
        self._holes: dict[int, _Hole] = {}

    def forget(self) -> None:
        """Forgets every hole."""
        self._holes.clear()

    def closed(self, partition: int) -> None:
        """Forgets the hole of a partition: the offset wanted has come."""
        self._holes.pop(partition, None)

    async def passes(self, partition: int, wanted: int, offset: int) -> bool:
        """Whether the broker confirms that nothing lies between `wanted` and `offset`; else reading goes back there.

        An offset seen for the second time is only a sign: Faust's read position can jump while a message is handed
        over, so that it drops what it reads again. The broker's own word decides.
        """
        hole = self._holes.get(partition)
        if hole is None or hole.wanted != wanted:
            self._holes[partition] = _Hole(wanted, offset, self._clock())
            await self._send_back(partition, wanted)
            return False
        if offset == hole.nearest and await self._first(partition, wanted) == offset:
            self.closed(partition)
            return True
        hole.nearest = min(hole.nearest, offset)
        if self._clock() - hole.sought_at > RESEEK_S:
            hole.sought_at = self._clock()
            await self._send_back(partition, wanted)
        return False

    async def reaches_end(self, partition: int, wanted: int, end: int) -> bool:
        """Whether the broker confirms that nothing lies between `wanted` and `end`; else reading goes back there.

        For a partition from which nothing comes: its messages were dropped on their way, or a transaction's marker is
        the last of it.
        """
        if await self._first(partition, wanted) >= end:
            return True
        _log.warning("stalled stage=%s partition=%d wanted=%d end=%d", self._stage, partition, wanted, end)
        await self._send_back(partition, wanted)
        return False

    async def _first(self, partition: int, wanted: int) -> int:
        try:
            return await self._port.first_offset(partition, wanted)
        except TransientBrokerError as error:
            _log.warning("hole_unconfirmed stage=%s partition=%d error=%s", self._stage, partition, error)
            return wanted

    async def _send_back(self, partition: int, wanted: int) -> None:
        self._counts.sent_back += 1
        await self._port.seek(partition, wanted)


class AheadWatch:
    """Looks at each partition of a stage again and again: a new leader may show an end that is a moment old.

    The end alone proves nothing either: Tansu 0.6 now and then gives one that is short of messages, and keeps to it.
    What decides is whether the broker still has the last message that was read. One that brings nothing may be busy, or
    have nothing there: that is asked again and again before it is taken for a no.

    Args:
        stage: its name, for the error.
        port: the stream engine.
    """

    def __init__(self, stage: str, port: StagePort) -> None:
        self._stage = stage
        self._port = port
        self._seen: dict[int, int] = {}
        self._silences: dict[int, int] = {}
        self._confirmed: dict[int, int] = {}

    def forget(self) -> None:
        """Forgets every partition."""
        self._seen.clear()
        self._silences.clear()
        self._confirmed.clear()

    async def check(self, partition: int, wanted: int, end: int) -> bool:
        """Whether the offset wanted lies beyond the partition's end, for all that is known yet.

        Raises:
            StateAheadError: it does so time after time, and the broker has not got what was read last.
        """
        if wanted <= end or self._confirmed.get(partition) == wanted:
            self._seen.pop(partition, None)
            self._silences.pop(partition, None)
            return False
        self._seen[partition] = self._seen.get(partition, 0) + 1
        if self._seen[partition] < _TIMES:
            return True
        try:
            there = await self._port.holds(partition, wanted - 1)
        except TransientBrokerError as error:
            _log.warning("end_unconfirmed stage=%s partition=%d error=%s", self._stage, partition, error)
            return True
        if there is None:
            self._silences[partition] = self._silences.get(partition, 0) + 1
            if self._silences[partition] < _SILENCES:
                _log.warning("end_unconfirmed stage=%s partition=%d error=silence", self._stage, partition)
                return True
        if not there:
            message = (
                f"Stage {self._stage}: the state wants offset {wanted} of partition {partition}, whose end is {end}. "
                "The topic was made anew, or has lost messages: start under another app_id."
            )
            raise StateAheadError(message)
        self._confirmed[partition] = wanted
        return False


class PartitionClock:
    """The clocks of one stage's partitions. All times are seconds; `now` is any clock that never goes back."""

    def __init__(self) -> None:
        self._quiet_since: dict[int, float] = {}
        self._heard_at: dict[int, float] = {}

    def forget(self) -> None:
        """Forgets every partition."""
        self._quiet_since.clear()
        self._heard_at.clear()

    def cut_off(self) -> None:
        """Forgets that partitions are quiet: the broker does not answer, so nobody can say so."""
        self._quiet_since.clear()

    def heard(self, partition: int, now: float) -> None:
        """Notes that a message of the partition came."""
        self._quiet_since.pop(partition, None)
        self._heard_at[partition] = now

    def behind(self, partition: int, now: float) -> float:
        """How long a partition with unread messages has brought none."""
        self._quiet_since.pop(partition, None)
        return now - self._heard_at.setdefault(partition, now)

    def at_end(self, partition: int, now: float) -> float:
        """How long a partition has been seen to be read to its end."""
        self._heard_at[partition] = now
        return now - self._quiet_since.setdefault(partition, now)
