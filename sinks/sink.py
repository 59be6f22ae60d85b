"""The contract of a sink: something that readings are shown or kept in."""

from typing import Literal, NamedTuple, Protocol, runtime_checkable

from springback.stream_processors.resilience.readings import Reading


class DeadLetter(NamedTuple):
    """A part of the input that could not be used.

    `reason` is a short code. `identity` is the same for every repetition of this dead letter. `sent_s` is when the
    broker got it, in seconds since 1970; None where that is not known.
    """

    reason: str
    identity: bytes
    sent_s: float | None = None


Earlier = Literal["none", "gone", "left"]
"""What was before the oldest reading: nothing, what is no longer in the topic, or what is there and was left unread."""


class TopicReach(NamedTuple):
    """From when on all of a topic's readings have been read.

    Attributes:
        topic: its name.
        since_s: when the broker got the oldest of them, in seconds since 1970; None where none is there.
        earlier: what was before that.
    """

    topic: str
    since_s: float | None
    earlier: Earlier


class ReadingBack(NamedTuple):
    """How the reading of what was there at the start is going.

    Attributes:
        read: messages of it that were read; those that compaction has taken count as read.
        total: messages of it.
        reaches: how far back it goes, by topic; of a topic of which nothing was read yet, none.
    """

    read: int = 0
    total: int = 0
    reaches: tuple[TopicReach, ...] = ()

    @property
    def share(self) -> float:
        """How much of it was read, from 0 to 1; all where there is nothing.

        >>> ReadingBack(1, 4).share, ReadingBack().share
        (0.25, 1.0)
        """
        return min(1.0, self.read / self.total) if self.total else 1.0

    @property
    def since_s(self) -> float | None:
        """When the broker got the oldest reading of any topic that is read completely from there on; None without."""
        return min((reach.since_s for reach in self.reaches if reach.since_s is not None), default=None)


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


@runtime_checkable
class TimedSink(Sink, Protocol):
    """A sink that wants to know when the broker got a reading; it is written to by `write_at` alone."""

    def write_at(self, reading: Reading, sent_s: float) -> None:
        """Takes one reading in, which the broker got at a time (seconds since 1970, by the broker's clock)."""
        ...


class RunnerObserver(Protocol):
    """Learns how the reading of the topics goes."""

    def reading_back(self, progress: ReadingBack) -> None:
        """Takes in how far what was in the topics at the start has been read; again until it is caught up."""
        ...

    def unreadable(self, topic: str) -> None:
        """Takes in that a message in a topic of readings was none."""
        ...

    def retried(self, sink: str) -> None:
        """Takes in that a sink was unavailable and is tried again."""
        ...

    def caught_up(self) -> None:
        """Takes in that everything that was in the topics at the start has been written."""
        ...
