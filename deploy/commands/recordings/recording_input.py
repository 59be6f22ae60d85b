"""A baseline file that was named on the command line.

Tells of what could not be read of a recording, without flooding the terminal where that is nearly all of it.

A progress bar for recordings that are read through a mapping.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from springback.producers.recordings.any_format import Progress
    from springback.producers.recordings.step_frames import UnreadablePart
    from springback.stream_processors.resilience.baseline.stage_baseline import StageBaseline
    from springback.stream_processors.resilience.config import ResilienceConfig


def read_baseline(file: Path, config: "ResilienceConfig", option: str) -> "StageBaseline":
    """The baseline in a file that `springback baseline export` wrote.

    Args:
        file: The file.
        config: The settings, whose anchor grid must be the file's.
        option: How the command line names the file.

    Raises:
        typer.BadParameter: the file holds none, or one with another anchor grid.
    """
    from springback.stream_processors.resilience.baseline.codec import BaselineFormatError, load_baseline

    try:
        baseline = load_baseline(file.read_bytes())
    except BaselineFormatError as error:
        message = f"{file}: {error}"
        raise typer.BadParameter(message, param_hint=option) from error
    if baseline.grid != config.grid:
        message = f"{file} was learned with the grid {baseline.grid}, the settings have {config.grid}"
        raise typer.BadParameter(message, param_hint=option)
    return baseline


_MOST_SHOWN = 20


class LeftOut:
    """Takes each part that is left out, shows the first ones and counts all.

    Args:
        tell: Prints one line.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self.count = 0

    def __call__(self, part: "UnreadablePart") -> None:
        """Show the part, if not too many were shown before."""
        self.count += 1
        if self.count <= _MOST_SHOWN:
            self._tell(f"left out  {part}")

    def finish(self) -> None:
        """Say how many were not shown, if any."""
        if self.count > _MOST_SHOWN:
            self._tell(f"left out  {self.count - _MOST_SHOWN} more, not shown here")


@contextmanager
def reading_progress(wanted: bool) -> Iterator["Progress"]:
    """Show how much of each recording is read, on a terminal; gone when all are.

    Args:
        wanted: whether there is anything to show at all.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("Reading {task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not (wanted and console.is_terminal)) as progress:
        tasks: dict[str, TaskID] = {}

        def show(source: str, share: float | None) -> None:
            if source not in tasks:
                tasks[source] = progress.add_task(source, total=None)
            if share is not None:
                progress.update(tasks[source], total=1.0, completed=share)

        yield show
