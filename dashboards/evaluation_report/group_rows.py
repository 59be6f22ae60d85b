"""What a report says of each family, method and version as a whole.

The resilience table: one row for each family, method, version and stress, with bootstrap intervals.

How sure the stress capacity is: lambda*_f found again on episodes drawn anew, many times.

Equations 8 to 10 over all resamples at once. The thresholds of the contract are held as they are, and so is which bins
have enough episodes: each bin is drawn anew by itself, at its own size.

Source: equations 8 to 10; the bootstrap is ours.
"""

import math
from collections.abc import Iterator, Mapping
from statistics import fmean

import msgspec
import numpy as np

from springback.dashboards.evaluation_report.report_groups import ReportGroup, costs
from springback.dashboards.evaluation_report.report_statistics import (
    RESAMPLES,
    Floats,
    Interval,
    RankComparison,
    RankCorrelation,
    bootstrap,
    compare_ranks,
    correlate_ranks,
    mean,
    median,
    percentile_interval,
)
from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.families.operational_margin import EPSILON
from springback.stream_processors.resilience.readings import (
    ContractThresholds,
    EpisodeKey,
    EpisodeSummary,
    FamilyReading,
    StressMargin,
)


class StressRow(msgspec.Struct, frozen=True, kw_only=True):
    """Episodes of one family, method and version at one stress. A figure is None where there is nothing to take it of.

    Attributes:
        stress: the grid point nearest to the episodes' severity.
        censored: episodes whose end was not seen; no figure counts them.
        unscored: episodes without a baseline to score them by; no cost counts them either.
        recovery_cost_mean, recovery_cost_median: C_rec of an episode, dimensionless.
        stability_loss_mean: l of an episode, dimensionless.
        lost_cycles_mean: cycles lost in the windows of an episode.
        window_length_mean: steps from departure to re-entry, over the windows that were not censored.
        margin: M_f, in ratio units; `sufficient` says that its bin has enough episodes to decide anything.
    """

    family: str
    method: str
    version: str
    stress: float
    episodes: int
    censored: int
    unscored: int
    success_rate: Interval | None
    recovery_cost_mean: Interval | None
    recovery_cost_median: Interval | None
    stability_loss_mean: Interval | None
    lost_cycles_mean: float | None
    window_length_mean: float | None
    margin: float | None
    sufficient: bool


def stress_rows(group: ReportGroup, seed: int) -> list[StressRow]:
    """The rows of one group, by stress; a stress without an episode has none."""
    points = {point: [s for s in group.summaries if group.point(s.traits) == point] for point in group.grid}
    return [_row(group, point, summaries, seed) for point, summaries in sorted(points.items()) if summaries]


def _row(group: ReportGroup, point: float, summaries: list[EpisodeSummary], seed: int) -> StressRow:
    family, method, version = group.identity
    ended = [summary for summary in summaries if not summary.censored]
    scored = [summary for summary in ended if summary.recovery_cost is not None]
    lengths = [w.length_steps for w in group.whole_windows if group.point(w.traits) == point]
    curve = {} if group.reading is None else {margin.stress: margin for margin in group.reading.margins}
    margin: StressMargin | None = curve.get(point)
    return StressRow(
        family=family,
        method=method,
        version=version,
        stress=point,
        episodes=len(summaries),
        censored=len(summaries) - len(ended),
        unscored=len(ended) - len(scored),
        success_rate=bootstrap([float(s.outcome == "success") for s in ended], mean, seed),
        recovery_cost_mean=bootstrap(costs(scored), mean, seed),
        recovery_cost_median=bootstrap(costs(scored), median, seed),
        stability_loss_mean=bootstrap([s.stability_loss for s in ended if s.stability_loss is not None], mean, seed),
        lost_cycles_mean=fmean(s.lost_cycles for s in scored) if scored else None,
        window_length_mean=fmean(lengths) if lengths else None,
        margin=None if margin is None else margin.margin,
        sufficient=margin is not None and margin.sufficient,
    )


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


class GroupRow(msgspec.Struct, frozen=True, kw_only=True):
    """One family, method and version. A figure is None where there is nothing to take it of.

    Attributes:
        clean, disturbed: episodes with a cost, undisturbed and not.
        clean_cost_mean, disturbed_cost_mean: their mean C_rec.
        contract_broken: episodes whose monitor m_i (equation 7) is below 0, of `contract_held_to`.
        comparison: the costs of the disturbed against those of the clean, by rank.
        correlation: of an episode's C_rec with its stress, by rank.
        capacity_interval: the bootstrap interval of lambda*_f.
    """

    family: str
    method: str
    version: str
    episodes: int
    clean: int
    disturbed: int
    clean_cost_mean: Interval | None
    disturbed_cost_mean: Interval | None
    contract_broken: int
    contract_held_to: int
    comparison: RankComparison | None
    correlation: RankCorrelation | None
    capacity_interval: CapacityInterval | None


def group_row(group: ReportGroup, contract_margins: Mapping[EpisodeKey, float | None], seed: int) -> GroupRow:
    """The row of one group."""
    family, method, version = group.identity
    scored = group.scored
    clean = costs(summary for summary in scored if group.is_clean(summary.traits))
    disturbed = costs(summary for summary in scored if not group.is_clean(summary.traits))
    monitors = [contract_margins.get(summary.key) for summary in group.ended]
    return GroupRow(
        family=family,
        method=method,
        version=version,
        episodes=len(group.summaries),
        clean=len(clean),
        disturbed=len(disturbed),
        clean_cost_mean=bootstrap(clean, mean, seed),
        disturbed_cost_mean=bootstrap(disturbed, mean, seed),
        contract_broken=sum(monitor is not None and monitor < 0 for monitor in monitors),
        contract_held_to=sum(monitor is not None for monitor in monitors),
        comparison=compare_ranks(clean, disturbed),
        correlation=correlate_ranks([group.stress(summary.traits) for summary in scored], costs(scored)),
        capacity_interval=capacity_interval(group, seed),
    )
