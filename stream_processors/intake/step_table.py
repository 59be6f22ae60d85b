"""What validation makes of a batch of frames: one table of columns, and what was taken out of it with the reason.

Shape: every row array is (n,), n the rows that passed. Rows are ordered by frame, inside a frame by (episode, step).
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from springback.producers.contract.frame import EpisodeEnd, EpisodeHeader, StepFrame

Integers = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
RejectedPart = Literal["steps", "episodes", "ends", "navigation", "realised_magnitude", "extended"]


@dataclass(frozen=True, slots=True)
class ArrivedFrame:
    """A frame and when the broker got it, in seconds UTC epoch."""

    frame: StepFrame
    broker_time_s: float


@dataclass(frozen=True, slots=True)
class TableEpisode:
    """An episode as one frame names it: the frame's index, and the header."""

    frame: int
    header: EpisodeHeader


@dataclass(frozen=True, slots=True)
class TableEnd:
    """An episode's end. `episode` indexes the table's episodes; `time_s` is the broker's where the end's is no use."""

    episode: int
    end: EpisodeEnd
    time_s: float


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """What was taken out of a frame: a row of steps, or a header, end or navigation part (`row` says which).

    `row` holds its own values as JSON can carry them, `reason` is a snake_case code out of a small fixed set. `part`
    says what was taken out, and `field` which column or field of it is at fault, or, of what belongs to an episode
    whose header was rejected, which field of the header; empty where it is the whole.
    """

    frame: int
    row: dict[str, Any]
    reason: str
    detail: str
    part: RejectedPart = "steps"
    field: str = ""


@dataclass(frozen=True, slots=True)
class StepTable:
    """All valid rows of a batch of frames.

    Attributes:
        frames: the batch.
        episodes: one per usable header of each frame, in frame order.
        episode: index into `episodes`.
        frame_row: where the row stands in its own frame.
        step: step number.
        time_s: never NaN; the broker's time where the row's is absent or implausible.
        clocked: False where the broker's time stands in.
        cycle_time_s: NaN where not given.
        progress, propositions: in [0, 1]; propositions default to progress.
        planning_s, perception_s, travel, retries, risk, violation: finite and not negative.
        judge_goal, judge_rationality, judge_efficiency: in [0, 1], NaN where absent.
        mode: index into `mode_names`, the distinct modes of the batch.
        ends: episode ends, in frame order.
        replaced_times: (frames,) kept rows whose time was given but implausible.
        rejected: what was taken out, or of frames with very much of it the first (see `tabulate`).
        rejected_rows, rejected_parts: (frames,) how many rows were taken out of each, and how many other parts.
        rejected_starts: the frames' own episode indices whose step 0 was taken out, each behind its frame's index.
    """

    frames: list[ArrivedFrame]
    episodes: list[TableEpisode]
    episode: Integers
    frame_row: Integers
    step: Integers
    time_s: Numbers
    clocked: Flags
    cycle_time_s: Numbers
    progress: Numbers
    propositions: Numbers
    planning_s: Numbers
    perception_s: Numbers
    travel: Numbers
    retries: Numbers
    risk: Numbers
    violation: Numbers
    judge_goal: Numbers
    judge_rationality: Numbers
    judge_efficiency: Numbers
    mode: Integers
    mode_names: list[str]
    ends: list[TableEnd]
    replaced_times: Integers
    rejected: list[RejectedRow]
    rejected_rows: Integers
    rejected_parts: Integers
    rejected_starts: frozenset[tuple[int, int]]

    def __len__(self) -> int:
        """How many rows it has."""
        return len(self.step)
