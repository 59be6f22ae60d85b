"""The directories of one run: a temporary one that goes with it, and one for logs that stays for a while.

Each is held by a lock that the kernel releases when its owner dies, so that the next run can tell what a killed one
left behind from what is in use.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from springback.deploy.errors import DeployError

_LOCK_NAME = "owner.lock"
_LOGS_KEPT = 10


@contextlib.contextmanager
def run_directory(purpose: str) -> Iterator[Path]:
    """A new private temporary directory that exists as long as the block.

    Directories of owners that were killed are removed first.

    Args:
        purpose: a short word that the directory's name begins with.
    """
    base = Path(tempfile.gettempdir()) / f"springback-{os.getuid()}"
    base.mkdir(mode=0o700, exist_ok=True)
    if base.stat().st_uid != os.getuid():
        message = f"{base} belongs to another user; remove it, or set TMPDIR to a directory of your own."
        raise PermissionError(message)
    with _owned(base, keep=0, make=lambda: Path(tempfile.mkdtemp(prefix=f"{purpose}-", dir=base))) as path:
        try:
            yield path
        finally:
            shutil.rmtree(path)


@contextlib.contextmanager
def log_directory() -> Iterator[Path]:
    """A new directory for the logs of a run, which stays: the last ten are kept, besides those in use.

    It is in the user's state directory (XDG_STATE_HOME, else ~/.local/state), and named for the time of the start.

    Raises:
        DeployError: nothing can be written there.
    """
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    base = state / "springback" / "logs"
    try:
        base.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = (
            f"The logs cannot be kept in {base} ({error.strerror}). "
            "Set XDG_STATE_HOME to a directory that can be written to."
        )
        raise DeployError(message) from error
    prefix = time.strftime("%Y-%m-%dT%H-%M-%S-")
    with _owned(base, keep=_LOGS_KEPT, make=lambda: Path(tempfile.mkdtemp(prefix=prefix, dir=base))) as path:
        yield path


@contextlib.contextmanager
def _owned(base: Path, keep: int, make: Callable[[], Path]) -> Iterator[Path]:
    """Makes a directory and holds its lock; removes those in `base` that have no owner, except the last `keep`."""
    with (base / "sweep.lock").open("wb") as sweep_lock:
        fcntl.flock(sweep_lock, fcntl.LOCK_EX)
        for orphan in sorted(path for path in base.glob(f"*/{_LOCK_NAME}") if _is_free(path))[: -keep or None]:
            # A process that was killed with the owner may still be ending, and writing: the next sweep gets that.
            shutil.rmtree(orphan.parent, ignore_errors=True)
        path = make()
        owner_lock = (path / _LOCK_NAME).open("wb")
        fcntl.flock(owner_lock, fcntl.LOCK_EX)
    with owner_lock:
        yield path


def _is_free(lock_path: Path) -> bool:
    with lock_path.open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
