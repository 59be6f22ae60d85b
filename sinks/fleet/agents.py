"""Which agents there are and how each is doing: the per-agent series, kept to a bound.

Only agents heard of within the time to live have series, the first `cap` of them in the order of their names; the rest
share `agent="other"`. An agent that fell silent inside an episode leaves its state, what it was at and when it was last
seen behind for a longer time, so that an alert goes on saying *silent*. Whichever way the readings were mixed, the same
agents are shown, so two exporters agree. While we are blind ourselves nobody's time runs out.

What is known of one agent: its latest status, its open windows and its last episode, as far as series show them.

The series of single agents: of those shown by name, and of the rest together under `agent="other"`.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from springback.sinks.fleet.agent_state import AgentActivity, BrokerSight, StateTimes
from springback.sinks.fleet.labels import OTHER_VALUE, LabelValue, clean_label_value, closed_label_value
from springback.sinks.fleet.memory import BoundedMemory, fingerprint
from springback.sinks.fleet.series import Labels, MetricSeries
from springback.stream_processors.metrics import agents as agent_metrics
from springback.stream_processors.metrics import catalogue as metrics
from springback.stream_processors.metrics.exporter import OVERFLOW_AGENTS
from springback.stream_processors.metrics.spec import AGENT_STATES, GROUP, AgentStateName, MetricSpec
from springback.stream_processors.resilience.readings import (
    AgentCounts,
    AgentStatus,
    EpisodeKey,
    EpisodeStatus,
    EpisodeSummary,
    WindowReading,
)

CHANNELS = ("cognitive", "physical", "debt")
"""The channels, in the order of `EpisodeStatus.intensity_by_channel`."""

_PRODUCERS_OF_AN_AGENT = 16


@dataclass(slots=True)
class ProducerRecord:
    """What one producer last said of the agent."""

    seen_s: float = -math.inf
    session: str = ""
    counts: AgentCounts = field(default_factory=AgentCounts)


@dataclass(frozen=True, slots=True)
class OpenWindowRecord:
    """A window that has opened and not closed; `departed_s` is by the agent's clock."""

    group: Labels
    departed_s: float


@dataclass(slots=True)
class AgentRecord:
    """One agent. Figures are None where they are not known."""

    label: LabelValue
    # Bounded too: there are programs that call themselves by another name at every start.
    producers: BoundedMemory[ProducerRecord] = field(default_factory=lambda: BoundedMemory(_PRODUCERS_OF_AN_AGENT))
    windows: dict[tuple[EpisodeKey, int], OpenWindowRecord] = field(default_factory=dict)
    activity: AgentActivity = field(default_factory=AgentActivity)
    live: bool = False
    skew_s: float = 0.0
    intensity: float | None = None
    channels: tuple[float, ...] | None = None
    beta_step: float | None = None
    progress: float | None = None
    propositions: float | None = None
    group: Labels | None = None
    ended_s: float = -math.inf
    ended_group: Labels | None = None
    window_cost: float = 0.0

    @property
    def running_cost(self) -> float:
        """The running cost of its open windows: the status may be a second older than the window's end."""
        return self.window_cost if self.windows else 0.0

    @property
    def departed_s(self) -> float | None:
        """When its oldest open window departed, by the broker's clock."""
        oldest = min((window.departed_s for window in self.windows.values()), default=None)
        return None if oldest is None else oldest - self.skew_s

    def end_episode(self, key: EpisodeKey, group: Labels, ended_s: float) -> None:
        """An episode of it has ended, and with it whatever window that had."""
        self.windows = {place: window for place, window in self.windows.items() if place[0] != key}
        # By time and then by name, so that the order of arrival does not matter.
        if math.isfinite(ended_s) and (ended_s, group) > (self.ended_s, self.ended_group or ()):
            self.ended_s, self.ended_group = ended_s, group

    def show(self, status: AgentStatus, group: Labels | None, series: MetricSeries) -> None:
        """Take over what its latest status says.

        Args:
            status: the status.
            group: family, method and version of its newest open episode.
            series: refuses and counts what may not enter; nothing is set there.
        """
        episodes = status.episodes
        newest = episodes[-1] if episodes else None
        self.activity.fold(status)
        self.group = group
        if series.accepts(agent_metrics.AGENT_CLOCK_SKEW, status.clock_skew_s):
            self.skew_s = status.clock_skew_s
        self.intensity = _largest(series, agent_metrics.AGENT_INTENSITY, (episode.intensity for episode in episodes))
        self.beta_step = _largest(series, agent_metrics.AGENT_BETA_STEP, (episode.beta_step for episode in episodes))
        self.channels = _largest_by_channel(series, episodes)
        self.progress = self.propositions = None
        if newest is not None:
            self.progress = _largest(series, agent_metrics.AGENT_PROGRESS, (newest.progress,))
            self.propositions = _largest(series, agent_metrics.AGENT_PROPOSITIONS, (newest.propositions,))
        costs = (episode.window.recovery_cost for episode in episodes if episode.window is not None)
        self.window_cost = sum(_accepted(series, agent_metrics.AGENT_RUNNING_COST, costs))


def _accepted(series: MetricSeries, spec: MetricSpec, values: Iterable[float | None]) -> Iterator[float]:
    return (value for value in values if value is not None and series.accepts(spec, value))


def _largest(series: MetricSeries, spec: MetricSpec, values: Iterable[float | None]) -> float | None:
    return max(_accepted(series, spec, values), default=None)


def _largest_by_channel(series: MetricSeries, episodes: Iterable[EpisodeStatus]) -> tuple[float, ...] | None:
    by_episode = [episode.intensity_by_channel for episode in episodes if episode.intensity_by_channel is not None]
    metric = agent_metrics.AGENT_CHANNEL_INTENSITY
    largest = [_largest(series, metric, values) for values in zip(*by_episode, strict=True)]
    known = tuple(value for value in largest if value is not None)
    return known if len(known) == len(CHANNELS) else None


_STATES = {name: closed_label_value("state", name) for name in AGENT_STATES}
_CHANNELS = tuple(closed_label_value("channel", name) for name in CHANNELS)


class ShownAgents(NamedTuple):
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


def publish_agents(series: MetricSeries, agents: ShownAgents) -> None:
    """Let the per-agent metrics have the series of these agents and no others."""
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
        series.replace(spec, values)

    series.replace(agent_metrics.AGENT_STATE, _states(agents))
    infos = ((agent.label, agent.group or agent.ended_group) for agent in (*own, *lost))
    series.replace(agent_metrics.AGENT_INFO, {(label, *group): 1.0 for label, group in infos if group is not None})
    gauge(agent_metrics.AGENT_PROGRESS, lambda agent: agent.progress, min)
    gauge(agent_metrics.AGENT_PROPOSITIONS, lambda agent: agent.propositions, min)
    gauge(agent_metrics.AGENT_IN_REBOUND, lambda agent: float(bool(agent.windows)), sum)
    gauge(agent_metrics.AGENT_INTENSITY, lambda agent: agent.intensity, max)
    series.replace(agent_metrics.AGENT_CHANNEL_INTENSITY, _channels(own, rest))
    gauge(agent_metrics.AGENT_RUNNING_COST, lambda agent: agent.running_cost, max)
    gauge(agent_metrics.AGENT_WINDOW_DEPARTED, lambda agent: agent.departed_s, min)
    gauge(agent_metrics.AGENT_BETA_STEP, lambda agent: agent.beta_step, max)
    gauge(agent_metrics.AGENT_LAST_SEEN, lambda agent: agent.activity.seen_s, max, lost)
    gauge(agent_metrics.AGENT_LAST_PROGRESS, lambda agent: agent.activity.progress_s, min)
    gauge(agent_metrics.AGENT_CLOCK_SKEW, lambda agent: agent.skew_s, _largest_in_size)


def _states(agents: ShownAgents) -> dict[Labels, float]:
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


def _channels(own: Iterable[AgentRecord], rest: Iterable[AgentRecord]) -> dict[Labels, float]:
    values: dict[Labels, float] = {}
    labelled: list[tuple[LabelValue, AgentRecord]] = [(agent.label, agent) for agent in own]
    for label, agent in [*labelled, *((OTHER_VALUE, agent) for agent in rest)]:
        for channel, value in zip(_CHANNELS, agent.channels or (), strict=False):
            values[label, channel] = max(value, values.get((label, channel), value))
    return values


def _largest_in_size(values: Iterable[float]) -> float:
    return max(values, key=abs)


_DAY_S = 86_400.0
_COUNTERS: Mapping[str, MetricSpec] = {
    "duplicate_steps": metrics.DUPLICATE_STEPS,
    "missing_steps": metrics.MISSING_STEPS,
    "replaced_times": metrics.REPLACED_TIMES,
    "clock_resets": metrics.CLOCK_RESETS,
}


class AgentBoard:
    """The agents.

    Args:
        series: where the series are.
        cap: agents with series of their own; of those that are lost, as many more.
        ttl_s: silence after which an agent's series go away.
        lost_ttl_s: silence after which those go away too that an agent leaves behind which fell silent.
        remembered: agents whose last counts and open windows are known; one that returns after it was forgotten has
            its counts added once more.
        times: after how long an agent is in which state.
    """

    def __init__(
        self, series: MetricSeries, *, cap: int, ttl_s: float, lost_ttl_s: float, remembered: int, times: StateTimes
    ) -> None:
        self._series = series
        self._cap = cap
        self._ttl_s = ttl_s
        self._lost_ttl_s = lost_ttl_s
        self._times = times
        self._known: BoundedMemory[AgentRecord] = BoundedMemory(remembered)
        self._live = 0
        self._newest_s = -math.inf
        self._sight = BrokerSight(late_s=times.silent_s)

    def open_window(self, window: WindowReading, group: Labels) -> None:
        """A rebound window of the agent has opened."""
        if self._series.accepts(agent_metrics.AGENT_WINDOW_DEPARTED, window.departure_time_s):
            record = OpenWindowRecord(group, window.departure_time_s)
            self._agent(window.key.agent).windows[window.key, window.number] = record

    def close_window(self, window: WindowReading) -> None:
        """A rebound window of the agent has closed."""
        agent = self._known.get(clean_label_value(window.key.agent).encode())
        if agent is not None:
            agent.windows.pop((window.key, window.number), None)

    def end_episode(self, summary: EpisodeSummary, group: Labels) -> None:
        """The episode has ended."""
        self._agent(summary.key.agent).end_episode(summary.key, group, summary.ended_s)

    def take_status(self, status: AgentStatus, group: Labels | None, now_s: float) -> bool:
        """Take in how an agent is doing.

        Args:
            status: the status.
            group: family, method and version of its newest open episode, if it has any.
            now_s: the present, against times that lie in the future.

        Returns:
            False where a later status of the same producer is known already.
        """
        if not self._plausible(status, now_s):
            return True
        agent = self._agent(status.agent)
        name = fingerprint(status.producer)
        producer = agent.producers.get(name) or ProducerRecord()
        if status.seen_s < producer.seen_s:
            return False
        self._count(producer, status)
        if producer.session != status.session:
            # The agent has started anew: what its former session left open is over, also where nobody said so.
            agent.windows = {
                place: window for place, window in agent.windows.items() if place[0].session != producer.session
            }
        producer.seen_s, producer.session, producer.counts = status.seen_s, status.session, status.counts
        agent.producers.put(name, producer)
        if status.seen_s >= agent.activity.seen_s:
            agent.show(status, group, self._series)
        self._newest_s = max(self._newest_s, status.seen_s)
        if not agent.live and self._idle_s(agent, now_s) <= self._ttl_s:
            agent.live = True
            self._live += 1
            if self._live > self._cap:
                self._series.add(OVERFLOW_AGENTS, 1)
        return True

    def broker_answered(self, frames_behind: float, now_s: float) -> None:
        """The broker has said how many frames are unread."""
        self._sight.answer(now_s, frames_behind, self._newest_s)

    def broker_away(self, now_s: float) -> None:
        """The broker does not answer."""
        self._sight.silence(now_s)

    def publish(self, now_s: float) -> None:
        """Bring the gauges to what holds now."""
        live: list[tuple[AgentRecord, AgentStateName]] = []
        lost: list[tuple[AgentRecord, AgentStateName]] = []
        counts: dict[AgentStateName, int] = dict.fromkeys(AGENT_STATES, 0)
        for agent in self._known.values():
            idle_s = self._idle_s(agent, now_s)
            agent.live = idle_s <= self._ttl_s
            if idle_s > max(_DAY_S, self._ttl_s):
                continue
            agent.activity.in_rebound = bool(agent.windows)
            state = agent.activity.state(now_s, self._sight.blind, unseen=self._sight.unseen, times=self._times)
            counts[state] += 1
            if agent.live:
                live.append((agent, state))
            elif agent.activity.running and idle_s <= self._lost_ttl_s:
                lost.append((agent, state))
        self._live = len(live)
        live.sort(key=_by_name)
        lost.sort(key=_by_name)
        publish_agents(self._series, ShownAgents(live[: self._cap], live[self._cap :], lost[: self._cap]))
        self._publish_open_windows(agent for agent, _ in live)
        for name, count in counts.items():
            self._series.set(agent_metrics.AGENTS, count, closed_label_value("state", name))
        if self._newest_s > -math.inf:
            self._series.set(metrics.LAST_EVENT_AGE, max(0.0, now_s - self._newest_s))

    def _idle_s(self, agent: AgentRecord, now_s: float) -> float:
        return self._sight.unseen.elapsed(agent.activity.seen_s, now_s)

    def _agent(self, name: str) -> AgentRecord:
        label = clean_label_value(name)
        key = label.encode()
        agent = self._known.get(key) or AgentRecord(label)
        self._known.put(key, agent)
        return agent

    def _plausible(self, status: AgentStatus, now_s: float) -> bool:
        if not self._series.accepts(agent_metrics.AGENT_LAST_SEEN, status.seen_s):
            return False
        if status.seen_s > now_s + _DAY_S:
            self._series.refuse(agent_metrics.AGENT_LAST_SEEN)
            return False
        return True

    def _count(self, producer: ProducerRecord, status: AgentStatus) -> None:
        restarted = status.seen_s > producer.seen_s and status.counts.steps < producer.counts.steps
        for name, spec in _COUNTERS.items():
            before = 0 if restarted else getattr(producer.counts, name)
            self._series.add(spec, max(0, getattr(status.counts, name) - before))

    def _publish_open_windows(self, agents: Iterable[AgentRecord]) -> None:
        # Whichever group ever had one has a series, at 0 too, so that a graph falls to nothing instead of ending.
        opened = self._series.values(metrics.WINDOWS_OPENED)
        values: dict[Labels, float] = dict.fromkeys((labels[: len(GROUP)] for labels in opened), 0.0)
        for agent in agents:
            for window in agent.windows.values():
                values[window.group] = values.get(window.group, 0.0) + 1
        self._series.replace(metrics.OPEN_WINDOWS, values)


def _by_name(shown: tuple[AgentRecord, AgentStateName]) -> str:
    return shown[0].label
