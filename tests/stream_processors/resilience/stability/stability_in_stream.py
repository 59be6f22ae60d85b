"""What the tests of stability in the stream share."""

from typing import Any

from springback.stream_processors.offline.evaluation import learn_baseline
from springback.stream_processors.resilience.baseline.stage_baseline import StageBaseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import EpisodeSummary
from springback.stream_processors.resilience.stability.stability_state import StabilityConfig
from springback.stream_processors.resilience.tracking.tracker_state import OpenEpisode, TrackerState
from tests.stream_processors.frame_builders import Part, frame_of_parts

CONFIG = ResilienceConfig()


def with_lag(lag: int) -> ResilienceConfig:
    """Settings with this lag of advantages."""
    return ResilienceConfig(stability=StabilityConfig(lag=lag))


def by_key(summaries: list[EpisodeSummary]) -> dict[Any, tuple[float | None, float | None]]:
    """Stability loss and beta_step of each episode."""
    return {summary.key: (summary.stability_loss, summary.beta_step) for summary in summaries}


def baseline_of(parts: list[Part]) -> StageBaseline:
    """What the episodes teach, gone through offline."""
    return learn_baseline([frame_of_parts([part]) for part in parts], CONFIG)


def open_episodes(state: TrackerState) -> list[OpenEpisode]:
    """The episodes that the state holds open."""
    return [episode for agent in state.agents.values() for episode in agent.open.values()]
