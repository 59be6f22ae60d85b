"""Counts, means and centred co-moments of many groups at once, mergeable in any order.

A group's sums are one row (n, mean, M2). Samples become groups, and groups become coarser groups, by the same
group-by: means first, then co-moments about the new mean. This is Chan, Golub and LeVeque's pairwise update applied
to any number of parts; it never forms E[xx'] - E[x]E[x]', which cancels where means are large.

M2 is symmetric, so only its upper triangle is kept, row by row: symmetry holds by construction.
"""

from dataclasses import dataclass

import numpy as np

from springback.stream_processors.resilience.anchor import Floats, Ints
from springback.stream_processors.resilience.columns import run_begins


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
