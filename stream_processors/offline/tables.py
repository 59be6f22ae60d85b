"""What an evaluation ends in, as tables and as JSON: families by stress, what they withstand, episodes with windows."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from statistics import fmean, median
from typing import Any

import msgspec

from springback.stream_processors.offline.stress_response import degradation_curve
from springback.stream_processors.resilience.families.stress_capacity import nearest_point
from springback.stream_processors.resilience.readings import (
    CapacityFlag,
    ContractThresholds,
    EpisodeKey,
    EpisodeSummary,
    FamilyReading,
    LevelFigures,
    LevelState,
    NavigationScores,
    WindowReading,
)

STRESS_GRID = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_Group = tuple[str, str, float | None]
"""Family, method and stress level."""


class FamilyRow(msgspec.Struct, frozen=True, kw_only=True):
    """Episodes of one family and method at one stress. A figure is None where there is nothing to take it of.

    Attributes:
        stress: the grid point nearest to the episodes' severity; None where it is undeclared.
        censored: episodes whose end was not seen; no cost mean counts them.
        provisional: episodes that ended while their family was still learning: shown, and counted in no margin.
        unscored: episodes without a baseline to score them by; no cost mean counts them either.
        recovery_cost_mean, recovery_cost_median: C_rec of an episode, dimensionless.
        lost_cycles_mean: cycles lost in the windows of an episode.
        window_length_mean: steps from departure to re-entry, over the windows that were not censored.
    """

    family: str
    method: str
    stress: float | None
    episodes: int
    success_rate: float | None
    censored: int
    provisional: int
    unscored: int
    windows: int
    windows_by_state: dict[str, int]
    windows_by_cause: dict[str, int]
    recovery_cost_mean: float | None
    recovery_cost_median: float | None
    lost_cycles_mean: float | None
    window_length_mean: float | None


def family_table(summaries: Iterable[EpisodeSummary], windows: Iterable[WindowReading]) -> list[FamilyRow]:
    """The rows of the table, sorted by family, method and stress.

    Success rate is over the episodes that were seen to end.
    """
    episodes_of: dict[_Group, list[EpisodeSummary]] = defaultdict(list)
    windows_of: dict[_Group, list[WindowReading]] = defaultdict(list)
    for summary in summaries:
        episodes_of[_group(summary)].append(summary)
    for window in windows:
        windows_of[_group(window)].append(window)
    return [_row(group, episodes_of[group], windows_of[group]) for group in sorted(episodes_of, key=_order)]


def _order(group: _Group) -> tuple[str, str, bool, float]:
    """By family, method and stress; what is undeclared comes last."""
    family, method, stress = group
    return family, method, stress is None, stress or 0.0


def _group(reading: EpisodeSummary | WindowReading) -> _Group:
    traits = reading.traits
    stress = traits.declared_stress
    if stress is None:
        return traits.family, traits.method, None
    return traits.family, traits.method, nearest_point(stress, STRESS_GRID)


def _row(group: _Group, episodes: list[EpisodeSummary], windows: list[WindowReading]) -> FamilyRow:
    family, method, stress = group
    seen = [episode for episode in episodes if not episode.censored]
    scored = [episode for episode in seen if episode.recovery_cost is not None]
    costs = [episode.recovery_cost for episode in scored if episode.recovery_cost is not None]
    whole = [window for window in windows if window.state != "censored"]
    return FamilyRow(
        family=family,
        method=method,
        stress=stress,
        episodes=len(episodes),
        success_rate=fmean(episode.outcome == "success" for episode in seen) if seen else None,
        censored=len(episodes) - len(seen),
        provisional=sum(episode.provisional for episode in seen),
        unscored=len(seen) - len(scored),
        windows=len(windows),
        windows_by_state=dict(sorted(Counter(window.state for window in windows).items())),
        windows_by_cause=dict(sorted(Counter(window.cause for window in windows).items())),
        recovery_cost_mean=fmean(costs) if costs else None,
        recovery_cost_median=median(costs) if costs else None,
        lost_cycles_mean=fmean(episode.lost_cycles for episode in scored) if scored else None,
        window_length_mean=fmean(window.length_steps for window in whole) if whole else None,
    )


class WindowJson(msgspec.Struct, frozen=True, kw_only=True):
    """One closed window. Steps are step numbers; costs and peak are dimensionless, lost cycles are cycles.

    `number` counts the windows of the episode from 0; times are seconds since 1970 (UTC). None where the file that
    it was read from is older than they are.
    """

    state: str
    cause: str
    departure_step: int
    reentry_step: int
    alarm_step: int
    recovery_cost: float
    peak: float
    lost_cycles: float
    cost_cognitive: float
    cost_physical: float
    cost_debt: float
    provisional: bool = False
    number: int | None = None
    departure_time_s: float | None = None
    reentry_time_s: float | None = None
    length_steps: int | None = None
    length_s: float | None = None


class EpisodeJson(msgspec.Struct, frozen=True, kw_only=True):
    """One episode. `recovery_cost` is null where nothing of it could be scored.

    `stability_loss` is l of equation 5, `contract_margin` the monitor m_i of equation 7: below 0, the episode broke its
    family's contract. Both, and `beta_step`, are null where they could not be found. `interruptions`, `gap`, `joined`,
    `extended`, `provisional`, `bound_references` and all after them are those of `EpisodeSummary`; the last four are
    None where the file that it was read from is older than they are.
    """

    agent: str
    session: str
    episode: str
    family: str
    method: str
    version: str
    task: str
    reference: bool
    stress: float | None
    perturbation: str
    outcome: str
    steps: int
    unscored_steps: int
    recovery_cost: float | None
    windows: list[WindowJson]
    stability_loss: float | None = None
    beta_step: float | None = None
    contract_margin: float | None = None
    interruptions: int = 0
    gap: bool = False
    joined: bool = False
    extended: bool = False
    provisional: bool = False
    bound_references: int | None = None
    attack: str = "none"
    started_s: float | None = None
    ended_s: float | None = None
    final_progress: float | None = None
    lost_cycles: float | None = None


class LevelJson(msgspec.Struct, frozen=True, kw_only=True):
    """M_f of one stress level (equation 9), and the entries of r_f that it is found from (equation 8), each capped.

    See `LevelFigures` for the meaning of each figure.
    """

    episodes: int
    margin: float | None
    favourable_margin: float | None
    state: LevelState
    violations: int
    violation_low: float | None
    violation_high: float | None
    provisional: int
    progress: float | None
    propositions: float | None
    recovery: float | None
    stability: float | None
    safety: float | None

    @property
    def judged(self) -> int:
        """Of how many episodes it is known whether they broke the contract."""
        return self.episodes + self.provisional

    @property
    def sufficient(self) -> bool:
        """Whether it has enough episodes to say anything."""
        return self.state != "insufficient"


class MarginJson(LevelJson, frozen=True, kw_only=True):
    """The figures at one point of the stress grid."""

    stress: float


class ResilienceJson(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one family, method and version: see `FamilyReading` for the meaning of each figure.

    `spl`, `sel` and `goal_completion` are those over every kind of attack; `navigation` has them by kind. `audc` is the
    area under the curve of M_f + 1 from `audc_from` to `audc_to`, `cliff` the first stress at which M_f falls by more
    than 1 per unit of stress (`stress_response`).
    """

    family: str
    method: str
    version: str
    episodes: int
    censored: int
    provisional: int
    bound_references: int | None
    bound_references_needed: int | None
    success_rate: float | None
    spl: float | None
    sel: float | None
    goal_completion: float | None
    beta: float | None
    beta_p95: float | None
    beta_difference: float | None
    stability_repeatability: float | None
    beta_by_kind: dict[str, float]
    beta_unpaired: float | None
    pairs: int
    unpaired: dict[str, int]
    capacity: float | None
    capacity_flag: CapacityFlag
    dependable: float | None
    tested_up_to: float | None
    first_breach: float | None
    audc: float | None
    audc_from: float | None
    audc_to: float | None
    cliff: float | None
    contract_violated: bool | None
    margins: list[MarginJson]
    undeclared: LevelJson | None
    thresholds: ContractThresholds
    navigation: dict[str, NavigationScores]

    @property
    def levels(self) -> list[tuple[float | None, LevelJson]]:
        """The levels with their stress, the undeclared one last: its stress is None."""
        undeclared = [] if self.undeclared is None else [(None, self.undeclared)]
        return [*((level.stress, level) for level in self.margins), *undeclared]


class EvaluationJson(msgspec.Struct, frozen=True, kw_only=True):
    """What `springback evaluate --json` writes."""

    families: list[FamilyRow]
    resilience: list[ResilienceJson]
    episodes: list[EpisodeJson]


def evaluation_json(
    summaries: Iterable[EpisodeSummary],
    windows: Iterable[WindowReading],
    readings: Iterable[FamilyReading] = (),
    contract_margins: Mapping[EpisodeKey, float | None] | None = None,
) -> EvaluationJson:
    """Readings in the JSON form, episodes in the order in which they ended. Open windows are passed over.

    Args:
        summaries: the episodes.
        windows: their windows.
        readings: what is known of each family, method and version, in any order.
        contract_margins: the monitor m_i of each episode that has one.
    """
    summaries, closed = list(summaries), [window for window in windows if window.state != "open"]
    windows_of: dict[EpisodeKey, list[WindowReading]] = defaultdict(list)
    for window in closed:
        windows_of[window.key].append(window)
    return EvaluationJson(
        families=family_table(summaries, closed),
        resilience=[_resilience(reading) for reading in sorted(readings, key=lambda reading: reading.identity)],
        episodes=[
            _episode(summary, windows_of[summary.key], (contract_margins or {}).get(summary.key))
            for summary in summaries
        ],
    )


def _resilience(reading: FamilyReading) -> ResilienceJson:
    scores = reading.navigation.get("all", NavigationScores(episodes=0))
    curve = degradation_curve(reading.margins)
    return ResilienceJson(
        family=reading.family,
        method=reading.method,
        version=reading.version,
        episodes=reading.episodes,
        censored=reading.censored,
        provisional=reading.provisional_episodes,
        bound_references=reading.bound_references,
        bound_references_needed=reading.bound_references_needed,
        success_rate=reading.success_rate,
        spl=scores.spl,
        sel=scores.sel,
        goal_completion=scores.goal_completion,
        beta=reading.beta,
        beta_p95=reading.beta_p95,
        beta_difference=reading.beta_difference,
        stability_repeatability=reading.stability_repeatability,
        beta_by_kind=reading.beta_by_kind,
        beta_unpaired=reading.beta_unpaired,
        pairs=reading.pairs,
        unpaired=reading.unpaired,
        capacity=reading.capacity,
        capacity_flag=reading.capacity_flag,
        dependable=reading.dependable,
        tested_up_to=reading.tested_up_to,
        first_breach=reading.first_breach,
        audc=curve.area,
        audc_from=curve.lowest,
        audc_to=curve.highest,
        cliff=curve.cliff,
        contract_violated=reading.violated,
        margins=[MarginJson(stress=margin.stress, **_level(margin)) for margin in reading.margins],
        undeclared=None if reading.undeclared is None else LevelJson(**_level(reading.undeclared)),
        thresholds=reading.thresholds,
        navigation=reading.navigation,
    )


def _level(level: LevelFigures) -> dict[str, Any]:
    """The fields that a level has in JSON."""
    shared = ("episodes", "margin", "favourable_margin", "state", "violations", "violation_low", "violation_high")
    return {name: getattr(level, name) for name in (*shared, "provisional")} | msgspec.structs.asdict(level.ratios)


def _episode(summary: EpisodeSummary, windows: list[WindowReading], contract_margin: float | None) -> EpisodeJson:
    traits = summary.traits
    return EpisodeJson(
        agent=summary.key.agent,
        session=summary.key.session,
        episode=summary.key.episode,
        family=traits.family,
        method=traits.method,
        version=traits.version,
        task=traits.task,
        reference=traits.reference,
        stress=traits.declared_stress,
        perturbation=traits.perturbation,
        outcome=summary.outcome,
        steps=summary.steps,
        unscored_steps=summary.unscored_steps,
        recovery_cost=summary.recovery_cost,
        windows=[_window(window) for window in sorted(windows, key=lambda window: window.number)],
        stability_loss=summary.stability_loss,
        beta_step=summary.beta_step,
        contract_margin=contract_margin,
        interruptions=summary.interruptions,
        gap=summary.gap,
        joined=summary.joined,
        extended=summary.extended,
        provisional=summary.provisional,
        bound_references=summary.bound_references,
        attack=traits.attack,
        started_s=summary.started_s,
        ended_s=summary.ended_s,
        final_progress=summary.final_progress,
        lost_cycles=summary.lost_cycles,
    )


def _window(window: WindowReading) -> WindowJson:
    return WindowJson(
        state=window.state,
        cause=window.cause,
        departure_step=window.departure_step,
        reentry_step=window.reentry_step,
        alarm_step=window.alarm_step,
        recovery_cost=window.recovery_cost,
        peak=window.peak,
        lost_cycles=window.lost_cycles,
        cost_cognitive=window.costs.cognitive,
        cost_physical=window.costs.physical,
        cost_debt=window.costs.debt,
        provisional=window.provisional,
        number=window.number,
        departure_time_s=window.departure_time_s,
        reentry_time_s=window.reentry_time_s,
        length_steps=window.length_steps,
        length_s=window.length_s,
    )
