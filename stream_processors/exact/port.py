"""The two sides of the exact protocol: what a stage computes (`StageReducer`), and what it needs of the stream engine.

`StagePort` is the only seam between the protocol and Faust: everything in this folder runs without it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

S = TypeVar("S")


class StageEvent(NamedTuple):
    """One message of a stage's input. `time_s` is the broker's time of it, in seconds since the epoch."""

    topic: str
    partition: int
    offset: int
    key: bytes
    value: bytes
    time_s: float


class Output(NamedTuple):
    """One message that a stage sends. `topic` is without the prefix; a value of None deletes the key."""

    topic: str
    key: bytes
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


class StageReducer(Protocol[S]):
    """A stage: events and the states of their buckets in, outputs out. States are changed in place.

    Outputs must be a function of the state and the events: the same events may come again after a crash, and then
    their outputs must have the same identity.
    """

    def blank(self) -> S:
        """The state of a bucket that nothing has been applied to."""

    def encode(self, state: S) -> bytes:
        """The state as bytes."""

    def decode(self, data: bytes) -> S:
        """The state that the bytes hold.

        Raises:
            StateFormatError: this version cannot read it.
        """

    def apply(self, events: Sequence[StageEvent], states: Sequence[S]) -> list[Output]:
        """Applies a batch: `states[i]` is the state of the bucket of `events[i]`, shared where buckets are the same."""

    def tick(self, state: S, now_s: float) -> list[Output] | None:
        """What is due by `now_s` (broker's time), or None if nothing is and the state has not changed."""

    def reject(self, event: StageEvent, error: Exception) -> list[Output]:
        """The outputs that stand for an event that `apply` fails on: the event will be passed over."""


class Arrival(NamedTuple):
    """A message as the consumer handed it over. `generation` is the group's at the time that it was read."""

    generation: int
    event: StageEvent


class StagePort(Protocol):
    """The stream engine, as one stage sees it. Partitions are those of the stage's input topic."""

    def generation(self) -> int:
        """The consumer group's generation just now."""

    def stable(self) -> bool:
        """Whether no rebalance is on, the tables are recovered, and the partitions can be nobody else's."""

    def assigned(self) -> set[int]:
        """The partitions that this worker holds."""

    async def seek(self, partition: int, offset: int) -> None:
        """Reads the partition again from the offset."""

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

    async def holds(self, partition: int, offset: int) -> bool | None:
        """Whether the broker has a message at this very offset; None where it brings nothing, be it that it is busy.

        Raises:
            TransientBrokerError: the broker did not say.
        """

    async def send(self, outputs: Sequence[Output]) -> None:
        """Sends the outputs and waits until the broker has them.

        Raises:
            TransientBrokerError: it has not taken them all.
        """

    async def written(self) -> None:
        """Waits until the changelog has all that was put into the table.

        Raises:
            StateWriteError: it has not taken it all: the table is ahead of its changelog, and the worker must end.
        """
