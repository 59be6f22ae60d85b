"""The columns of a step frame: one table that encoding, decoding, validation and the JSON Schema all read.

Units are SI; see `ColumnSpec.unit`. A cell without a value is `null` in lists. In packed columns, and in the arrays of
a decoded frame, it is the one NaN `ABSENT`, told from any other NaN by its bits: a NaN that a broken sensor sent must
not pass for a value that was left out (ours). Texts are made fit for UTF-8 on entry: lone surrogates are legal in
JSON escapes and in Python strings, but cannot be encoded.
"""

from __future__ import annotations

import sys
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

ColumnKind = Literal["integer", "number", "text"]

ABSENT_BITS = 0x7FF80000000007A2
ABSENT = float(np.array(ABSENT_BITS, dtype=np.int64).view(np.float64))

LARGEST_INTEGER = 2**53
LARGEST_NUMBER = sys.float_info.max
LARGEST_LOAD = 1e12
"""Bounds durations, distances, counts and loads: what is beyond it is broken, and its square may overflow (ours)."""
SHARE_ROUNDING = 1e-4
"""How far past 0 or 1 rounding may carry a share: 10,000 steps of 1/10,000 come to 1.00005 in float32 (ours)."""
LOAD_ROUNDING = 1e-6
"""How far below 0 rounding may carry a load: the difference of two that are equal (ours)."""
EARLIEST_TIME_S = 978_307_200.0
"""2001-01-01T00:00:00Z: a clock that says less was never set; many count from 1970, 1980 or 2000 (ours)."""
YEAR_2100_S = 4_102_444_800.0
"""Where nobody knows the present, what says more is no time in seconds (ours)."""
LARGEST_LEAD_S = 86_400.0
"""How far ahead of the broker's clock a producer's may be (ours)."""
MAX_TEXT = 256
MAX_MODE = 64


class ColumnSpec(NamedTuple):
    """One column of `steps`.

    Attributes:
        name: the key in `steps`.
        kind: integer (int64), number (float64) or text.
        required: whether every row must have a value.
        default: what an absent cell means; None where it is derived or stays absent (see `description`).
        minimum: the least value allowed, or the least length of a text.
        maximum: the greatest value allowed, or the greatest length of a text, in characters.
        unit: the unit of a number, "1" where it has none.
        description: what the value is.
    """

    name: str
    kind: ColumnKind
    required: bool
    default: float | str | None
    minimum: float
    maximum: float
    unit: str
    description: str

    @property
    def is_share(self) -> bool:
        """Whether it is a number in [0, 1]."""
        return self.kind == "number" and self.maximum == 1.0

    @property
    def is_load(self) -> bool:
        """Whether it is a number of 0 or more, without a maximum that means anything."""
        return self.kind == "number" and self.minimum == 0.0 and not self.is_share


def rounded_back(value: float, minimum: float | None, maximum: float | None) -> float:
    """The value, or the bound that it lies past by no more than rounding can account for.

    >>> rounded_back(1.0000001, 0.0, 1.0), rounded_back(-1e-9, 0.0, LARGEST_LOAD), rounded_back(1.5, 0.0, 1.0)
    (1.0, 0.0, 1.5)
    """
    if minimum == 0.0 and maximum == 1.0:
        return min(1.0, max(0.0, value)) if -SHARE_ROUNDING <= value <= 1.0 + SHARE_ROUNDING else value
    return 0.0 if minimum == 0.0 and -LOAD_ROUNDING <= value < 0.0 else value


def _number(name: str, unit: str, description: str) -> ColumnSpec:
    return ColumnSpec(name, "number", False, 0.0, 0.0, LARGEST_LOAD, unit, description)


def _fraction(name: str, description: str, *, required: bool = False) -> ColumnSpec:
    return ColumnSpec(name, "number", required, None, 0.0, 1.0, "1", description)


def _text(name: str, default: str, maximum: int, description: str) -> ColumnSpec:
    return ColumnSpec(name, "text", False, default, 0.0, float(maximum), "1", description)


STEP_COLUMNS: tuple[ColumnSpec, ...] = (
    ColumnSpec("episode", "integer", True, None, 0.0, float(LARGEST_INTEGER), "1", "index into this frame's episodes"),
    ColumnSpec("step", "integer", True, None, 0.0, float(LARGEST_INTEGER), "1", "number in the episode, rising from 0"),
    ColumnSpec(
        "time_s", "number", False, None, -LARGEST_NUMBER, LARGEST_NUMBER, "s",
        "instant of the step, UTC epoch; absent or implausible: the broker's time",
    ),
    ColumnSpec(
        "cycle_time_s", "number", False, None, sys.float_info.min, LARGEST_LOAD, "s",
        "duration of the decision cycle; absent: derived from time_s",
    ),
    _fraction("progress", "task progress after the step", required=True),
    _fraction("propositions", "share of the goal's propositions that hold after the step; absent: progress"),
    _number("planning_s", "s", "cognitive effort: time spent planning"),
    _number("perception_s", "s", "cognitive effort: time spent perceiving"),
    _number("travel", "m", "physical effort: distance covered (metres or grid cells)"),
    _number("retries", "1", "physical effort: actions that failed and were tried again"),
    _number("risk", "1", "risk load of the step"),
    _number("violation", "1", "constraint-violation load of the step"),
    _fraction("judge_goal", "judge's score of the step: does it serve the goal; absent: not judged"),
    _fraction("judge_rationality", "judge's score of the step: is it rational; absent: not judged"),
    _fraction("judge_efficiency", "judge's score of the step: is it efficient; absent: not judged"),
    _text("mode", "run", MAX_MODE, "execution mode: navigate, manipulate, perceive, plan, wait, communicate, …"),
    _text("action", "", MAX_TEXT, "the action taken, in words"),
    _text("feedback", "", MAX_TEXT, "what the environment answered, in words"),
)  # fmt: skip

COLUMN_BY_NAME: dict[str, ColumnSpec] = {spec.name: spec for spec in STEP_COLUMNS}
NUMBER_COLUMNS: tuple[ColumnSpec, ...] = tuple(spec for spec in STEP_COLUMNS if spec.kind == "number")
TEXT_COLUMNS: tuple[ColumnSpec, ...] = tuple(spec for spec in STEP_COLUMNS if spec.kind == "text")


def is_absent(values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Which cells have no value: those that hold `ABSENT`, not any other NaN.

    >>> is_absent(np.array([0.5, ABSENT, np.nan])).tolist()
    [False, True, False]
    """
    absent: npt.NDArray[np.bool_] = values.view(np.int64) == ABSENT_BITS
    return absent


def without_lone_surrogates(text: str) -> str:
    r"""The text with each lone surrogate replaced by U+FFFD, and surrogate pairs joined; safe to encode as UTF-8.

    >>> without_lone_surrogates("a\ud800b")
    'a�b'
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
