"""An agent process of a faulted run: plays its share of the workload through a real emitter until told to finish.

Started as a program with a plan. It keeps a journal, written with one `write` a line, so that a kill -9 loses nothing
of it: each frame as it first came to the publisher, and, after an orderly end, what was reported and what became of it.
"""

import hashlib
import os
import random
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from springback.producers.contract.codec import decode_frame
from springback.producers.emitter.frame_sender import EmitterReport
from springback.producers.emitter.kafka_publisher import KafkaPublisher
from springback.producers.emitter.publishers import FramePublisher, OnDone
from springback.producers.emitter.reports import NO_SPOOL, SpoolReport
from springback.producers.emitter.spooled_publisher import SpooledPublisher
from springback.producers.emitter.step_emitter import EpisodeHandle, StepEmitter
from tests.faults.fault_workload import PlayedEpisode, episodes_of

SHAKE = "shake"
"""The file that is there while the wire is to double frames and to change their order."""
FINISH = "finish"
"""The file that tells all emitters to end their open episodes and close."""
_CLOSE_S = 120.0
_REMEMBERED = 20


class EmitterPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What one emitter process does.

    Attributes:
        bootstrap: HOST:PORT of the broker.
        topic: of steps.
        producer: its id.
        agents: the ids of its agents; an episode of each is open at any time.
        seed: of the workload.
        start: how often this producer was started before: the episodes go on elsewhere in the workload.
        steps_per_s: steps of all its agents together.
        directory: where the files are that tell it what to do.
        journal: the file that it writes.
        spool: the folder of its spool; empty where it has none.
    """

    bootstrap: str
    topic: str
    producer: str
    agents: tuple[str, ...]
    seed: int
    start: int
    steps_per_s: float
    directory: str
    journal: str
    spool: str = ""


class JournalFrame(msgspec.Struct, frozen=True, kw_only=True, tag="frame"):
    """A frame that the emitter gave away for the first time."""

    digest: str
    session: str
    steps: int
    ends: int


class JournalTaken(msgspec.Struct, frozen=True, kw_only=True, tag="taken"):
    """A frame that counts as taken: Kafka has it, or the spool."""

    digest: str


class JournalHeld(msgspec.Struct, frozen=True, kw_only=True, tag="held"):
    """A frame that the shaken wire has let a younger one past."""

    digest: str


class JournalClosed(msgspec.Struct, frozen=True, kw_only=True, tag="closed"):
    """An orderly end: what was reported, and what the emitter says became of it."""

    session: str
    steps: int
    ends: int
    steps_sent: int
    steps_dropped: int
    ends_dropped: int
    publish_errors: int


class JournalOpened(msgspec.Struct, frozen=True, kw_only=True, tag="opened"):
    """A start of the process."""

    session: str
    producer: str


JournalLine = JournalOpened | JournalFrame | JournalTaken | JournalHeld | JournalClosed


def read_journal(file: Path) -> list[JournalLine]:
    """The journal's lines; the last may be torn by a kill, and none be there of a process that was killed at once."""
    if not file.exists():
        return []
    lines = file.read_bytes().split(b"\n")
    return [msgspec.json.decode(line, type=JournalLine) for line in lines[:-1]]


def digest_of(frame_bytes: bytes) -> str:
    """What tells a frame from all others of a run: each has instants of its own."""
    return hashlib.blake2b(frame_bytes, digest_size=12).hexdigest()


class JournalingPublisher:
    """A publisher that notes each frame as it comes, and when it counts as taken.

    Args:
        inner: where the frames go.
        journal: a descriptor open for appending.
    """

    def __init__(self, inner: FramePublisher, journal: int) -> None:
        self._inner = inner
        self._journal = journal
        self._known: set[str] = set()

    @property
    def spool_report(self) -> SpoolReport:
        """What is in the spool, if there is one."""
        report: SpoolReport = getattr(self._inner, "spool_report", NO_SPOOL)
        return report

    def publish(self, key: bytes, frame_bytes: bytes, on_done: OnDone) -> None:
        """Notes the frame and passes it on."""
        digest = digest_of(frame_bytes)
        if digest not in self._known:
            self._known.add(digest)
            frame = decode_frame(frame_bytes)
            ends = len(frame.ends)
            write_line(
                self._journal, JournalFrame(digest=digest, session=frame.session, steps=frame.n_steps, ends=ends)
            )

        def done(error: Exception | None) -> None:
            if error is None:
                write_line(self._journal, JournalTaken(digest=digest))
            on_done(error)

        self._inner.publish(key, frame_bytes, done)

    def flush(self, timeout_s: float) -> None:
        """Passes it on."""
        self._inner.flush(timeout_s)

    def close(self) -> None:
        """Passes it on."""
        self._inner.close()


class ShakyWire:
    """A publisher that, while it is shaken, doubles frames and changes their order.

    Args:
        inner: where the frames go.
        journal: a descriptor open for appending.
        shaken: whether the wire is shaken just now.
        seed: of what happens to each frame.
    """

    def __init__(self, inner: FramePublisher, journal: int, shaken: Path, seed: int) -> None:
        self._inner = inner
        self._journal = journal
        self._shaken = shaken
        self._chance = random.Random(seed)
        self._older: deque[tuple[bytes, bytes]] = deque(maxlen=_REMEMBERED)
        self._held: tuple[bytes, bytes, OnDone] | None = None
        self._lock = threading.Lock()

    def publish(self, key: bytes, frame_bytes: bytes, on_done: OnDone) -> None:
        """Passes the frame on, perhaps twice, perhaps after the next one, perhaps with an older one behind it."""
        with self._lock:
            held, self._held = self._held, None
            again: list[tuple[bytes, bytes]] = []
            hold = False
            if self._shaken.exists():
                choice = self._chance.random()
                hold = choice < 0.2 and held is None
                if 0.2 <= choice < 0.5:
                    again = [(key, frame_bytes)]
                elif 0.5 <= choice < 0.7 and self._older:
                    again = [self._chance.choice(self._older)]
            self._older.append((key, frame_bytes))
            if hold:
                write_line(self._journal, JournalHeld(digest=digest_of(frame_bytes)))
                self._held = key, frame_bytes, on_done
        if not hold:
            self._inner.publish(key, frame_bytes, on_done)
        for double in again:
            self._inner.publish(*double, lambda _: None)
        if held is not None:
            self._inner.publish(*held)

    def release(self) -> None:
        """Lets go of a frame that waits for a younger one."""
        with self._lock:
            held, self._held = self._held, None
        if held is not None:
            self._inner.publish(*held)

    def flush(self, timeout_s: float) -> None:
        """Passes it on."""
        self.release()
        self._inner.flush(timeout_s)

    def close(self) -> None:
        """Passes it on."""
        self.release()
        self._inner.close()


def write_line(journal: int, line: JournalLine) -> None:
    """Appends a line in one write."""
    os.write(journal, msgspec.json.encode(line) + b"\n")


class PlayingAgent:
    """One agent, which goes through its episodes step by step."""

    def __init__(self, emitter: StepEmitter, name: str, episodes: Iterator[PlayedEpisode]) -> None:
        self._emitter = emitter
        self._name = name
        self._episodes = episodes
        self._handle: EpisodeHandle | None = None
        self._episode: PlayedEpisode | None = None
        self._place = 0
        self.steps = self.ends = 0

    @property
    def between(self) -> bool:
        """Whether no episode is open."""
        return self._handle is None

    def play(self) -> None:
        """Reports the next step, and the end behind the last one."""
        if self._handle is None or self._episode is None:
            self._episode = next(self._episodes)
            self._handle = self._emitter.begin_episode(self._name, family=self._episode.family, **self._episode.traits)
            self._place = 0
        row: dict[str, Any] = self._episode.rows[self._place]
        self._handle.step(**row)
        self.steps += 1
        self._place += 1
        if self._place == len(self._episode.rows):
            self._handle.end(self._episode.outcome, self._episode.navigation)
            self.ends += 1
            self._handle = None


def all_sent(report: EmitterReport) -> bool:
    """Whether Kafka has all that was reported, and what earlier processes have left in the spool."""
    return not (report.steps_buffered or report.steps_spooled or report.steps_left)


def play(plan: EmitterPlan) -> None:
    """Plays until the file is there that says to finish, then to the end of each open episode."""
    directory = Path(plan.directory)
    journal = os.open(plan.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    publisher = KafkaPublisher(plan.bootstrap, plan.topic)
    wire = ShakyWire(publisher, journal, directory / SHAKE, plan.seed + plan.start)
    way = SpooledPublisher(wire, plan.spool) if plan.spool else wire
    emitter = StepEmitter(JournalingPublisher(way, journal), producer=plan.producer)
    write_line(journal, JournalOpened(session=emitter.session, producer=plan.producer))
    starts = f"/{plan.start}" if plan.start else ""
    agents = [PlayingAgent(emitter, name, episodes_of(plan.seed, name + starts)) for name in plan.agents]
    pause_s = len(agents) / plan.steps_per_s
    due = time.monotonic()
    while not (finishing := (directory / FINISH).exists()) or not all(agent.between for agent in agents):
        for agent in agents:
            if not (finishing and agent.between):
                agent.play()
        if not (directory / SHAKE).exists():
            wire.release()
        due += 0.0 if finishing else pause_s
        time.sleep(max(0.0, due - time.monotonic()))
    until = time.monotonic() + _CLOSE_S
    while not all_sent(emitter.report) and time.monotonic() < until:
        emitter.flush(1.0)
    emitter.close(_CLOSE_S)
    report = emitter.report
    write_line(
        journal,
        JournalClosed(
            session=emitter.session,
            steps=sum(agent.steps for agent in agents),
            ends=sum(agent.ends for agent in agents),
            steps_sent=report.steps_sent,
            steps_dropped=report.steps_dropped,
            ends_dropped=report.ends_dropped,
            publish_errors=report.publish_errors,
        ),
    )


if __name__ == "__main__":
    play(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=EmitterPlan))
