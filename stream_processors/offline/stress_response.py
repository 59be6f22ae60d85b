"""The stress response of a sample of episodes, under resampling: M_f over stress, and what is read off that curve.

`stress_curve` and `capacities` are equations 8 to 10. On the stream they are found from sketches
(`resilience.families.operational_margin`); on the episodes as they are the two agree. A row of weights is a resample,
so that the interval of any of these figures is had by working it out for all rows.

An example: the margin falls from 0.5 to 0.3 and -0.7 as stress rises. M + 1 is 1.5, 1.3 and 0.3, and the area under it
over a width of 0.4 is (0.1 (1.5 + 1.3) + 0.1 (1.3 + 0.3)) / 0.4 = 1.1. The last step falls by 1.0 in 0.2, faster than
1 per unit of stress:

>>> curve, stresses = np.array([[0.5, 0.3, -0.7]]), [0.0, 0.2, 0.4]
>>> capacities(curve, stresses).tolist(), degradation_areas(curve, stresses).round(9).tolist()
([0.2], [1.1])
>>> cliff(curve[0], stresses)
0.4
"""

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from scipy import integrate  # type: ignore[import-untyped]

from springback.stream_processors.offline.resampling import weighted_quantile
from springback.stream_processors.offline.samples import EpisodeSample
from springback.stream_processors.resilience.anchor import Bools, Floats
from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.families.operational_margin import EPSILON
from springback.stream_processors.resilience.readings import ContractThresholds, StressMargin

CLIFF = 1.0
"""A margin that falls by more than this per unit of stress, from one level to the next, falls off a cliff."""
_ROUNDING = 1e-9


def stress_curve(
    sample: EpisodeSample,
    weights: Floats,
    levels: Sequence[int],
    thresholds: ContractThresholds,
    config: AggregateConfig,
) -> Floats:
    """M_f at some stress levels. Shape: weights (b, n), result (b, levels).

    NaN where fewer than K entries of a level are known, as when nothing of it was drawn.

    Source: equations 8 and 9.
    """
    columns = []
    for level in levels:
        own = sample.level == level
        columns.append(_margins(sample, own, weights[:, own], thresholds, config))
    return np.stack(columns, axis=1)


def capacities(curve: Floats, stresses: Sequence[float]) -> Floats:
    """lambda*_f: the largest stress whose margin is not negative, 0 where none is; NaN where no margin is known.

    Shape: curve (b, k), result (b,). Source: equation 10.

    >>> capacities(np.array([[0.5, -0.1, 0.2], [-0.1, -0.2, -0.3]]), [0.0, 0.2, 0.4]).tolist()
    [0.4, 0.0]
    """
    held = np.where(curve >= 0, np.array(stresses), 0.0).max(axis=1)
    return np.asarray(np.where(np.isnan(curve).all(axis=1), np.nan, held))


def degradation_areas(curve: Floats, stresses: Sequence[float]) -> Floats:
    """AUDC, the area under max(M_f + 1, 0) by the trapezoid rule, divided by the width of the stress levels.

    0 where everything failed at every level, 1 where the margin is 0 all along. NaN with fewer than two levels, or
    where a margin is not known. Areas over other levels are other figures: compare only those of the same ones.

    Shape: curve (b, k), result (b,). Source: ours.
    """
    if len(stresses) < 2:
        return np.full(len(curve), np.nan)
    area = integrate.trapezoid(np.maximum(curve + 1.0, 0.0), stresses, axis=1)
    return np.asarray(area / (stresses[-1] - stresses[0]))


def cliff(margins: Sequence[float] | Floats, stresses: Sequence[float]) -> float | None:
    """The first stress at which M_f falls by more than 1 per unit of stress from the level before; None where nowhere.

    Source: ours.
    """
    for place in range(1, len(stresses)):
        fall = margins[place - 1] - margins[place]
        if fall > CLIFF * (stresses[place] - stresses[place - 1]) + _ROUNDING:
            return stresses[place]
    return None


class DegradationCurve(msgspec.Struct, frozen=True, kw_only=True):
    """What a family's measured stress-response curve comes to: over the declared stress levels with enough episodes.

    Attributes:
        area: AUDC; None with fewer than two levels.
        lowest, highest: the first and the last of these levels, over which the area was taken.
        cliff: where the margin falls off; None where nowhere.
    """

    area: float | None
    lowest: float | None
    highest: float | None
    cliff: float | None


def degradation_curve(margins: Iterable[StressMargin]) -> DegradationCurve:
    """The figures of a curve. Levels with too few episodes, or with a margin that is not known, have no part in it."""
    known = sorted((level.stress, level.margin) for level in margins if level.sufficient and level.margin is not None)
    stresses, values = [stress for stress, _ in known], [margin for _, margin in known]
    area = float(degradation_areas(np.array([values]), stresses)[0])
    return DegradationCurve(
        area=None if np.isnan(area) else area,
        lowest=min(stresses, default=None),
        highest=max(stresses, default=None),
        cliff=cliff(values, stresses),
    )


def _margins(
    sample: EpisodeSample, own: Bools, weights: Floats, thresholds: ContractThresholds, config: AggregateConfig
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
    if len(ratios) < config.smallest:
        return np.full(len(weights), np.nan)
    # NaN sorts last: entries that are unknown are left out, and too few that are known leave one among the smallest.
    smallest = np.sort(np.minimum(np.stack(ratios), config.ratio_cap), axis=0)[: config.smallest]
    return np.asarray(smallest.mean(axis=0) - 1.0)
