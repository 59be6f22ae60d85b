"""What a report says of each family, method and version: as a whole, and stress by stress, with bootstrap intervals.

The interval of the stress capacity is that of lambda*_f (equation 10), found again each time that the tasks are drawn.
The thresholds of the contract stay as they are, and so does which stress levels have enough episodes. The bootstrap is
ours.
"""

from collections.abc import Callable, Iterable, Mapping
from statistics import fmean

import msgspec

from springback.dashboards.evaluation_report.report_groups import ReportGroup
from springback.stream_processors.offline.resampling import (
    RESAMPLES,
    Interval,
    RankComparison,
    RankCorrelation,
    TaskDraws,
    WeightedStatistic,
    bootstrap,
    compare_ranks,
    correlate_ranks,
    percentile_interval,
    weighted_mean,
    weighted_median,
)
from springback.stream_processors.offline.samples import capacities, sample_of, stress_curve
from springback.stream_processors.resilience.readings import EpisodeKey, EpisodeSummary, StressMargin


class CapacityInterval(msgspec.Struct, frozen=True, kw_only=True):
    """The interval of lambda*_f, and how often no stress at all held. A capacity of `none` counts as 0 in it."""

    low: float
    high: float
    none_share: float


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


def group_row(group: ReportGroup, contract_margins: Mapping[EpisodeKey, float | None], seed: int) -> GroupRow:
    """The row of one group."""
    family, method, version = group.identity
    scored = group.scored
    clean = [summary for summary in scored if group.is_clean(summary.traits)]
    disturbed = [summary for summary in scored if not group.is_clean(summary.traits)]
    monitors = [contract_margins.get(summary.key) for summary in group.ended]
    return GroupRow(
        family=family,
        method=method,
        version=version,
        episodes=len(group.summaries),
        clean=len(clean),
        disturbed=len(disturbed),
        clean_cost_mean=_interval(clean, _cost, weighted_mean, seed),
        disturbed_cost_mean=_interval(disturbed, _cost, weighted_mean, seed),
        contract_broken=sum(monitor is not None and monitor < 0 for monitor in monitors),
        contract_held_to=sum(monitor is not None for monitor in monitors),
        comparison=compare_ranks(costs(clean), costs(disturbed)),
        correlation=correlate_ranks([group.stress(summary.traits) for summary in scored], costs(scored)),
        capacity_interval=capacity_interval(group, seed),
    )


def capacity_interval(group: ReportGroup, seed: int, resamples: int = RESAMPLES) -> CapacityInterval | None:
    """The bootstrap interval of a group's stress capacity.

    None where no stress level has enough episodes, or where all episodes are of one task.
    """
    if group.reading is None:
        return None
    sample = sample_of(group.summaries, (), group.grid, group.contract)
    decided = {margin.stress for margin in group.reading.margins if margin.sufficient}
    levels = [level for level, point in enumerate(group.grid) if point in decided and level in sample.level]
    draws = TaskDraws(sample.task, seed=seed, resamples=resamples)
    if not levels or draws.tasks < 2:
        return None
    thresholds = group.reading.thresholds
    curve = draws.resample(lambda weights: stress_curve(sample, weights, levels, thresholds, group.config))[1:]
    low, high = percentile_interval(capacities(curve, [group.grid[level] for level in levels]))
    if low is None or high is None:
        return None
    return CapacityInterval(low=low, high=high, none_share=float(1 - (curve >= 0).any(axis=1).mean()))


def stress_rows(group: ReportGroup, seed: int) -> list[StressRow]:
    """The rows of one group, by stress; a stress without an episode has none."""
    points = {point: [s for s in group.summaries if group.point(s.traits) == point] for point in group.grid}
    return [_stress_row(group, point, summaries, seed) for point, summaries in sorted(points.items()) if summaries]


def _stress_row(group: ReportGroup, point: float, summaries: list[EpisodeSummary], seed: int) -> StressRow:
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
        success_rate=_interval(ended, lambda summary: float(summary.outcome == "success"), weighted_mean, seed),
        recovery_cost_mean=_interval(scored, _cost, weighted_mean, seed),
        recovery_cost_median=_interval(scored, _cost, weighted_median, seed),
        stability_loss_mean=_interval(ended, lambda summary: summary.stability_loss, weighted_mean, seed),
        lost_cycles_mean=fmean(summary.lost_cycles for summary in scored) if scored else None,
        window_length_mean=fmean(lengths) if lengths else None,
        margin=None if margin is None else margin.margin,
        sufficient=margin is not None and margin.sufficient,
    )


def costs(summaries: Iterable[EpisodeSummary]) -> list[float]:
    """The recovery costs of those that have one."""
    return [summary.recovery_cost for summary in summaries if summary.recovery_cost is not None]


def _cost(summary: EpisodeSummary) -> float | None:
    return summary.recovery_cost


def _interval(
    summaries: Iterable[EpisodeSummary],
    value: Callable[[EpisodeSummary], float | None],
    statistic: WeightedStatistic,
    seed: int,
) -> Interval | None:
    known = [(found, summary.traits.task) for summary in summaries if (found := value(summary)) is not None]
    return bootstrap([found for found, _ in known], [task for _, task in known], statistic, seed=seed)
