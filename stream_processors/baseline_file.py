"""The stage baseline in a file that a setting or an option names."""

from pathlib import Path

from springback.stream_processors.errors import SettingsError
from springback.stream_processors.resilience.anchor import AnchorGrid
from springback.stream_processors.resilience.baseline.codec import BaselineFormatError, load_baseline
from springback.stream_processors.resilience.baseline.stage_baseline import StageBaseline


def read_baseline(file: Path, grid: AnchorGrid, named_by: str) -> StageBaseline:
    """The baseline in a file that `springback baseline export` wrote.

    Args:
        file: the file.
        grid: the anchor grid of the settings, which must be the file's.
        named_by: the setting or option that names it.

    Raises:
        SettingsError: the file cannot be read, holds no baseline, or one that was learned with another anchor grid.
    """
    try:
        baseline = load_baseline(file.read_bytes())
    except OSError as error:
        message = f"{named_by}: cannot read {str(file)!r} ({error.strerror})."
        raise SettingsError(message) from error
    except BaselineFormatError as error:
        message = f"{named_by} {str(file)!r}: {error}."
        raise SettingsError(message) from error
    if baseline.grid != grid:
        message = f"{named_by} {str(file)!r} was learned with the grid {baseline.grid}, the settings have {grid}."
        raise SettingsError(message)
    return baseline
