"""Which channel a recovery cost comes from: cognitive effort, physical effort, or state debt."""

import msgspec
from springback.dashboards.evaluation_report.report_groups import ReportGroup


class ChannelRow(msgspec.Struct, frozen=True, kw_only=True):
    """The shares of the channels in the recovery cost of one group at one stress; they sum to 1.

    Each channel's cost is computed with its own intensity alone (equation 3), so the three sum to more than the whole
    cost; the shares are of their sum. None where no episode cost anything.

    Source: ours.
    """

    family: str
    method: str
    version: str
    stress: float
    episodes: int
    cognitive: float | None
    physical: float | None
    debt: float | None


def channel_rows(group: ReportGroup) -> list[ChannelRow]:
    """The rows of one group, by stress."""
    family, method, version = group.identity
    rows = []
    for point in sorted(group.grid):
        scored = [summary for summary in group.scored if group.point(summary.traits) == point]
        if not scored:
            continue
        parts = [
            sum(summary.costs.cognitive for summary in scored),
            sum(summary.costs.physical for summary in scored),
            sum(summary.costs.debt for summary in scored),
        ]
        cognitive, physical, debt = (part / sum(parts) if sum(parts) > 0 else None for part in parts)
        rows.append(
            ChannelRow(
                family=family,
                method=method,
                version=version,
                stress=point,
                episodes=len(scored),
                cognitive=cognitive,
                physical=physical,
                debt=debt,
            )
        )
    return rows
