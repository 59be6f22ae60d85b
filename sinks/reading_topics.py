"""Which topics hold readings."""

from typing import NamedTuple, Self

from springback.stream_processors import topics


class ReadingTopics(NamedTuple):
    """The names of the topics that sinks read, and of the workers' input."""

    windows: str
    summaries: str
    statuses: str
    families: str
    dead_letters: str
    steps: str

    @classmethod
    def of_prefix(cls, prefix: str, *, judged: bool = False) -> Self:
        """The topics of an installation, whose workers read judged steps or steps as they come.

        >>> ReadingTopics.of_prefix("lab-").windows
        'lab-rebound-windows'
        >>> ReadingTopics.of_prefix("lab-", judged=True).steps
        'lab-judged-steps'
        """
        steps = topics.JUDGED_STEPS if judged else topics.STEPS
        names = (topics.WINDOWS, topics.SUMMARIES, topics.STATUS, topics.FAMILIES, topics.DEAD_LETTER, steps)
        return cls(*(topics.topic_name(name, prefix) for name in names))

    @property
    def read(self) -> tuple[str, ...]:
        """The topics that a sink runner reads: all but the workers' input."""
        return self.windows, self.summaries, self.statuses, self.families, self.dead_letters
