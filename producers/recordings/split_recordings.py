"""Recordings that were split into files: which files are one, in which order, and whether one goes on in another.

Recorders begin a new file after a time or a size (`run_0.mcap`, `run_1.mcap`, …), in the midst of whatever is going on.
A shell names the tenth before the second. All of it is ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

OVERLAP_S: Final = 1.0
CONTINUES_S: Final = 10.0
"""A file goes on where the one before has ended if it begins within so many seconds after that."""

_PIECE: Final = re.compile(r"(?P<name>.+?)[_-]\d+(?P<suffixes>(?:\.[^./]+)+)")


def pieces_of_recordings(paths: Iterable[Path]) -> list[list[Path]]:
    """The files that may be pieces of one recording, together: those whose names differ by a number at the end.

    >>> paths = map(Path, ["a_10.mcap", "b.mcap", "a_2.mcap"])
    >>> [[path.name for path in pieces] for pieces in pieces_of_recordings(paths)]
    [['a_10.mcap', 'a_2.mcap'], ['b.mcap']]
    """
    found: dict[object, list[Path]] = {}
    for place, path in enumerate(paths):
        match = _PIECE.fullmatch(path.name)
        key = place if match is None else (path.parent, match["name"], match["suffixes"])
        found.setdefault(key, []).append(path)
    return list(found.values())


def by_time(pieces: list[Path], begins_s: Callable[[Path], float | None]) -> list[Path]:
    """The files in the order in which they begin; where that is not known of all, as they came.

    Args:
        pieces: the files.
        begins_s: when a file begins, in seconds; None where it does not say.
    """
    if len(pieces) == 1:
        return pieces
    times = [begins_s(path) for path in pieces]
    known = [time_s for time_s in times if time_s is not None]
    if len(known) < len(times):
        return pieces
    return [path for _, _, path in sorted(zip(known, range(len(pieces)), pieces))]


def goes_on(ended_s: float, begins_s: float) -> bool:
    """Whether a file that begins at a time is the next piece of one that ended at another.

    >>> goes_on(100.0, 100.5), goes_on(100.0, 500.0), goes_on(100.0, 20.0)
    (True, False, False)
    """
    return -OVERLAP_S <= begins_s - ended_s <= CONTINUES_S
