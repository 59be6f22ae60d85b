"""Which agents there are and how each is doing: the per-agent series, kept to a bound.

Only agents heard of within the time to live have series, the first `cap` of them in the order of their names; the rest
share `agent="other"`. Whichever way the readings were mixed, the same agents are shown, so two exporters agree.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from sinks.bounded_memory import BoundedMemory, fingerprint
from sinks.label_values import OTHER_VALUE, LabelValue, clean_label_value, closed_label_value
from sinks.metric_series import Labels, MetricSeries
from stream_processors.resilience import agent_metrics
from stream_processors.resilience import metric_catalogue as metrics
from stream_processors.resilience.exporter_metrics import OVERFLOW_AGENTS
from stream_processors.resilience.metric_spec import MetricSpec
from stream_processors.resilience.readings import AgentCounts, AgentStatus, EpisodeKey

_DAY_S = 86_400.0
_PRODUCERS_OF_AN_AGENT = 16
_COUNTERS: Mapping[str, MetricSpec] = {
    "duplicate_steps": metrics.DUPLICATE_STEPS,
    "missing_steps": metrics.MISSING_STEPS,
    "replaced_times": metrics.REPLACED_TIMES,
    "clock_resets": metrics.CLOCK_RESETS,
}


@dataclass(slots=True)
class _Producer:
    seen_s: float = -math.inf
    session: str = ""
    counts: AgentCounts = field(default_factory=AgentCounts)


@dataclass(slots=True)
class _Agent:
    label: LabelValue
    # Bounded too: there are programs that call themselves by another name at every start.
    producers: BoundedMemory[_Producer] = field(default_factory=lambda: BoundedMemory(_PRODUCERS_OF_AN_AGENT))
    windows: dict[tuple[EpisodeKey, int], Labels] = field(default_factory=dict)
    seen_s: float = -math.inf
    skew_s: float = 0.0
    intensity: float | None = None
    running_cost: float = 0.0
    beta_step: float | None = None


class AgentBoard:
    """The agents.

    Args:
        series: where the series are.
        cap: agents with series of their own.
        ttl_s: silence after which an agent's series go away.
        remembered: agents whose last counts and open windows are known; one that returns after it was forgotten has
            its counts added once more.
    """

    def __init__(self, series: MetricSeries, *, cap: int, ttl_s: float, remembered: int) -> None:
        self._series = series
        self._cap = cap
        self._ttl_s = ttl_s
        self._known: BoundedMemory[_Agent] = BoundedMemory(remembered)
        self._live: dict[LabelValue, _Agent] = {}
        self._newest_s = -math.inf

    def open_window(self, key: EpisodeKey, number: int, group: Labels) -> None:
        """A rebound window of the agent has opened."""
        self._agent(key.agent).windows[key, number] = group

    def close_window(self, key: EpisodeKey, number: int) -> None:
        """A rebound window of the agent has closed."""
        agent = self._known.get(clean_label_value(key.agent).encode())
        if agent is not None:
            agent.windows.pop((key, number), None)

    def end_episode(self, key: EpisodeKey) -> None:
        """The episode has ended, and with it whatever window it had."""
        agent = self._known.get(clean_label_value(key.agent).encode())
        if agent is not None:
            agent.windows = {place: group for place, group in agent.windows.items() if place[0] != key}

    def take_status(self, status: AgentStatus, now_s: float) -> bool:
        """Take in how an agent is doing. False where a later status of the same producer is known already."""
        if not self._plausible(status, now_s):
            return True
        agent = self._agent(status.agent)
        name = fingerprint(status.producer)
        producer = agent.producers.get(name) or _Producer()
        if status.seen_s < producer.seen_s:
            return False
        self._count(producer, status)
        if producer.session != status.session:
            # The agent has started anew: what its former session left open is over, also where nobody said so.
            agent.windows = {
                place: group for place, group in agent.windows.items() if place[0].session != producer.session
            }
        producer.seen_s, producer.session, producer.counts = status.seen_s, status.session, status.counts
        agent.producers.put(name, producer)
        if status.seen_s >= agent.seen_s:
            self._show(agent, status)
        self._newest_s = max(self._newest_s, status.seen_s)
        if now_s - agent.seen_s <= self._ttl_s:
            if agent.label not in self._live and len(self._live) >= self._cap:
                self._series.add(OVERFLOW_AGENTS, 1)
            self._live[agent.label] = agent
        return True

    def publish(self, now_s: float) -> None:
        """Bring the gauges to what holds now."""
        self._live = {label: agent for label, agent in self._live.items() if now_s - agent.seen_s <= self._ttl_s}
        agents = [self._live[label] for label in sorted(self._live)]
        own, rest = agents[: self._cap], agents[self._cap :]
        self._gauge(agent_metrics.AGENT_IN_REBOUND, own, rest, lambda agent: float(bool(agent.windows)), sum)
        self._gauge(agent_metrics.AGENT_INTENSITY, own, rest, lambda agent: agent.intensity, max)
        self._gauge(agent_metrics.AGENT_RUNNING_COST, own, rest, _running_cost, max)
        self._gauge(agent_metrics.AGENT_BETA_STEP, own, rest, lambda agent: agent.beta_step, max)
        self._gauge(agent_metrics.AGENT_LAST_SEEN, own, rest, lambda agent: agent.seen_s, max)
        self._gauge(agent_metrics.AGENT_CLOCK_SKEW, own, rest, lambda agent: agent.skew_s, _largest_in_size)
        self._publish_open_windows(agents)
        silent = sum(1 for agent in self._known.values() if self._ttl_s < now_s - agent.seen_s <= _DAY_S)
        self._series.set(agent_metrics.AGENTS, len(agents), closed_label_value("state", "calm"))
        self._series.set(agent_metrics.AGENTS, silent, closed_label_value("state", "silent"))
        if self._newest_s > -math.inf:
            self._series.set(metrics.LAST_EVENT_AGE, max(0.0, now_s - self._newest_s))

    def _agent(self, name: str) -> _Agent:
        label = clean_label_value(name)
        key = label.encode()
        agent = self._known.get(key) or _Agent(label)
        self._known.put(key, agent)
        return agent

    def _plausible(self, status: AgentStatus, now_s: float) -> bool:
        if not self._series.accepts(agent_metrics.AGENT_LAST_SEEN, status.seen_s):
            return False
        if status.seen_s > now_s + _DAY_S:
            self._series.refuse(agent_metrics.AGENT_LAST_SEEN)
            return False
        return True

    def _count(self, producer: _Producer, status: AgentStatus) -> None:
        restarted = status.seen_s > producer.seen_s and status.counts.steps < producer.counts.steps
        for name, spec in _COUNTERS.items():
            before = 0 if restarted else getattr(producer.counts, name)
            self._series.add(spec, max(0, getattr(status.counts, name) - before))

    def _show(self, agent: _Agent, status: AgentStatus) -> None:
        agent.seen_s = status.seen_s
        if self._series.accepts(agent_metrics.AGENT_CLOCK_SKEW, status.clock_skew_s):
            agent.skew_s = status.clock_skew_s
        agent.intensity = max(
            (
                episode.intensity
                for episode in status.episodes
                if episode.intensity is not None
                and self._series.accepts(agent_metrics.AGENT_INTENSITY, episode.intensity)
            ),
            default=None,
        )
        agent.beta_step = max(
            (
                episode.beta_step
                for episode in status.episodes
                if episode.beta_step is not None
                and self._series.accepts(agent_metrics.AGENT_BETA_STEP, episode.beta_step)
            ),
            default=None,
        )
        agent.running_cost = sum(
            episode.window.recovery_cost
            for episode in status.episodes
            if episode.window is not None
            and self._series.accepts(agent_metrics.AGENT_RUNNING_COST, episode.window.recovery_cost)
        )

    def _gauge(
        self,
        spec: MetricSpec,
        own: Iterable[_Agent],
        rest: Iterable[_Agent],
        value_of: Callable[[_Agent], float | None],
        together: Callable[[Iterable[float]], float],
    ) -> None:
        values: dict[Labels, float] = {(agent.label,): value for agent in own if (value := value_of(agent)) is not None}
        others = [value for agent in rest if (value := value_of(agent)) is not None]
        if others:
            values[(OTHER_VALUE,)] = together(others)
        self._series.replace(spec, values)

    def _publish_open_windows(self, agents: Iterable[_Agent]) -> None:
        # A group keeps its series at 0, so that a graph falls to nothing instead of ending.
        values = dict.fromkeys(self._series.values(metrics.OPEN_WINDOWS), 0.0)
        for agent in agents:
            for group in agent.windows.values():
                values[group] = values.get(group, 0.0) + 1
        self._series.replace(metrics.OPEN_WINDOWS, values)


def _running_cost(agent: _Agent) -> float:
    # The status may be a second older than the window's end.
    return agent.running_cost if agent.windows else 0.0


def _largest_in_size(values: Iterable[float]) -> float:
    return max(values, key=abs)
