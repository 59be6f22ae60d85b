"""A worker of a faulted run: the product's own, with a wall clock that can be set back, and a say in what it waits for.

Started as a program with the file for `ready` and the file of the clock: eight bytes, a float64, that are added to what
`time.time` says. Only the wall clock is set; the monotonic one goes on, as on a real machine. At SIGUSR1 it writes to
its log where each of its threads and tasks is: of one that does not recover, that is all there is to go by.
"""

import asyncio
import faulthandler
import mmap
import signal
import struct
import sys
import time
from pathlib import Path

_OFFSET = struct.Struct("<d")


def write_offset(file: Path, offset_s: float) -> None:
    """Sets the clock of the worker that has the file: so many seconds beside the machine's own."""
    with file.open("r+b" if file.exists() else "w+b") as opened:
        opened.write(_OFFSET.pack(offset_s))


def shift_clock(file: Path) -> None:
    """Has `time.time` of this process add what the file says, at every call."""
    with file.open("r+b") as opened:
        shared = mmap.mmap(opened.fileno(), _OFFSET.size)
    real = time.time

    def shifted() -> float:
        return real() + float(_OFFSET.unpack_from(shared)[0])

    time.time = shifted


def tell_waits(*_: object) -> None:
    """Writes where every thread and every task of every loop is."""
    faulthandler.dump_traceback(all_threads=True)
    for task in list(asyncio.tasks._all_tasks):  # type: ignore[attr-defined]  # of all loops: one has a thread of its own
        task.print_stack(file=sys.stderr)
    sys.stderr.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, tell_waits)
    shift_clock(Path(sys.argv[2]))  # before anything has taken the function for itself
    from springback.stream_processors.service.log import configure_logging
    from springback.stream_processors.settings import load_settings
    from springback.stream_processors.worker.app import run_worker

    configure_logging()
    run_worker(load_settings(), Path(sys.argv[1]))
