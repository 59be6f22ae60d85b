"""The console command `springback`: runs a command, and turns what goes wrong into one clear line and an exit code.

The commands themselves are in `deploy/commands/`. Whatever they need is imported when they run, so that
`springback --help` is quick, and an install that lacks an extra says which one to add.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Final

from springback.producers.errors import EXTRA_OF_PACKAGE, OlderPythonError

DEBUG_VARIABLE: Final = "SPRINGBACK_DEBUG"

_FAILED: Final = 1
_BAD_INPUT: Final = 2
_INTERRUPTED: Final = 130

SERVICES: Final = frozenset({"annotate", "bridge", "export", "gateway", "judge", "live", "up", "worker"})
"""The commands that run until they are told to end: that they are is no failure, however early it comes."""

_KAFKA_ERRORS: Final = frozenset({"kafka.errors", "aiokafka.errors"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        arguments: what follows the command's name on the command line; that of this process if None.

    Returns:
        0 when all went well, 1 for a finding or a failed run, 2 for wrong usage or bad input, 130 after Ctrl-C; a
        service ends with 0 after Ctrl-C and SIGTERM.

    Raises:
        Exception: a fault of springback's own, or any error at all while `SPRINGBACK_DEBUG` is set, with its traceback.
    """
    if sys.version_info < (3, 11):
        print("springback:", OlderPythonError("this command", sys.version_info[:3]), file=sys.stderr)
        return _BAD_INPUT
    given = sys.argv[1:] if arguments is None else arguments
    service = bool(given) and given[0] in SERVICES
    try:
        with _ended_by_sigterm() if service else contextlib.nullcontext():
            from springback.deploy.command_app import build_app

            build_app()(args=arguments, prog_name="springback")
    except SystemExit as end:
        if service and end.code == _INTERRUPTED:
            return 0  # typer's own word for Ctrl-C
        return end.code if isinstance(end.code, int) else _FAILED if end.code else 0
    except KeyboardInterrupt:
        return 0 if service else _INTERRUPTED  # before typer was there
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        told = explain(error)
        if told is None:
            if not _logs_json():
                raise
            logging.getLogger("springback").exception("a fault of springback ends it: %s", error)
            return _FAILED
        line, code = told
        if _logs_json():  # a program reads what it says last, too
            logging.getLogger("springback").error("%s", line)
        else:
            print(f"springback: {line}", file=sys.stderr)
        return code
    return 0


def _logs_json() -> bool:
    from springback.stream_processors.service.log import logs_json

    return logs_json()


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Leaves the block by SystemExit(0) at SIGTERM, for as long as the command has not taken the signal for itself.

    A service does so once it runs; what it imports before takes a second or two, in which the signal would kill it.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield  # somebody else has decided what the signal does
        return

    def leave(_: int, __: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not break off what is being closed
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def explain(error: Exception) -> tuple[str, int] | None:
    """The line to print for an error that a user can do something about, and the exit code; None for any other.

    Errors of our own families speak for themselves: one that is also a `ValueError` means bad input, one that is also
    an `ImportError` a missing extra.

    >>> explain(ModuleNotFoundError("No module named 'faust'", name="faust"))
    ("this needs the package 'faust', which is not installed: pip install 'springback[worker]'", 2)
    >>> explain(FileNotFoundError(2, "No such file or directory", "run.jsonl"))
    ('run.jsonl: No such file or directory', 2)
    >>> explain(OSError(28, "No space left on device"))
    ('nothing more can be written: No space left on device', 1)
    >>> explain(ZeroDivisionError("division by zero")) is None
    True
    """
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").partition(".")[0]
        extra = EXTRA_OF_PACKAGE.get(package)
        if extra is None:
            return None
        return f"this needs the package {package!r}, which is not installed: pip install 'springback[{extra}]'", 2
    if type(error).__module__.startswith("springback."):
        return str(error), _BAD_INPUT if isinstance(error, ValueError | ImportError) else _FAILED
    if type(error).__module__ in _KAFKA_ERRORS:
        from springback.producers.broker_fault import access_fault

        refusal = access_fault(error)
        if refusal is not None:
            return f"Kafka refuses this user something ({refusal})", _FAILED
        detail = str(error).strip() or "no more is known"
        return f"Kafka did not answer as it should: is --broker (SPRINGBACK_BROKER) its address? {detail}", _FAILED
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}", _BAD_INPUT
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"nothing more can be written: {error.strerror}", _FAILED
    return None
