"""On a disk that is full every command that writes a file names it, and leaves neither half of it nor a draft."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from springback.deploy import cli
from springback.producers.whole_file import whole_file, write_whole
from springback.stream_processors.resilience.baseline.codec import dump_baseline
from tests.house import DATA

pytestmark = pytest.mark.broker  # no broker, but a file system of its own: too much for the inner loop

RECORDING = DATA / "habitat_lab_pointnav.frames.jsonl.gz"
DISK_BYTES = 64 * 1024
ROOM_BYTES = 4096
"""What the disk has room for: the beginning of each file, and the whole of none."""


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, with room for one block."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("to mount a file system one must be root, on Linux")
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "springback-test", str(place)]
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"nothing can be mounted here: {mounted.stderr}")
    try:
        (place / "filling").write_bytes(os.urandom(DISK_BYTES - ROOM_BYTES))
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def _export_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the command have a large baseline without a broker."""
    from springback import evaluate

    data = dump_baseline(evaluate(str(RECORDING)).baseline)
    assert len(data) > ROOM_BYTES

    async def exported(*_: object, **__: object) -> bytes:
        return data

    monkeypatch.setattr("springback.stream_processors.worker.baselines.export_baseline", exported)


def _nothing(_: pytest.MonkeyPatch) -> None:
    pass


COMMANDS: dict[str, tuple[list[str], str, Callable[[pytest.MonkeyPatch], None]]] = {
    "record": (
        ["record", "--episodes", "8", "--stresses", "0,0.8", "{disk}/made.frames.jsonl"],
        "made.frames.jsonl",
        _nothing,
    ),
    "record packed": (
        ["record", "--episodes", "40", "--stresses", "0,0.8", "{disk}/made.frames.jsonl.gz"],
        "made.frames.jsonl.gz",
        _nothing,
    ),
    "evaluate --json": (["evaluate", "--json", "{disk}/found.json", str(RECORDING)], "found.json", _nothing),
    "evaluate --report": (["evaluate", "--report", "{disk}/report", str(RECORDING)], "report/", _nothing),
    "baseline export": (["baseline", "export", "{disk}/clean.baseline"], "clean.baseline", _export_baseline),
    "alerts export": (["alerts", "export", "{disk}/monitoring"], "monitoring/", _nothing),
    "dashboards build": (["dashboards", "build", "--out", "{disk}/boards"], "boards/", _nothing),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_file_is_named_and_nothing_of_it_is_left(
    name: str, full_disk: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, told, prepare = COMMANDS[name]
    prepare(monkeypatch)
    capsys.readouterr()
    assert cli.main([each.format(disk=full_disk) for each in arguments]) == 1
    said = capsys.readouterr()
    last = said.err.strip().splitlines()[-1]
    assert last.startswith("springback: "), said.err
    assert str(full_disk / told).rstrip("/") in last
    assert "No space left on device" in last
    assert "draft" not in last
    assert f"Wrote {full_disk / told}" not in said.out
    assert "Recorded" not in said.out
    left = [path for path in full_disk.rglob("*") if path.is_file() and path.name != "filling"]
    assert not [path for path in left if "draft" in path.name]
    assert not [path for path in left if path.name == told]
    # What was whole before the disk was full may stay: it is whole.
    assert not [path for path in left if path.stat().st_size == 0]


def test_what_was_there_stays_as_it_was(full_disk: Path) -> None:
    file = full_disk / "old.json"
    file.write_text("{}")
    with pytest.raises(OSError, match="No space left on device") as raised:
        write_whole(file, b"x" * DISK_BYTES)
    assert raised.value.filename == str(file)
    assert file.read_text() == "{}"
    assert sorted(path.name for path in full_disk.iterdir()) == ["filling", "old.json"]


def test_a_failing_block_leaves_no_draft_and_its_own_error(tmp_path: Path) -> None:
    def write_half() -> None:
        with whole_file(tmp_path / "a.txt") as draft:
            draft.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_half()
    assert list(tmp_path.iterdir()) == []


def test_a_link_stays_one_and_a_device_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    write_whole(tmp_path / "link.txt", "new\n")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_bytes() == b"new\n"
    write_whole("/dev/null", b"gone")
    assert not Path("/dev/null").is_file()
