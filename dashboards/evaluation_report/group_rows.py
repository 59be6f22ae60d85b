"""What a report says of each family, method and version as a whole."""

from collections.abc import Mapping

import msgspec
from springback.dashboards.evaluation_report.capacity_bootstrap import CapacityInterval, capacity_interval
from springback.dashboards.evaluation_report.report_groups import ReportGroup, costs
from springback.dashboards.evaluation_report.report_statistics import (
    Interval,
    RankComparison,
    RankCorrelation,
    bootstrap,
    compare_ranks,
    correlate_ranks,
    mean,
)
from springback.stream_processors.resilience.readings import EpisodeKey


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
