"""The anchor of a step, a_t = (f, b^p, b^q, m), and its signal vector x: what is compared, and with what.

The anchor says where in its task the agent stood: family and mode are names, the two bins come from the grid here. It
is that of the state *before* the step, since that is the state in which the step was chosen (ours; the paper leaves it
open).

A *sample* is the vector that a baseline cell learns: the eight signals, the progress before the step and the work left.
Channels read their own blocks of it, so the order below is part of the stored format.
"""

import msgspec
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

N_SIGNALS = 8
"""planning_s, perception_s | travel, retries | progress gain, proposition gain, risk | cycle_time_s."""
COGNITIVE, PHYSICAL, DEBT = slice(0, 2), slice(2, 4), slice(4, 7)
GAINS = slice(4, 6)
RISK, CYCLE = 6, 7
N_EXCESS = 7
"""The signals that an excess is taken of: all but the cycle time, which weighs the cost instead."""

PROGRESS_BEFORE, WORK_LEFT = 8, 9
N_SAMPLE = 10

EPSILON_ABSOLUTE = np.array([1e-3, 1e-3, 1e-2, 0.1, 1e-3, 1e-3, 1e-2])
"""Smallest meaningful amount of each excess signal: s, s, m, count, share, share, risk (ours)."""


def cycle_times(given: Floats, time_s: Floats, time_before: Floats, comparable: Bools) -> tuple[Floats, Bools]:
    """Cycle time of each step: as given, else the time since the step before.

    Units: seconds. Shape: all (n,). NaN in `given` says that the producer gave none; `comparable` marks rows whose
    two times may be subtracted (both from the producer's clock, no step missing between). A difference that is not
    positive is no cycle time: such rows stay NaN, are scored as nominal and are not learned from.

    Returns:
        the cycle times, and the rows on which the producer's clock ran backwards.

    Of two steps without a given time the first came half a second after the one before it; by the second the clock had
    been put back:

    >>> unknown, yes = np.array([np.nan, np.nan]), np.array([True, True])
    >>> cycle_s, backwards = cycle_times(unknown, np.array([10.5, 9.0]), np.array([10.0, 10.5]), yes)
    >>> cycle_s.tolist(), backwards.tolist()
    ([0.5, nan], [False, True])
    """
    elapsed = np.where(comparable, time_s - time_before, np.nan)
    derived = np.where(elapsed > 0, elapsed, np.nan)
    return np.where(np.isnan(given), derived, given), elapsed < 0


class AnchorGrid(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How finely progress and residual proposition load are told apart (ours).

    With ten bins of progress, 0.55 lies in the sixth, number 5, and 1.0 still in the last. With half of the
    propositions open the load is in the third of five bins, number 2; with none open it is in the first.

    >>> grid = AnchorGrid()
    >>> grid.progress_bin(np.array([0.0, 0.55, 1.0])).tolist()
    [0, 5, 9]
    >>> grid.residual_bin(np.array([0.0, 0.5, 1.0])).tolist()
    [4, 2, 0]
    """

    progress_bins: int = 10
    residual_bins: int = 5

    def progress_bin(self, progress: Floats) -> Ints:
        """b^p = min(floor(P p), P - 1), for p in [0, 1]."""
        return np.minimum((self.progress_bins * progress).astype(np.int64), self.progress_bins - 1)

    def residual_bin(self, propositions: Floats) -> Ints:
        """b^q = min(floor(Q (1 - q)), Q - 1), for q in [0, 1]: the load of propositions not yet satisfied."""
        return np.minimum((self.residual_bins * (1.0 - propositions)).astype(np.int64), self.residual_bins - 1)
