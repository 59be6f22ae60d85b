"""What the page remembers of one agent beyond its state: its latest status, last minutes, windows and episodes.

The last minutes are what its statuses said, one sample each, in bounded memory.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from springback.sinks.fleet.fleet_state import AgentState, WindowPlace
from springback.sinks.fleet.memory import NewestMemory, Place
from springback.stream_processors.resilience.readings import (
    AgentStatus,
    EpisodeKey,
    EpisodeStatus,
    EpisodeSummary,
    EpisodeTraits,
    OpenWindow,
    WindowReading,
)

HISTORY_SAMPLES = 240
"""Samples of one agent, of which there is at most one a second. 56 bytes each."""

WINDOWS_OF_AN_AGENT = 8
EPISODES_OF_AN_AGENT = 8
_FIRST_SAMPLES = 16
_NONE = np.iinfo(np.int64).min
_SAMPLE = np.dtype(
    [
        ("time_s", "f8"),
        ("step", "i8"),
        ("departed", "i8"),
        ("episode", "i4"),
        *((name, "f4") for name in ("progress", "propositions", "total", "cognitive", "physical", "debt", "cost")),
    ]
)


class Span(NamedTuple):
    """A stretch of time, in seconds since 1970 by the broker's clock."""

    start_s: float
    end_s: float


class AgentHistory:
    """A ring of samples of an agent's newest open episode.

    Times are the broker's: those of an agent may be of a clock that is wrong, or simulated. NaN is what is not known,
    such as the intensity of a step that could not be scored.
    """

    def __init__(self, limit: int = HISTORY_SAMPLES) -> None:
        self._limit = limit
        self._samples = np.empty(min(limit, _FIRST_SAMPLES), dtype=_SAMPLE)
        self._taken = 0
        self._episodes: dict[EpisodeKey, int] = {}
        self._begun = 0

    def __len__(self) -> int:
        """How many samples are held."""
        return min(self._taken, self._limit)

    def add(self, time_s: float, episode: EpisodeStatus) -> None:
        """Takes a sample; the oldest goes if there is no room."""
        if self._taken == len(self._samples) < self._limit:
            self._samples = np.resize(self._samples, min(self._limit, 2 * self._taken))
        total, by_channel = episode.intensity, episode.intensity_by_channel or (np.nan,) * 3
        self._samples[self._taken % self._limit] = (
            *(time_s, episode.step, _NONE if episode.window is None else episode.window.departure_step),
            self._number_of(episode.key),
            *(episode.progress, episode.propositions, np.nan if total is None else total, *by_channel),
            episode.window.recovery_cost if episode.window is not None else 0.0,
        )
        self._taken += 1

    def series(self, name: str) -> list[tuple[float, float | None]]:
        """One quantity over time, oldest first; None between two episodes and where it is not known."""
        points: list[tuple[float, float | None]] = []
        for number, samples in self._by_episode():
            if number:
                points.append((float(samples["time_s"][0]), None))
            for time_s, value in zip(samples["time_s"].tolist(), samples[name].tolist(), strict=True):
                points.append((time_s, None if value != value else value))
        return points

    def span(self, key: EpisodeKey, first_step: int, last_step: int) -> Span | None:
        """When an episode took these steps, as far as the samples tell; None where they tell nothing of them."""
        number = self._episodes.get(key)
        samples = self._ordered()
        samples = samples[samples["episode"] == number] if number is not None else samples[:0]
        if not len(samples) or last_step < samples["step"][0]:
            return None
        start_s, end_s = np.interp((first_step, last_step), samples["step"], samples["time_s"])
        return Span(float(start_s), float(end_s))

    def open_spans(self, closed: Iterable[tuple[EpisodeKey, int]]) -> Iterator[Span]:
        """When a rebound window was open by the samples: from its departure to the last sample that tells of it.

        Args:
            closed: episodes and departure steps of windows whose ends are known better; they are left out.
        """
        known = {(self._episodes.get(key), departure) for key, departure in closed}
        for _, samples in self._by_episode():
            changes = np.flatnonzero(np.diff(samples["departed"])) + 1
            for run in np.split(samples, changes):
                departure = int(run["departed"][0])
                if departure != _NONE and (int(run["episode"][0]), departure) not in known:
                    start_s = float(np.interp(departure, samples["step"], samples["time_s"]))
                    yield Span(start_s, float(run["time_s"][-1]))

    @property
    def extent(self) -> Span | None:
        """The time that the samples cover; None without any."""
        samples = self._ordered()
        return Span(float(samples["time_s"][0]), float(samples["time_s"][-1])) if len(samples) else None

    def _number_of(self, key: EpisodeKey) -> int:
        if key not in self._episodes:
            self._begun += 1
            self._episodes[key] = self._begun
            if len(self._episodes) > self._limit:
                del self._episodes[next(iter(self._episodes))]
        return self._episodes[key]

    def _ordered(self) -> npt.NDArray[np.void]:
        if self._taken <= self._limit:
            return self._samples[: self._taken]
        return np.roll(self._samples, -(self._taken % self._limit))

    def _by_episode(self) -> Iterator[tuple[int, npt.NDArray[np.void]]]:
        samples = self._ordered()
        changes = np.flatnonzero(np.diff(samples["episode"])) + 1
        yield from enumerate(part for part in np.split(samples, changes) if len(part))


@dataclass(slots=True)
class AgentMemory(AgentState):
    """What the page remembers of one agent.

    Attributes:
        history: its last minutes.
        traits: of its newest open episode, else of its last; None until it had one.
        status: the latest.
        windows: its last windows, by episode and number, in the order in which they were first read.
        ends: its last episodes that have ended.
    """

    history: AgentHistory = field(default_factory=AgentHistory)
    traits: EpisodeTraits | None = None
    status: AgentStatus | None = None
    windows: dict[WindowPlace, WindowReading] = field(default_factory=dict)
    ends: NewestMemory[EpisodeKey, EpisodeSummary] = field(default_factory=lambda: NewestMemory(EPISODES_OF_AN_AGENT))

    @property
    def token(self) -> str:
        """What stands for it in addresses."""
        return self.key.hex()

    @property
    def episode(self) -> EpisodeStatus | None:
        """Its newest open episode."""
        return self.status.episodes[-1] if self.status is not None and self.status.episodes else None

    @property
    def episodes(self) -> list[EpisodeSummary]:
        """Its last episodes that have ended, the one that ended last first."""
        return self.ends.newest()

    @property
    def ended(self) -> EpisodeSummary | None:
        """Its last episode that has ended."""
        return next(iter(self.episodes), None)

    @property
    def open_window(self) -> tuple[EpisodeStatus, OpenWindow] | None:
        """The open window of the newest of its episodes that has one, and that episode."""
        episodes = self.status.episodes if self.status is not None else ()
        return next(((e, e.window) for e in reversed(episodes) if e.window is not None), None)

    def take_status(self, status: AgentStatus) -> None:
        """Takes its latest status in."""
        self.status = status
        if status.episodes:
            self.traits = status.episodes[-1].traits
            self.history.add(status.seen_s, status.episodes[-1])

    def take_window(self, window: WindowReading) -> None:
        """Takes a window in as it opens, and as it closes."""
        self.windows[window.key, window.number] = window
        if len(self.windows) > WINDOWS_OF_AN_AGENT:
            del self.windows[next(iter(self.windows))]

    def take_end(self, summary: EpisodeSummary) -> None:
        """Takes an episode in at its end; in whatever order they are read, those that ended last are kept.

        An end that comes for the same episode again corrects the one that silence had made, and may be of its time.
        """
        self.ends.put(summary.key, summary, end_place(summary))

    def take_back(self, key: EpisodeKey) -> None:
        """Takes in that an episode goes on that silence had ended."""
        self.ends.pop(key)

    def window_spans(self) -> list[Span]:
        """When it was in a rebound window, as far as its last minutes go; oldest first."""
        closed = [window for window in self.windows.values() if window.state != "open"]
        exact = [self.history.span(window.key, window.departure_step, window.reentry_step) for window in closed]
        sampled = self.history.open_spans((window.key, window.departure_step) for window in closed)
        return sorted([*(span for span in exact if span is not None), *sampled])


def end_place(summary: EpisodeSummary) -> Place:
    """Where the end of an episode stands among those of its agent, by the agent's clock."""
    ended_s = summary.ended_s if math.isfinite(summary.ended_s) else -math.inf
    return ended_s, summary.key.agent, summary.key.session, summary.key.episode, summary.revision
