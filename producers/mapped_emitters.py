"""Sends what a mapping makes of live messages: an emitter for each agent's session, in front of one publisher."""

from collections.abc import Iterable

import msgspec
from springback.producers.frame_building import ReportedEnd, ReportedStep
from springback.producers.frame_publisher import FramePublisher, OnDone
from springback.producers.mapped_episodes import MappedReport, SessionClosed
from springback.producers.step_emitter import EpisodeHandle, StepEmitter


class SharedPublisher:
    """A publisher that several emitters share: their closes leave it open.

    Args:
        publisher: the one that is shared.
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
        """Only has everything sent that was handed over: others go on."""


class MappedEmitters:
    """Passes reports on to the emitter of their session, made when it is first needed and closed with the session.

    Args:
        publisher: where all frames go. It stays open.
        close_timeout_s: how long the close of one session may take, s.

    Attributes:
        steps_dropped: steps of sessions that are closed, which found no room or could not be sent in time.
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
        """Pass these on, in order."""
        for producer, session, report in reports:
            key = (producer, session)
            if isinstance(report, SessionClosed):
                self._close(key)
            elif isinstance(report, ReportedStep):
                episode = self._episodes.get(key) or self._begun(key, report)
                episode.step(step=report.step, **report.signals)
            elif isinstance(report, ReportedEnd) and key in self._episodes:
                self._episodes.pop(key).end(report.outcome, navigation=report.navigation, time_s=report.time_s)

    def close(self) -> None:
        """Close all sessions; what is open in them ends as aborted."""
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
