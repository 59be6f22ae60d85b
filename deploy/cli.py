"""The console command `springback`: runs a command, and turns what goes wrong into one clear line and an exit code.

The commands themselves are in `deploy/commands/`. Whatever they need is imported when they run, so that
`springback --help` is quick, and an install that lacks extras says which to add. The base install has no command line:
it tells the schema and its version, and how to get the rest.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Final

from springback.producers.errors import OlderPythonError
from springback.producers.install_hints import (
    EXTRA_OF_PACKAGE,
    OURS,
    MissingExtraError,
    extras_to_install,
    missing_of,
    told_missing,
)

DEBUG_VARIABLE: Final = "SPRINGBACK_DEBUG"

_FAILED: Final = 1
_BAD_INPUT: Final = 2
_INTERRUPTED: Final = 130
_SCHEMA: Final = "schema"
_VERSION: Final = "--version"
_WITHOUT_THE_REST: Final = ". Without that there are `springback schema` and `springback --version`"

SERVICES: Final = frozenset({"annotate", "bridge", "export", "gateway", "judge", "live", "up", "worker"})
"""The commands that run until they are told to end: that they are is no failure, however early it comes."""

EXTRAS_OF_COMMAND: Final = {
    "annotate": ("grafana",),
    "baseline": ("worker",),
    "check": ("sinks",),
    "dashboards": ("grafana",),
    "dead-letters": ("sinks",),
    "demo": ("demo",),
    "export": ("sinks",),
    "fit-value": ("fit",),
    "gateway": ("gateway",),
    "judge": ("judge",),
    "live": ("live",),
    "record": ("babyai", "cli"),
    "topics": ("sinks",),
    "up": ("embedded", "live"),
    "worker": ("worker",),
}
"""What each command needs beyond the command line, so that whoever lacks several extras is told of all at once."""

_EXTRAS_OF_OPTION: Final = {"--report": "report"}

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
    given = list(sys.argv[1:] if arguments is None else arguments)
    if sys.version_info < (3, 11) or missing_of(["cli"]):
        if given in ([_SCHEMA], [_VERSION]):
            print(schema_text() if given == [_SCHEMA] else version_text())
            return 0
    if sys.version_info < (3, 11):
        print("springback:", OlderPythonError("this command", sys.version_info[:3]), file=sys.stderr)
        return _BAD_INPUT
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
        told = explain(error, given)
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


def schema_text() -> str:
    """The JSON Schema of a step frame, to print."""
    import msgspec

    from springback.producers.contract.schema import frame_schema

    return msgspec.json.format(msgspec.json.encode(frame_schema()), indent=2).decode()


def version_text() -> str:
    """The name and version of what is installed, to print."""
    import importlib.metadata

    try:
        version = importlib.metadata.version(OURS)
    except importlib.metadata.PackageNotFoundError:
        version = "(not installed: run from its source folder)"
    return f"{OURS} {version}"


def explain(error: Exception, arguments: Sequence[str] = ()) -> tuple[str, int] | None:
    """The line to print for an error that a user can do something about, and the exit code; None for any other.

    Errors of our own families speak for themselves: one that is also a `ValueError` means bad input, one that is also
    an `ImportError` a missing extra. Of those the command may lack more than the first that it met.

    Args:
        error: what ended the command.
        arguments: the command line.

    >>> explain(FileNotFoundError(2, "No such file or directory", "run.jsonl"))
    ('run.jsonl: No such file or directory', 2)
    >>> explain(OSError(28, "No space left on device"))
    ('nothing more can be written: No space left on device', 1)
    >>> explain(ZeroDivisionError("division by zero")) is None
    True
    """
    if isinstance(error, MissingExtraError) and error.distribution == OURS:
        return _told_extras(arguments, error.extra.split(","), error.name), _BAD_INPUT
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").partition(".")[0]
        extra = EXTRA_OF_PACKAGE.get(package)
        return None if extra is None else (_told_extras(arguments, [extra], package), _BAD_INPUT)
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
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        return f"{error.filename}: {error.strerror}", _FAILED if full else _BAD_INPUT
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"nothing more can be written: {error.strerror}", _FAILED
    return None


def _told_extras(arguments: Sequence[str], met: Sequence[str], package: str | None) -> str:
    """What a command lacks and how to install all of it.

    Args:
        arguments: the command line.
        met: the extras that something was missing of.
        package: what was missing.
    """
    command = arguments[0] if arguments and not arguments[0].startswith("-") else ""
    wanted = [*EXTRAS_OF_COMMAND.get(command, ("cli",)), *_extras_of_arguments(command, arguments[1:]), *met]
    who = f"`springback {command}`" if command else "this command"
    told = told_missing(who, extras_to_install(wanted) or met, package)
    return f"{told}{'' if importlib.util.find_spec('typer') else _WITHOUT_THE_REST}"


def _extras_of_arguments(command: str, arguments: Sequence[str]) -> Iterator[str]:
    """The extras that the options, sources and recordings of a command line need."""
    from springback.producers.recordings.any_format import extras_of_recordings
    from springback.producers.sources import SOURCES

    yield from (extra for option, extra in _EXTRAS_OF_OPTION.items() if option in arguments)
    if command == "bridge":
        yield from (s.extra for s in SOURCES if s.kind == "bridge" and s.name in arguments and s.extra)
    else:
        yield from extras_of_recordings(word for word in arguments if not word.startswith("-"))
