"""Generalised advantage estimates: A_t, the decayed sum of the temporal-difference residuals from t on (equation 4).

Both functions sum from the back. With residuals 1, 0, 4 and a decay of 0.5, A_2 = 4, A_1 = 0 + 0.5 * 4 = 2 and
A_0 = 1 + 0.5 * 2 = 2. Cut off after two residuals, A_0 does not see the 4: 1 + 0.5 * 0 = 1.
"""

import numpy as np

from springback.stream_processors.resilience.anchor import Floats, Ints


def lagged_advantages(residuals: Floats, at: Ints, decay: float, lag: int) -> Floats:
    """A_t over `lag` residuals, the step's own first, of the steps at these positions. Shape: (len(at),).

    What is left out is decay^lag A_{t+lag}. Sums go from the back, as in `exact_advantages`:
    with `lag` residuals to the end both give the same to the last bit.

    >>> lagged_advantages(np.array([1.0, 0.0, 4.0]), np.array([0, 1]), 0.5, 2).tolist()
    [1.0, 2.0]
    """
    result = np.zeros(len(at))
    for ahead in range(lag - 1, -1, -1):
        result = residuals[at + ahead] + decay * result
    return result


def exact_advantages(residuals: Floats, decay: float) -> Floats:
    """A_t to the episode's end: A_t = delta_t + decay A_{t+1}. Shape: (n,) in and out.

    >>> exact_advantages(np.array([1.0, 0.0, 4.0]), 0.5).tolist()
    [2.0, 2.0, 4.0]
    """
    result = np.empty(len(residuals))
    later = 0.0
    for i in range(len(residuals) - 1, -1, -1):
        later = float(residuals[i]) + decay * later
        result[i] = later
    return result
