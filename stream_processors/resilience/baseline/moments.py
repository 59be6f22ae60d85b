"""Counts, means and centred co-moments of many groups at once, mergeable in any order.

A group's sums are one row (n, mean, M2). Samples become groups, and groups become coarser groups, by the same
group-by: means first, then co-moments about the new mean. This is Chan, Golub and LeVeque's pairwise update applied
to any number of parts; it never forms E[xx'] - E[x]E[x]', which cancels where means are large.

M2 is symmetric, so only its upper triangle is kept, row by row: symmetry holds by construction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from springback.stream_processors.resilience.anchor import Floats, Ints
from springback.stream_processors.resilience.columns import run_begins

K = TypeVar("K")


def triangle(dimension: int) -> tuple[Ints, Ints]:
    """Row and column index of each entry of the kept triangle. Shape: (d (d + 1) / 2,) each."""
    rows, columns = np.triu_indices(dimension)
    return rows.astype(np.int64), columns.astype(np.int64)


@dataclass(frozen=True, slots=True)
class Moments:
    """Sums of k groups of d-vectors. Shape: n (k,), mean (k, d), m2 (k, d (d + 1) / 2)."""

    n: Floats
    mean: Floats
    m2: Floats

    def __len__(self) -> int:
        """How many groups there are."""
        return len(self.n)

    def covariance_sums(self) -> Floats:
        """M2 as full symmetric matrices. Shape: (k, d, d)."""
        dimension = self.mean.shape[1]
        rows, columns = triangle(dimension)
        full = np.empty((len(self), dimension, dimension))
        full[:, rows, columns] = self.m2
        full[:, columns, rows] = self.m2
        return full

    def take(self, index: Ints) -> "Moments":
        """The groups at these positions."""
        return Moments(self.n[index], self.mean[index], self.m2[index])

    def packed(self) -> Floats:
        """All sums side by side, for storage. Shape: (k, 1 + d + d (d + 1) / 2)."""
        return np.column_stack([self.n, self.mean, self.m2])

    @staticmethod
    def unpacked(rows: Floats, dimension: int) -> "Moments":
        """The inverse of `packed`."""
        return Moments(rows[:, 0], rows[:, 1 : 1 + dimension], rows[:, 1 + dimension :])

    @staticmethod
    def of_samples(samples: Floats) -> "Moments":
        """Each sample as a group of one. Shape: (n, d) in, n groups out."""
        dimension = samples.shape[1]
        return Moments(np.ones(len(samples)), samples, np.zeros((len(samples), dimension * (dimension + 1) // 2)))


def merge_groups(codes: Ints, parts: Moments) -> tuple[Ints, Moments]:
    """The distinct codes, sorted, and their sums: parts that share a code are merged.

    Shape: codes (k,) name the group of each part.
    Source: Chan, Golub, LeVeque 1983, for many parts at once.

    >>> codes, merged = merge_groups(np.array([7, 7]), Moments.of_samples(np.array([[1.0], [3.0]])))
    >>> codes.tolist(), merged.n.tolist(), merged.mean.tolist(), merged.m2.tolist()
    ([7], [2.0], [[2.0]], [[2.0]])
    """
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    begins = run_begins(ordered)
    starts = np.flatnonzero(begins)
    if len(starts) == len(codes):
        return ordered, parts.take(order)
    group = np.cumsum(begins) - 1
    weight, mean = parts.n[order], parts.mean[order]
    # Means are taken about each group's first part, so that a large common offset costs no digits.
    offset = mean[starts]
    n = np.add.reduceat(weight, starts)
    some = np.where(n > 0, n, 1.0)  # a group of empty parts is empty, with mean 0
    merged_mean = offset + np.add.reduceat(weight[:, None] * (mean - offset[group]), starts) / some[:, None]
    apart = mean - merged_mean[group]
    rows, columns = triangle(mean.shape[1])
    between = weight[:, None] * apart[:, rows] * apart[:, columns]
    return ordered[starts], Moments(n, merged_mean, np.add.reduceat(parts.m2[order] + between, starts))


def sums_in_order(known: Mapping[K, bytes], groups: Sequence[K], samples: Floats) -> dict[K, bytes]:
    """What groups come to with further samples: the update to `known`, which itself stays as it was.

    Samples are added one after another, so how they are cut into calls changes no bit. A group's sums are one row of
    little-endian float64: n, an origin, the sum of y = x - origin, the upper triangle of the sum of yy'. The origin is
    the group's first sample. About one of its own samples a sum of squares is at most n + 1 times M2, so no
    more digits cancel in `centred` than n samples have roundings.

    Shape: `groups` names the group of each of the n samples (n, d).

    >>> cells = sums_in_order({}, ["a", "a"], np.array([[1.0], [2.0]]))
    >>> cells |= sums_in_order(cells, ["a"], np.array([[6.0]]))
    >>> moments = centred([cells["a"]], 1)
    >>> moments.n.tolist(), moments.mean.tolist(), moments.m2.tolist()
    ([3.0], [[3.0]], [[14.0]])
    """
    number = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    group = np.array([number[each] for each in groups], dtype=np.int64)
    dimension = samples.shape[1]
    nothing = bytes(8 * in_order_width(dimension))
    rows = _in_order_rows([known.get(each, nothing) for each in number], dimension).copy()
    _, first = np.unique(group, return_index=True)
    begun = rows[:, 0] == 0
    rows[begun, 1 : 1 + dimension] = samples[first[begun]]
    apart = samples - rows[group, 1 : 1 + dimension]
    left, right = triangle(dimension)
    more = [np.ones(len(samples)), *apart.T, *(apart[:, left] * apart[:, right]).T]
    # `bincount` adds in order; what is known goes first.
    places = np.concatenate([np.arange(len(number)), group])
    for column, added in zip((0, *range(1 + dimension, rows.shape[1])), more, strict=True):
        rows[:, column] = np.bincount(places, np.concatenate([rows[:, column], added]))
    return {each: row.tobytes() for each, row in zip(number, rows, strict=True)}


def centred(rows: Sequence[bytes], dimension: int) -> Moments:
    """The moments of sums that `sums_in_order` has made, a group a row."""
    sums = _in_order_rows(rows, dimension)
    n, apart = sums[:, 0], sums[:, 1 + dimension : 1 + 2 * dimension]
    left, right = triangle(dimension)
    shift = apart / np.where(n > 0, n, 1.0)[:, None]
    m2 = sums[:, 1 + 2 * dimension :] - apart[:, left] * shift[:, right]
    squares = np.flatnonzero(left == right)
    m2[:, squares] = np.maximum(m2[:, squares], 0.0)
    return Moments(n, sums[:, 1 : 1 + dimension] + shift, m2)


def sums_about_mean(moments: Moments) -> list[bytes]:
    """Moments as `sums_in_order` goes on with them: their origin is their mean."""
    rows = np.column_stack([moments.n, moments.mean, np.zeros_like(moments.mean), moments.m2])
    return [row.tobytes() for row in rows]


def in_order_width(dimension: int) -> int:
    """How many numbers a row of `sums_in_order` has."""
    return 1 + 2 * dimension + dimension * (dimension + 1) // 2


def _in_order_rows(rows: Sequence[bytes], dimension: int) -> Floats:
    return np.frombuffer(b"".join(rows), dtype="<f8").reshape(-1, in_order_width(dimension))
