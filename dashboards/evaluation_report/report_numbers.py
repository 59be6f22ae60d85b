"""Every number of a report, before any of them is drawn or written: the page, the JSON and the tables read it alone."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
from springback.dashboards.evaluation_report.channel_shares import ChannelRow, channel_rows
from springback.dashboards.evaluation_report.group_rows import GroupRow, group_row
from springback.dashboards.evaluation_report.method_signature import SignatureRow, signature_rows
from springback.dashboards.evaluation_report.report_groups import groups_of
from springback.dashboards.evaluation_report.report_statistics import CONFIDENCE, RESAMPLES
from springback.dashboards.evaluation_report.stress_rows import StressRow, stress_rows
from springback.dashboards.evaluation_report.window_timeline import Timeline, timeline
from springback.stream_processors.evaluation_json import EvaluationJson, evaluation_json
from springback.stream_processors.resilience.aggregate_config import AggregateConfig
from springback.stream_processors.resilience.family_readings import FamilyReading
from springback.stream_processors.resilience.readings import EpisodeKey, EpisodeSummary, WindowReading

DEFAULT_SEED = 0
Progress = Callable[[str, int, int], None]
"""Told what is under way, how many parts of the work are done, and how many there are."""


class CostPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One scored episode as the plots of the cost show it."""

    family: str
    method: str
    version: str
    stress: float
    clean: bool
    recovery_cost: float


class ReportNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """What `report.json` holds. `evaluation` is what `springback evaluate --json` writes of the same input."""

    sources: list[str]
    seed: int
    resamples: int
    confidence: float
    rejected_rows: int
    groups: list[GroupRow]
    stresses: list[StressRow]
    channels: list[ChannelRow]
    signatures: list[SignatureRow]
    timelines: list[Timeline]
    costs: list[CostPoint]
    grid: list[float]
    evaluation: EvaluationJson


def report_numbers(
    summaries: Sequence[EpisodeSummary],
    windows: Sequence[WindowReading],
    readings: Iterable[FamilyReading] = (),
    contract_margins: Mapping[EpisodeKey, float | None] | None = None,
    config: AggregateConfig | None = None,
    *,
    sources: Sequence[str] = (),
    rejected_rows: int = 0,
    seed: int = DEFAULT_SEED,
    progress: Progress = lambda what, done, total: None,
) -> ReportNumbers:
    """Work out a report's numbers. The order of episodes changes none of them.

    Args:
        summaries: the episodes.
        windows: their windows; open ones are passed over.
        readings: what is known of each family, method and version.
        contract_margins: the monitor m_i of each episode that has one.
        config: what the readings were made with; the defaults if None.
        sources: what the episodes were read from, to say so.
        rejected_rows: rows of the input that could not be used, to say so.
        seed: of the bootstrap.
        progress: is told how far the work has come.
    """
    readings, config = list(readings), config or AggregateConfig()
    groups = groups_of(summaries, windows, readings, config)
    rows, stresses = [], []
    for number, group in enumerate(groups):
        progress("Intervals", number, len(groups))
        rows.append(group_row(group, contract_margins or {}, seed))
        stresses += stress_rows(group, seed)
    progress("Intervals", len(groups), len(groups))
    return ReportNumbers(
        sources=list(sources),
        seed=seed,
        resamples=RESAMPLES,
        confidence=CONFIDENCE,
        rejected_rows=rejected_rows,
        groups=rows,
        stresses=stresses,
        channels=[row for group in groups for row in channel_rows(group)],
        signatures=signature_rows(groups),
        timelines=[timeline(group) for group in groups],
        costs=[
            CostPoint(
                family=group.identity[0],
                method=group.identity[1],
                version=group.identity[2],
                stress=group.stress(summary.traits),
                clean=group.is_clean(summary.traits),
                recovery_cost=summary.recovery_cost,
            )
            for group in groups
            for summary in group.scored
            if summary.recovery_cost is not None
        ],
        grid=list(config.grid),
        evaluation=evaluation_json(summaries, windows, readings, contract_margins),
    )
