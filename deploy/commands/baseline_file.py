"""A baseline file that was named on the command line."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from springback.stream_processors.resilience.resilience_config import ResilienceConfig
    from springback.stream_processors.resilience.stage_baseline import StageBaseline


def read_baseline(file: Path, config: "ResilienceConfig", option: str) -> "StageBaseline":
    """The baseline in a file that `springback baseline export` wrote.

    Args:
        file: The file.
        config: The settings, whose anchor grid must be the file's.
        option: How the command line names the file.

    Raises:
        typer.BadParameter: the file holds none, or one with another anchor grid.
    """
    from springback.stream_processors.resilience.baseline_codec import BaselineFormatError, load_baseline

    try:
        baseline = load_baseline(file.read_bytes())
    except BaselineFormatError as error:
        message = f"{file}: {error}"
        raise typer.BadParameter(message, param_hint=option) from error
    if baseline.grid != config.grid:
        message = f"{file} was learned with the grid {baseline.grid}, the settings have {config.grid}"
        raise typer.BadParameter(message, param_hint=option)
    return baseline
