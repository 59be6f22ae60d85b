"""What the page remembers of an episode that an address asks for."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from springback.dashboards.live_page.agent_memory import AgentMemory
from springback.dashboards.live_page.episodes.steps_topic import WantedEpisode
from springback.dashboards.live_page.fleet_view import FleetView
from springback.dashboards.live_page.links import agent_token, episode_mark
from springback.stream_processors.resilience.readings import (
    EpisodeKey,
    EpisodeStatus,
    EpisodeSummary,
    EpisodeTraits,
    WindowReading,
)


@dataclass
class KnownEpisode:
    """An episode, open or ended.

    Attributes:
        key: which it is.
        traits: what kind of episode.
        producer: who sends its agent's steps; the agent itself where no status of it is known.
        skew_s: how far its agent's clock is ahead of the broker's, as far as is known.
        status: how it is doing, if it is open.
        summary: how it ended, if it has.
        windows: its rebound windows by number, those that are remembered.
        seen_s: when its agent was last heard of, by the broker's clock; None where that is not known.
    """

    key: EpisodeKey
    traits: EpisodeTraits
    producer: str
    skew_s: float = 0.0
    status: EpisodeStatus | None = None
    summary: EpisodeSummary | None = None
    windows: dict[int, WindowReading] = field(default_factory=dict)
    seen_s: float | None = None

    @property
    def seen_windows(self) -> int:
        """How many rebound windows it has had, as far as was seen: by their numbers, since older ones are forgotten."""
        opened = None if self.status is None else self.status.window
        return 1 + max([-1, *self.windows, *([] if opened is None else [opened.number])])

    @property
    def wanted(self) -> WantedEpisode:
        """What to look for in the topic of the steps."""
        times = [window.departure_time_s - self.skew_s for window in self.windows.values()]
        if self.summary is not None:
            times.append(self.summary.started_s - self.skew_s)
        if self.seen_s is not None and self.summary is None:
            times.append(self.seen_s)
        about_s = min((at_s for at_s in times if math.isfinite(at_s)), default=0.0)
        return WantedEpisode(self.key, self.producer, self.traits.family, about_s, over=self.summary is not None)


def find_episode(view: FleetView, agent: str, episode: str) -> KnownEpisode | None:
    """The episode that an address stands for; None where nothing of it is remembered.

    Args:
        view: what the page remembers.
        agent: its `agent_token`.
        episode: its `episode_token`.
    """
    mark, memory = episode_mark(episode), view.agent(agent)
    if mark is None:
        return None
    key = next((key for key in _keys(view, memory) if key.mark() == mark), None)
    if key is None or agent_token(key.agent) != agent:
        return None
    status = next((each for each in _open(memory) if each.key == key), None)
    summary = view.summary_of(key) if status is None else None
    windows = view.windows_of(key)
    return KnownEpisode(
        key,
        (status or summary or windows[0]).traits,
        _producer(memory, key),
        0.0 if memory is None else memory.skew_s,
        status,
        summary,
        {window.number: window for window in windows},
        None if memory is None or memory.status is None else memory.status.seen_s,
    )


def _keys(view: FleetView, memory: AgentMemory | None) -> Iterator[EpisodeKey]:
    """All that are remembered, its agent's first: of the fleet there are thousands."""
    if memory is not None:
        yield from (status.key for status in _open(memory))
        yield from (summary.key for summary in memory.episodes)
        yield from (window.key for window in memory.windows.values())
    yield from view.recent_keys()


def _open(memory: AgentMemory | None) -> Sequence[EpisodeStatus]:
    return () if memory is None or memory.status is None else memory.status.episodes


def _producer(memory: AgentMemory | None, key: EpisodeKey) -> str:
    return key.agent if memory is None or memory.status is None else memory.status.producer
