"""The contract of a sink: something that readings are shown or kept in."""

from typing import NamedTuple, Protocol

from springback.stream_processors.resilience.readings import Reading


class DeadLetter(NamedTuple):
    """A part of the input that could not be used.

    `reason` is a short code. `identity` is the same for every repetition of this dead letter.
    """

    reason: str
    identity: bytes


class Sink(Protocol):
    """What a `SinkRunner` writes to.

    Readings may come more than once and, over different topics, in any order: a sink drops what it has seen by the
    reading's `identity`, and takes the latest `AgentStatus` of an agent and the latest `FamilyReading` of a family.

    Each call may raise `SinkUnavailableError`, and is then made again later; whatever else it raises ends the runner.
    """

    @property
    def name(self) -> str:
        """What the sink is called in logs and metrics."""
        ...

    def write(self, reading: Reading) -> None:
        """Takes one reading in."""
        ...

    def write_dead_letter(self, letter: DeadLetter) -> None:
        """Takes in that something could not be used."""
        ...

    def flush(self) -> None:
        """Brings to where it belongs whatever was written so far."""
        ...

    def close(self) -> None:
        """Flushes, and lets go of files and connections."""
        ...


class RunnerObserver(Protocol):
    """Learns how the reading of the topics goes."""

    def unreadable(self, topic: str) -> None:
        """Takes in that a message in a topic of readings was none."""
        ...

    def retried(self, sink: str) -> None:
        """Takes in that a sink was unavailable and is tried again."""
        ...

    def caught_up(self) -> None:
        """Takes in that everything that was in the topics at the start has been written."""
        ...
