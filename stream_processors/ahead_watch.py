"""Whether the state is ahead of its input: it has read further than the topic reaches, so the topic was made anew."""

import logging

from springback.stream_processors.errors import StateAheadError, TransientBrokerError
from springback.stream_processors.stage_port import StagePort

_TIMES = 3
_log = logging.getLogger(__name__)


class AheadWatch:
    """Looks at each partition of a stage again and again: a new leader may show an end that is a moment old.

    The end alone proves nothing either: Tansu 0.6 now and then gives one that is a message short, and keeps to it. So
    what decides is whether the broker still has the last message that was read.

    Args:
        stage: its name, for the error.
        port: the stream engine.
    """

    def __init__(self, stage: str, port: StagePort) -> None:
        self._stage = stage
        self._port = port
        self._seen: dict[int, int] = {}
        self._confirmed: dict[int, int] = {}

    def forget(self) -> None:
        """Forget every partition."""
        self._seen.clear()
        self._confirmed.clear()

    async def check(self, partition: int, wanted: int, end: int) -> bool:
        """Whether the offset wanted lies beyond the partition's end, for all that is known yet.

        Raises:
            StateAheadError: it does so time after time, and the broker has not got what was read last.
        """
        if wanted <= end or self._confirmed.get(partition) == wanted:
            self._seen.pop(partition, None)
            return False
        self._seen[partition] = self._seen.get(partition, 0) + 1
        if self._seen[partition] < _TIMES:
            return True
        try:
            there = await self._port.holds(partition, wanted - 1)
        except TransientBrokerError as error:
            _log.warning("end_unconfirmed stage=%s partition=%d error=%s", self._stage, partition, error)
            return True
        if not there:
            message = (
                f"Stage {self._stage}: the state wants offset {wanted} of partition {partition}, whose end is {end}. "
                "The topic was made anew, or has lost messages: start under another app_id."
            )
            raise StateAheadError(message)
        self._confirmed[partition] = wanted
        return False
