"""An evaluation as JSON: the family table, and every episode with its windows."""

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from stream_processors.family_table import FamilyRow, family_table
from stream_processors.resilience.readings import EpisodeKey, EpisodeSummary, WindowReading


class WindowJson(msgspec.Struct, frozen=True, kw_only=True):
    """One closed window. Steps are step numbers; costs and peak are dimensionless, lost cycles are cycles."""

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


class EpisodeJson(msgspec.Struct, frozen=True, kw_only=True):
    """One episode. `recovery_cost` is null where nothing of it could be scored."""

    agent: str
    session: str
    episode: str
    family: str
    method: str
    version: str
    task: str
    reference: bool
    stress: float
    perturbation: str
    outcome: str
    steps: int
    unscored_steps: int
    recovery_cost: float | None
    windows: list[WindowJson]


class EvaluationJson(msgspec.Struct, frozen=True, kw_only=True):
    """What `springback evaluate --json` writes."""

    families: list[FamilyRow]
    episodes: list[EpisodeJson]


def evaluation_json(summaries: Iterable[EpisodeSummary], windows: Iterable[WindowReading]) -> EvaluationJson:
    """Put readings into the JSON form, episodes in the order in which they ended. Open windows are passed over."""
    summaries, closed = list(summaries), [window for window in windows if window.state != "open"]
    windows_of: dict[EpisodeKey, list[WindowReading]] = defaultdict(list)
    for window in closed:
        windows_of[window.key].append(window)
    return EvaluationJson(
        families=family_table(summaries, closed),
        episodes=[_episode(summary, windows_of[summary.key]) for summary in summaries],
    )


def _episode(summary: EpisodeSummary, windows: list[WindowReading]) -> EpisodeJson:
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
        stress=traits.stress,
        perturbation=traits.perturbation,
        outcome=summary.outcome,
        steps=summary.steps,
        unscored_steps=summary.unscored_steps,
        recovery_cost=summary.recovery_cost,
        windows=[_window(window) for window in sorted(windows, key=lambda window: window.number)],
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
    )
