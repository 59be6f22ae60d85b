"""What is remembered of one agent: its latest status, how long it does what, its last minutes, its last windows."""

from dataclasses import dataclass, field

from springback.dashboards.live_page.agent_history import AgentHistory, Span
from springback.sinks.agent_state import AgentActivity
from springback.sinks.bounded_memory import BoundedMemory, fingerprint
from springback.sinks.label_values import LabelValue
from springback.stream_processors.resilience.readings import (
    AgentStatus,
    EpisodeKey,
    EpisodeStatus,
    EpisodeTraits,
    OpenWindow,
    WindowReading,
)

WINDOWS_OF_AN_AGENT = 8
_PRODUCERS_OF_AN_AGENT = 16


@dataclass(slots=True)
class AgentMemory:
    """One agent.

    Attributes:
        label: its name, safe to be shown.
        token: stands for it in addresses.
        activity: what its state is decided by.
        traits: of its newest open episode, else of its last; None until it had one.
        status: the latest.
        steps: that it has taken by each of its producers' latest sessions.
        windows: its last windows, by episode and number, in the order in which they were first heard of.
    """

    label: LabelValue
    token: str
    activity: AgentActivity = field(default_factory=AgentActivity)
    history: AgentHistory = field(default_factory=AgentHistory)
    traits: EpisodeTraits | None = None
    status: AgentStatus | None = None
    steps: BoundedMemory[tuple[str, int]] = field(default_factory=lambda: BoundedMemory(_PRODUCERS_OF_AN_AGENT))
    windows: dict[tuple[EpisodeKey, int], WindowReading] = field(default_factory=dict)

    @property
    def episode(self) -> EpisodeStatus | None:
        """Its newest open episode."""
        return self.status.episodes[-1] if self.status is not None and self.status.episodes else None

    @property
    def open_window(self) -> tuple[EpisodeStatus, OpenWindow] | None:
        """The open window of the newest of its episodes that has one, and that episode."""
        episodes = self.status.episodes if self.status is not None else ()
        return next(((e, e.window) for e in reversed(episodes) if e.window is not None), None)

    @property
    def running_cost(self) -> float:
        """What its open windows have cost up to now."""
        episodes = self.status.episodes if self.status is not None else ()
        return sum(episode.window.recovery_cost for episode in episodes if episode.window is not None)

    def take_status(self, status: AgentStatus) -> bool:
        """Take in a status. False where a later one is known, or this very one."""
        if self.status is not None and (status.seen_s < self.status.seen_s or status == self.status):
            return False
        self.activity.fold(status)
        self.status = status
        if status.episodes:
            self.traits = status.episodes[-1].traits
            self.history.add(status.seen_s, status.episodes[-1])
        return True

    def steps_since(self, status: AgentStatus) -> int:
        """How many steps it has taken since a producer of it last told, and note them; 0 at the first time."""
        producer = fingerprint(status.producer)
        session, before = self.steps.get(producer) or ("", 0)
        self.steps.put(producer, (status.session, status.counts.steps))
        return max(0, status.counts.steps - before) if session == status.session else 0

    def take_window(self, window: WindowReading) -> None:
        """Take in a window: closed stays closed, whatever comes after it."""
        place = window.key, window.number
        known = self.windows.get(place)
        if known is not None and known.state != "open":
            return
        self.windows[place] = window
        if len(self.windows) > WINDOWS_OF_AN_AGENT:
            del self.windows[next(iter(self.windows))]

    def window_spans(self) -> list[Span]:
        """When it was in a rebound window, as far as its last minutes go; oldest first."""
        closed = [window for window in self.windows.values() if window.state != "open"]
        exact = [self.history.span(window.key, window.departure_step, window.reentry_step) for window in closed]
        sampled = self.history.open_spans((window.key, window.departure_step) for window in closed)
        return sorted([*(span for span in exact if span is not None), *sampled])
