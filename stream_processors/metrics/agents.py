"""The metrics of single agents, and of how many there are in which state. Part of the metric catalogue.

How many series there are of them is bounded; agents beyond the bound share `agent="other"`.
"""

from springback.stream_processors.metrics.spec import AGENT_STATES, CHANNELS, GROUP, MetricSpec, ReadMetric
from springback.stream_processors.resilience.readings import AgentStatus

AGENTS = MetricSpec(
    name="springback_agents",
    kind="gauge",
    unit="agents",
    help="Agents that were heard from within the last day, by state; those beyond the bound on series too.",
    source="ours",
    labels=("state",),
    states=AGENT_STATES,
)
AGENT_STATE = MetricSpec(
    name="springback_agent_state",
    kind="gauge",
    unit="1",
    help="1 for the state that the agent is in, 0 for the others. Under agent=other: how many of the rest are in it.",
    source="ours",
    labels=("agent", "state"),
    states=AGENT_STATES,
)
AGENT_INFO = MetricSpec(
    name="springback_agent_info",
    kind="info",
    unit="1",
    help="What the agent's newest open episode, or else its last one, is of.",
    source="ours",
    labels=("agent", *GROUP),
)
AGENT_PROGRESS = ReadMetric[AgentStatus](
    name="springback_agent_progress",
    kind="gauge",
    unit="1",
    help="Progress p of the agent's newest open episode, from 0 to 1. Under agent=other: the smallest.",
    source="the agent's own, section 1",
    labels=("agent",),
    rows=lambda status: [(episode.progress,) for episode in status.episodes[-1:]],
    combine=min,
)
AGENT_PROPOSITIONS = ReadMetric[AgentStatus](
    name="springback_agent_propositions",
    kind="gauge",
    unit="1",
    help="Share q of goal propositions that hold in the agent's newest open episode. Under agent=other: the smallest.",
    source="the agent's own, section 1",
    labels=("agent",),
    rows=lambda status: [(episode.propositions,) for episode in status.episodes[-1:]],
    combine=min,
)
AGENT_IN_REBOUND = MetricSpec(
    name="springback_agent_in_rebound",
    kind="gauge",
    unit="1",
    help="1 while the agent is inside a rebound window, else 0. Under agent=other: how many of the rest are.",
    source="ours (window detection)",
    labels=("agent",),
)
AGENT_INTENSITY = ReadMetric[AgentStatus](
    name="springback_agent_recovery_intensity",
    kind="gauge",
    unit="1",
    help="Intensity g^rec of the agent's last step, the largest of its open episodes. Under agent=other: the largest.",
    source="equation 2",
    labels=("agent",),
    rows=lambda status: [(episode.intensity,) for episode in status.episodes],
)
AGENT_CHANNEL_INTENSITY = ReadMetric[AgentStatus](
    name="springback_agent_channel_intensity",
    kind="gauge",
    unit="1",
    help="Intensity g^u of the agent's last step by channel, largest of its episodes. Under agent=other: the largest.",
    source="equation 2",
    labels=("agent", "channel"),
    rows=lambda status: [
        (value, channel)
        for episode in status.episodes
        for channel, value in zip(CHANNELS, episode.intensity_by_channel or (), strict=False)
    ],
)
AGENT_RUNNING_COST = MetricSpec(
    name="springback_agent_open_window_recovery_cost",
    kind="gauge",
    unit="1",
    help="Running recovery cost of the agent's open windows, 0 with none. Under agent=other: the largest.",
    source="equation 3, up to the last step",
    labels=("agent",),
)
AGENT_WINDOW_DEPARTED = MetricSpec(
    name="springback_agent_window_departed_timestamp_seconds",
    kind="gauge",
    unit="seconds",
    help="When its oldest open window departed, by the broker's clock; not a provisional one. Of agent=other: oldest.",
    source="ours (window detection)",
    labels=("agent",),
)
AGENT_BETA_STEP = ReadMetric[AgentStatus](
    name="springback_agent_beta_step",
    kind="gauge",
    unit="1",
    help="Mean change of stability from step to step, largest of its open episodes. Under agent=other: the largest.",
    source="ours, of the terms of equation 5",
    labels=("agent",),
    rows=lambda status: [(episode.beta_step,) for episode in status.episodes],
)
AGENT_LAST_SEEN = MetricSpec(
    name="springback_agent_last_seen_timestamp_seconds",
    kind="gauge",
    unit="seconds",
    help="Broker's time of the agent's last event, kept for a day where it fell silent. Under agent=other: the newest.",
    source="ours",
    labels=("agent",),
)
AGENT_LAST_PROGRESS = MetricSpec(
    name="springback_agent_last_progress_timestamp_seconds",
    kind="gauge",
    unit="seconds",
    help="When the agent's progress last rose, or an episode of it began or ended. Under agent=other: the oldest.",
    source="ours",
    labels=("agent",),
)
AGENT_CLOCK_SKEW = ReadMetric[AgentStatus](
    name="springback_agent_clock_skew_seconds",
    kind="gauge",
    unit="seconds",
    help="Estimate of agent's clock minus broker's clock. Under agent=other: the largest in size.",
    source="ours",
    labels=("agent",),
    rows=lambda status: [(status.clock_skew_s,)],
    combine=lambda values: max(values, key=abs),
)

AGENT_METRICS: tuple[MetricSpec, ...] = (
    AGENTS,
    AGENT_STATE,
    AGENT_INFO,
    AGENT_PROGRESS,
    AGENT_PROPOSITIONS,
    AGENT_IN_REBOUND,
    AGENT_INTENSITY,
    AGENT_CHANNEL_INTENSITY,
    AGENT_RUNNING_COST,
    AGENT_WINDOW_DEPARTED,
    AGENT_BETA_STEP,
    AGENT_LAST_SEEN,
    AGENT_LAST_PROGRESS,
    AGENT_CLOCK_SKEW,
)
"""Every metric above, in the order of the page."""
