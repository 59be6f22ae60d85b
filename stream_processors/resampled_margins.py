"""M_f at each stress and lambda*_f under any weights of the episodes: equations 8 to 10 for all resamples at once.

The streaming form is `resilience.operational_margin`, by sketches; on the episodes as they are the two agree.
"""

from collections.abc import Sequence

import numpy as np
from springback.stream_processors.resample_statistics import weighted_quantile
from springback.stream_processors.resilience.aggregate_config import AggregateConfig
from springback.stream_processors.resilience.family_readings import ContractThresholds
from springback.stream_processors.resilience.operational_margin import EPSILON
from springback.stream_processors.resilience.signals import Floats
from springback.stream_processors.version_sample import VersionSample


def stress_curve(
    sample: VersionSample,
    weights: Floats,
    levels: Sequence[int],
    thresholds: ContractThresholds,
    config: AggregateConfig,
) -> Floats:
    """M_f at some stress levels. Shape: weights (b, n), result (b, levels); NaN where nothing of a level was drawn.

    Source: equations 8 and 9.
    """
    columns = []
    for level in levels:
        own = sample.level == level
        columns.append(_margins(sample, own, weights[:, own], thresholds, config))
    return np.stack(columns, axis=1)


def capacities(curve: Floats, stresses: Sequence[float]) -> Floats:
    """lambda*_f: the largest stress whose margin is not negative, 0 where none is. Shape: curve (b, k), result (b,).

    Source: equation 10.

    >>> capacities(np.array([[0.5, -0.1, 0.2], [-0.1, -0.2, -0.3]]), [0.0, 0.2, 0.4]).tolist()
    [0.4, 0.0]
    """
    return np.asarray(np.where(curve >= 0, np.array(stresses), 0.0).max(axis=1))


def _margins(
    sample: VersionSample, own: np.ndarray, weights: Floats, thresholds: ContractThresholds, config: AggregateConfig
) -> Floats:
    def at_rank(column: Floats, rank: float) -> Floats:
        values = column[own]
        known = ~np.isnan(values)
        return weighted_quantile(values[known], weights[:, known], rank)

    ratios = [
        at_rank(sample.progress, config.alpha) / thresholds.progress,
        at_rank(sample.propositions, config.alpha) / thresholds.propositions,
    ]
    costs = (
        (sample.recovery_cost, thresholds.recovery),
        (sample.stability_loss, thresholds.stability),
        (sample.violation, thresholds.safety),
    )
    ratios += [most / (at_rank(cost, 1.0 - config.alpha) + EPSILON) for cost, most in costs if most is not None]
    # NaN sorts last: entries that are unknown are left out.
    smallest = np.sort(np.minimum(np.stack(ratios), config.ratio_cap), axis=0)[: config.smallest]
    known = ~np.isnan(smallest)
    count = known.sum(axis=0)
    total = np.where(known, smallest, 0.0).sum(axis=0)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1) - 1.0, np.nan))
