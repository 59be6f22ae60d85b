"""What stage baselines learn besides signals, cell by cell: discounted returns, and the covariance of x^stab.

A row of policy sums holds, for one cell of `stage_baseline`, the count and sum of returns, then count, mean and upper
triangle of the centred co-moments of the stability vector. Either part may be empty (count 0).
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple, TypeVar

import numpy as np
from springback.stream_processors.resilience.running_moments import Moments, merge_groups
from springback.stream_processors.resilience.signals import Floats, Ints

Cell = TypeVar("Cell", bound=Hashable)

N_STABILITY = 3
"""|delta|, |A| and the variance of V: the vector x^stab of equation 5."""

POLICY_WIDTH = 2 + 1 + N_STABILITY + N_STABILITY * (N_STABILITY + 1) // 2


class PolicySums(NamedTuple):
    """The sums of k cells. Shape: returns (k, 2) with count and sum; stability k groups of 3-vectors."""

    returns: Floats
    stability: Moments

    @staticmethod
    def unpacked(rows: Floats) -> "PolicySums":
        """The sums in rows as they are stored. Shape: (k, POLICY_WIDTH)."""
        return PolicySums(rows[:, :2], Moments.unpacked(rows[:, 2:], N_STABILITY))

    def packed(self) -> Floats:
        """The inverse of `unpacked`."""
        return np.column_stack([self.returns, self.stability.packed()])

    def merged(self, codes: Ints) -> tuple[Ints, "PolicySums"]:
        """Merge the cells that share a code. Returns the distinct codes, sorted, and their sums."""
        distinct, stability = merge_groups(codes, self.stability)
        returns = np.zeros((len(distinct), 2))
        np.add.at(returns, np.searchsorted(distinct, codes), self.returns)
        return distinct, PolicySums(returns, stability)


def policy_matrix(packed: bytes) -> Floats:
    """The rows that the bytes hold. Shape: (k, POLICY_WIDTH)."""
    return np.frombuffer(packed, dtype="<f8").reshape(-1, POLICY_WIDTH)


def policy_rows(known: Mapping[Cell, bytes], cells: Iterable[Cell]) -> Floats:
    """The rows of these cells, zeros where a cell has none. Shape: (k, POLICY_WIDTH)."""
    nothing = bytes(8 * POLICY_WIDTH)
    return policy_matrix(b"".join(known.get(cell, nothing) for cell in cells))


def merge_policy(known: Mapping[Cell, bytes], cells: list[Cell], rows: Floats) -> dict[Cell, bytes]:
    """What the named cells hold once the rows are merged in; `known` itself stays as it was. Cells may repeat."""
    distinct = list(dict.fromkeys(cells))
    number = {cell: i for i, cell in enumerate(distinct)}
    codes = np.array([*range(len(distinct)), *(number[cell] for cell in cells)], dtype=np.int64)
    _, merged = PolicySums.unpacked(np.concatenate([policy_rows(known, distinct), rows])).merged(codes)
    return {cell: row.tobytes() for cell, row in zip(distinct, merged.packed(), strict=True)}
