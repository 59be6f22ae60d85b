"""Builders of episodes and windows of a version: what a test leaves open is always the same. And what broke."""

from typing import Any

from springback.stream_processors.offline.comparison import VersionComparison
from springback.stream_processors.offline.comparison_evidence import Finding
from springback.stream_processors.resilience.readings import (
    ChannelCosts,
    EpisodeKey,
    EpisodeSummary,
    EpisodeTraits,
    WindowReading,
)


def summary_of(number: int, version: str, *, task: str = "", **fields: Any) -> EpisodeSummary:
    """The episode of that number, a success of cost 1; `fields` are of the summary or of its traits."""
    traits = {name: fields.pop(name) for name in tuple(fields) if name in EpisodeTraits.__struct_fields__}
    made = {
        "outcome": "success",
        "steps": 20,
        "unscored_steps": 0,
        "windows": 0,
        "recovery_cost": 1.0,
        "costs": ChannelCosts(),
        "lost_cycles": 0.0,
        "window_steps": 0,
        "final_progress": 1.0,
        "final_propositions": 1.0,
        "violation": 0.0,
        "started_s": 0.0,
        "ended_s": 1.0,
    }
    return EpisodeSummary(
        key=EpisodeKey("robot", f"boot-{version}", str(number)),
        traits=EpisodeTraits(**{"family": "navigation", "task": task or f"t{number}", "version": version, **traits}),
        **{**made, **fields},
    )


def breaches_of(comparison: VersionComparison) -> list[Finding]:
    """The metrics that got worse by more than their allowance."""
    return [finding for group in comparison.groups for finding in group.findings if finding.kind == "breach"]


def window_of(of: EpisodeSummary, length: int, state: Any = "recovered", number: int = 0) -> WindowReading:
    """A closed window of the episode."""
    return WindowReading(
        key=of.key,
        traits=of.traits,
        number=number,
        state=state,
        cause="effort",
        departure_step=1,
        alarm_step=2,
        reentry_step=length,
        departure_time_s=0.0,
        reentry_time_s=1.0,
        departure_mode="navigate",
        departure_progress_bin=0,
        departure_residual_bin=0,
        length_steps=length,
        length_s=1.0,
        lost_cycles=0.0,
        peak=1.0,
        recovery_cost=1.0,
        costs=ChannelCosts(),
    )
