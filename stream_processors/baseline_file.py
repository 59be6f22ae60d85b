"""The stage baseline in a file that a setting or an option names."""

import logging
from pathlib import Path

from springback.stream_processors.errors import SettingsError
from springback.stream_processors.resilience.anchor import AnchorGrid
from springback.stream_processors.resilience.baseline.codec import BaselineFormatError, load_baseline
from springback.stream_processors.resilience.baseline.stage_baseline import StageBaseline

_log = logging.getLogger(__name__)


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
    uncounted = [name for name, family in baseline.families.items() if any(not s.references for s in family.largest)]
    if uncounted:
        _log.warning(
            "%s %s: written by an older springback, whose alarm bounds were calibrated on the episodes that taught the "
            "baseline. They are not used: families %s are learning. Learn them anew from recordings, or export again "
            "once the fleet has run more clean episodes.",
            named_by,
            file,
            ", ".join(uncounted),
        )
    return baseline
