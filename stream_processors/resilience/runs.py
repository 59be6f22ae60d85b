"""Runs of equal codes in ordered columns, such as the rows of one episode side by side."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from stream_processors.resilience.signals import Bools, Ints

Scalar = TypeVar("Scalar", bound=np.generic)


def run_begins(codes: Ints) -> Bools:
    """Which positions begin a run. Shape: (n,) in and out.

    >>> run_begins(np.array([4, 4, 7, 4])).tolist()
    [True, False, True, True]
    """
    begins = np.ones(len(codes), dtype=bool)
    np.not_equal(codes[1:], codes[:-1], out=begins[1:])
    return begins


def one_back(column: NDArray[Scalar]) -> NDArray[Scalar]:
    """The column moved on by one position; the first value stands twice. Shape: (n,) in and out.

    >>> one_back(np.array([1, 2, 3])).tolist()
    [1, 1, 2]
    """
    moved = np.empty_like(column)
    moved[:1], moved[1:] = column[:1], column[:-1]
    return moved
