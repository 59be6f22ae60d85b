"""The series of single agents, kept to a bound.

Only agents that reported within the time to live have series, the first `cap` of them in the order of their names; the
rest share `agent="other"`. An agent that fell silent inside an episode leaves behind its state, what it was at and when
it was last seen for a longer time, so that an alert goes on saying *silent*. Whichever way the readings were mixed, the
same agents are shown, so two exporters agree. While we are blind ourselves nobody's time runs out.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from springback.sinks.fleet.fleet_state import DAY_S, AgentState, EndNews, FleetState, StatusNews, WindowNews
from springback.sinks.fleet.labels import OTHER_VALUE, LabelValue, closed_label_value, label_value
from springback.sinks.fleet.series import Labels, MetricSeries
from springback.stream_processors.metrics import agents as agent_metrics
from springback.stream_processors.metrics import catalogue as metrics
from springback.stream_processors.metrics.exporter import OVERFLOW_AGENTS
from springback.stream_processors.metrics.spec import (
    AGENT_STATES,
    GROUP,
    LATE_REASONS,
    AgentStateName,
    MetricSpec,
    ReadMetric,
)
from springback.stream_processors.resilience.readings import AgentStatus, EpisodeTraits

_STATES = {name: closed_label_value("state", name) for name in AGENT_STATES}
_COUNTERS: Mapping[str, tuple[MetricSpec, Labels]] = {
    "duplicate_steps": (metrics.DUPLICATE_STEPS, ()),
    "missing_steps": (metrics.MISSING_STEPS, ()),
    "replaced_times": (metrics.REPLACED_TIMES, ()),
    "clock_resets": (metrics.CLOCK_RESETS, ()),
    **{f"{reason}_steps": (metrics.LATE_STEPS, (closed_label_value("why", reason),)) for reason in LATE_REASONS},
}
_READ_METRICS = tuple(spec for spec in agent_metrics.AGENT_METRICS if isinstance(spec, ReadMetric))

FigureKey = tuple[str, Labels]
"""A metric's name, and the values of its labels but the agent."""

_shared_keys: dict[FigureKey, FigureKey] = {}  # closed labels alone: as many as there are agents, and each needed once


@dataclass(slots=True)
class AgentRecord(AgentState):
    """What series show of an agent.

    Attributes:
        live: whether it was heard from within the time to live.
        figures: what its latest status carries for the metrics that say how they read one.
        group: family, method and version of its newest open episode.
        ended_group: those of its last one that has ended, at `ended_s`.
    """

    live: bool = False
    figures: Mapping[FigureKey, float] = field(default_factory=dict)
    group: Labels | None = None
    ended_s: float = -math.inf
    ended_group: Labels | None = None


class _ShownAgents(NamedTuple):
    """Agents by what is shown of them, each with its state.

    Attributes:
        own: those with all series of their own.
        rest: those beyond the bound, who share series.
        lost: those that fell silent so long ago that only their state, when they were last seen, and what they were at
            is shown.
    """

    own: Sequence[tuple[AgentRecord, AgentStateName]]
    rest: Sequence[tuple[AgentRecord, AgentStateName]]
    lost: Sequence[tuple[AgentRecord, AgentStateName]]


class AgentSeries:
    """The series of all agents.

    Args:
        series: where they are.
        fleet: the agents.
        group_of: family, method and version of an episode, as values of labels.
        cap: agents with series of their own; of those that are lost, as many more.
        ttl_s: silence after which an agent's series go away.
        lost_ttl_s: silence after which those go away too that an agent leaves behind which fell silent.
    """

    def __init__(
        self,
        series: MetricSeries,
        fleet: FleetState[AgentRecord],
        group_of: Callable[[EpisodeTraits], Labels],
        *,
        cap: int,
        ttl_s: float,
        lost_ttl_s: float,
    ) -> None:
        self._series = series
        self._fleet = fleet
        self._group_of = group_of
        self._cap = cap
        self._ttl_s = ttl_s
        self._lost_ttl_s = lost_ttl_s
        self._live = 0

    def take_status(self, news: StatusNews[AgentRecord], now_s: float) -> None:
        """Takes in how an agent is doing."""
        agent, status, before = news.agent, news.status, news.before
        restarted = status.seen_s > before.seen_s and status.counts.steps < before.counts.steps
        for name, (spec, labels) in _COUNTERS.items():
            counted = 0 if restarted else getattr(before.counts, name)
            self._series.add(spec, max(0, getattr(status.counts, name) - counted), *labels)
        if news.newest:
            agent.group = self._group_of(status.episodes[-1].traits) if status.episodes else None
            agent.figures = self._figures(status)
        if not agent.live and self._fleet.idle_s(agent, now_s) <= self._ttl_s:
            agent.live = True
            self._live += 1
            if self._live > self._cap:
                self._series.add(OVERFLOW_AGENTS, 1)

    def take_window(self, news: WindowNews[AgentRecord]) -> None:
        """Counts a departure that cannot be: no series is made of it."""
        if news.window.state == "open":
            self._series.accepts(agent_metrics.AGENT_WINDOW_DEPARTED, news.window.departure_time_s)

    def take_end(self, news: EndNews[AgentRecord], group: Labels) -> None:
        """Takes in what an agent was last at: by time and then by name, so that the order of arrival is nothing."""
        agent, ended_s = news.agent, news.summary.ended_s
        if math.isfinite(ended_s) and (ended_s, group) > (agent.ended_s, agent.ended_group or ()):
            agent.ended_s, agent.ended_group = ended_s, group

    def publish(self, now_s: float) -> None:
        """Brings the gauges to what holds now."""
        live: list[tuple[AgentRecord, AgentStateName]] = []
        lost: list[tuple[AgentRecord, AgentStateName]] = []
        counts: dict[AgentStateName, int] = dict.fromkeys(AGENT_STATES, 0)
        for agent in self._fleet.agents():
            idle_s = self._fleet.idle_s(agent, now_s)
            agent.live = idle_s <= self._ttl_s
            if idle_s > max(DAY_S, self._ttl_s):
                continue
            state = self._fleet.state_of(agent, now_s)
            counts[state] += 1
            if agent.live:
                live.append((agent, state))
            elif agent.activity.running and idle_s <= self._lost_ttl_s:
                lost.append((agent, state))
        self._live = len(live)
        live.sort(key=_by_name)
        lost.sort(key=_by_name)
        self._publish_shown(_ShownAgents(live[: self._cap], live[self._cap :], lost[: self._cap]))
        self._publish_open_windows(agent for agent, _ in live)
        for name, count in counts.items():
            self._series.set(agent_metrics.AGENTS, count, closed_label_value("state", name))
        newest_s = self._fleet.sight.newest_s
        if newest_s is not None:
            self._series.set(metrics.LAST_EVENT_AGE, max(0.0, now_s - newest_s))

    def _figures(self, status: AgentStatus) -> dict[FigureKey, float]:
        found: dict[FigureKey, list[float]] = {}
        for spec in _READ_METRICS:
            for value, *labels in spec.rows(status):
                if value is not None and self._series.accepts(spec, value):
                    cleaned = tuple(map(label_value, spec.labels[1:], labels))
                    found.setdefault((spec.name, cleaned), []).append(float(value))
        for episode in status.episodes:
            if episode.window is not None:
                self._series.accepts(agent_metrics.AGENT_RUNNING_COST, episode.window.recovery_cost)
        combine = {spec.name: spec.combine for spec in _READ_METRICS}
        return {_shared_keys.setdefault(key, key): combine[key[0]](values) for key, values in found.items()}

    def _publish_shown(self, agents: _ShownAgents) -> None:
        own, rest = [agent for agent, _ in agents.own], [agent for agent, _ in agents.rest]
        lost = [agent for agent, _ in agents.lost]

        def gauge(
            spec: MetricSpec,
            value_of: Callable[[AgentRecord], float | None],
            together: Callable[[Iterable[float]], float],
            more: Sequence[AgentRecord] = (),
        ) -> None:
            values: dict[Labels, float] = {
                (agent.label,): value for agent in (*own, *more) if (value := value_of(agent)) is not None
            }
            others = [value for agent in rest if (value := value_of(agent)) is not None]
            if others:
                values[(OTHER_VALUE,)] = together(others)
            self._series.replace(spec, values)

        self._series.replace(agent_metrics.AGENT_STATE, _states(agents))
        infos = ((agent.label, agent.group or agent.ended_group) for agent in (*own, *lost))
        info = {(label, *group): 1.0 for label, group in infos if group is not None}
        self._series.replace(agent_metrics.AGENT_INFO, info)
        gauge(agent_metrics.AGENT_IN_REBOUND, lambda agent: float(bool(agent.open_windows)), sum)
        gauge(agent_metrics.AGENT_RUNNING_COST, lambda agent: agent.running_cost, max)
        gauge(agent_metrics.AGENT_WINDOW_DEPARTED, lambda agent: agent.departed_s, min)
        gauge(agent_metrics.AGENT_LAST_SEEN, lambda agent: agent.activity.seen_s, max, lost)
        gauge(agent_metrics.AGENT_LAST_PROGRESS, lambda agent: agent.activity.progress_s, min)
        self._publish_figures(own, rest)

    def _publish_figures(self, own: Iterable[AgentRecord], rest: Iterable[AgentRecord]) -> None:
        values: dict[str, dict[Labels, float]] = {spec.name: {} for spec in _READ_METRICS}
        for agent in own:
            for (name, labels), value in agent.figures.items():
                values[name][agent.label, *labels] = value
        others: dict[FigureKey, list[float]] = {}
        for agent in rest:
            for key, value in agent.figures.items():
                others.setdefault(key, []).append(value)
        for spec in _READ_METRICS:
            together: dict[Labels, float] = {
                (OTHER_VALUE, *labels): spec.combine(found)
                for (name, labels), found in others.items()
                if name == spec.name
            }
            self._series.replace(spec, values[spec.name] | together)

    def _publish_open_windows(self, agents: Iterable[AgentRecord]) -> None:
        # Whichever group ever had one has a series, at 0 too, so that a graph falls to nothing instead of ending.
        opened = self._series.values(metrics.WINDOWS_OPENED)
        values: dict[Labels, float] = dict.fromkeys((labels[: len(GROUP)] for labels in opened), 0.0)
        for agent in agents:
            for window in agent.open_windows.values():
                group = self._group_of(window.traits)
                values[group] = values.get(group, 0.0) + 1
        self._series.replace(metrics.OPEN_WINDOWS, values)


def _states(agents: _ShownAgents) -> dict[Labels, float]:
    values: dict[Labels, float] = {
        (agent.label, label): float(name == state)
        for agent, state in (*agents.own, *agents.lost)
        for name, label in _STATES.items()
    }
    if agents.rest:
        values.update({(OTHER_VALUE, label): 0.0 for label in _STATES.values()})
        for _, state in agents.rest:
            values[OTHER_VALUE, _STATES[state]] += 1
    return values


def _by_name(shown: tuple[AgentRecord, AgentStateName]) -> LabelValue:
    return shown[0].label
