"""The anchor of a step: where in its task the agent stood when it took the step, a_t = (f, b^p, b^q, m).

Family and mode are names; the two bins come from this grid. The anchor is that of the state *before* the step, since
that is the state in which the step was chosen (ours; the paper leaves it open).
"""

import msgspec
import numpy as np
from springback.stream_processors.resilience.signals import Floats, Ints


class AnchorGrid(msgspec.Struct, frozen=True):
    """How finely progress and residual proposition load are told apart (ours).

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
