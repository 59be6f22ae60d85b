"""What a report says of each family, method and version: as a whole, and stress by stress, with bootstrap intervals.

The intervals of the stress capacity (equation 10) and of the area under the curve are found again each time that the
tasks are drawn. The thresholds of the contract stay as they are, and so does which stress levels have enough episodes.
The 0.9 quantile of few episodes is the worst of them, which a resample can miss and never exceed: such intervals lean
to the favourable side, and may leave the figure itself out. So they reach to it at least. The bootstrap is ours.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from statistics import fmean
from typing import Any, NamedTuple

import msgspec
import numpy as np

from springback.dashboards.evaluation_report.report_groups import RUNS, ReportGroup, Run
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
from springback.stream_processors.resilience.families.operational_margin import Quantities
from springback.stream_processors.resilience.families.stress_capacity import nearest_point
from springback.stream_processors.resilience.readings import (
    EpisodeKey,
    EpisodeSummary,
    FamilyReading,
    WindowReading,
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
        clean, disturbed, undeclared: episodes with a cost: undisturbed, disturbed, and those of which nobody said.
        clean_cost_mean, disturbed_cost_mean: their mean C_rec.
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
    undeclared: int
    clean_cost_mean: Interval | None
    disturbed_cost_mean: Interval | None
    comparison: TaskComparison | None
    correlation: RankCorrelation | None
    level_correlation: RankCorrelation | None
    capacity_interval: CapacityInterval | None
    audc: Interval | None
    audc_from: float | None
    audc_to: float | None
    cliff: float | None


class RunFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Episodes of one family, method and version that ran alike. A figure is None where there is nothing to take it of.

    Attributes:
        run: whether they were clean or disturbed, or `undeclared`: clean and disturbed ones are never in one row.
        tasks: how many tasks they are of.
        censored: episodes whose end was not seen; no figure counts them.
        provisional: episodes whose family was still learning.
        unscored: episodes without a baseline to score them by; no cost counts them either.
        windows: their closed rebound windows.
        recovery_cost_mean, recovery_cost_median: C_rec of an episode, dimensionless.
        stability_loss_mean: l of an episode, dimensionless.
        lost_cycles_mean: cycles lost in the windows of an episode.
        window_length_mean: steps from departure to re-entry, over the windows that were not censored.
        contract_held_to: episodes that have a monitor m_i (equation 7).
        contract_broken: those of them whose monitor is below 0.
        broken_progress, broken_propositions, broken_recovery, broken_stability, broken_safety: those of them that
            break this part of the contract.
    """

    family: str
    method: str
    version: str
    run: Run
    episodes: int
    tasks: int
    censored: int
    provisional: int
    unscored: int
    windows: int
    success_rate: Interval | None
    recovery_cost_mean: Interval | None
    recovery_cost_median: Interval | None
    stability_loss_mean: Interval | None
    lost_cycles_mean: float | None
    window_length_mean: float | None
    contract_held_to: int
    contract_broken: int
    broken_progress: int
    broken_propositions: int
    broken_recovery: int
    broken_stability: int
    broken_safety: int


class StressRow(RunFigures, frozen=True, kw_only=True):
    """Those of one stress: the grid point nearest to their severity; None where it is undeclared."""

    stress: float | None


def group_row(group: ReportGroup, seed: int) -> GroupRow:
    """The row of one group."""
    family, method, version = group.identity
    scored = group.scored
    of_run = {run: [summary for summary in scored if group.run(summary.traits) == run] for run in RUNS}
    clean, disturbed = of_run["clean"], of_run["disturbed"]
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
        undeclared=len(of_run["undeclared"]),
        clean_cost_mean=_interval(clean, _cost, weighted_mean, seed),
        disturbed_cost_mean=_interval(disturbed, _cost, weighted_mean, seed),
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


def run_rows(group: ReportGroup, contract_margins: Mapping[EpisodeKey, float | None], seed: int) -> list[RunFigures]:
    """The rows of one group as a whole: its clean, its disturbed and its undeclared episodes, where it has some."""
    rows = []
    for run in RUNS:
        summaries = [summary for summary in group.summaries if group.run(summary.traits) == run]
        windows = [window for window in group.windows if group.run(window.traits) == run]
        if summaries:
            rows.append(RunFigures(**_run_figures(group, run, summaries, windows, contract_margins, seed)))
    return rows


def stress_rows(group: ReportGroup, contract_margins: Mapping[EpisodeKey, float | None], seed: int) -> list[StressRow]:
    """The rows of one group, by stress, undeclared last, and by run; where there is no episode there is no row."""
    summaries, windows = group.placed(group.summaries), group.placed(group.windows)
    return [
        StressRow(stress=level, **_run_figures(group, run, own, windows.get((level, run), []), contract_margins, seed))
        for level, run in product(group.levels, RUNS)
        if (own := summaries.get((level, run)))
    ]


def _run_figures(
    group: ReportGroup,
    run: Run,
    summaries: list[EpisodeSummary],
    windows: list[WindowReading],
    contract_margins: Mapping[EpisodeKey, float | None],
    seed: int,
) -> dict[str, Any]:
    """The fields of a row of these episodes, which ran alike, with their windows."""
    family, method, version = group.identity
    ended = [summary for summary in summaries if not summary.censored]
    scored = [summary for summary in ended if summary.recovery_cost is not None]
    lengths = [window.length_steps for window in windows if window.state != "censored"]
    held_to = [summary for summary in ended if contract_margins.get(summary.key) is not None]
    return {
        "family": family,
        "method": method,
        "version": version,
        "run": run,
        "episodes": len(summaries),
        "tasks": len({summary.traits.task for summary in summaries}),
        "censored": len(summaries) - len(ended),
        "provisional": sum(summary.provisional for summary in ended),
        "unscored": len(ended) - len(scored),
        "windows": len(windows),
        "success_rate": _interval(ended, lambda summary: float(summary.outcome == "success"), weighted_mean, seed),
        "recovery_cost_mean": _interval(scored, _cost, weighted_mean, seed),
        "recovery_cost_median": _interval(scored, _cost, weighted_median, seed),
        "stability_loss_mean": _interval(ended, lambda summary: summary.stability_loss, weighted_mean, seed),
        "lost_cycles_mean": fmean(summary.lost_cycles for summary in scored) if scored else None,
        "window_length_mean": fmean(lengths) if lengths else None,
        "contract_held_to": len(held_to),
        "contract_broken": sum((contract_margins.get(summary.key) or 0.0) < 0 for summary in held_to),
        **_broken_parts(held_to, group.reading),
    }


def _broken_parts(summaries: Iterable[EpisodeSummary], reading: FamilyReading | None) -> dict[str, int]:
    """How many of the episodes break each part of the contract, by the thresholds of the reading."""
    counts = dict.fromkeys(Quantities._fields, 0)
    for summary in summaries:
        ratios = None if reading is None else Quantities.of(summary).ratios(reading.thresholds)
        for name, ratio in () if ratios is None else ratios._asdict().items():
            counts[name] += ratio is not None and ratio < 1
    return {f"broken_{name}": count for name, count in counts.items()}


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
