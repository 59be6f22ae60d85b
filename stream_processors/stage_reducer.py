"""What a stage of the stream computes, apart from how its input is delivered and its state kept."""

from collections.abc import Sequence
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
        """Apply a batch: `states[i]` is the state of the bucket of `events[i]`, shared where buckets are the same."""

    def tick(self, state: S, now_s: float) -> list[Output] | None:
        """What is due by `now_s` (broker's time), or None if nothing is and the state has not changed."""

    def reject(self, event: StageEvent, error: Exception) -> list[Output]:
        """What to send for an event that `apply` fails on: it will be passed over."""
