"""Every number of a report, before any of them is drawn or written: the page, the JSON and the tables read it alone.

What each family, method and version comes to is in `group_rows`. Here are the numbers behind the plots: single costs,
the channels' shares in them, a sample of episodes with their rebound windows, and the signatures of the methods.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from statistics import fmean

import msgspec

from springback.dashboards.evaluation_report.group_rows import (
    GroupRow,
    RunFigures,
    StressRow,
    costs,
    group_row,
    run_rows,
    stress_rows,
)
from springback.dashboards.evaluation_report.report_groups import RUNS, ReportGroup, Run, groups_of
from springback.dashboards.evaluation_report.report_origin import ContractRow, ReportOrigin, contract_rows, with_times
from springback.stream_processors.offline.resampling import CONFIDENCE, RESAMPLES
from springback.stream_processors.offline.significance import corrected, holm
from springback.stream_processors.offline.tables import EvaluationJson, evaluation_json
from springback.stream_processors.resilience.families.contract_config import AggregateConfig
from springback.stream_processors.resilience.readings import EpisodeKey, EpisodeSummary, FamilyReading, WindowReading

DEFAULT_SEED = 0

ALL_FAMILIES = "*"
AXES = {
    "success": ("success", "share of the disturbed episodes that succeed"),
    "low_cost": ("low cost", "1 / (1 + mean C_rec of the disturbed episodes / the most that the contract allows)"),
    "short_windows": ("short windows", "1 - mean window length / mean length of an episode, in steps"),
    "steadiness": ("steadiness", "mean stability loss of the clean / of the disturbed episodes, at most 1"),
    "low_beta": (
        "low β",
        "1 / (1 + β / mean stability loss of the clean): 0.5 where magnitude 1 doubles the loss at worst",
    ),
    "capacity": ("capacity λ*", "the largest tested stress whose margin is not negative; of more nothing is known"),
}
"""The six measures of a signature, each brought to 0 to 1 with 1 the best, and how. Source: ours."""

Progress = Callable[[str, int, int], None]
"""Called with what is under way, how many parts of the work are done, and how many there are."""


class CostPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One scored episode as the plots of the cost show it. Its stress is None where undeclared."""

    agent: str
    episode: str
    task: str
    family: str
    method: str
    version: str
    stress: float | None
    run: Run
    recovery_cost: float


class ChannelRow(msgspec.Struct, frozen=True, kw_only=True):
    """The shares of the channels in the recovery cost of a group's episodes that ran alike at one stress; sum: 1.

    Each channel's cost is computed with its own intensity alone (equation 3), so the three sum to more than the whole
    cost; the shares are of their sum. None where no episode cost anything. A stress of None is undeclared.

    Source: ours.
    """

    family: str
    method: str
    version: str
    stress: float | None
    run: Run
    episodes: int
    cognitive: float | None
    physical: float | None
    debt: float | None


class TimelineWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A window of an episode, in steps, with its recovery cost and the cycles lost in it."""

    departure_step: int
    reentry_step: int
    cause: str
    state: str
    recovery_cost: float
    lost_cycles: float


class TimelineEpisode(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the timeline. `steps` is the number of the last step known, and one; a stress of None is undeclared.

    `started_s` is seconds since 1970 (UTC), `recovery_cost` C_rec of the episode; None where it could not be scored.
    """

    agent: str
    episode: str
    task: str
    stress: float | None
    run: Run
    outcome: str
    started_s: float
    steps: int
    recovery_cost: float | None
    windows: list[TimelineWindow]


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one family, method and version, by stress: all its episodes that had a window."""

    family: str
    method: str
    version: str
    episodes: int
    with_windows: int
    rows: list[TimelineEpisode]


class SignatureRow(msgspec.Struct, frozen=True, kw_only=True):
    """The signature of a method and version in one family, or over all of them: the mean of the families' scores.

    `family` is `*` for that mean. A score is None where nothing is known of it. `clean` and `disturbed` say of how many
    episodes that were seen to end it is.
    """

    family: str
    method: str
    version: str
    clean: int
    disturbed: int
    success: float | None
    low_cost: float | None
    short_windows: float | None
    steadiness: float | None
    low_beta: float | None
    capacity: float | None

    def scores(self) -> list[float | None]:
        """The scores in the order of AXES."""
        return [getattr(self, name) for name in AXES]


class ReportNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """What `report.json` holds. `evaluation` is what `springback evaluate --json` writes of the same input."""

    origin: ReportOrigin
    seed: int
    resamples: int
    confidence: float
    ratio_cap: float
    rejected_rows: int
    contracts: list[ContractRow]
    outcomes: list[RunFigures]
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
    origin: ReportOrigin | None = None,
    rejected_rows: int = 0,
    seed: int = DEFAULT_SEED,
    progress: Progress = lambda what, done, total: None,
) -> ReportNumbers:
    """Works out a report's numbers. The order of episodes changes none of them.

    Args:
        summaries: the episodes.
        windows: their windows; open ones are passed over.
        readings: what is known of each family, method and version.
        contract_margins: the monitor m_i of each episode that has one.
        config: what the readings were made with; the defaults if None.
        origin: what the report is made of, and how, to say so; the time of its steps is filled in.
        rejected_rows: rows of the input that could not be used, to say so.
        seed: of the bootstrap.
        progress: told how far the work has come.
    """
    readings, config = list(readings), config or AggregateConfig()
    groups = groups_of(summaries, windows, readings, config)
    margins = contract_margins or {}
    rows, outcomes, stresses = [], [], []
    for number, group in enumerate(groups):
        progress("Intervals", number, len(groups))
        rows.append(group_row(group, seed))
        outcomes += run_rows(group, margins, seed)
        stresses += stress_rows(group, margins, seed)
    progress("Intervals", len(groups), len(groups))
    rows = corrected_rows(rows)
    return ReportNumbers(
        origin=with_times(origin or ReportOrigin(), summaries),
        seed=seed,
        resamples=RESAMPLES,
        confidence=CONFIDENCE,
        ratio_cap=config.ratio_cap,
        rejected_rows=rejected_rows,
        contracts=contract_rows(groups),
        outcomes=outcomes,
        groups=rows,
        stresses=stresses,
        channels=[row for group in groups for row in channel_rows(group)],
        signatures=signature_rows(groups),
        timelines=[timeline(group) for group in groups],
        costs=[point for group in groups for point in cost_points(group)],
        grid=list(config.grid),
        evaluation=evaluation_json(summaries, windows, readings, contract_margins),
    )


def corrected_rows(rows: Sequence[GroupRow]) -> list[GroupRow]:
    """The rows with their p Holm-corrected over all of them, each test by itself."""
    comparisons = corrected([row.comparison for row in rows])
    correlations = [row.level_correlation for row in rows]
    level_p = holm([None if found is None else found.p for found in correlations])
    return [
        msgspec.structs.replace(
            row,
            comparison=comparison,
            level_correlation=None if found is None else msgspec.structs.replace(found, p_holm=p),
        )
        for row, comparison, found, p in zip(rows, comparisons, correlations, level_p, strict=True)
    ]


def cost_points(group: ReportGroup) -> list[CostPoint]:
    """The points of one group."""
    family, method, version = group.identity
    return [
        CostPoint(
            family=family,
            method=method,
            version=version,
            agent=summary.key.agent,
            episode=summary.key.episode,
            task=summary.traits.task,
            stress=group.stress(summary.traits),
            run=group.run(summary.traits),
            recovery_cost=summary.recovery_cost,
        )
        for summary in group.scored
        if summary.recovery_cost is not None
    ]


def channel_rows(group: ReportGroup) -> list[ChannelRow]:
    """The rows of one group, by stress and run."""
    family, method, version = group.identity
    placed = group.placed(group.scored)
    rows = []
    for point, run in product(group.levels, RUNS):
        scored = placed.get((point, run))
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
                run=run,
                episodes=len(scored),
                cognitive=cognitive,
                physical=physical,
                debt=debt,
            )
        )
    return rows


def timeline(group: ReportGroup) -> Timeline:
    """The timeline of one group."""
    family, method, version = group.identity
    windows_of: dict[object, list[TimelineWindow]] = {}
    for window in group.windows:
        windows_of.setdefault(window.key, []).append(
            TimelineWindow(
                departure_step=window.departure_step,
                reentry_step=window.reentry_step,
                cause=window.cause,
                state=window.state,
                recovery_cost=window.recovery_cost,
                lost_cycles=window.lost_cycles,
            )
        )
    shown = [summary for summary in group.summaries if summary.key in windows_of]
    shown.sort(key=lambda summary: undeclared_last(group.stress(summary.traits)))
    return Timeline(
        family=family,
        method=method,
        version=version,
        episodes=len(group.summaries),
        with_windows=len(shown),
        rows=[
            TimelineEpisode(
                agent=summary.key.agent,
                episode=summary.key.episode,
                task=summary.traits.task,
                stress=group.stress(summary.traits),
                run=group.run(summary.traits),
                outcome=summary.outcome,
                started_s=summary.started_s,
                steps=max(summary.steps, *(window.reentry_step + 1 for window in windows_of[summary.key])),
                recovery_cost=summary.recovery_cost,
                windows=windows_of[summary.key],
            )
            for summary in shown
        ],
    )


def undeclared_last(stress: float | None) -> tuple[bool, float]:
    """What to sort stress by."""
    return stress is None, stress or 0.0


def signature_rows(groups: Iterable[ReportGroup]) -> list[SignatureRow]:
    """The signatures of all methods and versions: for each its mean first, then its families."""
    of_method: dict[tuple[str, str], list[SignatureRow]] = {}
    for group in groups:
        of_method.setdefault(group.identity[1:], []).append(_signature_row(group))
    rows = []
    for method, version in sorted(of_method):
        own = of_method[method, version]
        means = {name: _mean(getattr(row, name) for row in own) for name in AXES}
        clean, disturbed = sum(row.clean for row in own), sum(row.disturbed for row in own)
        mean = SignatureRow(
            family=ALL_FAMILIES, method=method, version=version, clean=clean, disturbed=disturbed, **means
        )
        rows += [mean, *own]
    return rows


def _signature_row(group: ReportGroup) -> SignatureRow:
    family, method, version = group.identity
    disturbed = [summary for summary in group.ended if group.run(summary.traits) == "disturbed"]
    clean = [summary for summary in group.ended if group.run(summary.traits) == "clean"]
    cost = _mean(costs(disturbed))
    loss, clean_loss = _mean_loss(disturbed), _mean_loss(clean)
    reading = group.reading
    return SignatureRow(
        family=family,
        method=method,
        version=version,
        clean=len(clean),
        disturbed=len(disturbed),
        success=_mean(float(summary.outcome == "success") for summary in disturbed),
        low_cost=_halving(cost, None if reading is None else reading.thresholds.recovery),
        short_windows=_short_windows(group, disturbed),
        steadiness=None if loss is None or clean_loss is None else min(1.0, clean_loss / max(loss, 1e-9)),
        low_beta=_halving(None if reading is None else reading.beta, clean_loss),
        capacity=None if reading is None else reading.capacity,
    )


def _short_windows(group: ReportGroup, disturbed: list[EpisodeSummary]) -> float | None:
    steps = _mean(summary.steps for summary in disturbed if summary.recovery_cost is not None)
    if not steps:
        return None
    length = _mean(w.length_steps for w in group.whole_windows if group.run(w.traits) == "disturbed")
    return 1.0 if length is None else max(0.0, 1 - length / steps)


def _mean_loss(summaries: list[EpisodeSummary]) -> float | None:
    return _mean(summary.stability_loss for summary in summaries)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _halving(value: float | None, half_at: float | None) -> float | None:
    """1 where the value is 0, falling to 0.5 at `half_at` and on towards 0."""
    return None if value is None or not half_at else 1 / (1 + value / half_at)
