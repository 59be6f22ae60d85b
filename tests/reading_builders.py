"""Makers of readings that tests share: what a test does not name is the same everywhere."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from springback.stream_processors.resilience.readings import (
    AgentCounts,
    AgentStatus,
    ChannelCosts,
    ContractThresholds,
    EpisodeBegun,
    EpisodeKey,
    EpisodeStatus,
    EpisodeSummary,
    EpisodeTraits,
    ExtensibilityRatios,
    FamilyReading,
    LevelFigures,
    NavigationScores,
    OpenWindow,
    StressMargin,
    WindowReading,
)


def window_reading(agent: str = "robot-7", session: str = "boot", episode: str = "1", **fields: Any) -> WindowReading:
    """A closed, recovered window of episode 1 of robot-7."""
    base = WindowReading(
        key=EpisodeKey(agent, session, episode),
        traits=EpisodeTraits(family="navigation", task="kitchen"),
        number=0,
        state="recovered",
        cause="effort",
        departure_step=4,
        alarm_step=6,
        reentry_step=11,
        departure_time_s=100.0,
        reentry_time_s=103.5,
        departure_mode="run",
        departure_progress_bin=1,
        departure_residual_bin=2,
        length_steps=8,
        length_s=3.5,
        lost_cycles=2.5,
        peak=4.0,
        recovery_cost=1.5,
        costs=ChannelCosts(cognitive=0.25, physical=1.0, debt=0.5),
    )
    return replace(base, **fields)


def episode_summary(agent: str = "robot-7", session: str = "boot", episode: str = "1", **fields: Any) -> EpisodeSummary:
    """A successful, scored episode 1 of robot-7 with 20 steps, 2 of them unscored."""
    base = EpisodeSummary(
        key=EpisodeKey(agent, session, episode),
        traits=EpisodeTraits(family="navigation", task="kitchen"),
        outcome="success",
        steps=20,
        unscored_steps=2,
        windows=1,
        recovery_cost=1.5,
        costs=ChannelCosts(),
        lost_cycles=2.5,
        window_steps=8,
        final_progress=1.0,
        final_propositions=1.0,
        violation=0.0,
        started_s=90.0,
        ended_s=110.0,
    )
    return replace(base, **fields)


def episode_status(
    agent: str = "robot-7",
    session: str = "boot",
    episode: str = "1",
    steps: int = 5,
    cost: float | None = None,
    **fields: Any,
) -> EpisodeStatus:
    """An open episode 1 of robot-7 that has taken `steps` steps; `cost` is that of an open window, if any."""
    base = EpisodeStatus(
        key=EpisodeKey(agent, session, episode),
        traits=EpisodeTraits(family="navigation", task="kitchen"),
        step=steps - 1,
        steps=steps,
        unscored_steps=0,
        progress=0.5,
        propositions=0.5,
        mode="run",
        intensity=0.75,
        intensity_by_channel=(0.75, 0.0, 0.0),
        window=None
        if cost is None
        else OpenWindow(number=0, cause="effort", departure_step=2, departure_time_s=100.0, recovery_cost=cost),
    )
    return replace(base, **fields)


def agent_status(agent: str = "robot-7", **fields: Any) -> AgentStatus:
    """The status of robot-7, last seen at 1000 s."""
    base = AgentStatus(
        agent=agent,
        session="boot",
        producer=agent,
        seen_s=1000.0,
        time_s=1000.0,
        clock_skew_s=0.0,
        counts=AgentCounts(),
    )
    return replace(base, **fields)


def episode_begun(agent: str = "robot-7", session: str = "boot", episode: str = "1", **fields: Any) -> EpisodeBegun:
    """The beginning of episode 1 of robot-7."""
    base = EpisodeBegun(
        key=EpisodeKey(agent, session, episode),
        traits=EpisodeTraits(family="navigation", task="kitchen"),
        time_s=90.0,
    )
    return replace(base, **fields)


def failed_level(**fields: Any) -> LevelFigures:
    """A level at which 20 of 20 episodes broke the contract: by Wilson 1/(1 + 1.96^2/20) = 0.8389 of them, or more."""
    base = LevelFigures(
        episodes=20,
        margin=-1.0,
        state="broken",
        ratios=ExtensibilityRatios(),
        violations=20,
        violation_low=0.8389,
        violation_high=1.0,
    )
    return replace(base, **fields)


def family_reading(family: str = "navigation", sequence: int = 42, **fields: Any) -> FamilyReading:
    """What is known of navigation after 48 episodes: it holds at stress 0 and breaks at 0.2; 0.4 was never seen.

    Margins are of the two smallest ratios: (1.25 + 1.5)/2 - 1 and (0.5 + 0.5)/2 - 1; of 1 of 30 violations the share
    is from 0.0059 to 0.1667 by Wilson, of 8 of 12 from 0.3906 to 0.8619.
    """
    held = ExtensibilityRatios(progress=1.5, propositions=1.5, recovery=1.5, stability=1.25, safety=1.5)
    broken = ExtensibilityRatios(progress=0.5, propositions=0.5, recovery=0.75, stability=None, safety=1.5)
    base = FamilyReading(
        family=family,
        method="default",
        version="0",
        sequence=sequence,
        updated_s=1000.0,
        episodes=48,
        censored=1,
        violations=9,
        success_rate=0.75,
        completion=0.875,
        mean_steps=31.5,
        recovery_cost_mean=1.25,
        stability_loss_mean=2.5,
        beta=3.5,
        beta_p95=3.0,
        beta_by_kind={"physical": 3.5, "semantic": 2.0},
        beta_unpaired=4.0,
        beta_difference=0.7,
        stability_repeatability=0.5,
        pairs=17,
        unpaired={"no_twin": 4, "other_version": 3},
        tasks_let_go=2,
        capacity=0.0,
        capacity_flag="ok",
        dependable=0.0,
        tested_up_to=0.2,
        first_breach=0.2,
        margins=(
            StressMargin(
                stress=0.0,
                episodes=30,
                margin=0.375,
                favourable_margin=0.5,
                state="kept",
                violations=1,
                violation_low=0.0059,
                violation_high=0.1667,
                ratios=held,
            ),
            StressMargin(
                stress=0.2,
                episodes=12,
                margin=-0.5,
                favourable_margin=-0.25,
                state="broken",
                violations=8,
                violation_low=0.3906,
                violation_high=0.8619,
                ratios=broken,
                unmeasured=("stability",),
            ),
            StressMargin(stress=0.4, episodes=0, margin=None, state="insufficient", ratios=ExtensibilityRatios()),
        ),
        undeclared=LevelFigures(
            episodes=6,
            margin=0.375,
            favourable_margin=0.5,
            state="kept",
            violations=0,
            violation_low=0.0,
            violation_high=0.3903,
            ratios=held,
        ),
        thresholds=ContractThresholds(progress=0.5, propositions=0.5, recovery=10.0, stability=None, safety=5.0),
        live_stress=0.2,
        active_episodes=5,
        active_undeclared=2,
        stress_state="breach",
        breaches=3,
        contract_violated=True,
        contract_violations=1,
        bound_references=24,
        bound_references_needed=20,
        provisional_episodes=7,
        navigation={
            "all": NavigationScores(episodes=42, success_rate=0.75, spl=0.5, sel=0.25, goal_completion=0.625),
            "model": NavigationScores(episodes=7, success_rate=0.5),
        },
    )
    return replace(base, **fields)
