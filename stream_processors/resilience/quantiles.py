"""Quantiles by rank: the definition that a sort and a mergeable sketch agree on."""

import math
from collections.abc import Sequence


def quantile(values: Sequence[float], rank: float) -> float:
    """The smallest value whose rank (share of values at or below it) reaches `rank`.

    Raises:
        ValueError: no values, or a rank outside (0, 1].

    >>> quantile([4.0, 1.0, 3.0, 2.0], 0.5)
    2.0
    >>> quantile([4.0, 1.0, 3.0, 2.0], 0.51)
    3.0
    """
    if not values or not 0 < rank <= 1:
        message = f"expected values and a rank in (0, 1], got {len(values)} values and rank {rank}"
        raise ValueError(message)
    # The ceiling is taken a hair low: 0.95 * 20 is 19 and not the 19.000000000000004 that floats make of it.
    position = math.ceil(rank * len(values) - 1e-9)
    return sorted(values)[max(position, 1) - 1]
