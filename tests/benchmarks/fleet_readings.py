"""Readings of a made-up fleet whose agents come and go: a function of its arguments and of the seed alone."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from springback.stream_processors.resilience.readings import (
    AgentCounts,
    AgentStatus,
    ContractThresholds,
    EpisodeBegun,
    EpisodeKey,
    EpisodeSummary,
    EpisodeTraits,
    ExtensibilityRatios,
    FamilyReading,
    NavigationScores,
    OpenWindow,
    Outcome,
    Reading,
    StressMargin,
    WindowReading,
)
from tests.reading_builders import episode_status, episode_summary, family_reading, window_reading

_PERTURBATIONS = ("none", "physical", "semantic", "object_state", "perception")
_OUTCOMES: tuple[Outcome, ...] = ("success", "success", "failure", "timeout")
_EPISODE_STEPS = 40
_WINDOW_STEPS = 12
_WINDOW, _SUMMARY, _RUNNING, _FAMILY = window_reading(), episode_summary(), episode_status(), family_reading()
_RATIOS = ExtensibilityRatios(progress=2.0, propositions=2.0, recovery=1.5, stability=1.25, safety=10.0)
_THRESHOLDS = ContractThresholds(progress=0.5, propositions=0.5, recovery=10.0, stability=2.0, safety=5.0)
_SCORES = NavigationScores(episodes=9, success_rate=0.5, spl=0.5, sel=0.5, goal_completion=0.5)


@dataclass(slots=True)
class _Agent:
    name: str
    episodes: int = 0
    total_steps: int = 0
    steps: int = 0
    windows: int = 0
    departed_step: int | None = None
    traits: EpisodeTraits = field(default_factory=lambda: EpisodeTraits(family="f", task="t"))

    @property
    def key(self) -> EpisodeKey:
        return EpisodeKey(self.name, "boot", str(self.episodes))


class MadeUpFleet:
    """So many agents at any time; some leave at every tick, as many come under names that were never heard before.

    Args:
        agents: agents at any time.
        families: families that they are divided over.
        leaving: share of the agents that leave at a tick; of three, one just falls silent.
        opening: share of the agents without a rebound window that open one at a tick.
    """

    def __init__(self, agents: int, families: int, leaving: float, opening: float = 0.01) -> None:
        self._families = families
        self._leaving = leaving
        self._opening = opening
        self._random = random.Random(7)
        self.arrived = 0
        self._agents = [self._arrival() for _ in range(agents)]

    def tick(self, now_s: float) -> Iterator[Reading]:
        """What all agents and families have told by now: a step of each agent."""
        for place, agent in enumerate(self._agents):
            if agent.steps == 0:
                agent.traits = self._traits(agent)
                yield EpisodeBegun(key=agent.key, traits=agent.traits, time_s=now_s)
            agent.steps += 1
            agent.total_steps += 1
            yield from self._window(agent, now_s)
            if agent.steps >= _EPISODE_STEPS:
                yield self._end(agent, now_s)
            yield self._status(agent, now_s)
            if self._random.random() < self._leaving:
                if agent.steps and self._random.random() < 2 / 3:
                    yield self._end(agent, now_s)
                    yield self._status(agent, now_s)
                self._agents[place] = self._arrival()
        for number in range(self._families):
            yield self._family(number, now_s)

    def _arrival(self) -> _Agent:
        self.arrived += 1
        return _Agent(f"robot-{self.arrived:06d}", steps=0)

    def _traits(self, agent: _Agent) -> EpisodeTraits:
        family = f"family-{int(agent.name[-6:]) % self._families:02d}"
        return EpisodeTraits(family=family, task="t", perturbation=self._random.choice(_PERTURBATIONS))

    def _window(self, agent: _Agent, now_s: float) -> Iterator[Reading]:
        if agent.departed_step is None:
            if self._random.random() < self._opening:
                agent.departed_step = agent.steps
                yield self._window_reading(agent, "open", now_s)
        elif agent.steps - agent.departed_step >= _WINDOW_STEPS:
            yield self._window_reading(agent, "recovered", now_s)
            agent.departed_step = None
            agent.windows += 1

    def _window_reading(self, agent: _Agent, state: str, now_s: float) -> WindowReading:
        departed = agent.departed_step or 0
        length = agent.steps - departed + 1
        return replace(
            _WINDOW,
            key=agent.key,
            traits=agent.traits,
            number=agent.windows,
            state="open" if state == "open" else "recovered",
            departure_step=departed,
            alarm_step=departed,
            reentry_step=agent.steps,
            departure_time_s=now_s - length,
            reentry_time_s=now_s,
            departure_residual_bin=1,
            length_steps=length,
            length_s=float(length),
            lost_cycles=2.0,
            peak=3.0,
            recovery_cost=self._random.expovariate(0.2),
        )

    def _end(self, agent: _Agent, now_s: float) -> EpisodeSummary:
        summary = replace(
            _SUMMARY,
            key=agent.key,
            traits=agent.traits,
            outcome=self._random.choice(_OUTCOMES),
            steps=agent.steps,
            unscored_steps=0,
            windows=agent.windows,
            recovery_cost=self._random.expovariate(0.2),
            costs=_WINDOW.costs,
            lost_cycles=2.0,
            window_steps=9,
            started_s=now_s - agent.steps,
            ended_s=now_s,
            stability_loss=self._random.expovariate(0.3),
        )
        agent.episodes, agent.steps, agent.windows, agent.departed_step = agent.episodes + 1, 0, 0, None
        return summary

    def _status(self, agent: _Agent, now_s: float) -> AgentStatus:
        window = None
        if agent.departed_step is not None:
            window = OpenWindow(
                number=agent.windows,
                cause="effort",
                departure_step=agent.departed_step,
                departure_time_s=now_s - 9,
                recovery_cost=1.5,
            )
        running = replace(
            _RUNNING,
            key=agent.key,
            traits=agent.traits,
            step=agent.steps,
            steps=agent.steps,
            progress=agent.steps / _EPISODE_STEPS,
            intensity=self._random.random(),
            intensity_by_channel=(self._random.random(), 0.5, 0.25),
            window=window,
            beta_step=self._random.random(),
        )
        return AgentStatus(
            agent=agent.name,
            session="boot",
            producer=agent.name,
            seen_s=now_s,
            time_s=now_s,
            clock_skew_s=0.01,
            counts=AgentCounts(steps=agent.total_steps),
            episodes=(running,) if agent.steps else (),
            step_s=now_s,
            progress_s=now_s,
        )

    def _family(self, number: int, now_s: float) -> FamilyReading:
        margins = tuple(
            StressMargin(stress=level / 5, episodes=9, margin=0.5 - level / 5, state="kept", ratios=_RATIOS)
            for level in range(6)
        )
        return replace(
            _FAMILY,
            family=f"family-{number:02d}",
            sequence=int(now_s),
            updated_s=now_s,
            episodes=99,
            completion=0.8,
            tasks_let_go=0,
            capacity=0.4,
            first_breach=0.6,
            margins=margins,
            thresholds=_THRESHOLDS,
            stress_state="within",
            navigation={"all": _SCORES},
        )
