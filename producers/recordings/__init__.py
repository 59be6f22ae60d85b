"""Recordings: what comes with springback, the readers of every format, and replay.

`habitat_twins`: step frames of 120 pairs of point-goal navigation episodes in habitat-sim 0.3.3, in two houses. Each
pair is one task, once clean and once with one disturbance (dropped actions, a heading kick, a push, a moved goal or a
jump of the estimated pose) of stress 0.2 to 1. The clock is the simulator's. Headers say which attack it was; how much
of it there really was, and the fewest actions of an episode, were not recorded.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib.resources import as_file, files
from pathlib import Path


def habitat_twins() -> AbstractContextManager[Path]:
    """The recording of twins as a file, for as long as the context is open."""
    return as_file(files(__name__) / "habitat_twins.frames.jsonl.gz")
