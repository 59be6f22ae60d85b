"""What one pass of a stage through the exact protocol has to apply, send and write."""

from typing import Generic, TypeVar

from springback.stream_processors.stage_reducer import Output, StageEvent
from springback.stream_processors.stage_state import Bucket, PartitionState

S = TypeVar("S")


class StageBatch(Generic[S]):
    """One batch, or one tick.

    Attributes:
        epoch: the stage's epoch at its start: in another one its states have been forgotten.
        started: when it began, on the stage's clock.
        handled: which arrivals may be acknowledged once all is written.
        work: the events to apply, with the live states that they go to.
        moved: the partitions whose position is to be written.
        outputs: what is to be sent.
        encoded: the buckets to be written, with their states as the reducer encodes them.
    """

    def __init__(self, epoch: int, started: float) -> None:
        self.epoch = epoch
        self.started = started
        self.handled: list[int] = []
        self.work: list[tuple[StageEvent, PartitionState[S], Bucket[S]]] = []
        self.moved: dict[int, PartitionState[S]] = {}
        self.outputs: list[Output] = []
        self.encoded: dict[tuple[int, int], tuple[PartitionState[S], Bucket[S], bytes]] = {}

    def changed(self, partition: PartitionState[S], bucket: Bucket[S], encoded: bytes) -> None:
        """A bucket has changed, and is to be written."""
        self.moved[partition.number] = partition
        self.encoded[partition.number, bucket.number] = partition, bucket, encoded
