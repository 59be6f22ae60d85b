"""Which agents there are and how each is doing: the per-agent series, kept to a bound.

Only agents heard of within the time to live have series, the first `cap` of them in the order of their names; the rest
share `agent="other"`. An agent that fell silent inside an episode leaves its state, what it was at and when it was last
seen behind for a longer time, so that an alert goes on saying *silent*. Whichever way the readings were mixed, the same
agents are shown, so two exporters agree. While we are blind ourselves nobody's time runs out.
"""

import math
from collections.abc import Iterable, Mapping

from springback.sinks.agent_record import AgentRecord, OpenWindowRecord, ProducerRecord
from springback.sinks.agent_series import ShownAgents, publish_agents
from springback.sinks.agent_state import StateTimes
from springback.sinks.bounded_memory import BoundedMemory, fingerprint
from springback.sinks.broker_sight import BrokerSight
from springback.sinks.label_values import clean_label_value, closed_label_value
from springback.sinks.metric_series import Labels, MetricSeries
from springback.stream_processors.resilience import agent_metrics
from springback.stream_processors.resilience import metric_catalogue as metrics
from springback.stream_processors.resilience.exporter_metrics import OVERFLOW_AGENTS
from springback.stream_processors.resilience.metric_spec import AGENT_STATES, GROUP, AgentStateName, MetricSpec
from springback.stream_processors.resilience.readings import AgentStatus, EpisodeSummary, WindowReading

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
