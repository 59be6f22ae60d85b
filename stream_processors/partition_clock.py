"""What time it is in a partition: the broker's time of its last message, plus how long it has been seen to be quiet.

No worker's clock is compared with the broker's, and no time counts as silence in which this worker could not have heard
a message: while it was down, catching up, or cut off from the broker. So episodes are not closed as idle by an outage.
"""


class PartitionClock:
    """The clocks of one stage's partitions. All times are seconds; `now` is any clock that never goes back."""

    def __init__(self) -> None:
        self._quiet_since: dict[int, float] = {}
        self._heard_at: dict[int, float] = {}

    def forget(self) -> None:
        """Forget every partition."""
        self._quiet_since.clear()
        self._heard_at.clear()

    def cut_off(self) -> None:
        """The broker does not answer: nobody can say that a partition is quiet."""
        self._quiet_since.clear()

    def heard(self, partition: int, now: float) -> None:
        """A message of the partition came."""
        self._quiet_since.pop(partition, None)
        self._heard_at[partition] = now

    def behind(self, partition: int, now: float) -> float:
        """The partition has messages that were not read yet. Returns how long none has come."""
        self._quiet_since.pop(partition, None)
        return now - self._heard_at.setdefault(partition, now)

    def at_end(self, partition: int, now: float) -> float:
        """The partition is read to its end. Returns how long it has been seen so."""
        self._heard_at[partition] = now
        return now - self._quiet_since.setdefault(partition, now)
