"""The columns of a batch of frames, joined end to end and checked at once, without Python per row.

A row that is out of bounds is only marked here (`JoinedColumns.suspect`). `row_fault` says what is wrong with a single
row: slow, and asked for suspect rows alone. `row_values` shows what such a row held.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from springback.producers.contract.columns import (
    ABSENT,
    ABSENT_BITS,
    COLUMN_BY_NAME,
    LARGEST_INTEGER,
    LOAD_ROUNDING,
    NUMBER_COLUMNS,
    SHARE_ROUNDING,
    STEP_COLUMNS,
    TEXT_COLUMNS,
    ColumnSpec,
    is_absent,
    rounded_back,
)
from springback.producers.contract.fault_words import percent_hint, shown
from springback.producers.contract.frame import StepFrame, TextColumn

_SHARES = [spec for spec in NUMBER_COLUMNS if spec.is_share]
_LOADS = [spec for spec in NUMBER_COLUMNS if spec.is_load]
JOINED = [*_SHARES, *_LOADS, *(spec for spec in NUMBER_COLUMNS if not (spec.is_share or spec.is_load))]
"""The number columns in the order of the joined matrix: shares first and then loads, so that one call clips them."""

LINE = {spec.name: line for line, spec in enumerate(JOINED)}
_ZERO_BY_DEFAULT = np.array([[spec.default == 0.0] for spec in JOINED])
_LOWEST = np.array([[spec.minimum - SHARE_ROUNDING * spec.is_share - LOAD_ROUNDING * spec.is_load] for spec in JOINED])
_HIGHEST = np.array([[spec.maximum + SHARE_ROUNDING * spec.is_share] for spec in JOINED])
_PROGRESS, _PROPOSITIONS = LINE["progress"], LINE["propositions"]
_DEFAULT_MODE = str(COLUMN_BY_NAME["mode"].default)


@dataclass(frozen=True, slots=True)
class JoinedColumns:
    """All rows of a batch, in the order of arrival.

    Attributes:
        episode: (n,) the frame's own episode indices, unchecked.
        step: (n,) step numbers.
        numbers: (len(JOINED), n) with constant defaults filled in; NaN where absent.
        mode: (n,) index into `mode_names`.
        mode_names: the distinct modes of the batch.
        suspect: (n,) rows with any value missing or out of bounds.
    """

    episode: npt.NDArray[np.int64]
    step: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.float64]
    mode: npt.NDArray[np.int64]
    mode_names: list[str]
    suspect: npt.NDArray[np.bool_]


def join_columns(frames: Sequence[StepFrame], counts: Sequence[int]) -> JoinedColumns:
    """Joins the columns of the frames, which have `counts` rows each."""
    total = sum(counts)
    suspect = np.zeros(total, dtype=np.bool_)
    episode = _join_integers(frames, "episode", total)
    step = _join_integers(frames, "step", total)
    suspect |= (step < 0) | (step > LARGEST_INTEGER)
    numbers = _join_numbers(frames, counts, suspect)
    mode, mode_names = _join_modes(frames, counts)
    _mark_long_texts(frames, counts, suspect)
    return JoinedColumns(episode, step, numbers, mode, mode_names, suspect)


def _join_integers(frames: Sequence[StepFrame], name: str, total: int) -> npt.NDArray[np.int64]:
    joined = np.empty(total, dtype=np.int64)
    parts: list[Any] = [frame.steps[name] for frame in frames if name in frame.steps]
    if parts:
        np.concatenate(parts, out=joined)
    return joined


def _join_numbers(
    frames: Sequence[StepFrame], counts: Sequence[int], suspect: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    numbers = np.empty((len(JOINED), len(suspect)))
    for line, spec in enumerate(JOINED):
        parts: list[Any] = [frame.steps[spec.name] for frame in frames if spec.name in frame.steps]
        if not parts:
            numbers[line] = ABSENT
            continue
        if len(parts) < len(frames):
            filler = np.full(max(counts), ABSENT)
            parts = [frame.steps.get(spec.name, filler[:n]) for frame, n in zip(frames, counts, strict=True)]
        np.concatenate(parts, out=numbers[line])
    absent = is_absent(numbers)
    outside = ~((numbers >= _LOWEST) & (numbers <= _HIGHEST))
    suspect |= (outside & ~absent).any(axis=0) | absent[_PROGRESS]
    np.copyto(numbers, 0.0, where=absent & _ZERO_BY_DEFAULT)
    np.copyto(numbers[_PROPOSITIONS], numbers[_PROGRESS], where=absent[_PROPOSITIONS])
    # What rounding has carried past a bound is put back to it.
    bounded, shares = numbers[: len(_SHARES) + len(_LOADS)], numbers[: len(_SHARES)]
    np.maximum(bounded, 0.0, out=bounded)
    np.minimum(shares, 1.0, out=shares)
    return numbers


def _join_modes(frames: Sequence[StepFrame], counts: Sequence[int]) -> tuple[npt.NDArray[np.int64], list[str]]:
    names: dict[str, int] = {}
    own_to_joined: list[int] = []
    first_own: list[int] = []
    codes: list[Any] = []
    for frame, count in zip(frames, counts, strict=True):
        column = frame.steps.get("mode")
        first_own.append(len(own_to_joined))
        if isinstance(column, TextColumn):
            own_to_joined.extend([names.setdefault(value, len(names)) for value in column.values])
            codes.append(column.codes)
        else:
            own_to_joined.append(names.setdefault(_DEFAULT_MODE, len(names)))
            codes.append(np.zeros(count, dtype=np.uint16))
    if not any(counts):
        return np.empty(0, dtype=np.int64), []
    own = np.concatenate(codes, dtype=np.int64) + np.repeat(first_own, counts)
    return np.array(own_to_joined, dtype=np.int64)[own], list(names)


def _mark_long_texts(frames: Sequence[StepFrame], counts: Sequence[int], suspect: npt.NDArray[np.bool_]) -> None:
    start = 0
    for frame, count in zip(frames, counts, strict=True):
        for spec in TEXT_COLUMNS:
            column = frame.steps.get(spec.name)
            if isinstance(column, TextColumn):
                long = [code for code, value in enumerate(column.values) if len(value) > spec.maximum]
                if long:
                    suspect[start : start + count] |= np.isin(column.codes, long)
        start += count


def row_values(frame: StepFrame, row: int) -> dict[str, Any]:
    """The row's own values by column, as JSON can carry them; None where absent."""
    return {name: _shown_cell(_cell(column, row)) for name, column in frame.steps.items()}


def row_fault(frame: StepFrame, row: int) -> tuple[str, str, str] | None:
    """The reason, the detail and the column of the first value of a row that is missing or out of bounds.

    None if all are well.
    """
    for spec in STEP_COLUMNS:
        if spec.name in frame.steps:
            fault = _cell_fault(spec, _cell(frame.steps[spec.name], row))
            if fault is not None:
                return fault[0], f"{spec.name}: {fault[1]}", spec.name
    return None


def _cell(column: Any, row: int) -> Any:
    if isinstance(column, TextColumn):
        return column.values[column.codes[row]]
    return column[row].item()


def _cell_fault(spec: ColumnSpec, cell: Any) -> tuple[str, str] | None:
    if isinstance(cell, str):
        if len(cell) > spec.maximum:
            return "too_long", f"{len(cell)} characters, at most {spec.maximum:.0f} are taken"
        return None
    if _is_absent(cell):
        return ("missing", "every row needs one") if spec.required else None
    if not math.isfinite(cell):
        return "not_finite", f"got {cell}, expected a finite number"
    if spec.kind == "number":
        cell = rounded_back(cell, spec.minimum, spec.maximum)
    if not spec.minimum <= cell <= spec.maximum:
        hint = percent_hint(cell, spec.maximum)
        return "out_of_range", f"got {cell}, expected {spec.minimum:g} to {spec.maximum:g}{hint}"
    return None


def _is_absent(cell: Any) -> bool:
    return isinstance(cell, float) and math.isnan(cell) and int(np.float64(cell).view(np.int64)) == ABSENT_BITS


def _shown_cell(cell: Any) -> Any:
    return None if _is_absent(cell) else shown(cell)
