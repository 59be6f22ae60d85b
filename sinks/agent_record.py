"""What is known of one agent: its latest status, its open windows and its last episode, as far as series show them."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from springback.sinks.agent_state import AgentActivity
from springback.sinks.bounded_memory import BoundedMemory
from springback.sinks.label_values import LabelValue
from springback.sinks.metric_series import Labels, MetricSeries
from springback.stream_processors.resilience import agent_metrics as metrics
from springback.stream_processors.resilience.metric_spec import MetricSpec
from springback.stream_processors.resilience.readings import AgentCounts, AgentStatus, EpisodeKey, EpisodeStatus

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
        if series.accepts(metrics.AGENT_CLOCK_SKEW, status.clock_skew_s):
            self.skew_s = status.clock_skew_s
        self.intensity = _largest(series, metrics.AGENT_INTENSITY, (episode.intensity for episode in episodes))
        self.beta_step = _largest(series, metrics.AGENT_BETA_STEP, (episode.beta_step for episode in episodes))
        self.channels = _largest_by_channel(series, episodes)
        self.progress = self.propositions = None
        if newest is not None:
            self.progress = _largest(series, metrics.AGENT_PROGRESS, (newest.progress,))
            self.propositions = _largest(series, metrics.AGENT_PROPOSITIONS, (newest.propositions,))
        costs = (episode.window.recovery_cost for episode in episodes if episode.window is not None)
        self.window_cost = sum(_accepted(series, metrics.AGENT_RUNNING_COST, costs))


def _accepted(series: MetricSeries, spec: MetricSpec, values: Iterable[float | None]) -> Iterator[float]:
    return (value for value in values if value is not None and series.accepts(spec, value))


def _largest(series: MetricSeries, spec: MetricSpec, values: Iterable[float | None]) -> float | None:
    return max(_accepted(series, spec, values), default=None)


def _largest_by_channel(series: MetricSeries, episodes: Iterable[EpisodeStatus]) -> tuple[float, ...] | None:
    by_episode = [episode.intensity_by_channel for episode in episodes if episode.intensity_by_channel is not None]
    largest = [_largest(series, metrics.AGENT_CHANNEL_INTENSITY, values) for values in zip(*by_episode, strict=True)]
    known = tuple(value for value in largest if value is not None)
    return known if len(known) == len(CHANNELS) else None
