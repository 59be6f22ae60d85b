import os
import subprocess
import sys
from pathlib import Path

import pytest

from springback.deploy.errors import DeployError
from springback.deploy.run_directory import log_directory, run_directory

OWNER = """
import sys, time
from springback.deploy.run_directory import run_directory
with run_directory("killed") as path:
    (path / "data").mkdir()
    (path / "data" / "file").write_text("x")
    print(path, flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _temporary_base(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_it_lives_as_long_as_the_block_and_is_private() -> None:
    with run_directory("test") as path:
        (path / "file").write_text("x")
        assert path.parent.stat().st_mode & 0o077 == 0
    assert not path.exists()


def test_it_is_removed_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), run_directory("test") as path:
        _ = 1 / 0
    assert not path.exists()


def test_the_next_one_removes_what_a_killed_owner_left_and_nothing_else() -> None:
    with run_directory("alive") as alive:
        with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True) as owner:
            assert owner.stdout is not None
            left = Path(owner.stdout.readline().strip())
            with run_directory("during"):
                assert left.exists()
            owner.kill()
        assert (left / "data" / "file").exists()
        with run_directory("after"):
            assert not left.exists()
            assert alive.exists()


def test_a_directory_of_somebody_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with run_directory("test"):
        pass
    uids = iter([os.getuid(), -1])
    monkeypatch.setattr("springback.deploy.run_directory.os.getuid", lambda: next(uids))
    with pytest.raises(PermissionError, match="belongs to another user"), run_directory("test"):
        pass


def test_the_last_ten_logs_are_kept_besides_those_in_use(tmp_path: Path) -> None:
    with log_directory() as in_use:
        paths = []
        for _ in range(13):
            with log_directory() as path:
                (path / "worker.log").write_text("x")
            paths.append(path)
        with log_directory() as last:
            left = {path for path in (tmp_path / "state" / "springback" / "logs").iterdir() if path.is_dir()}
            assert left >= {in_use, last}
            assert len(left & set(paths)) == 10


def test_logs_that_cannot_be_kept_say_what_to_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(DeployError, match="Set XDG_STATE_HOME"), log_directory():
        pass
