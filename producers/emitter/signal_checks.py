"""Checks what an agent's code reports at the moment it reports it, where the mistake is still on the call stack.

Types and names are checked here; ranges are the worker's business, so that a broken sensor's NaN never stops a robot:
that row arrives, is rejected with a reason and is counted. The signals of a single step become plain values; those
that several episodes report together become columns, without a loop over the rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, get_args

import msgspec
import numpy as np
import numpy.typing as npt

from springback.producers.contract.columns import (
    ABSENT,
    COLUMN_BY_NAME,
    LARGEST_INTEGER,
    MAX_TEXT,
    without_lone_surrogates,
)
from springback.producers.contract.fault_words import told, without_rounding
from springback.producers.contract.frame import (
    MAX_DISTINCT_TEXTS,
    EpisodeHeader,
    NavigationOutcome,
    Outcome,
    StepColumn,
    TextColumn,
)
from springback.producers.errors import SignalError

SIGNALS = tuple(name for name in COLUMN_BY_NAME if name not in ("episode", "step", "time_s", "progress"))
_NUMBERS = frozenset(name for name, spec in COLUMN_BY_NAME.items() if spec.kind == "number")
_REPORTED = frozenset(("progress", *SIGNALS))
_FREE_TEXTS = ("perturbation", "perturbation_name", "attack", "instruction")
_LONGEST_TOLD = 300


def checked_number(name: str, value: object) -> float:
    """The value as a plain float; any real number will do, numpy's scalars too. One too large for it is infinite.

    Raises:
        SignalError: it is no number.
    """
    if type(value) is float:
        return value
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:  # it is a number: whether it makes sense is for the worker to say
            return -math.inf if value < 0 else math.inf
    message = f"{name} must be a number, got {told_value(value)}; convert it before the call"
    raise SignalError(message)


def told_value(value: object) -> str:
    """The value and its type for a message, shortened; whatever it is, nothing is raised.

    >>> told_value(0.5), told_value([1] * 1000)[:9], told_value(10**5000)
    ('0.5 (float)', '[1, 1, 1,', 'a value that cannot be shown (int)')
    """
    try:
        text = repr(value)
    except Exception:  # an integer of more than 4300 digits, or a broken __repr__
        text = "a value that cannot be shown"
    return f"{text if len(text) <= _LONGEST_TOLD else text[:_LONGEST_TOLD] + '…'} ({type(value).__name__})"


def checked_step(value: object) -> int:
    """The step number as a plain int.

    Raises:
        SignalError: it is no integer of 0 or more.
    """
    if isinstance(value, Integral) and not isinstance(value, bool) and 0 <= int(value) <= LARGEST_INTEGER:
        return int(value)
    message = f"step must be an integer from 0 to {LARGEST_INTEGER}, got {told_value(value)}"
    raise SignalError(message)


def checked_steps(values: Any) -> npt.NDArray[np.int64]:
    """Step numbers as an array, in the shape that they came in.

    Raises:
        SignalError: not all are integers of 0 or more.
    """
    cells = _cells("steps", values)
    if cells.dtype.kind == "O":
        return np.array([checked_step(cell) for cell in cells.ravel().tolist()], dtype=np.int64).reshape(cells.shape)
    whole = cells.dtype.kind in "iu" or (cells.dtype.kind == "f" and bool((cells == np.floor(cells)).all()))
    if whole and bool(((cells >= 0) & (cells <= LARGEST_INTEGER)).all()):
        return cells.astype(np.int64)
    message = f"steps must be integers from 0 to {LARGEST_INTEGER}, got {told_value(values)}"
    raise SignalError(message)


def checked_flag(name: str, value: object) -> bool:
    """The value as true or false, by Python's own rule.

    Raises:
        SignalError: it is neither, as an array of several is.
    """
    try:
        return bool(value)
    except Exception as error:
        message = f"{name} must be true or false, got {told_value(value)}"
        raise SignalError(message) from error


def checked_signals(signals: Mapping[str, object]) -> dict[str, Any]:
    """The optional signals of a step, plain; None is left out, a text that is too long is cut.

    Raises:
        SignalError: a name is not known, or a value has the wrong type.
    """
    plain: dict[str, Any] = {}
    for name, value in signals.items():
        if value is None and name in SIGNALS:
            continue
        if name in _NUMBERS:
            plain[name] = checked_number(name, value)
        elif name in SIGNALS:
            plain[name] = checked_text(name, value)[: int(COLUMN_BY_NAME[name].maximum)]
        else:
            message = f"there is no signal {name!r}; the signals are progress, {', '.join(SIGNALS)}"
            raise SignalError(message)
    return plain


def checked_text(name: str, value: object) -> str:
    """The text, fit for UTF-8.

    Raises:
        SignalError: it is no text.
    """
    if isinstance(value, str):
        return without_lone_surrogates(value)
    message = f"{name} must be a text, got {told_value(value)}"
    raise SignalError(message)


def checked_header(fields: Mapping[str, object]) -> EpisodeHeader:
    """The header of these fields.

    Raises:
        SignalError: a field is not known, has the wrong type, or is out of range.
    """
    known = EpisodeHeader.__struct_fields__
    unknown = sorted(set(fields) - set(known))
    if unknown:
        message = f"an episode has no {', '.join(unknown)}; it has {', '.join(known)}"
        raise SignalError(message)
    plain: dict[str, object] = {}
    for name, value in fields.items():
        if name == "magnitude" or (name == "stress" and value is not None):
            plain[name] = checked_number(name, value)
        elif isinstance(value, str):
            text = without_lone_surrogates(value)
            plain[name] = text[:MAX_TEXT] if name in _FREE_TEXTS else text
        elif value is not None or name != "task":
            plain[name] = value
    try:
        return msgspec.convert(without_rounding(EpisodeHeader, plain), EpisodeHeader)
    except msgspec.ValidationError as error:
        message = f"not a possible episode: {told(EpisodeHeader, plain, error)[1]}; got {told_value(plain)}"
        raise SignalError(message) from error


def checked_outcome(outcome: object) -> Outcome:
    """The outcome of an episode.

    Raises:
        SignalError: it is none of the four.
    """
    for possible in get_args(Outcome):
        if isinstance(outcome, str) and outcome == possible:
            known: Outcome = possible
            return known
    message = f"an episode's outcome is one of {', '.join(get_args(Outcome))}; got {told_value(outcome)}"
    raise SignalError(message)


def checked_navigation(navigation: object) -> NavigationOutcome | None:
    """The navigation outcome out of a mapping or a `NavigationOutcome`, plain.

    Raises:
        SignalError: a field is not known, or has the wrong type.
    """
    if navigation is None:
        return None
    if isinstance(navigation, NavigationOutcome):
        navigation = msgspec.structs.asdict(navigation)
    if not isinstance(navigation, Mapping):
        message = f"navigation must be a mapping or a NavigationOutcome, got {type(navigation).__name__}"
        raise SignalError(message)
    known = NavigationOutcome.__struct_fields__
    plain: dict[str, Any] = {}
    for name, value in navigation.items():
        if name not in known:
            message = f"navigation has no {told_value(name)}; it has {', '.join(known)}"
            raise SignalError(message)
        if value is not None:
            plain[name] = checked_flag(name, value) if name == "target_in_view" else _plain_number(name, value)
    return NavigationOutcome(**plain)


def checked_magnitude(magnitude: object) -> float | None:
    """The realised magnitude as a plain float; None where it is not known.

    Raises:
        SignalError: it is no number.
    """
    return None if magnitude is None else checked_number("realised_magnitude", magnitude)


def _plain_number(name: str, value: object) -> float | int:
    number = checked_number(name, value)
    # Beyond 64 bits an integer cannot be encoded, and would cost its whole frame.
    return int(number) if abs(number) <= LARGEST_INTEGER and number.is_integer() else number


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


def _cells(name: str, values: Any) -> npt.NDArray[Any]:
    try:
        return np.asarray(np.ma.getdata(values))
    except Exception as error:  # lists of unequal lengths, say
        message = f"{name} must be one value or a list of values, got {told_value(values)}"
        raise SignalError(message) from error


def _numbers(name: str, values: Any, rows: int) -> npt.NDArray[np.float64]:
    cells = _cells(name, values)
    if cells.dtype.kind in "biuf":
        with np.errstate(over="ignore"):
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
    cells = _cells(name, values)
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
        listed = [None if absent else cell for cell, absent in zip(listed, masked)]
    longest = int(spec.maximum)
    return TextColumn.of([str(spec.default) if cell is None else checked_text(name, cell)[:longest] for cell in listed])


def _of_rows(name: str, cells: npt.NDArray[Any], rows: int) -> npt.NDArray[Any]:
    if cells.ndim == 0:
        return np.full(rows, cells)
    if cells.shape == (rows,) or cells.shape == (rows, 1):
        return cells.reshape(rows)
    message = f"{name} must have one value, or one for each of {rows} episodes; got an array of shape {cells.shape}"
    raise SignalError(message)
