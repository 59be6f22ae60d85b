"""What a report says of each family, method and version: as a whole, and stress by stress, with bootstrap intervals.

The intervals of the stress capacity (equation 10) and of the area under the curve are found again each time that the
tasks are drawn. The thresholds of the contract stay as they are, and so does which stress levels have enough episodes.
The 0.9 quantile of few episodes is the worst of them, which a resample can miss and never exceed: such intervals lean
to the favourable side, and may leave the figure itself out. So they reach to it at least. The bootstrap is ours.
"""

from collections.abc import Callable, Iterable, Mapping
from statistics import fmean
from typing import NamedTuple

import msgspec
import numpy as np

from springback.dashboards.evaluation_report.report_groups import ReportGroup
from springback.stream_processors.offline.resampling import (
    RESAMPLES,
    Interval,
    TaskDraws,
    WeightedStatistic,
    bootstrap,
    percentile_interval,
    weighted_mean,
    weighted_median,
    weighted_rank_correlation,
)
from springback.stream_processors.offline.samples import counts, sample_of
from springback.stream_processors.offline.significance import (
    RankCorrelation,
    TaskComparison,
    TaskValue,
    compare_tasks,
    correlate_levels,
)
from springback.stream_processors.offline.stress_response import (
    capacities,
    degradation_areas,
    degradation_curve,
    stress_curve,
)
from springback.stream_processors.resilience.anchor import Floats
from springback.stream_processors.resilience.families.stress_capacity import nearest_point
from springback.stream_processors.resilience.readings import (
    EpisodeKey,
    EpisodeSummary,
    FamilyReading,
    LevelFigures,
    LevelState,
)


class CapacityInterval(msgspec.Struct, frozen=True, kw_only=True):
    """The interval of lambda*_f, and how often no stress at all held. A capacity of `none` counts as 0 in it."""

    low: float
    high: float
    none_share: float


class GroupRow(msgspec.Struct, frozen=True, kw_only=True):
    """One family, method and version. A figure is None where there is nothing to take it of.

    Attributes:
        provisional: episodes whose family was still learning: their costs are shown, and tested for nothing.
        clean, disturbed: episodes with a cost, undisturbed and not.
        clean_cost_mean, disturbed_cost_mean: their mean C_rec.
        contract_broken: episodes whose monitor m_i (equation 7) is below 0, of `contract_held_to`.
        comparison: the costs of the disturbed against those of the clean, task by task.
        correlation: of an episode's C_rec with its stress, by rank, with an interval from resampling tasks.
        level_correlation: of the mean C_rec of a stress level with its stress, by rank, with a p.
        capacity_interval: the bootstrap interval of lambda*_f.
        audc: the area under the curve of M_f + 1, from `audc_from` to `audc_to`, the levels with enough episodes.
        cliff: the first stress at which M_f falls by more than 1 per unit of stress.
    """

    family: str
    method: str
    version: str
    episodes: int
    provisional: int
    clean: int
    disturbed: int
    clean_cost_mean: Interval | None
    disturbed_cost_mean: Interval | None
    contract_broken: int
    contract_held_to: int
    comparison: TaskComparison | None
    correlation: RankCorrelation | None
    level_correlation: RankCorrelation | None
    capacity_interval: CapacityInterval | None
    audc: Interval | None
    audc_from: float | None
    audc_to: float | None
    cliff: float | None


class StressRow(msgspec.Struct, frozen=True, kw_only=True):
    """Episodes of one family, method and version at one stress. A figure is None where there is nothing to take it of.

    Attributes:
        stress: the grid point nearest to the episodes' severity; None where it is undeclared.
        censored: episodes whose end was not seen; no figure counts them.
        provisional: episodes whose family was still learning; the margin does not count them.
        unscored: episodes without a baseline to score them by; no cost counts them either.
        recovery_cost_mean, recovery_cost_median: C_rec of an episode, dimensionless.
        stability_loss_mean: l of an episode, dimensionless.
        lost_cycles_mean: cycles lost in the windows of an episode.
        window_length_mean: steps from departure to re-entry, over the windows that were not censored.
        margin: M_f, in ratio units; `state` says what it shows, `counted` how many episodes it rests on.
        judged: of how many it is known whether they broke the contract: of those and the provisional ones.
        violations: those of them that did; `violation_low` and `violation_high` bound their share.
    """

    family: str
    method: str
    version: str
    stress: float | None
    episodes: int
    censored: int
    provisional: int
    unscored: int
    success_rate: Interval | None
    recovery_cost_mean: Interval | None
    recovery_cost_median: Interval | None
    stability_loss_mean: Interval | None
    lost_cycles_mean: float | None
    window_length_mean: float | None
    margin: float | None
    state: LevelState
    counted: int
    judged: int
    violations: int
    violation_low: float | None
    violation_high: float | None


def group_row(group: ReportGroup, contract_margins: Mapping[EpisodeKey, float | None], seed: int) -> GroupRow:
    """The row of one group."""
    family, method, version = group.identity
    scored = group.scored
    clean = [summary for summary in scored if group.is_clean(summary.traits)]
    disturbed = [summary for summary in scored if not group.is_clean(summary.traits)]
    monitors = [contract_margins.get(summary.key) for summary in group.ended]
    by_stress = _costs_by_stress(group)
    response = resampled_curve(group, seed)
    curve = degradation_curve(() if group.reading is None else group.reading.margins)
    return GroupRow(
        family=family,
        method=method,
        version=version,
        episodes=len(group.summaries),
        provisional=sum(summary.provisional for summary in group.summaries),
        clean=len(clean),
        disturbed=len(disturbed),
        clean_cost_mean=_interval(clean, _cost, weighted_mean, seed),
        disturbed_cost_mean=_interval(disturbed, _cost, weighted_mean, seed),
        contract_broken=sum(monitor is not None and monitor < 0 for monitor in monitors),
        contract_held_to=sum(monitor is not None for monitor in monitors),
        comparison=compare_tasks(_task_costs(clean), _task_costs(disturbed)),
        correlation=_correlation(by_stress, seed),
        level_correlation=correlate_levels((nearest_point(stress, group.grid), cost) for stress, cost, _ in by_stress),
        capacity_interval=None if response is None else capacity_interval(response, group.reading),
        audc=None if curve.area is None else _area_interval(curve.area, response),
        audc_from=curve.lowest,
        audc_to=curve.highest,
        cliff=curve.cliff,
    )


class ResampledCurve(NamedTuple):
    """M_f of a group at the stress levels that have enough episodes, in each resample of its tasks: (b, k) and (k,)."""

    margins: Floats
    stresses: list[float]


def resampled_curve(group: ReportGroup, seed: int, resamples: int = RESAMPLES) -> ResampledCurve | None:
    """The stress-response curve in each resample.

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
    return ResampledCurve(curve, [group.grid[level] for level in levels])


def capacity_interval(response: ResampledCurve, reading: FamilyReading | None) -> CapacityInterval | None:
    """The bootstrap interval of a group's stress capacity, which it reaches to; None where no resample has one."""
    found = capacities(response.margins, response.stresses)
    low, high = percentile_interval(found)
    if low is None or high is None:
        return None
    known = response.margins[~np.isnan(found)]
    if reading is not None and reading.capacity is not None:
        low, high = min(low, reading.capacity), max(high, reading.capacity)
    return CapacityInterval(low=low, high=high, none_share=float(1 - (known >= 0).any(axis=1).mean()))


def _area_interval(area: float, response: ResampledCurve | None) -> Interval:
    if response is None:
        return Interval(value=area, low=None, high=None)
    low, high = percentile_interval(degradation_areas(response.margins, response.stresses))
    if low is None or high is None:
        return Interval(value=area, low=None, high=None)
    return Interval(value=area, low=min(low, area), high=max(high, area))


def _correlation(found: list[tuple[float, float, str]], seed: int) -> RankCorrelation | None:
    """Spearman's rho of cost and stress over episodes; None with fewer than three, or where one does not vary."""
    if len(found) < 3:
        return None
    stress, cost = (np.array([episode[i] for episode in found], dtype=np.float64) for i in (0, 1))
    draws = TaskDraws([task for _, _, task in found], seed=seed)
    rho = draws.resample(lambda weights: weighted_rank_correlation(stress, cost, weights))
    if np.isnan(rho[0]):
        return None
    low, high = percentile_interval(rho[1:]) if draws.tasks > 1 else (None, None)
    return RankCorrelation(over="episodes", points=len(found), rho=float(rho[0]), low=low, high=high)


def _costs_by_stress(group: ReportGroup) -> list[tuple[float, float, str]]:
    """Declared stress, cost and task of the episodes that count; sorted, so that their order plays no part."""
    return sorted(
        (stress, summary.recovery_cost, summary.traits.task)
        for summary in group.scored
        if counts(summary)
        and summary.recovery_cost is not None
        and (stress := group.stress(summary.traits)) is not None
    )


def _task_costs(summaries: Iterable[EpisodeSummary]) -> list[TaskValue]:
    """The costs of the episodes that count, to be tested task by task, all stress levels as one."""
    return [
        (summary.traits.task, 0, summary.recovery_cost)
        for summary in summaries
        if counts(summary) and summary.recovery_cost is not None
    ]


def stress_rows(group: ReportGroup, seed: int) -> list[StressRow]:
    """The rows of one group, by stress, undeclared last; a stress without an episode has none."""
    levels = [(level, [s for s in group.summaries if group.point(s.traits) == level]) for level in group.levels]
    return [_stress_row(group, level, summaries, seed) for level, summaries in levels if summaries]


def _stress_row(group: ReportGroup, level: float | None, summaries: list[EpisodeSummary], seed: int) -> StressRow:
    family, method, version = group.identity
    ended = [summary for summary in summaries if not summary.censored]
    scored = [summary for summary in ended if summary.recovery_cost is not None]
    lengths = [w.length_steps for w in group.whole_windows if group.point(w.traits) == level]
    figures = _level_figures(group.reading, level)
    return StressRow(
        family=family,
        method=method,
        version=version,
        stress=level,
        episodes=len(summaries),
        censored=len(summaries) - len(ended),
        provisional=sum(summary.provisional for summary in ended),
        unscored=len(ended) - len(scored),
        success_rate=_interval(ended, lambda summary: float(summary.outcome == "success"), weighted_mean, seed),
        recovery_cost_mean=_interval(scored, _cost, weighted_mean, seed),
        recovery_cost_median=_interval(scored, _cost, weighted_median, seed),
        stability_loss_mean=_interval(ended, lambda summary: summary.stability_loss, weighted_mean, seed),
        lost_cycles_mean=fmean(summary.lost_cycles for summary in scored) if scored else None,
        window_length_mean=fmean(lengths) if lengths else None,
        margin=None if figures is None else figures.margin,
        state="insufficient" if figures is None else figures.state,
        counted=0 if figures is None else figures.episodes,
        judged=0 if figures is None else figures.judged,
        violations=0 if figures is None else figures.violations,
        violation_low=None if figures is None else figures.violation_low,
        violation_high=None if figures is None else figures.violation_high,
    )


def _level_figures(reading: FamilyReading | None, level: float | None) -> LevelFigures | None:
    if reading is None:
        return None
    if level is None:
        return reading.undeclared
    return next((margin for margin in reading.margins if margin.stress == level), None)


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
