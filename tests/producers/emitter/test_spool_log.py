"""Frames on disk: their order, what a crash leaves of them, and whose they are."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.producers.emitter.spool_log import SpoolCounts, SpooledFrame, SpoolLog
from springback.producers.errors import SpoolInUseError


def frame(number: int, size: int = 20, steps: int = 2, ends: int = 1) -> SpooledFrame:
    return SpooledFrame(-1, b"robot", b"%06d" % number + b"x" * size, steps, ends)


def opened(folder: Path, **options: int) -> SpoolLog:
    log = SpoolLog(folder, **options)
    log.recover()
    return log


def bodies(frames: list[SpooledFrame]) -> list[int]:
    return [int(one.frame_bytes[:6]) for one in frames]


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.frames"))


def test_what_was_left_comes_first_and_in_order(tmp_path: Path) -> None:
    first = opened(tmp_path, segment_bytes=200)
    for number in range(0, 10, 2):
        first.append([frame(number), frame(number + 1)])
    assert first.own == SpoolCounts(10, 20, 10)
    assert len(files(tmp_path)) > 2
    first.close()
    second = opened(tmp_path)
    assert (second.left, second.own) == (SpoolCounts(10, 20, 10), SpoolCounts())
    second.append([frame(10)])
    assert bodies(second.read_on(100, 10**6, own=False)) == list(range(10))
    assert not second.unread_left
    assert bodies(second.read_on(100, 10**6)) == [10]
    second.close()


def test_reading_is_bounded_but_for_one(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.append([frame(number, size=100) for number in range(6)])
    assert bodies(log.read_on(2, 10**6)) == [0, 1]
    assert bodies(log.read_on(9, 1)) == [2]
    assert bodies(log.read_on(9, 200)) == [3, 4]
    log.skip(5)
    assert not log.unread
    log.close()


def test_what_is_done_with_goes_and_is_not_there_again(tmp_path: Path) -> None:
    log = opened(tmp_path, segment_bytes=100)
    for number in range(6):
        log.append([frame(number)])
    read = log.read_on(9, 10**6)
    before = len(files(tmp_path))
    for place in (1, 0, 2, 4):  # 3 is not done with, so 4 is not either as far as the files go
        log.settle(read[place])
    assert log.own == SpoolCounts(2, 4, 2)
    assert len(files(tmp_path)) < before
    log.note_done()
    log.close()
    again = opened(tmp_path)
    assert bodies(again.read_on(9, 10**6)) == [3, 4, 5]
    for one in (3, 4, 5):
        again.settle(SpooledFrame(one, b"robot", b"", 2, 1))
    assert again.left == SpoolCounts()
    assert files(tmp_path) == []
    again.close()


@given(st.data())
def test_a_torn_file_is_read_up_to_the_tear(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("spool")
    log = opened(folder)
    sizes = data.draw(st.lists(st.integers(0, 300), min_size=1, max_size=6))
    ends = []
    for number, size in enumerate(sizes):
        log.append([frame(number, size=size)])
        ends.append(log.size_bytes)
    log.close()
    (path,) = files(folder)
    cut = data.draw(st.integers(0, ends[-1]))
    kept = sum(end <= cut for end in ends)
    content = path.read_bytes()[:cut]
    garbage = data.draw(st.binary(max_size=80))
    path.write_bytes(content + garbage)
    again = opened(folder)
    assert again.left.frames == kept
    assert again.damaged_bytes == len(content + garbage) - ([0, *ends][kept])
    again.append([frame(99)])
    assert bodies(again.read_on(99, 10**6)) == [*range(kept), 99]
    again.close()


def test_a_byte_that_has_changed_costs_no_more_than_the_rest_of_its_file(tmp_path: Path) -> None:
    log = opened(tmp_path, segment_bytes=1)
    for number in range(4):
        log.append([frame(number)])
    log.close()
    path = files(tmp_path)[1]
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    again = opened(tmp_path)
    read = again.read_on(9, 10**6)
    assert bodies(read) == [0, 2, 3]
    assert again.damaged_bytes == len(content)
    for one in read:
        again.settle(one)
    assert files(tmp_path) == []
    again.close()


def test_what_the_disk_has_lost_meanwhile_is_counted_and_holds_nothing_up(tmp_path: Path) -> None:
    log = opened(tmp_path, segment_bytes=1)
    for number in range(3):
        log.append([frame(number)])
    files(tmp_path)[1].write_bytes(b"")
    read = log.read_on(9, 10**6)
    while log.unread:
        read += log.read_on(9, 10**6)
    assert bodies(read) == [0, 2]
    assert (log.own, log.lost) == (SpoolCounts(3 - 1, 4, 2), SpoolCounts(1, 2, 1))
    for one in read:
        log.settle(one)
    assert (log.own, files(tmp_path)) == (SpoolCounts(), [])
    log.close()


def test_one_publisher_at_a_time_has_the_folder(tmp_path: Path) -> None:
    log = opened(tmp_path)
    with pytest.raises(SpoolInUseError, match="give each one a folder of its own"):
        SpoolLog(tmp_path)
    script = f"from springback.producers.emitter.spool_log import SpoolLog; SpoolLog({str(tmp_path)!r})"
    other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "SpoolInUseError" in other.stderr
    log.close()
    SpoolLog(tmp_path).close()


def test_a_child_that_outlives_its_parent_does_not_keep_the_folder(tmp_path: Path) -> None:
    script = f"""
import os, signal, time
from springback.producers.emitter.spool_log import SpoolLog
log = SpoolLog({str(tmp_path)!r})
if os.fork():
    signal.pause()
print(os.getpid(), flush=True)
signal.pause()
"""
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())  # it has let go of the folder before it says so
    parent.kill()
    parent.wait()
    try:
        SpoolLog(tmp_path).close()
    finally:
        os.kill(child, signal.SIGKILL)
        parent.stdout.close()


def test_a_write_that_finds_no_room_leaves_nothing_behind(tmp_path: Path) -> None:
    script = f"""
import resource, signal
from pathlib import Path
from springback.producers.emitter.spool_log import SpoolLog, SpooledFrame
log = SpoolLog(Path({str(tmp_path)!r}))
log.recover()
log.append([SpooledFrame(-1, b"r", b"1" * 1000, 1, 0)])
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
try:
    log.append([SpooledFrame(-1, b"r", b"2" * 5000, 1, 0)])
except OSError as error:
    print("told:", error)
log.append([SpooledFrame(-1, b"r", b"3" * 500, 1, 0)])
print([one.frame_bytes[:1] for one in log.read_on(9, 10**6)], log.own)
log.close()
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ran.stdout.splitlines()[0] == "told: [Errno 27] File too large", ran.stderr
    assert "[b'1', b'3'] SpoolCounts(frames=2, steps=2, ends=0)" in ran.stdout
    again = opened(tmp_path)
    assert (again.left.frames, again.damaged_bytes) == (2, 0)
    again.close()
