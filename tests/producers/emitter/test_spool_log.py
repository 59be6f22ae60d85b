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
    log.read_on(9, 10**6)
    log.append([frame(6), frame(7)], under_way=1)
    assert bodies(log.read_on(9, 10**6)) == [7]
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


def test_a_left_file_that_the_disk_has_lost_is_counted_without_what_was_done_with(tmp_path: Path) -> None:
    first = opened(tmp_path)
    first.append([frame(number) for number in range(6)])
    for one in first.read_on(4, 10**6):
        first.settle(one)
    first.close()
    log = opened(tmp_path)
    assert log.left == SpoolCounts(2, 4, 2)
    log.append([frame(6)])
    files(tmp_path)[0].write_bytes(b"")
    assert log.read_on(9, 10**6, own=False) == []
    assert (log.left, log.left_lost, log.own, log.lost) == (
        SpoolCounts(), SpoolCounts(2, 4, 2), SpoolCounts(1, 2, 1), SpoolCounts(),
    )  # fmt: skip
    assert bodies(log.read_on(9, 10**6)) == [6]
    log.close()


def test_what_was_under_way_when_the_disk_lost_it_is_not_lost(tmp_path: Path) -> None:
    log = opened(tmp_path)
    under_way, other = frame(0), frame(1)
    numbers = log.append([under_way, other], under_way=1)
    files(tmp_path)[0].write_bytes(b"")
    assert log.read_on(9, 10**6) == []
    assert (log.own, log.lost) == (SpoolCounts(1, 2, 1), SpoolCounts(1, 2, 1))
    log.settle(under_way._replace(number=numbers[0]))
    assert (log.own, log.unread, files(tmp_path)) == (SpoolCounts(), False, [])
    log.close()


def test_files_of_which_one_cannot_be_read_stay_as_they_are(tmp_path: Path) -> None:
    first = opened(tmp_path)
    first.append([frame(0), frame(1)])
    first.settle(first.read_on(1, 10**6)[0])
    first.close()
    (tmp_path / "000000000001.frames").mkdir()  # reading it is an OSError
    log = SpoolLog(tmp_path)
    with pytest.raises(IsADirectoryError):
        log.recover()
    log.close()
    assert [path.name for path in files(tmp_path)] == ["000000000000.frames", "000000000001.frames"]
    (tmp_path / "000000000001.frames").rmdir()
    again = opened(tmp_path)
    assert bodies(again.read_on(9, 10**6)) == [1]
    again.close()


def test_a_disk_that_keeps_what_it_said_it_did_not_makes_no_two_frames_of_one_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = opened(tmp_path)
    log.append([frame(0)])
    with monkeypatch.context() as failing:

        def fails(*_: int) -> None:
            raise OSError(5, "Input/output error")

        failing.setattr(os, "fsync", fails)
        failing.setattr(os, "ftruncate", fails)
        with pytest.raises(OSError, match="Input/output"):
            log.append([frame(1), frame(2)])
    log.append([frame(3)])
    assert bodies(log.read_on(9, 10**6)) == [0, 3]
    log.close()
    again = opened(tmp_path)
    read = again.read_on(9, 10**6)
    assert bodies(read) == [0, 1, 2, 3]
    for one in read:
        again.settle(one)
    assert (again.left, files(tmp_path)) == (SpoolCounts(), [])
    again.close()


def test_tries_to_write_to_a_disk_without_room_leave_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = opened(tmp_path)
    log.append([frame(0)])

    def full(*_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as failing:
        failing.setattr(os, "write", full)
        for _ in range(5):
            with pytest.raises(OSError, match="No space"):
                log.append([frame(1)])
    assert len(files(tmp_path)) == 1
    log.append([frame(2)])
    read = log.read_on(9, 10**6)
    assert bodies(read) == [0, 2]
    for one in read:
        log.settle(one)
    assert (files(tmp_path), log.unread) == ([], False)
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
