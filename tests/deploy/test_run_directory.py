import subprocess
import sys
from pathlib import Path

import pytest

from deploy.run_directory import run_directory

OWNER = """
import sys, time
from deploy.run_directory import run_directory
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
    base_of = "deploy.run_directory.os.getuid"
    uids = iter([__import__("os").getuid(), -1])
    monkeypatch.setattr(base_of, lambda: next(uids))
    with pytest.raises(PermissionError, match="belongs to another user"), run_directory("test"):
        pass
