"""Live messages of a bridge, through its mapping, to steps on their way; and the tale of what became of them."""

import logging

from springback.producers.frame_publisher import FramePublisher
from springback.producers.mapped_emitters import MappedEmitters
from springback.producers.mapped_episodes import EpisodeAssembler
from springback.producers.mapping_parts.timed_message import TimedMessage
from springback.producers.signal_mapping import SignalMapping
from springback.producers.step_emitter import new_session

log = logging.getLogger(__name__)


class MappedSteps:
    """The way from a message to the publisher.

    Args:
        mapping: what to make of messages.
        publisher: where frames go; it stays open.
    """

    def __init__(self, mapping: SignalMapping, publisher: FramePublisher) -> None:
        self._assembler = EpisodeAssembler(mapping, session=new_session())
        self._emitters = MappedEmitters(publisher)
        self._told: set[str] = set()

    @property
    def steps_buffered(self) -> int:
        """Steps that wait, or are on their way."""
        return self._emitters.steps_buffered

    def add(self, message: TimedMessage) -> None:
        """Take a message."""
        self._emitters.report(self._assembler.add(message))
        self._tell()

    def advance(self, now_s: float) -> None:
        """Tell that it is so late, by the clock of the messages' arrival."""
        self._emitters.report(self._assembler.advance(now_s))
        self._tell()

    def close(self) -> None:
        """The end: open episodes end as the mapping says, and everything is sent."""
        self._emitters.report(self._assembler.finish())
        self._emitters.close()
        self._tell()

    def __str__(self) -> str:
        """What came in, and what became of it."""
        report, dropped = self._assembler.report, self._emitters.steps_dropped
        said = f"{report.messages} messages became {report.steps} steps and {report.ends} ends of episodes"
        if dropped:
            said += f"; {dropped} steps could not be delivered"
        if report.left_out:
            said += "; left out: " + ", ".join(f"{count} {reason}" for reason, count in report.left_out.most_common())
        return said

    def _tell(self) -> None:
        """One word in the log on each reason for which something was left out: they are counted from then on."""
        report = self._assembler.report
        if len(report.examples) > len(self._told):
            for reason in report.examples.keys() - self._told:
                log.warning("left out (%s): %s; such are counted from now on", reason, report.examples[reason])
            self._told.update(report.examples)
