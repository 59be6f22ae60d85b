"""Runs of equal codes in ordered columns, such as the rows of one episode side by side."""

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from springback.stream_processors.resilience.anchor import Bools, Floats, Ints

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


class EpisodeRows(NamedTuple):
    """Rows episode by episode, those of earlier batches before those of this one.

    Attributes:
        rows: the rows (n, ...).
        starts, stops: where each episode's rows begin and end.
        later: where the rows of this batch stand.
        since_start: how many rows of its episode stand before each row (n,).
    """

    rows: Floats
    starts: Ints
    stops: Ints
    later: Ints
    since_start: Ints


def join_by_episode(earlier: Floats, n_earlier: Ints, later: Floats, n_later: Ints) -> EpisodeRows:
    """Puts rows of earlier batches before those of this one. Shape: rows by episode, counts one per episode.

    >>> join_by_episode(np.array([1.0, 2.0]), np.array([1, 1]), np.array([5.0, 6.0]), np.array([2, 0])).rows.tolist()
    [1.0, 5.0, 6.0, 2.0]
    """
    counts = n_earlier + n_later
    stops = np.cumsum(counts)
    starts = stops - counts
    since_start = np.arange(len(earlier) + len(later)) - np.repeat(starts, counts)
    is_earlier = since_start < np.repeat(n_earlier, counts)
    rows = np.empty((len(since_start), *later.shape[1:]))
    rows[is_earlier], rows[~is_earlier] = earlier, later
    return EpisodeRows(rows, starts, stops, np.flatnonzero(~is_earlier), since_start)
