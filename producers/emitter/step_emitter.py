"""Reports an agent's steps without ever making it wait: batches them into frames, publishes them, counts what is lost.

>>> from springback import MemoryPublisher, StepEmitter
>>> publisher = MemoryPublisher()
>>> with StepEmitter(publisher, producer="robot-7") as emitter:
...     episode = emitter.begin_episode(episode="12", family="transportation", stress=0.4)
...     episode.step(progress=0.5, mode="navigate", travel=0.25)
...     episode.step(progress=1.0, mode="manipulate", planning_s=0.35)
...     episode.end("success")
>>> emitter.report.steps_sent, publisher.frames[0].ends[0].outcome
(2, 'success')

Steps that several episodes take together, those of a vector environment say, are frames of their own
(`StepEmitter.step_together`).
"""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from types import TracebackType
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from springback.producers.contract.frame import MAX_IDENTIFIER, EpisodeEnd, EpisodeHeader, StepColumn
from springback.producers.emitter.ending_signals import close_at_end, need_not_close
from springback.producers.emitter.frame_sender import EmitterReport, FrameSender
from springback.producers.emitter.publishers import FramePublisher
from springback.producers.emitter.reports import ReportedBatch, ReportedEnd, ReportedStep
from springback.producers.emitter.session_names import SessionNames
from springback.producers.emitter.signal_checks import (
    checked_columns,
    checked_flag,
    checked_header,
    checked_magnitude,
    checked_navigation,
    checked_number,
    checked_outcome,
    checked_signals,
    checked_step,
    checked_steps,
    checked_text,
    rows_of,
)
from springback.producers.errors import EmitterStateError, SignalError

log = logging.getLogger(__name__)

MOST_TOGETHER = 1024
"""Steps in one frame: with a header for each of them it stays well within what the topic of steps takes."""

EXIT_TIMEOUT_S = 2.0


class EndTogether(NamedTuple):
    """An end among steps that were taken together.

    Attributes:
        place: which of the episodes ends, counted from 0.
        outcome: success, failure, timeout or aborted.
        navigation: a `NavigationOutcome` or a mapping of its fields.
        realised_magnitude: the size of the perturbation as it really was; None where that is not known.
    """

    place: int
    outcome: str
    navigation: Any = None
    realised_magnitude: float | None = None


class EpisodeHandle:
    """An episode that is running; made by `StepEmitter.begin_episode`."""

    def __init__(self, emitter: StepEmitter, header: EpisodeHeader) -> None:
        self.header = header
        self._emitter = emitter
        self._next_step = 0

    def step(self, *, progress: float, step: int | None = None, time_s: float | None = None, **signals: Any) -> None:
        """Reports one decision cycle. Never waits; when the buffer is full the step is dropped and counted.

        Args:
            progress: task progress after the step, in [0, 1].
            step: its number; one more than the last by default, from 0.
            time_s: its instant, s UTC epoch; now by default.
            **signals: the other columns of `columns.STEP_COLUMNS`, such as `mode`, `planning_s` or `retries`; None is
                left out. Ranges are checked by the worker, which rejects the row and counts it.

        Raises:
            SignalError: a signal is not known or has the wrong type.
            EmitterStateError: the episode or the emitter is at its end, or belongs to another process.
        """
        plain = checked_signals(signals)
        plain["progress"] = checked_number("progress", progress)
        plain["time_s"] = checked_number("time_s", self._emitter.now_s() if time_s is None else time_s)
        number = None if step is None else checked_step(step)
        self._emitter._add_step(self, number, plain)

    def end(
        self,
        outcome: str,
        navigation: Any = None,
        time_s: float | None = None,
        *,
        realised_magnitude: float | None = None,
        extended: bool = False,
    ) -> None:
        """Ends the episode, and has everything published at once.

        Args:
            outcome: success, failure, timeout or aborted.
            navigation: a `NavigationOutcome` or a mapping of its fields.
            time_s: the instant, s UTC epoch; now by default.
            realised_magnitude: the size of the perturbation as it really was, where that is known: it stands in place
                of the `magnitude` that the header announced.
            extended: whether work was added while it ran.

        Raises:
            SignalError: the outcome or a field is not known or has the wrong type.
            EmitterStateError: the episode or the emitter is at its end, or belongs to another process.
        """
        instant = checked_number("time_s", self._emitter.now_s() if time_s is None else time_s)
        end = ReportedEnd(
            self.header,
            checked_outcome(outcome),
            instant,
            checked_navigation(navigation),
            checked_magnitude(realised_magnitude),
            checked_flag("extended", extended),
        )
        self._emitter._add_end(self, end)

    def abort(self, time_s: float | None = None) -> None:
        """Ends the episode as aborted, unless it has ended already, by the emitter's close for example.

        In a forked child it does nothing, so clean-up code may call it at any time.
        """
        if self._emitter._runs(self):
            self.end("aborted", time_s=time_s)


class StepEmitter:
    """Collects the steps of one producer and publishes them as frames from a thread of its own.

    A frame is published when `max_steps` steps wait, when the oldest has waited for `linger_s`, or at an episode's
    end. A frame is kept until the publisher has acknowledged it, and published again when it failed, in order. Use it
    as a context manager; episodes that are open at the close end as aborted.

    Args:
        publisher: where the frames go; closed with the emitter.
        producer: id of this producer, the Kafka key: one robot, or one process with all its environments.
        session: id of this start of the process; the start time and eight random hex digits by default.
        max_steps: steps per frame at most.
        linger_s: how long a step waits for others, s.
        buffer_steps: steps held in memory at most, while they wait or are on their way.
        clock: gives the current time, s UTC epoch, where a call leaves it out. A simulated clock is welcome.
        spool: a folder where steps are kept while Kafka is away, over the end of this process too: see
            `SpooledPublisher`, which has the bounds. Each emitter needs a folder of its own.

    Raises:
        SignalError: the producer's or the session's id is no text, empty or too long.
        SpoolInUseError: another emitter that runs has the spool.
        ValueError: a bound is less than 1, or `linger_s` less than 0.
    """

    def __init__(
        self,
        publisher: FramePublisher,
        *,
        producer: str,
        session: str | None = None,
        max_steps: int = 64,
        linger_s: float = 0.25,
        buffer_steps: int = 100_000,
        clock: Callable[[], float] = time.time,
        spool: str | os.PathLike[str] | None = None,
    ) -> None:
        if max_steps < 1 or buffer_steps < 1 or linger_s < 0:
            message = (
                f"max_steps and buffer_steps must be 1 or more, and linger_s 0 or more; "
                f"got {max_steps}, {buffer_steps} and {linger_s}"
            )
            raise ValueError(message)
        self.producer = _checked_identifier("producer", producer)
        self.session = new_session() if session is None else _checked_identifier("session", session)
        self.now_s = clock
        self._sender = FrameSender(
            publisher if spool is None else _spooled(publisher, spool),
            producer=self.producer,
            session=self.session,
            max_steps=max_steps,
            linger_s=linger_s,
            buffer_steps=buffer_steps,
        )
        self._lock = threading.Lock()
        self._open: set[EpisodeHandle] = set()
        self._open_ids: set[tuple[str, str]] = set()
        self._names = SessionNames()
        self._told_again = False
        self._closed = self._process_ends = False
        self._close_is_over = threading.Event()
        self._pid = os.getpid()
        close_at_end(self._close_at_end)
        atexit.register(self.close, EXIT_TIMEOUT_S)

    def begin_episode(
        self,
        agent: str | None = None,
        *,
        family: str,
        episode: str | None = None,
        may_repeat: bool = False,
        **traits: Any,
    ) -> EpisodeHandle:
        """Begins an episode.

        Args:
            agent: id of the agent, the producer's by default.
            family: the task family.
            episode: id of the episode, its own within agent and session; by default the episodes of an agent are
                numbered from 0. One that the agent has had in this session gets a number behind it, `12#1`, since its
                steps would pass for repetitions, and the id stands as its `task` unless that is given.
            may_repeat: whether the id is that of a task, which is taken again and again: then it gets its number beside
                an episode that is open too, and nothing is logged.
            **traits: the other fields of `EpisodeHeader`, such as `task`, `method`, `reference` or `stress`.

        Raises:
            SignalError: a field is not known, has the wrong type or is out of range.
            EmitterStateError: the agent has an episode of this id open and it may not repeat, or the emitter is closed,
                or belongs to another process.
        """
        name = self.producer if agent is None else agent
        fields = {"agent": name, "episode": "0" if episode is None else episode, "family": family, **traits}
        header = checked_header(fields)
        self._check_process()
        with self._lock:
            self._check_open()
            if episode is None:
                header = msgspec.structs.replace(header, episode=self._names.numbered(header.agent))
            wanted, key = header.episode, (header.agent, header.episode)
            if key in self._open_ids and not may_repeat:
                message = (
                    f"episode {header.episode} of {header.agent} is open already: end it first, or give this one an id "
                    "of its own (none: it is numbered), or its agent"
                )
                raise EmitterStateError(message)
            if episode is not None and (may_repeat or self._names.known(*key)):
                header = _named(header, self._names.unused(*key))
                key = header.agent, header.episode
            again = header.episode != wanted and not may_repeat
            self._names.begun(*key, given=episode is not None)
            told, self._told_again = self._told_again, self._told_again or again
            handle = EpisodeHandle(self, header)
            self._open.add(handle)
            self._open_ids.add(key)
        if again and not told:
            log.warning(
                "episode %s of %s has been in this session before, and is called %s; give each run an id of its own, "
                "and say in `task` what they have in common (said once)", wanted, *key,
            )  # fmt: skip
        return handle

    def lend_agent(self, wanted: str, borrower: object) -> str:
        """An agent's id for a part of the program that was told none, such as the wrapper of one of many environments.

        Args:
            wanted: the id, which `borrower` gets unless another one has it: then it gets `wanted#2`, and so on.
            borrower: who asks. The id is free again after `return_agents`, or when the borrower is no more.
        """
        with self._lock:
            return self._names.lend_agent(wanted, borrower)

    def return_agents(self, borrower: object) -> None:
        """Takes back the agents' ids that `lend_agent` has given to this borrower."""
        with self._lock:
            self._names.return_agents(borrower)

    def step_together(
        self,
        episodes: Sequence[EpisodeHandle],
        steps: npt.NDArray[np.int64],
        signals: Mapping[str, Any],
        ends: Sequence[EndTogether] = (),
        time_s: float | None = None,
    ) -> None:
        """Reports one decision cycle of several episodes, of a vector environment say, as one frame that goes at once.

        More than `MOST_TOGETHER` episodes make several frames.

        Args:
            episodes: each of them once.
            steps: the number of each one's step. They do not move on what `EpisodeHandle.step` counts by itself.
            signals: `progress` and other columns, see `signal_checks.checked_columns`.
            ends: which of the episodes end with this step.
            time_s: the instant of all, s UTC epoch; now by default.

        Raises:
            SignalError: a signal or an outcome is not known, or has the wrong type or shape.
            EmitterStateError: an episode or the emitter is at its end, or belongs to another process.
        """
        instant = checked_number("time_s", self.now_s() if time_s is None else time_s)
        batches = batches_together([handle.header for handle in episodes], steps, signals, ends, instant)
        self._check_process()
        with self._lock:
            self._check_open()
            if not self._open.issuperset(episodes):
                for handle in episodes:
                    self._check_running(handle)
            self._let_go([episodes[end.place] for end in ends])
            for batch in batches:
                self._sender.add_batch(batch)

    @property
    def report(self) -> EmitterReport:
        """What became of everything that was reported so far."""
        return self._sender.report

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Has everything published now; whether all of it was acknowledged within `timeout_s`."""
        self._check_process()
        return self._sender.flush(timeout_s)

    def close(self, timeout_s: float = 5.0) -> None:
        """Ends open episodes as aborted, flushes for at most `timeout_s`, and closes the publisher.

        A second time, or in a forked child, it does nothing. What could not be delivered is counted as dropped.
        """
        if os.getpid() != self._pid:
            return
        with self._lock:
            closed, self._closed = self._closed, True
            left_open, self._open = self._open, set()
        if closed:
            self._close_is_over.wait(timeout_s)  # another thread may be at it: the process must not end before it
            return
        try:
            for handle in left_open:
                self._sender.add(ReportedEnd(handle.header, "aborted", self.now_s()))
        finally:  # the clock of a simulator that is closed, say, cannot be read any more
            try:
                self._sender.close(timeout_s)
            finally:
                self._close_is_over.set()
                atexit.unregister(self.close)
                need_not_close(self._close_at_end)

    def __enter__(self) -> StepEmitter:
        """The emitter itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes; episodes that an exception has left open end as aborted."""
        self.close()

    def _close_at_end(self, timeout_s: float) -> None:
        self._process_ends = True
        self.close(timeout_s)

    def _add_step(self, handle: EpisodeHandle, step: int | None, signals: dict[str, Any]) -> None:
        self._check_process()
        with self._lock:
            self._check_running(handle)
            number = handle._next_step if step is None else step
            handle._next_step = number + 1
            self._sender.add(ReportedStep(handle.header, number, signals))

    def _add_end(self, handle: EpisodeHandle, end: ReportedEnd) -> None:
        self._check_process()
        with self._lock:
            self._check_running(handle)
            self._let_go([handle])
            self._sender.add(end)

    def _let_go(self, ended: Sequence[EpisodeHandle]) -> None:
        self._open.difference_update(ended)
        self._open_ids.difference_update([(handle.header.agent, handle.header.episode) for handle in ended])

    def _runs(self, handle: EpisodeHandle) -> bool:
        return os.getpid() == self._pid and handle in self._open

    def _check_process(self) -> None:
        # Before any lock: in a forked child it may be held for ever, and the sender's thread is not there.
        if os.getpid() != self._pid:
            message = f"this emitter belongs to process {self._pid}; make one of its own in process {os.getpid()}"
            raise EmitterStateError(message)

    def _check_open(self) -> None:
        if self._closed and not self._process_ends:
            message = f"the emitter of {self.producer} is closed; make another one"
            raise EmitterStateError(message)

    def _check_running(self, handle: EpisodeHandle) -> None:
        self._check_open()
        if handle not in self._open and not self._process_ends:
            message = f"episode {handle.header.episode} of {handle.header.agent} has ended; begin another one"
            raise EmitterStateError(message)


def _spooled(publisher: FramePublisher, folder: str | os.PathLike[str]) -> FramePublisher:
    from springback.producers.emitter.spooled_publisher import SpooledPublisher  # it is for POSIX systems alone

    return SpooledPublisher(publisher, folder)


def new_session() -> str:
    """An id for this start of the process: the time, UTC, and eight random hex digits."""
    # The processes of a trainer start in the same second: four digits would be the same in one of some hundred runs.
    return f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}-{secrets.token_hex(4)}"


def _named(header: EpisodeHeader, episode: str) -> EpisodeHeader:
    """The header under an id of its own: what it has in common with the episode of the wanted id is the task."""
    task = header.episode if header.task is None and episode != header.episode else header.task
    return msgspec.structs.replace(header, episode=episode, task=task)


def batches_together(
    headers: Sequence[EpisodeHeader],
    steps: npt.NDArray[np.int64],
    signals: Mapping[str, Any],
    ends: Sequence[EndTogether],
    time_s: float,
) -> list[ReportedBatch]:
    """The batches of these steps, one for each episode, and of these ends: one up to `MOST_TOGETHER` episodes.

    Raises:
        SignalError: a signal or an outcome is not known, or has the wrong type or shape.
    """
    columns = checked_columns(signals, len(headers))
    numbers = checked_steps(steps)
    if "progress" not in columns or numbers.shape != (len(headers),):
        message = (
            f"{len(headers)} episodes need a progress and a step number each; "
            f"got {', '.join(columns) or 'no signal'} and steps of shape {numbers.shape}"
        )
        raise SignalError(message)
    lost = [end.place for end in ends if not 0 <= end.place < len(headers)]
    if lost:
        message = f"the ends at {lost} are of none of {len(headers)} episodes; a place counts from 0"
        raise SignalError(message)
    columns["step"] = numbers
    columns["time_s"] = np.full(len(headers), time_s)
    checked_ends = [
        EpisodeEnd(
            episode=end.place,
            outcome=checked_outcome(end.outcome),
            time_s=time_s,
            navigation=checked_navigation(end.navigation),
            realised_magnitude=checked_magnitude(end.realised_magnitude),
        )
        for end in ends
    ]
    return [
        _batch(headers[first : first + MOST_TOGETHER], columns, checked_ends, first)
        for first in range(0, len(headers), MOST_TOGETHER)
    ]


def _batch(
    headers: Sequence[EpisodeHeader], columns: Mapping[str, StepColumn], ends: Sequence[EpisodeEnd], first: int
) -> ReportedBatch:
    places = np.arange(len(headers))
    steps: dict[str, StepColumn] = {name: rows_of(column, places + first) for name, column in columns.items()}
    moved = [msgspec.structs.replace(end, episode=end.episode - first) for end in ends]
    own_ends = tuple(end for end in moved if 0 <= end.episode < len(headers))
    return ReportedBatch(tuple(headers), {"episode": places, **steps}, own_ends)


def _checked_identifier(name: str, value: object) -> str:
    text = checked_text(name, value)
    if not 0 < len(text) <= MAX_IDENTIFIER:
        message = f"{name} must have 1 to {MAX_IDENTIFIER} characters, got {len(text)}"
        raise SignalError(message)
    return text
