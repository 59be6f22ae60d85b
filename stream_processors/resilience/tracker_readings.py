"""The tracker's state put into readings."""

import msgspec
from springback.producers.frame_parts import NavigationOutcome
from springback.stream_processors.resilience.readings import (
    AgentStatus,
    EpisodeBegun,
    EpisodeStatus,
    EpisodeSummary,
    NavigationReading,
    Outcome,
    WindowCause,
    WindowReading,
    WindowState,
)
from springback.stream_processors.resilience.recovery_cost import Tally
from springback.stream_processors.resilience.tracker_state import AgentState, OpenEpisode


def window_state_at_end(outcome: Outcome) -> WindowState:
    """How an episode's end closes the window that it falls into (ours)."""
    if outcome == "success":
        return "recovered"
    return "censored" if outcome == "aborted" else "unrecovered"


def window_reading(
    episode: OpenEpisode, number: int, state: WindowState, cause: WindowCause, alarm_step: int, tally: Tally
) -> WindowReading:
    """A window of the episode as its tally has it."""
    return WindowReading(
        key=episode.key,
        traits=episode.traits,
        number=number,
        state=state,
        cause=cause,
        departure_step=tally.departure_step,
        alarm_step=alarm_step,
        reentry_step=tally.last_step,
        departure_time_s=tally.departure_time_s,
        reentry_time_s=tally.last_time_s,
        departure_mode=tally.departure_mode,
        departure_progress_bin=tally.departure_progress_bin,
        departure_residual_bin=tally.departure_residual_bin,
        length_steps=tally.length_steps,
        length_s=tally.seconds,
        lost_cycles=tally.lost,
        peak=tally.peak,
        recovery_cost=tally.cost(),
        costs=tally.channel_costs(),
    )


def episode_summary(
    episode: OpenEpisode, outcome: Outcome, ended_s: float, navigation: NavigationOutcome | None = None
) -> EpisodeSummary:
    """The whole episode; its cost is unknown where no step of it could be scored."""
    costs = episode.costs
    return EpisodeSummary(
        key=episode.key,
        traits=episode.traits,
        outcome=outcome,
        steps=episode.steps,
        unscored_steps=episode.unscored,
        windows=costs.windows,
        recovery_cost=costs.total if episode.steps > episode.unscored else None,
        costs=costs.by_channel(),
        lost_cycles=costs.lost,
        window_steps=costs.steps,
        final_progress=episode.progress,
        final_propositions=episode.propositions,
        violation=episode.violation,
        started_s=episode.started_s,
        ended_s=ended_s,
        missing_steps=episode.missing,
        stability_loss=None if outcome == "aborted" else episode.stability.loss(),
        beta_step=None if outcome == "aborted" else episode.stability.beta_step(),
        navigation=None if navigation is None else NavigationReading(**msgspec.structs.asdict(navigation)),
    )


def episode_begun(episode: OpenEpisode) -> EpisodeBegun:
    """That the episode has begun, at the broker's time of its first frame."""
    return EpisodeBegun(key=episode.key, traits=episode.traits, time_s=episode.seen_s)


def agent_status(agent: AgentState) -> AgentStatus:
    """The agent and its open episodes, as of the last event."""
    return AgentStatus(
        agent=agent.agent,
        session=agent.session,
        producer=agent.producer,
        seen_s=agent.seen_s,
        time_s=agent.time_s,
        clock_skew_s=agent.clock_skew_s or 0.0,
        counts=agent.counts,
        episodes=tuple(_episode_status(episode) for episode in agent.open.values()),
        step_s=agent.step_s,
        progress_s=agent.progress_s,
        abandoned=agent.abandoned,
    )


def _episode_status(episode: OpenEpisode) -> EpisodeStatus:
    return EpisodeStatus(
        key=episode.key,
        traits=episode.traits,
        step=episode.last_step,
        steps=episode.steps,
        unscored_steps=episode.unscored,
        progress=episode.progress,
        propositions=episode.propositions,
        mode=episode.mode,
        intensity=episode.intensity[0] if episode.intensity else None,
        intensity_by_channel=episode.intensity[1:] if episode.intensity else None,
        window=episode.open_window(),
        beta_step=episode.stability.beta_step(),
    )
