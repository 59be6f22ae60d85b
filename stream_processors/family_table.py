"""The table that an evaluation ends in: one row per family, method and stress."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from statistics import fmean, median

import msgspec
from springback.stream_processors.resilience.readings import EpisodeSummary, WindowReading

STRESS_GRID = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


class FamilyRow(msgspec.Struct, frozen=True, kw_only=True):
    """Episodes of one family and method at one stress. Means are None where there is nothing to take them of.

    Attributes:
        stress: the grid point nearest to the episodes' severity.
        censored: episodes whose end was not seen; no cost mean counts them.
        unscored: episodes without a baseline to score them by; no cost mean counts them either.
        recovery_cost_mean, recovery_cost_median: C_rec of an episode, dimensionless.
        lost_cycles_mean: cycles lost in the windows of an episode.
        window_length_mean: steps from departure to re-entry, over the windows that were not censored.
    """

    family: str
    method: str
    stress: float
    episodes: int
    success_rate: float | None
    censored: int
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
    episodes_of: dict[tuple[str, str, float], list[EpisodeSummary]] = defaultdict(list)
    windows_of: dict[tuple[str, str, float], list[WindowReading]] = defaultdict(list)
    for summary in summaries:
        episodes_of[_group(summary)].append(summary)
    for window in windows:
        windows_of[_group(window)].append(window)
    return [_row(group, episodes_of[group], windows_of[group]) for group in sorted(episodes_of)]


def _group(reading: EpisodeSummary | WindowReading) -> tuple[str, str, float]:
    traits = reading.traits
    return traits.family, traits.method, min(STRESS_GRID, key=lambda point: abs(point - traits.stress))


def _row(group: tuple[str, str, float], episodes: list[EpisodeSummary], windows: list[WindowReading]) -> FamilyRow:
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
        unscored=len(seen) - len(scored),
        windows=len(windows),
        windows_by_state=dict(sorted(Counter(window.state for window in windows).items())),
        windows_by_cause=dict(sorted(Counter(window.cause for window in windows).items())),
        recovery_cost_mean=fmean(costs) if costs else None,
        recovery_cost_median=median(costs) if costs else None,
        lost_cycles_mean=fmean(episode.lost_cycles for episode in scored) if scored else None,
        window_length_mean=fmean(window.length_steps for window in whole) if whole else None,
    )
