"""Programs beside the tests (`make bench`, `make faults` and so on): one command each, with the exit codes of ours."""

import sys
from collections.abc import Callable, Sequence

import typer

from springback.deploy.cli import explain


def run_program(command: Callable[..., None], name: str, arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        command: the function, with its options as typer has them.
        name: what it is called in its help.
        arguments: what it is given; those of this process when left out.

    Returns:
        0 when all went well, 1 when something was found or failed, 2 for wrong usage, 130 after Ctrl-C.
    """
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown")
    app.command(context_settings={"help_option_names": ["-h", "--help"]})(command)
    try:
        app(arguments, prog_name=name)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(bool(end.code))
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        told = explain(error)
        if told is None:
            raise
        print(f"{name}: {told[0]}", file=sys.stderr)
        return told[1]
    return 0
