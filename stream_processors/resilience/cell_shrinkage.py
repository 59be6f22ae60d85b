"""Estimates of one level of a stage baseline, each shrunk to the level above it (ours).

mu = (n x + kappa mu') / (n + kappa),
S = (M2 + kappa S' + n (x - mu)(x - mu)' + kappa (mu' - mu)(mu' - mu)') / (n + kappa),
with mu' and S' the estimate above. A cell without data of its own comes out as the estimate above it.
"""

from typing import NamedTuple

import numpy as np
from springback.stream_processors.resilience.policy_sums import PolicySums
from springback.stream_processors.resilience.running_moments import Moments
from springback.stream_processors.resilience.signals import PROGRESS_BEFORE, WORK_LEFT, Floats, Ints

MIN_LINE_SAMPLES = 5
LINE_RIDGE = 1e-5


class Shrunk(NamedTuple):
    """Estimates of k cells of one level.

    Attributes:
        mean: of the sample vector (k, 10); `covariance` of it (k, 10, 10).
        work_at_zero, work_slope: the remaining-work line (k,) each.
        value: mean discounted return (k,); 0 where none is known.
        stability_mean, stability_covariance: of x^stab (k, 3) and (k, 3, 3).
    """

    mean: Floats
    covariance: Floats
    work_at_zero: Floats
    work_slope: Floats
    value: Floats
    stability_mean: Floats
    stability_covariance: Floats

    def take(self, index: Ints) -> "Shrunk":
        """The cells at these positions."""
        return Shrunk(*(array[index] for array in self))


def shrink(sums: Moments, policy: PolicySums, above: Shrunk | None, pseudo_counts: float) -> Shrunk:
    """Estimates of a level's cells, each shrunk to the row of `above` at its position; the root's are its own."""
    n, m2 = sums.n, sums.covariance_sums()
    ridge = m2[:, PROGRESS_BEFORE, PROGRESS_BEFORE] + LINE_RIDGE * n
    slope = np.where(n > MIN_LINE_SAMPLES, np.minimum(0.0, m2[:, PROGRESS_BEFORE, WORK_LEFT] / ridge), 0.0)
    at_zero = sums.mean[:, WORK_LEFT] - slope * sums.mean[:, PROGRESS_BEFORE]
    n_returns = policy.returns[:, 0]
    mean_return = policy.returns[:, 1] / np.where(n_returns > 0, n_returns, 1.0)
    if above is None:
        return Shrunk(
            sums.mean,
            _covariance(sums),
            at_zero,
            slope,
            mean_return,
            policy.stability.mean,
            _covariance(policy.stability),
        )
    own, prior = n / (n + pseudo_counts), pseudo_counts / (n + pseudo_counts)
    own_return = n_returns / (n_returns + pseudo_counts)
    return Shrunk(
        *_shrunk_moments(sums, above.mean, above.covariance, pseudo_counts),
        own * at_zero + prior * above.work_at_zero,
        own * slope + prior * above.work_slope,
        own_return * mean_return + (1.0 - own_return) * above.value,
        *_shrunk_moments(policy.stability, above.stability_mean, above.stability_covariance, pseudo_counts),
    )


def _covariance(sums: Moments) -> Floats:
    return sums.covariance_sums() / np.maximum(sums.n - 1, 1)[:, None, None]


def _shrunk_moments(
    sums: Moments, above_mean: Floats, above_covariance: Floats, pseudo_counts: float
) -> tuple[Floats, Floats]:
    n = sums.n
    own = n / (n + pseudo_counts)
    prior = pseudo_counts / (n + pseudo_counts)
    mean = own[:, None] * sums.mean + prior[:, None] * above_mean
    within, apart = sums.mean - mean, above_mean - mean
    scatter = (
        sums.covariance_sums()
        + pseudo_counts * above_covariance
        + n[:, None, None] * within[:, :, None] * within[:, None, :]
        + pseudo_counts * apart[:, :, None] * apart[:, None, :]
    )
    return mean, scatter / (n + pseudo_counts)[:, None, None]
