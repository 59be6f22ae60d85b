"""A sink that keeps readings in memory: for tests, notebooks and short runs. It grows with every new reading."""

from springback.sinks.sink import DeadLetter
from springback.stream_processors.resilience.readings import (
    AgentStatus,
    EpisodeBegun,
    EpisodeKey,
    EpisodeSummary,
    FamilyReading,
    Reading,
    WindowReading,
)


class MemorySink:
    """What was written, each once, in the order of arrival.

    Of an agent's statuses and a family's readings the latest alone.
    """

    def __init__(self) -> None:
        self._windows: dict[tuple[EpisodeKey, int, bool, int], WindowReading] = {}
        self._begun: dict[tuple[EpisodeKey, str, int], EpisodeBegun] = {}
        self._summaries: dict[EpisodeKey, EpisodeSummary] = {}
        self._dead_letters: dict[bytes, DeadLetter] = {}
        self.statuses: dict[str, AgentStatus] = {}
        self.families: dict[tuple[str, str, str], FamilyReading] = {}

    @property
    def name(self) -> str:
        """What the sink is called."""
        return "memory"

    @property
    def windows(self) -> list[WindowReading]:
        """The distinct window readings, opened and closed."""
        return list(self._windows.values())

    @property
    def closed_windows(self) -> list[WindowReading]:
        """The distinct windows that have closed."""
        return [window for window in self._windows.values() if window.state != "open"]

    @property
    def begun(self) -> list[EpisodeBegun]:
        """The distinct beginnings of episodes."""
        return list(self._begun.values())

    @property
    def summaries(self) -> list[EpisodeSummary]:
        """The summaries, one an episode: the one that holds."""
        return list(self._summaries.values())

    @property
    def dead_letters(self) -> list[DeadLetter]:
        """The distinct dead letters."""
        return list(self._dead_letters.values())

    def write(self, reading: Reading) -> None:
        """Keeps the reading, unless it is a repetition."""
        match reading:
            case WindowReading():
                self._windows.setdefault(reading.identity, reading)
            case EpisodeBegun():
                self._begun.setdefault(reading.identity, reading)
            case EpisodeSummary():
                told = self._summaries.get(reading.key)
                if told is None or told.revision < reading.revision:
                    self._summaries[reading.key] = reading
            case AgentStatus():
                held = self.statuses.get(reading.agent)
                if held is None or held.seen_s <= reading.seen_s:
                    self.statuses[reading.agent] = reading
            case FamilyReading():
                known = self.families.get(reading.identity)
                if known is None or known.sequence < reading.sequence:
                    self.families[reading.identity] = reading

    def write_dead_letter(self, letter: DeadLetter) -> None:
        """Keeps the dead letter, unless it is a repetition."""
        self._dead_letters.setdefault(letter.identity, letter)

    def flush(self) -> None:
        """Does nothing: what was written is there."""

    def close(self) -> None:
        """Does nothing: what was written stays readable."""
