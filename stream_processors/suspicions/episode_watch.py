"""What is kept of one episode while it runs: the shape of its progress, its step numbers, its units, its clock.

Of bounded size, whatever the episode does: numbers, the first 64 rows, and at most three values of progress.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from springback.producers.contract.suspicions import UNIT_STEPS, Floats, Sign, unit_signs
from springback.stream_processors.intake.step_table import Integers, StepTable

BACKWARDS_S: Final = 0.05
"""How much earlier than the step before a step must be: less is rounding, or two threads (ours)."""
FIRST_ROWS: Final = 64
RISES: Final = 1 / 3
"""A load that counts up rises in at least this share of the steps (ours)."""
LOADS: Final = ("planning_s", "perception_s", "travel", "retries", "risk", "violation")
_UNIT_COLUMNS: Final = ("cycle_time_s", "planning_s", "perception_s", "travel")
_MOST_VALUES: Final = 3


@dataclass(slots=True)
class CountedUp:
    """Whether a load has never fallen in an episode, and in how many of its steps it has risen."""

    last: float = -math.inf
    first: float = 0.0
    rises: int = 0
    falls: int = 0

    def follow(self, values: Floats) -> None:
        """Goes on over the steps of a batch."""
        if self.last == -math.inf:
            self.first = float(values[0])
            changes = np.diff(values)
        else:
            changes = np.diff(values, prepend=self.last)
        self.rises += int((changes > 0.0).sum())
        self.falls += int((changes < 0.0).sum())
        self.last = float(values[-1])


@dataclass(slots=True)
class EpisodeWatch:
    """One episode so far.

    Attributes:
        began_at, last_at: the agent's rows before its first one, and up to its last.
        seen_whole: whether nothing of it can have been before the look.
        steps: rows followed.
        first_step, last_step: numbers of the first row and of the last.
        stride: the greatest number that divides all distances between steps; 0 before there are two.
        first, last, lowest, highest: progress after its first step and its last, and its bounds.
        rise: the largest rise of progress from one step to the next.
        values: the first values of progress, at most three.
        backwards: how often the clock went back, and `backwards_s` the most that it did.
        travel: sum of travel, in metres.
        loads: of each load whether it counts up.
    """

    began_at: int = 0
    last_at: int = 0
    seen_whole: bool = True
    steps: int = 0
    first_step: int = -1
    last_step: int = -1
    stride: int = 0
    first: float = math.nan
    last: float = math.nan
    lowest: float = math.inf
    highest: float = -math.inf
    rise: float = 0.0
    values: set[float] = field(default_factory=set)
    backwards: int = 0
    backwards_s: float = 0.0
    last_time_s: float = math.nan
    travel: float = 0.0
    loads: dict[str, CountedUp] = field(default_factory=lambda: {name: CountedUp() for name in LOADS})
    _gaps: list[float] = field(default_factory=list)
    _columns: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in _UNIT_COLUMNS})

    def follow(self, table: StepTable, rows: Integers) -> None:
        """Goes on over rows of a table, which rise in step and follow the last."""
        step, progress = table.step[rows], table.progress[rows]
        ahead = np.diff(step) if self.last_step < 0 else np.diff(step, prepend=self.last_step)
        self.stride = math.gcd(self.stride, int(np.gcd.reduce(ahead))) if len(ahead) else self.stride
        time_s = np.where(table.clocked[rows], table.time_s[rows], np.nan)
        since_s = np.diff(time_s, prepend=self.last_time_s)
        back = since_s < -BACKWARDS_S
        if back.any():
            self.backwards += int(back.sum())
            self.backwards_s = max(self.backwards_s, float(-since_s[back].min()))
        if len(self._gaps) < FIRST_ROWS:
            follows = np.r_[self.last_step >= 0 and step[0] == self.last_step + 1, np.diff(step) == 1]
            self._gaps += np.where(follows, since_s, np.nan).tolist()[: FIRST_ROWS - len(self._gaps)]
            for name, kept in self._columns.items():
                kept += getattr(table, name)[rows].tolist()[: FIRST_ROWS - len(kept)]
        self._follow_progress(progress)
        for name, load in self.loads.items():
            load.follow(getattr(table, name)[rows])
        self.travel += float(table.travel[rows].sum())
        if self.first_step < 0:
            self.first_step = int(step[0])
        self.steps += len(rows)
        self.last_step, self.last_time_s = int(step[-1]), float(time_s[-1])

    def _follow_progress(self, progress: Floats) -> None:
        rises = np.diff(progress) if self.steps == 0 else np.diff(progress, prepend=self.last)
        if len(rises):
            self.rise = max(self.rise, float(rises.max()))
        if self.steps == 0:
            self.first = float(progress[0])
        self.last = float(progress[-1])
        self.lowest, self.highest = min(self.lowest, float(progress.min())), max(self.highest, float(progress.max()))
        if len(self.values) < _MOST_VALUES:
            self.values.update(np.unique(progress)[:_MOST_VALUES].tolist())

    @property
    def still(self) -> bool:
        """Whether progress was the same after every step."""
        return self.lowest == self.highest

    @property
    def jumped(self) -> bool:
        """Whether progress took two values, far apart."""
        return len(self.values) == 2 and self.rise >= 0.9

    @property
    def skips(self) -> bool:
        """Whether all numbers lie a multiple apart."""
        return self.stride > 1 and self.steps > UNIT_STEPS

    @property
    def missing(self) -> int:
        """How many numbers between the first and the last were left out."""
        return self.last_step - self.first_step + 1 - self.steps

    def counts_up(self) -> list[str]:
        """The loads that count up."""
        if self.steps < UNIT_STEPS:
            return []
        return [n for n, load in self.loads.items() if not load.falls and load.rises >= max(RISES * self.steps, 8)]

    def units(self, subject: str) -> list[Sign]:
        """The units that cannot be right."""
        columns: Mapping[str, Floats] = {name: np.array(kept) for name, kept in self._columns.items()}
        return list(unit_signs(subject, np.array(self._gaps), columns))
