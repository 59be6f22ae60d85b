"""The series of single agents: of those shown by name, and of the rest together under `agent="other"`."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from springback.sinks.agent_record import CHANNELS, AgentRecord
from springback.sinks.label_values import OTHER_VALUE, LabelValue, closed_label_value
from springback.sinks.metric_series import Labels, MetricSeries
from springback.stream_processors.resilience import agent_metrics as metrics
from springback.stream_processors.resilience.metric_spec import AGENT_STATES, AgentStateName, MetricSpec

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

    series.replace(metrics.AGENT_STATE, _states(agents))
    infos = ((agent.label, agent.group or agent.ended_group) for agent in (*own, *lost))
    series.replace(metrics.AGENT_INFO, {(label, *group): 1.0 for label, group in infos if group is not None})
    gauge(metrics.AGENT_PROGRESS, lambda agent: agent.progress, min)
    gauge(metrics.AGENT_PROPOSITIONS, lambda agent: agent.propositions, min)
    gauge(metrics.AGENT_IN_REBOUND, lambda agent: float(bool(agent.windows)), sum)
    gauge(metrics.AGENT_INTENSITY, lambda agent: agent.intensity, max)
    series.replace(metrics.AGENT_CHANNEL_INTENSITY, _channels(own, rest))
    gauge(metrics.AGENT_RUNNING_COST, lambda agent: agent.running_cost, max)
    gauge(metrics.AGENT_WINDOW_DEPARTED, lambda agent: agent.departed_s, min)
    gauge(metrics.AGENT_BETA_STEP, lambda agent: agent.beta_step, max)
    gauge(metrics.AGENT_LAST_SEEN, lambda agent: agent.activity.seen_s, max, lost)
    gauge(metrics.AGENT_LAST_PROGRESS, lambda agent: agent.activity.progress_s, min)
    gauge(metrics.AGENT_CLOCK_SKEW, lambda agent: agent.skew_s, _largest_in_size)


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
