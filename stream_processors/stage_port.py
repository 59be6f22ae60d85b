"""What a stage needs of the stream engine: the only seam between the exact protocol and Faust."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from springback.stream_processors.stage_reducer import Output, StageEvent


class Arrival(NamedTuple):
    """A message as the consumer handed it over. `generation` is the group's at the time that it was read."""

    generation: int
    event: StageEvent


class StagePort(Protocol):
    """The stream engine, as one stage sees it. Partitions are those of the stage's input topic."""

    def generation(self) -> int:
        """The consumer group's generation just now."""

    def stable(self) -> bool:
        """Whether no rebalance is on and the tables are recovered."""

    def assigned(self) -> set[int]:
        """The partitions that this worker holds."""

    async def seek(self, partition: int, offset: int) -> None:
        """Read the partition again from the offset."""

    async def ends(self, partitions: Iterable[int]) -> Mapping[int, int]:
        """The offsets that the partitions' next messages will get.

        Raises:
            TransientBrokerError: the broker did not say.
        """

    async def first_offset(self, partition: int, offset: int) -> int:
        """The first offset at or after the one given that the broker has a message at, or else the partition's end.

        Raises:
            TransientBrokerError: the broker did not say.
        """

    async def holds(self, partition: int, offset: int) -> bool:
        """Whether the broker has a message at this very offset.

        Raises:
            TransientBrokerError: the broker did not say.
        """

    async def send(self, outputs: Sequence[Output]) -> None:
        """Send the outputs and wait until the broker has them.

        Raises:
            TransientBrokerError: it has not taken them all.
        """

    async def written(self) -> None:
        """Wait until the changelog has all that was put into the table.

        Raises:
            StateWriteError: it has not taken it all: the table is ahead of its changelog, and the worker must end.
        """
