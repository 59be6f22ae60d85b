"""Checks the signals that several episodes report together, and makes columns of them without a loop over the rows.

As in `signal_checks`, names and types are checked here and ranges by the worker.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from springback.producers.errors import SignalError
from springback.producers.frame_parts import MAX_DISTINCT_TEXTS, StepColumn, TextColumn
from springback.producers.signal_checks import SIGNALS, checked_number, checked_text
from springback.producers.step_columns import ABSENT, COLUMN_BY_NAME

_REPORTED = frozenset(("progress", *SIGNALS))


def checked_columns(signals: Mapping[str, Any], rows: int) -> dict[str, StepColumn]:
    """The columns of these signals; a signal that is None is left out.

    A signal is an array or a list with a value for each row, or one value for all. Masked cells and None are absent.
    An array of integers will do as texts: an action's number.

    >>> columns = checked_columns({"progress": [0.5, 1.0], "action": np.array([7, 3]), "mode": "walk"}, rows=2)
    >>> columns["progress"], columns["action"].texts(), columns["mode"].texts()
    (array([0.5, 1. ]), ['7', '3'], ['walk', 'walk'])

    Raises:
        SignalError: a name is not known, or a signal has the wrong type or not a value for each row.
    """
    columns: dict[str, StepColumn] = {}
    for name, values in signals.items():
        if name not in _REPORTED:
            message = f"there is no signal {name!r}; the signals are progress, {', '.join(SIGNALS)}"
            raise SignalError(message)
        if values is None:
            continue
        spec = COLUMN_BY_NAME[name]
        columns[name] = _texts(name, values, rows) if spec.kind == "text" else _numbers(name, values, rows)
    return columns


def rows_of(column: StepColumn, rows: npt.NDArray[Any]) -> StepColumn:
    """The column of these rows alone."""
    return TextColumn(column.values, column.codes[rows]) if isinstance(column, TextColumn) else column[rows]


def _numbers(name: str, values: Any, rows: int) -> npt.NDArray[np.float64]:
    cells = np.asarray(np.ma.getdata(values))
    if cells.dtype.kind in "biuf":
        numbers = _of_rows(name, cells, rows).astype(np.float64)
    elif cells.dtype.kind == "O":
        listed = _of_rows(name, cells, rows).tolist()
        numbers = np.array([ABSENT if cell is None else checked_number(name, cell) for cell in listed])
    else:
        message = f"{name} must be numbers, got an array of {cells.dtype}; convert it before the call"
        raise SignalError(message)
    if isinstance(values, np.ma.MaskedArray):
        numbers[_of_rows(name, np.ma.getmaskarray(values), rows)] = ABSENT
    return numbers


def _texts(name: str, values: Any, rows: int) -> TextColumn:
    if isinstance(values, TextColumn) and len(values) == rows:
        return values
    spec = COLUMN_BY_NAME[name]
    cells = np.asarray(np.ma.getdata(values))
    if cells.dtype.kind in "iu":
        distinct, codes = np.unique(_of_rows(name, cells, rows), return_inverse=True)
        few = len(distinct) <= MAX_DISTINCT_TEXTS
        column = TextColumn(list(map(str, distinct.tolist())), codes.astype(np.uint16 if few else np.uint32))
        if not isinstance(values, np.ma.MaskedArray):
            return column
        cells = np.array(column.texts(), dtype=object)
    elif cells.dtype.kind not in "UO":
        message = f"{name} must be texts, got an array of {cells.dtype}"
        raise SignalError(message)
    listed: list[Any] = _of_rows(name, cells, rows).tolist()
    if isinstance(values, np.ma.MaskedArray):
        masked = _of_rows(name, np.ma.getmaskarray(values), rows).tolist()
        listed = [None if absent else cell for cell, absent in zip(listed, masked, strict=True)]
    longest = int(spec.maximum)
    return TextColumn.of([str(spec.default) if cell is None else checked_text(name, cell)[:longest] for cell in listed])


def _of_rows(name: str, cells: npt.NDArray[Any], rows: int) -> npt.NDArray[Any]:
    if cells.ndim == 0:
        return np.full(rows, cells)
    if cells.shape == (rows,) or cells.shape == (rows, 1):
        return cells.reshape(rows)
    message = f"{name} must have one value, or one for each of {rows} episodes; got an array of shape {cells.shape}"
    raise SignalError(message)
