"""A child process that cannot outlive us.

On Linux the kernel kills the child as soon as this process is gone, whatever ended it (kill -9 included): the child
asks for it with `prctl(PR_SET_PDEATHSIG)` in a small launcher before it becomes the wanted program. Elsewhere the
children are killed when the interpreter exits, which a kill -9 prevents.
"""

import atexit
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Self

from springback.deploy.errors import ChildFailedError

POLL_INTERVAL_S = 0.02
LOG_TAIL_LINES = 20

# PR_SET_PDEATHSIG is 1. The parent may have died before the call, hence the look at getppid() after it.
_LAUNCHER = """
import ctypes, os, signal, sys
if ctypes.CDLL(None, use_errno=True).prctl(1, int(signal.SIGKILL), 0, 0, 0) != 0:
    sys.exit("prctl(PR_SET_PDEATHSIG) failed: " + os.strerror(ctypes.get_errno()))
if os.getppid() != int(sys.argv[1]):
    sys.exit("the parent process died before this one was started")
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    sys.exit(sys.argv[2] + ": " + error.strerror)
"""


class ChildProcess:
    """A running child in a process group of its own, its output appended to a log file.

    Its standard input is empty. As a context manager it is terminated at the end of the block.

    Args:
        name: what the child is, for error messages.
        command: the program and its arguments; no secrets, since every user of the machine can read them.
        log_path: the file that takes its standard output and error.
        environment: the child's whole environment; ours when not given.
        directory: its working directory; ours when not given.

    Raises:
        ChildFailedError: the program could not be started.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log_path: Path,
        *,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> None:
        self.name = name
        self.log_path = log_path
        if sys.platform == "linux":
            command = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), *command]
        self._log_start = log_path.stat().st_size if log_path.exists() else 0

        def spawn() -> subprocess.Popen[bytes]:
            with log_path.open("ab") as log:
                return subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    cwd=directory,
                    start_new_session=True,
                )

        try:
            self._process = _in_spawning_thread(spawn)
        except OSError as error:
            message = f"{name} could not be started ({error}). Its log would be {log_path}."
            raise ChildFailedError(message) from error
        self._parent_pid = os.getpid()
        _living.add(self)

    @property
    def pid(self) -> int:
        """The child's process id, which is also the id of its process group."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; else its exit code, negative for the number of the signal that ended it."""
        return self._process.poll()

    def check(self) -> None:
        """Raises an error if the child has ended.

        Raises:
            ChildFailedError: it has ended, whatever its exit code.
        """
        if self.exit_code is not None:
            message = f"{self.name} {self._ending()}. {self._log_report()}"
            raise ChildFailedError(message)

    def wait_until(self, is_ready: Callable[[], bool], timeout_s: float, awaited: str) -> None:
        """Waits until the child is ready.

        Args:
            is_ready: asked every few milliseconds.
            timeout_s: how long to wait, in seconds.
            awaited: what is waited for, for the error message, such as "an answer at 127.0.0.1:9092".

        Raises:
            ChildFailedError: the child ended meanwhile, or it was not ready in time.
        """
        deadline_s = time.monotonic() + timeout_s
        while not is_ready():
            self.check()
            if time.monotonic() > deadline_s:
                message = f"{self.name} runs, but after {timeout_s:g} s still lacks {awaited}. {self._log_report()}"
                raise ChildFailedError(message)
            time.sleep(POLL_INTERVAL_S)
        # What answered may not have been the child: it may have failed because something else holds its port.
        self.check()

    def wait(self, timeout_s: float) -> int:
        """Waits for the child to end by itself, and returns its exit code.

        Raises:
            ChildFailedError: it still runs after `timeout_s` seconds.
        """
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            message = f"{self.name} has not finished after {timeout_s:g} s. {self._log_report()}"
            raise ChildFailedError(message) from error

    def terminate(self, grace_s: float = 10.0) -> int:
        """Ends the child and its whole process group: SIGTERM, and SIGKILL after `grace_s` seconds.

        Returns:
            the exit code (see `exit_code`); harmless when it has ended already.
        """
        if self._process.poll() is None:
            self._signal_group(signal.SIGTERM)
            try:
                self._process.wait(grace_s)
            except subprocess.TimeoutExpired:
                pass  # what is left is killed below
        return self.kill()

    def kill(self) -> int:
        """Ends the child and its whole process group at once, with SIGKILL; returns the exit code."""
        if self in _living:
            self._signal_group(signal.SIGKILL)
            _living.discard(self)
        return self._process.wait()

    def log_tail(self, lines: int = LOG_TAIL_LINES) -> list[str]:
        """The last lines that this child (not an earlier one with the same log file) wrote."""
        with self.log_path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(self._log_start, size - 64_000))
            text = log.read().decode("utf-8", errors="replace")
        return text.splitlines()[-lines:]

    def __enter__(self) -> Self:
        """The running child."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Terminates it."""
        self.terminate()

    def _signal_group(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            pass  # the whole group has ended already
        except PermissionError:
            if sys.platform == "linux":
                raise
            # macOS says this of a group in which only unreaped processes are left.

    def _ending(self) -> str:
        code = self._process.wait()
        if code >= 0:
            return f"ended with exit code {code}"
        by_whom = " (by somebody, or by the system for want of memory)" if -code == signal.SIGKILL else ""
        return f"was ended by {signal.Signals(-code).name}{by_whom}"

    def _log_report(self) -> str:
        tail = self.log_tail()
        if not tail:
            return f"It wrote nothing to its log {self.log_path}."
        return f"The end of its log {self.log_path}:\n" + "\n".join(f"  | {line}" for line in tail)


_living: weakref.WeakSet[ChildProcess] = weakref.WeakSet()
_Spawn = Callable[[], "subprocess.Popen[bytes]"]
_requests: "queue.SimpleQueue[tuple[_Spawn, Future[subprocess.Popen[bytes]]]]" = queue.SimpleQueue()
_spawning_lock = threading.Lock()
_spawning_thread: threading.Thread | None = None


def _in_spawning_thread(spawn: _Spawn) -> "subprocess.Popen[bytes]":
    """Runs `spawn` in a thread that lives as long as the process.

    The kernel sends the death signal when the *thread* that created the child ends.
    """
    global _spawning_thread
    with _spawning_lock:
        # Not alive also means: this process is a fork of the one that had started the thread.
        if _spawning_thread is None or not _spawning_thread.is_alive():
            _spawning_thread = threading.Thread(target=_serve_requests, name="child-spawner", daemon=True)
            _spawning_thread.start()
    result: Future[subprocess.Popen[bytes]] = Future()
    _requests.put((spawn, result))
    return result.result()


def _serve_requests() -> None:
    while True:
        spawn, result = _requests.get()
        try:
            result.set_result(spawn())
        except BaseException as error:  # handed to the caller, whose error it is
            result.set_exception(error)


@atexit.register
def _kill_the_living() -> None:
    for child in list(_living):
        if child._parent_pid == os.getpid():
            child.kill()
