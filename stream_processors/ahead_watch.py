"""Whether the state is ahead of its input: it has read further than the topic reaches, so the topic was made anew."""

from stream_processors.errors import StateAheadError

_TIMES = 3


class AheadWatch:
    """Looks at each partition of a stage again and again: a new leader may show an end that is a moment old."""

    def __init__(self, stage: str) -> None:
        self._stage = stage
        self._seen: dict[int, int] = {}

    def forget(self) -> None:
        """Forget every partition."""
        self._seen.clear()

    def check(self, partition: int, wanted: int, end: int) -> bool:
        """Whether the offset wanted lies beyond the partition's end, as it should not.

        Raises:
            StateAheadError: it does so time after time.
        """
        if wanted <= end:
            self._seen.pop(partition, None)
            return False
        self._seen[partition] = self._seen.get(partition, 0) + 1
        if self._seen[partition] >= _TIMES:
            message = (
                f"Stage {self._stage}: the state wants offset {wanted} of partition {partition}, whose end is {end}. "
                "The topic was made anew, or has lost messages: start under another app_id."
            )
            raise StateAheadError(message)
        return True
