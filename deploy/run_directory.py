"""A temporary directory that is removed even if its owner is killed: by the owner, else by the next one."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_LOCK_NAME = "owner.lock"


@contextlib.contextmanager
def run_directory(purpose: str) -> Iterator[Path]:
    """A new private directory that exists as long as the block.

    The owner holds a lock on a file in it, which the kernel lets go when the owner dies. Directories whose lock is
    free were left by owners that were killed, and are removed here first.

    Args:
        purpose: A short word that stands in the directory's name.
    """
    base = Path(tempfile.gettempdir()) / f"springback-{os.getuid()}"
    base.mkdir(mode=0o700, exist_ok=True)
    if base.stat().st_uid != os.getuid():
        message = f"{base} belongs to another user; remove it, or set TMPDIR to a directory of your own."
        raise PermissionError(message)
    with (base / "sweep.lock").open("wb") as sweep_lock:
        fcntl.flock(sweep_lock, fcntl.LOCK_EX)
        _remove_orphans(base)
        path = Path(tempfile.mkdtemp(prefix=f"{purpose}-", dir=base))
        owner_lock = (path / _LOCK_NAME).open("wb")
        fcntl.flock(owner_lock, fcntl.LOCK_EX)
    with owner_lock:
        try:
            yield path
        finally:
            shutil.rmtree(path)


def _remove_orphans(base: Path) -> None:
    for lock_path in base.glob(f"*/{_LOCK_NAME}"):
        with lock_path.open("wb") as lock:
            if _try_lock(lock):
                # A process that was killed with the owner may still be ending, and writing: the next sweep gets that.
                shutil.rmtree(lock_path.parent, ignore_errors=True)


def _try_lock(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
