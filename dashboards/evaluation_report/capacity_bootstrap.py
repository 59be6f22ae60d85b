"""How sure the stress capacity is: lambda*_f found again on episodes drawn anew, many times.

Equations 8 to 10 over all resamples at once. The thresholds of the contract are held as they are, and so is which bins
have enough episodes: each bin is drawn anew by itself, at its own size.

Source: equations 8 to 10; the bootstrap is ours.
"""

import math
from collections.abc import Iterator

import msgspec
import numpy as np
from springback.dashboards.evaluation_report.report_groups import ReportGroup
from springback.dashboards.evaluation_report.report_statistics import RESAMPLES, Floats, percentile_interval
from springback.stream_processors.resilience.aggregate_config import AggregateConfig
from springback.stream_processors.resilience.family_readings import ContractThresholds, FamilyReading
from springback.stream_processors.resilience.operational_margin import EPSILON
from springback.stream_processors.resilience.readings import EpisodeSummary

_DRAWS_AT_A_TIME = 200_000


class CapacityInterval(msgspec.Struct, frozen=True, kw_only=True):
    """The interval of lambda*_f, and how often no stress at all held. A capacity of `none` counts as 0 in it."""

    low: float
    high: float
    none_share: float


def capacity_interval(group: ReportGroup, seed: int, resamples: int = RESAMPLES) -> CapacityInterval | None:
    """The bootstrap interval of a group's stress capacity; None where no bin has enough episodes."""
    if group.reading is None:
        return None
    chance = np.random.default_rng(seed)
    capacities, holds_anywhere = np.zeros(resamples), np.zeros(resamples, dtype=bool)
    decided = False
    for point, margins in resampled_margins(group, group.reading, chance, resamples):
        decided = True
        capacities[margins >= 0] = point
        holds_anywhere |= margins >= 0
    if not decided:
        return None
    low, high = percentile_interval(capacities)
    return CapacityInterval(low=low, high=high, none_share=float(1 - holds_anywhere.mean()))


def resampled_margins(
    group: ReportGroup, reading: FamilyReading, chance: np.random.Generator, resamples: int
) -> Iterator[tuple[float, Floats]]:
    """M_f of each resample, for each stress whose bin has enough episodes, from the lowest."""
    for margin in sorted(reading.margins, key=lambda margin: margin.stress):
        episodes = [summary for summary in group.ended if group.point(summary.traits) == margin.stress]
        if not margin.sufficient or not episodes:
            continue
        values = np.array([_measured(summary) for summary in episodes])
        values = values[np.lexsort(values.T)]
        rows = max(1, _DRAWS_AT_A_TIME // len(values))
        found = []
        for first in range(0, resamples, rows):
            drawn = chance.integers(0, len(values), (min(rows, resamples - first), len(values)))
            found.append(margins_of(values[drawn], reading.thresholds, group.config))
        yield margin.stress, np.concatenate(found)


def margins_of(values: Floats, thresholds: ContractThresholds, config: AggregateConfig) -> Floats:
    """M_f of each resample; `values` is (resamples, episodes, 5): p, q, C_rec, l and U, NaN where unknown."""
    benefits = (thresholds.progress, thresholds.propositions)
    burdens = (thresholds.recovery, thresholds.stability, thresholds.safety)
    reached = [_quantile(values[:, :, column], config.alpha) / least for column, least in enumerate(benefits)]
    reached += [
        most / (_quantile(values[:, :, column], 1 - config.alpha) + EPSILON)
        for column, most in enumerate(burdens, start=len(benefits))
        if most is not None
    ]
    smallest = np.sort(np.minimum(np.stack(reached), config.ratio_cap), axis=0)[: config.smallest]
    return np.asarray(np.nanmean(smallest, axis=0) - 1)


def _measured(summary: EpisodeSummary) -> tuple[float, float, float, float, float]:
    cost, loss = summary.recovery_cost, summary.stability_loss
    return (
        summary.final_progress,
        summary.final_propositions,
        math.nan if cost is None else cost,
        math.nan if loss is None else loss,
        summary.violation,
    )


def _quantile(values: Floats, rank: float) -> Floats:
    """The smallest value of each row whose rank reaches `rank`, unknown values left out; NaN where all are unknown."""
    ordered = np.sort(values, axis=1)
    known = (~np.isnan(ordered)).sum(axis=1)
    positions = np.maximum(np.ceil(rank * known - 1e-9).astype(np.int64), 1) - 1
    return np.asarray(np.take_along_axis(ordered, positions[:, np.newaxis], axis=1)[:, 0])
