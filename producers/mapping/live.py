"""From the live messages of a bridge to frames on their way: the mapping, and an emitter for each agent's session.

All emitters share one publisher, and what is left out is logged once for each reason and counted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

import msgspec

from springback.producers.emitter.publishers import FramePublisher, OnDone
from springback.producers.emitter.reports import ReportedEnd, ReportedStep
from springback.producers.emitter.step_emitter import EpisodeHandle, StepEmitter, new_session
from springback.producers.mapping.assembler import NOTED, EpisodeAssembler, MappedReport, SessionClosed
from springback.producers.mapping.signal_mapping import SignalMapping, TimedMessage

log = logging.getLogger(__name__)


class SharedPublisher:
    """A publisher that several emitters share: closing one of them leaves it open.

    Args:
        publisher: the shared one.
    """

    def __init__(self, publisher: FramePublisher) -> None:
        self._publisher = publisher

    def publish(self, key: bytes, frame_bytes: bytes, on_done: OnDone) -> None:
        """Hands the frame on."""
        self._publisher.publish(key, frame_bytes, on_done)

    def flush(self, timeout_s: float) -> None:
        """Sends what is held back."""
        self._publisher.flush(timeout_s)

    def close(self) -> None:
        """Leaves the publisher open, since other emitters go on."""


class MappedEmitters:
    """Passes reports on to the emitter of their session, which is made at the first step and closed with the session.

    Args:
        publisher: where all frames go. It stays open.
        close_timeout_s: how long the close of one session may take, s.

    Attributes:
        steps_dropped: steps of closed sessions that found no room or could not be sent in time.
    """

    def __init__(self, publisher: FramePublisher, *, close_timeout_s: float = 5.0) -> None:
        self.steps_dropped = 0
        self._publisher = SharedPublisher(publisher)
        self._close_timeout_s = close_timeout_s
        self._emitters: dict[tuple[str, str], StepEmitter] = {}
        self._episodes: dict[tuple[str, str], EpisodeHandle] = {}

    @property
    def steps_buffered(self) -> int:
        """Steps of open sessions that wait, or are on their way."""
        return sum(emitter.report.steps_buffered for emitter in self._emitters.values())

    def report(self, reports: Iterable[MappedReport]) -> None:
        """Passes these on, in order."""
        for producer, session, report in reports:
            key = (producer, session)
            if isinstance(report, SessionClosed):
                self._close(key)
            elif isinstance(report, ReportedStep):
                episode = self._episodes.get(key) or self._begun(key, report)
                episode.step(step=report.step, **report.signals)
            elif isinstance(report, ReportedEnd) and key in self._episodes:
                self._episodes.pop(key).end(
                    report.outcome,
                    navigation=report.navigation,
                    time_s=report.time_s,
                    realised_magnitude=report.realised_magnitude,
                    extended=report.extended,
                )

    def close(self) -> None:
        """Closes all sessions; what is open in them ends as aborted."""
        for key in list(self._emitters):
            self._close(key)

    def _begun(self, key: tuple[str, str], report: ReportedStep) -> EpisodeHandle:
        if key not in self._emitters:
            producer, session = key
            self._emitters[key] = StepEmitter(self._publisher, producer=producer, session=session)
        handle = self._emitters[key].begin_episode(**msgspec.structs.asdict(report.header))
        self._episodes[key] = handle
        return handle

    def _close(self, key: tuple[str, str]) -> None:
        self._episodes.pop(key, None)
        emitter = self._emitters.pop(key, None)
        if emitter is not None:
            emitter.close(self._close_timeout_s)
            self.steps_dropped += emitter.report.steps_dropped


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
        """Takes a message."""
        self._emitters.report(self._assembler.add(message))
        self._tell()

    def advance(self, now_s: float) -> None:
        """Lets time pass without a message: it is `now_s` by the clock of the messages' arrival."""
        self._emitters.report(self._assembler.advance(now_s))
        self._tell()

    def close(self) -> None:
        """Ends open episodes as the mapping says, and sends everything."""
        self._emitters.report(self._assembler.finish())
        self._emitters.close()
        self._tell()

    def __str__(self) -> str:
        """What came in, and what became of it, in a line."""
        report, dropped = self._assembler.report, self._emitters.steps_dropped
        said = f"{report.messages} messages became {report.steps} steps and {report.ends} ends of episodes"
        if dropped:
            said += f"; {dropped} steps could not be delivered"
        for what, noted in (("left out", False), ("noted", True)):
            told = [(reason, count) for reason, count in report.left_out.most_common() if (reason in NOTED) == noted]
            if told:
                said += f"; {what}: " + ", ".join(f"{count} {reason}" for reason, count in told)
        return said

    def _tell(self) -> None:
        """Logs the first example of each reason for which something was left out; from then on they are counted."""
        report = self._assembler.report
        if len(report.examples) > len(self._told):
            for reason in report.examples.keys() - self._told:
                what = "noted" if reason.partition(" of ")[0] in NOTED else "left out"
                log.warning("%s (%s): %s; further ones are only counted", what, reason, report.examples[reason])
            self._told.update(report.examples)
