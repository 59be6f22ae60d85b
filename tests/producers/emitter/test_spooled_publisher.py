"""An emitter with a spool: what Kafka does not take is on disk, goes in order later, and is counted in the end."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from springback.producers.emitter.frame_sender import EmitterReport
from springback.producers.emitter.publishers import MemoryPublisher, OnDone
from springback.producers.emitter.spool_log import SpooledFrame, _record
from springback.producers.emitter.spooled_publisher import SpooledPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.errors import FrameRefusedError, PublishError, SpoolInUseError
from tests.producers.emitter.emitter_waiting import until

AWAY = PublishError("Kafka is away")


class HeldBack(MemoryPublisher):
    """Acknowledges nothing before it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[OnDone] = []

    def publish(self, key: bytes, frame_bytes: bytes, on_done: OnDone) -> None:
        self.published.append((key, frame_bytes))
        self.waiting.append(on_done)

    def acknowledge(self, error: Exception | None = None) -> None:
        self.waiting.pop(0)(error)


def away() -> MemoryPublisher:
    publisher = MemoryPublisher()
    publisher.failure = AWAY
    return publisher


def steps_of(publisher: MemoryPublisher, session: str) -> list[int]:
    columns: list[Any] = [frame.steps["step"] for frame in publisher.frames if frame.session == session and frame.steps]
    return [step for column in columns for step in column.tolist()]


def frames_on_disk(folder: Path) -> int:
    return len(list(folder.glob("*.frames")))


def accounted(report: EmitterReport) -> int:
    return report.steps_sent + report.steps_dropped + report.steps_buffered + report.steps_spooled


def test_what_is_acknowledged_at_once_never_touches_the_disk(tmp_path: Path) -> None:
    publisher = MemoryPublisher()
    with StepEmitter(publisher, producer="r7", spool=tmp_path, session="s") as emitter:
        episode = emitter.begin_episode(family="f")
        for _ in range(300):
            episode.step(progress=0.5)
        assert emitter.flush(60.0)
        assert not frames_on_disk(tmp_path)
        assert emitter.report.steps_sent == 300
    assert steps_of(publisher, "s") == list(range(300))


def test_an_outage_is_kept_on_disk_and_goes_in_order_before_what_is_newer(tmp_path: Path) -> None:
    publisher = away()
    with StepEmitter(publisher, producer="r7", spool=tmp_path, session="s") as emitter:
        episode = emitter.begin_episode(family="f")
        for _ in range(500):
            episode.step(progress=0.5)
        until(lambda: emitter.report.steps_spooled == 500)
        report = emitter.report
        assert (report.steps_sent, report.steps_buffered, report.frames_sent) == (0, 0, 0)
        assert "Kafka is away" in str(report.last_error)
        publisher.failure = None
        for _ in range(500):
            episode.step(progress=0.5)
        until(lambda: emitter.report.steps_sent == 1000)
        until(lambda: not frames_on_disk(tmp_path))
    assert steps_of(publisher, "s") == list(range(1000))


def test_order_and_counts_hold_while_kafka_comes_and_goes(tmp_path: Path) -> None:
    dice = random.Random(7)

    class Flaky(MemoryPublisher):
        def publish(self, key: bytes, frame_bytes: bytes, on_done: OnDone) -> None:
            self.failure = None if dice.random() < 0.7 else AWAY
            super().publish(key, frame_bytes, on_done)

    publisher = Flaky()
    spooled = SpooledPublisher(publisher, tmp_path, interval_s=0.01)
    with StepEmitter(spooled, producer="r7", session="s", max_steps=4) as emitter:
        episode = emitter.begin_episode(family="f")
        for _ in range(200):
            episode.step(progress=0.5)
        until(lambda: emitter.report.steps_sent == 200)
    assert steps_of(publisher, "s") == list(range(200))


def test_a_process_that_is_killed_leaves_its_steps_to_the_next_one(tmp_path: Path) -> None:
    script = f"""
import signal
from springback import MemoryPublisher, ProducerError, StepEmitter
publisher = MemoryPublisher()
publisher.failure = ProducerError("Kafka is away")
emitter = StepEmitter(publisher, producer="r7", session="old", spool={str(tmp_path)!r})
episode = emitter.begin_episode(family="f")
for _ in range(1000):
    episode.step(progress=0.5)
while emitter.report.steps_spooled < 1000:
    pass
print("on disk", flush=True)
signal.pause()
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "on disk\n"
        with pytest.raises(SpoolInUseError):
            StepEmitter(MemoryPublisher(), producer="r7", spool=tmp_path)
        killed.send_signal(signal.SIGKILL)
    publisher = MemoryPublisher()
    with StepEmitter(publisher, producer="r7", session="new", spool=tmp_path) as emitter:
        emitter.begin_episode(family="f").step(progress=0.5)
        until(lambda: emitter.report.steps_sent == 1)
        assert emitter.report.steps_left == 0
    assert steps_of(publisher, "old") == list(range(1000))
    sessions = [frame.session for frame in publisher.frames]
    assert sessions == sorted(sessions, reverse=True)  # "old" before "new"


def test_nothing_new_goes_before_all_that_was_left_has_arrived(tmp_path: Path) -> None:
    with StepEmitter(away(), producer="r7", session="old", spool=tmp_path) as emitter:
        emitter.begin_episode(family="f").step(progress=0.5)
    publisher = HeldBack()
    with StepEmitter(publisher, producer="r7", session="new", spool=tmp_path) as emitter:
        episode = emitter.begin_episode(family="f")
        episode.step(progress=0.5)
        until(lambda: emitter.report.steps_spooled == 1)  # it waits on disk
        until(lambda: len(publisher.waiting) > 0)
        assert {frame.session for frame in publisher.frames} == {"old"}
        left = len(publisher.waiting)
        for _ in range(left):
            publisher.acknowledge()
        until(lambda: len(publisher.waiting) > 0)
        assert publisher.frames[-1].session == "new"
        publisher.acknowledge()
        until(lambda: emitter.report.steps_sent == 1)
        episode.end("success")
        until(lambda: len(publisher.waiting) > 0)
        publisher.acknowledge()


def test_what_neither_disk_nor_memory_has_room_for_is_dropped_and_counted(tmp_path: Path) -> None:
    publisher = away()
    spooled = SpooledPublisher(publisher, tmp_path, most_bytes=20_000, interval_s=0.01)
    emitter = StepEmitter(spooled, producer="r7", session="s", buffer_steps=100)
    episode = emitter.begin_episode(family="f")
    steps = 0

    def full() -> bool:
        nonlocal steps
        episode.step(progress=0.5)
        steps += 1
        return emitter.report.steps_dropped >= 10

    until(full)
    report = emitter.report
    assert sum(path.stat().st_size for path in tmp_path.glob("*.frames")) <= 20_000
    assert report.steps_spooled > 0
    assert "it is full" in str(report.spool_problem)
    publisher.failure = None
    until(lambda: emitter.report.steps_buffered == 0 and emitter.report.steps_spooled == 0)
    until(lambda: emitter.report.spool_problem is None)  # though there is nothing to write
    emitter.close()
    assert accounted(emitter.report) == steps
    arrived = steps_of(publisher, "s")
    assert arrived == sorted(set(arrived))
    assert len(arrived) == emitter.report.steps_sent


@pytest.mark.parametrize("trouble", ["a file is there", "the folder cannot be made"])
def test_a_folder_that_cannot_be_used_is_told_and_stops_nothing(tmp_path: Path, trouble: str) -> None:
    place = tmp_path / "spool"
    place.write_text("")
    folder = place if trouble == "a file is there" else place / "below"
    publisher = MemoryPublisher()
    with StepEmitter(publisher, producer="r7", session="s", spool=folder) as emitter:
        emitter.begin_episode(family="f").step(progress=0.5)
        assert emitter.report.spool_problem is not None
        until(lambda: emitter.report.steps_sent == 1)


def test_a_folder_that_can_be_used_later_is_used_later(tmp_path: Path) -> None:
    place, publisher = tmp_path / "spool", away()
    place.write_text("")
    with StepEmitter(publisher, producer="r7", session="s", spool=place) as emitter:
        emitter.begin_episode(family="f").step(progress=0.5)
        place.unlink()
        until(lambda: emitter.report.steps_spooled == 1)
        assert emitter.report.spool_problem is None


def test_a_spool_that_cannot_be_read_stops_nothing(tmp_path: Path) -> None:
    first = StepEmitter(away(), producer="r7", session="s1", spool=tmp_path, max_steps=1)
    episode = first.begin_episode(family="f")
    for _ in range(3):
        episode.step(progress=0.5)
    first.close(timeout_s=1.0)
    with (tmp_path / "000000000000.frames").open("ab") as file:  # a note that it has done with the first frame
        file.write(_record(1, SpooledFrame(1, b"", b"", 0, 0)))
    unreadable = tmp_path / "000000000001.frames"
    unreadable.mkdir()
    publisher = MemoryPublisher()
    with StepEmitter(publisher, producer="r7", session="s2", spool=tmp_path) as emitter:
        emitter.begin_episode(family="f").step(progress=0.5)
        until(lambda: emitter.report.steps_sent == 1)
        assert "Is a directory" in str(emitter.report.spool_problem)
        unreadable.rmdir()
        until(lambda: steps_of(publisher, "s1") == [1, 2])


def test_what_kafka_refuses_of_what_was_left_is_told_as_a_loss_in_the_next_frame(tmp_path: Path) -> None:
    first = StepEmitter(away(), producer="r7", session="s1", spool=tmp_path)
    first.begin_episode(family="f").step(progress=0.5)
    first.close(timeout_s=1.0)
    publisher = HeldBack()
    emitter = StepEmitter(publisher, producer="r7", session="s2", spool=tmp_path)
    until(lambda: bool(publisher.waiting))
    while publisher.waiting:
        publisher.acknowledge(FrameRefusedError("too large"))
        until(lambda: bool(publisher.waiting) or emitter.report.steps_left == 0)
    episode = emitter.begin_episode(family="f")
    episode.step(progress=0.5)
    episode.end("success")
    until(lambda: bool(publisher.waiting))
    assert (publisher.frames[-1].session, publisher.frames[-1].lost_steps) == ("s2", 1)
    publisher.acknowledge()
    until(lambda: emitter.report.steps_sent == 1)
    assert emitter.report.steps_dropped == 0  # that is of its own
    emitter.close(timeout_s=1.0)


def test_what_kafka_refuses_after_it_was_on_disk_is_dropped_and_counted(tmp_path: Path) -> None:
    publisher = HeldBack()
    with StepEmitter(publisher, producer="r7", session="s", spool=tmp_path) as emitter:
        emitter.begin_episode(family="f").step(progress=0.5)
        until(lambda: emitter.report.steps_spooled == 1)
        publisher.acknowledge(FrameRefusedError("too large"))
        until(lambda: emitter.report.steps_dropped == 1)
        assert emitter.report.steps_sent == 0


def test_a_close_that_finds_no_disk_and_no_kafka_says_what_is_lost(tmp_path: Path) -> None:
    place = tmp_path / "spool"
    place.write_text("")
    emitter = StepEmitter(away(), producer="r7", session="s", spool=place)
    emitter.begin_episode(family="f").step(progress=0.5)
    emitter.close(timeout_s=1.0)
    assert (emitter.report.steps_dropped, emitter.report.ends_dropped) == (1, 1)
