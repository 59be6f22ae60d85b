"""The files that commands take as input: recordings, mappings, baselines and value models, and how they are read."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from springback.producers.mapping.signal_mapping import SignalMapping
    from springback.producers.recordings.any_format import ReadingProgress
    from springback.producers.recordings.step_frames import UnreadablePart
    from springback.stream_processors.resilience.baseline.stage_baseline import StageBaseline
    from springback.stream_processors.resilience.config import ResilienceConfig
    from springback.stream_processors.resilience.stability.value_function import ValueModel

_MOST_SHOWN = 20


def check_recordings(files: list[Path]) -> list[Path]:
    """The files and folders as given, checked.

    Raises:
        typer.BadParameter: one of them is not there.
    """
    for file in files:
        if str(file) != "-" and not file.exists():
            message = f"there is no file {str(file)!r}"
            raise typer.BadParameter(message)
    return files


RecordingsArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE",
        callback=check_recordings,
        show_default=False,
        help="Recordings: step frames as JSON Lines, plain or gzip; with --mapping also MCAP, bags of ROS 1 and 2, "
        "ULog, Parquet, CSV, JSON Lines and folders of LeRobot, in any mixture. Several are one input; - is standard "
        "input.",
    ),
]

MappingOption = Annotated[
    str | None,
    typer.Option(
        "--mapping",
        "-m",
        metavar="FILE|NAME",
        help="Which field is which signal (TOML): a file, or the name of one that comes with springback "
        "(`springback sources` lists them).",
    ),
]

BaselineOption = Annotated[
    Path | None,
    typer.Option(
        "--baseline",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Score by this exported baseline alone and learn nothing (frozen), so that a run can be reproduced.",
    ),
]

ValueModelOption = Annotated[
    str | None,
    typer.Option(
        "--value-model",
        metavar="FILE|NAME",
        help="Value states by this network (springback fit-value) or installed model (`springback sources` lists "
        "them) instead of by the mean return at their anchor. A baseline that is given must have been learned with it.",
    ),
]


def read_mapping_option(name_or_file: str | None, files: Sequence[Path] = ()) -> "SignalMapping | None":
    """The mapping that the option names; None where it names none.

    Args:
        name_or_file: what was given.
        files: the recordings that it is for.

    Raises:
        MappingError: there is none, it is not valid, or a recording needs one and none is given.
    """
    from springback.producers.mapping.signal_mapping import load_mapping
    from springback.producers.recordings.any_format import check_without_mapping

    if name_or_file is not None:
        return load_mapping(name_or_file)
    for file in files:
        check_without_mapping(file)
    return None


def read_baseline_option(file: Path, config: "ResilienceConfig", option: str) -> "StageBaseline":
    """The baseline in a file that `springback baseline export` wrote.

    Args:
        file: the file.
        config: the settings, whose anchor grid must be the file's.
        option: what the file is called on the command line.

    Raises:
        SettingsError: the file holds none, or one with another anchor grid.
    """
    from springback.stream_processors.baseline_file import read_baseline

    return read_baseline(file, config.grid, option)


def read_value_option(name: str | None) -> "ValueModel | None":
    """The value model that the option names; None for the mean return by anchor.

    Raises:
        SettingsError: there is no such model, or it cannot be used.
    """
    from springback.stream_processors.value_models import find_value_model

    return find_value_model(name or "", "--value-model")


class LeftOut:
    """Takes each part of a recording that is left out, shows the first ones and counts all.

    Args:
        tell: prints one line.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self.count = 0

    def __call__(self, part: "UnreadablePart") -> None:
        """Shows the part, unless many have been shown already; a note is shown always, for it leaves nothing out."""
        if part.note:
            self._tell(f"noted     {part}")
            return
        self.count += 1
        if self.count <= _MOST_SHOWN:
            self._tell(f"left out  {part}")

    def finish(self) -> None:
        """Says how many were not shown, if any."""
        if self.count > _MOST_SHOWN:
            self._tell(f"left out  {self.count - _MOST_SHOWN} more, not shown here")


@contextmanager
def reading_progress(wanted: bool) -> Iterator["ReadingProgress"]:
    """Shows on a terminal how much of each recording has been read, until all have been.

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
