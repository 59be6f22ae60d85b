"""SIGTERM without loss: emitters are closed before the process dies of it, as it would have done anyway.

Python's default for SIGTERM ends a process at once: no `finally`, no `atexit`, no flush. `end_on_signals()` changes
that alone. A handler of the program's own stays what it is, and decides alone; nothing is raised into the program's
code; and the process still dies of the signal, so that whoever has started it sees what it expects.
"""

from __future__ import annotations

import _thread
import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Final

log = logging.getLogger(__name__)

CLOSE_TIMEOUT_S: Final = 2.0
_MAIN_THREAD_BUSY_S: Final = 1.0

Close = Callable[[float], None]
"""Sends and closes within so many seconds."""

_lock = threading.Lock()
_closes: dict[Close, int] = {}  # and the process that each belongs to
_began_in = 0  # the process in which the end has begun; a forked child begins one of its own
_closed_in = 0


def close_at_end(close: Close) -> None:
    """Has this called when a signal ends the process; see `end_on_signals`."""
    with _lock:
        _closes[close] = os.getpid()


def need_not_close(close: Close) -> None:
    """Takes it back."""
    with _lock:
        _closes.pop(close, None)


def end_on_signals(*signals: int) -> tuple[int, ...]:
    """Has all emitters closed before one of these signals ends the process; SIGTERM where none is named.

    Only signals that nobody handles are taken. Then, when one arrives, open episodes end as aborted, what waits is sent
    (or goes to the spool) for at most two seconds, and the process dies of the signal. Meanwhile the program runs on;
    what it still reports is left out. A child that is forked later has its own emitters closed, and without any dies at
    once. A main thread that is in a long call of a C library delays the signal until that returns, as ever in Python.

    Args:
        *signals: such as `signal.SIGHUP`.

    Returns:
        those that were taken. With a handler of your own, leave the emitter's `with` block from it, or close it.

    Raises:
        ValueError: this is not the main thread, where alone Python lets signals be handled.
    """
    wanted = signals or (signal.SIGTERM,)
    taken = tuple(number for number in wanted if signal.getsignal(number) in (signal.SIG_DFL, _on_signal))
    for number in taken:
        signal.signal(number, _on_signal)
    return taken


def _on_signal(number: int, _: FrameType | None) -> None:
    # No lock may be taken here: the thread that was interrupted may hold it.
    global _began_in
    process = os.getpid()
    if _closed_in == process or process not in list(_closes.values()):
        signal.signal(number, signal.SIG_DFL)
        os.kill(process, number)
    elif _began_in != process:
        _began_in = process
        # Not `threading.Thread`: its start takes a lock of that module. And at the interpreter's end, where Python 3.12
        # and newer begin no thread, emitters are closed by `atexit`.
        with contextlib.suppress(RuntimeError):
            _thread.start_new_thread(_end, (number, process))


def _end(number: int, process: int) -> None:
    global _closed_in
    until = time.monotonic() + CLOSE_TIMEOUT_S
    with _lock:
        mine = [close for close, owner in _closes.items() if owner == process]
    for close in mine:
        try:
            close(max(0.1, until - time.monotonic()))
        except Exception:  # the others are closed, and the process ends, all the same
            log.exception("an emitter could not be closed at signal %d", number)
    _closed_in = process
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, number)
        time.sleep(_MAIN_THREAD_BUSY_S)
    os._exit(128 + number)
