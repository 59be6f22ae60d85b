"""`--log-level` and `--log-format`, which every command has that goes on for days."""

import contextlib
import functools
import inspect
import os
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer

from springback.stream_processors.service.log import (
    FORMAT_VARIABLE,
    LEVEL_VARIABLE,
    LogFormat,
    LogLevel,
    configure_logging,
)

_LEVEL = Annotated[
    LogLevel | None,
    typer.Option(
        "--log-level",
        envvar=LEVEL_VARIABLE,
        case_sensitive=False,
        help="The least that the log tells; of libraries it tells warnings at most.",
    ),
]
_FORMAT = Annotated[
    LogFormat | None,
    typer.Option(
        "--log-format",
        envvar=FORMAT_VARIABLE,
        case_sensitive=False,
        help="Lines of text, or JSON objects with time, level, logger, message and fields, one a line.",
    ),
]


def with_log(command: Callable[..., None], *, quiet: bool = False) -> Callable[..., None]:
    """The command with the two options, which say how its log and that of the parts that it starts is written.

    Args:
        command: a service, as a function with its options.
        quiet: whether its own log begins at `warning` where nothing is said, as it tells what it does by itself.
    """

    @functools.wraps(command)
    def run(*args: Any, log_level: LogLevel | None, log_format: LogFormat | None, **options: Any) -> None:
        configure_logging(log_level or ("warning" if quiet else "info"), log_format or "text")
        with _told_to_children({LEVEL_VARIABLE: log_level, FORMAT_VARIABLE: log_format}):
            command(*args, **options)

    own = inspect.signature(command, eval_str=True)
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in (("log_level", _LEVEL), ("log_format", _FORMAT))
    ]
    run.__signature__ = own.replace(parameters=[*own.parameters.values(), *more])  # type: ignore[attr-defined]
    run.__annotations__ = {**command.__annotations__, "log_level": _LEVEL, "log_format": _FORMAT}
    return run


@contextlib.contextmanager
def _told_to_children(variables: dict[str, str | None]) -> Iterator[None]:
    """Has the variables in the environment for as long as the block, so that the parts that it starts have them."""
    before = {name: os.environ.get(name) for name in variables}
    _set({name: value for name, value in variables.items() if value is not None})
    try:
        yield
    finally:
        _set(before)


def _set(variables: dict[str, str] | dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
