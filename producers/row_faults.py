"""Says what is wrong with a single row of a frame that was found suspect. Slow, and only for those rows."""

import math
from typing import Any

import numpy as np
from springback.producers.column_checks import OVERSHOOT
from springback.producers.column_reading import shown
from springback.producers.frame_parts import StepFrame, TextColumn
from springback.producers.step_columns import ABSENT_BITS, STEP_COLUMNS, ColumnSpec


def row_values(frame: StepFrame, row: int) -> dict[str, Any]:
    """The row's own values by column, as JSON can carry them; None where absent."""
    return {name: _shown_cell(_cell(column, row)) for name, column in frame.steps.items()}


def row_fault(frame: StepFrame, row: int) -> tuple[str, str] | None:
    """The reason and the detail of the first value of a row that is missing or out of bounds; None if all are well."""
    for spec in STEP_COLUMNS:
        if spec.name in frame.steps:
            fault = _cell_fault(spec, _cell(frame.steps[spec.name], row))
            if fault is not None:
                return fault[0], f"{spec.name}: {fault[1]}"
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
    slack = OVERSHOOT if spec.maximum == 1.0 else 0.0
    if not spec.minimum - slack <= cell <= spec.maximum + slack:
        return "out_of_range", f"got {cell}, expected {spec.minimum:g} to {spec.maximum:g}"
    return None


def _is_absent(cell: Any) -> bool:
    return isinstance(cell, float) and math.isnan(cell) and int(np.float64(cell).view(np.int64)) == ABSENT_BITS


def _shown_cell(cell: Any) -> Any:
    return None if _is_absent(cell) else shown(cell)
