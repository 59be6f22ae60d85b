"""A progress bar for recordings that are read through a mapping."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from springback.producers.mapped_recordings import Progress


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
