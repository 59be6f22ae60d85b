"""Missing messages: go back for them, and take a hole for real only when the broker itself confirms it.

Faust drops messages that are in flight when a rebalance suspends the flow, and moves its read position past them. So
an offset above the one wanted first means: read again from there. Offsets can also be missing for good (retention, the
markers of transactions): then the same later offset comes back, and the broker, asked apart from Faust, has no earlier.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from springback.stream_processors.errors import TransientBrokerError
from springback.stream_processors.stage_counts import StageCounts
from springback.stream_processors.stage_port import StagePort

RESEEK_S = 2.0
_log = logging.getLogger(__name__)


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
        """Forget every hole."""
        self._holes.clear()

    def closed(self, partition: int) -> None:
        """The offset wanted has come."""
        self._holes.pop(partition, None)

    async def passes(self, partition: int, wanted: int, offset: int) -> bool:
        """Whether the broker confirms that nothing lies between `wanted` and `offset`; else go back to `wanted`.

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
        """Whether the broker confirms that nothing lies between `wanted` and `end`; else go back to `wanted`.

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
