"""The resilience table: one row for each family, method, version and stress, with bootstrap intervals."""

from statistics import fmean

import msgspec
from springback.dashboards.evaluation_report.report_groups import ReportGroup, costs
from springback.dashboards.evaluation_report.report_statistics import Interval, bootstrap, mean, median
from springback.stream_processors.resilience.family_readings import StressMargin
from springback.stream_processors.resilience.readings import EpisodeSummary


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
