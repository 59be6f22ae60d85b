"""What so many episodes allow to be said: a bound for a quantile by order statistics, and Wilson's interval of a share.

An example: of five episodes the third dearest is below the true 0.9 quantile in 99 % of samples, the fourth in 92 %
only. So at 95 % no more can be said of that quantile than that it is above the third:

>>> favourable_rank(5, 0.9), favourable_rank(20, 0.9), favourable_rank(1, 0.9)
(3, 16, 0)

And where two of five episodes broke their contract, the share that does is between 12 and 77 %:

>>> [round(bound, 3) for bound in wilson_interval(2, 5)]
[0.118, 0.769]
"""

import math
from functools import lru_cache

import numpy as np
from scipy import special  # type: ignore[import-untyped]

from springback.stream_processors.resilience.families.contract_config import CONFIDENCE, ROUNDING

_Z = float(special.ndtri((1 + CONFIDENCE) / 2))


@lru_cache(maxsize=4096)
def favourable_rank(count: int, rank: float) -> int:
    """The largest k for which the k-th smallest of `count` values is at most the true `rank` quantile, at 95 %.

    That is the largest k with P(Bin(count, rank) >= k) >= 0.95; 0 where there is none. Mirrored, the k-th largest value
    is at least the true 1 - `rank` quantile.

    Source: order statistics; that a level is judged by them is ours.
    """
    ranks = np.arange(1, count + 1)
    likely = special.bdtrc(ranks - 1, count, rank) >= CONFIDENCE - ROUNDING
    return int(likely.sum())


def wilson_interval(hits: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a share of which `hits` of `count` were seen.

    Raises:
        ValueError: the count is below 1, or the hits are not among it.

    Source: Wilson (1927).
    """
    if not 0 <= hits <= count or count < 1:
        message = f"expected at least one trial and hits among them, got {hits} of {count}"
        raise ValueError(message)
    share, weight = hits / count, _Z**2 / count
    middle = (share + weight / 2) / (1 + weight)
    half = _Z * math.sqrt(share * (1 - share) / count + weight / (4 * count)) / (1 + weight)
    # At the ends the interval reaches 0 or 1 exactly, which rounding may miss.
    return (0.0 if hits == 0 else middle - half), (1.0 if hits == count else middle + half)
