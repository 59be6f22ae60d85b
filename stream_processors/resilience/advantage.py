"""Generalised advantage estimates: A_t, the decayed sum of the temporal-difference residuals from t on."""

import numpy as np

from stream_processors.resilience.signals import Floats


def lagged_advantages(residuals: Floats, decay: float, lag: int) -> Floats:
    """A_t over the next `lag` residuals, for as many t as have them all. Shape: (n - lag + 1,), none if n < lag.

    What is left out is at most decay^lag / (1 - decay) times the largest residual beyond.
    """
    if len(residuals) < lag:
        return np.zeros(0)
    return np.correlate(residuals, decay ** np.arange(lag), mode="valid")


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
