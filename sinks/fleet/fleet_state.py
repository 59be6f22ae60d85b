"""What readings add up to: the agents, their open windows, the families, what could not be used, and our own sight.

It is pure and of bounded memory, and both the exporter's series and the live page read it. Each reading is answered by
what it brought (`StatusNews`, `WindowNews`, …), or by None if it repeats what is known, so that a reader that counts
need not remember identities. The order between topics does not matter: an agent's status may come before or after the
summary of an episode in it. Beyond the bounds a repetition would count again, but workers repeat only what they sent
within the last moments.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from springback.sinks.fleet.agent_state import DEFAULT_TIMES, AgentActivity, StateTimes
from springback.sinks.fleet.labels import LabelBound, LabelValue, clean_label_value
from springback.sinks.fleet.memory import BoundedMemory, fingerprint
from springback.sinks.fleet.sight import FleetSight
from springback.sinks.sink import DeadLetter
from springback.stream_processors.metrics.spec import AgentStateName
from springback.stream_processors.resilience.readings import (
    AgentCounts,
    AgentStatus,
    EpisodeBegun,
    EpisodeKey,
    EpisodeSummary,
    EpisodeTraits,
    FamilyReading,
    Reading,
    WindowReading,
    window_identity,
)

DAY_S = 86_400.0
_PRODUCERS_OF_AN_AGENT = 16
_OTHER_COUNT_S = 60.0
"""How much newer a family's reading must be that counts from the beginning again; a repetition is no newer at all."""

WindowPlace = tuple[EpisodeKey, int]
"""What tells a window from others: its episode, and its number there."""


class EndedEpisode(NamedTuple):
    """An episode whose end was read: how often it had gone on after a silence, and its steps that were counted."""

    revision: int
    steps: int
    unscored: int


class ProducerRecord(NamedTuple):
    """What one producer last said of an agent."""

    seen_s: float = -math.inf
    session: str = ""
    counts: AgentCounts = AgentCounts()


class OpenWindowRecord(NamedTuple):
    """A window that has opened and not closed; `departed_s` is by the agent's clock, `cost` as far as a status told."""

    traits: EpisodeTraits
    departed_s: float
    cost: float = 0.0
    provisional: bool = False


@dataclass(slots=True)
class AgentState:
    """What every reader of the state needs of one agent; a reader that needs more derives from it.

    Attributes:
        label: its name, safe to be shown.
        key: stands for it, however long its name is.
        producers: what each of its last producers said; there are programs that call themselves by another name at
            every start.
        opened: windows of which the opening was read, and not the closing.
        told: windows that its latest status tells of, and whose closing was not read.
        activity: what its state is decided by.
        skew_s: its clock minus the broker's.
        reporter: stands for the producer that spoke last.
        contested_s: when last two of its producers took turns.
    """

    label: LabelValue
    key: bytes
    producers: BoundedMemory[ProducerRecord] = field(default_factory=lambda: BoundedMemory(_PRODUCERS_OF_AN_AGENT))
    opened: dict[WindowPlace, OpenWindowRecord] = field(default_factory=dict)
    told: Mapping[WindowPlace, OpenWindowRecord] = field(default_factory=dict)
    activity: AgentActivity = field(default_factory=AgentActivity)
    skew_s: float = 0.0
    reporter: bytes = b""
    contested_s: float = -math.inf

    @property
    def open_windows(self) -> Mapping[WindowPlace, OpenWindowRecord]:
        """Its open windows: the status may be a second older than the opening, the opening lost to retention."""
        return {**self.told, **self.opened} if self.told else self.opened

    @property
    def running_cost(self) -> float:
        """What its open windows have cost so far, by its latest status."""
        return sum(window.cost for window in self.told.values() if math.isfinite(window.cost))

    @property
    def departed_s(self) -> float | None:
        """When its oldest open window departed, by the broker's clock; a provisional one counts for nothing."""
        windows = self.open_windows.values()
        oldest = min((window.departed_s for window in windows if not window.provisional), default=None)
        return None if oldest is None else oldest - self.skew_s

    @property
    def learning(self) -> bool:
        """Whether all of its open windows are provisional, since its family is still learning."""
        windows = self.open_windows.values()
        return bool(windows) and all(window.provisional for window in windows)

    def drop_windows(self, over: Callable[[WindowPlace], bool]) -> None:
        """Forgets the windows that are over."""
        self.opened = {place: window for place, window in self.opened.items() if not over(place)}
        self.told = {place: window for place, window in self.told.items() if not over(place)}


A = TypeVar("A", bound=AgentState)


class EpisodeSteps(NamedTuple):
    """Steps of an episode that were not counted before."""

    traits: EpisodeTraits
    steps: int
    unscored: int


@dataclass(frozen=True, slots=True)
class StatusNews(Generic[A]):
    """A status that is no older than its producer's last.

    `before` is what the producer had said before; `newest` says that no producer of the agent has said anything later.
    """

    agent: A
    status: AgentStatus
    before: ProducerRecord
    newest: bool
    steps: Sequence[EpisodeSteps]


@dataclass(frozen=True, slots=True)
class RefusedStatus:
    """A status whose time cannot be: not a number, or a day ahead. It changes nothing."""

    status: AgentStatus


@dataclass(frozen=True, slots=True)
class WindowNews(Generic[A]):
    """A window that has opened or closed; `opens` says that its opening is new, also where its closing came first."""

    agent: A
    window: WindowReading
    opens: bool


@dataclass(frozen=True, slots=True)
class BegunNews:
    """An episode that has begun; or, if it `goes_on`, one that silence had closed, and whose end is taken back."""

    key: EpisodeKey
    traits: EpisodeTraits
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class EndNews(Generic[A]):
    """An episode that has ended.

    `begins` says that its beginning was not known (lost to retention, say), `corrects` that an end of it was told
    before, which silence had made, and is now taken back.
    """

    agent: A
    summary: EpisodeSummary
    begins: bool
    steps: EpisodeSteps
    corrects: bool = False


@dataclass(frozen=True, slots=True)
class FamilyNews:
    """The latest reading of a family, method and version; `key` stands for those three."""

    key: bytes
    reading: FamilyReading


News = StatusNews[A] | RefusedStatus | WindowNews[A] | BegunNews | EndNews[A] | FamilyNews


class FleetBounds(NamedTuple):
    """What keeps the memory bounded.

    Attributes:
        agents: agents that are known. The one silent for longest goes first, and counts anew if it returns.
        families: families by method and version whose latest reading is kept.
        reasons: distinct reasons of dead letters; further ones are filed under `other`.
        identities: identities remembered of each kind of reading, 150 to 300 bytes each.
    """

    agents: int
    families: int
    reasons: int
    identities: int


class FleetState(Generic[A]):
    """The state.

    Args:
        make_agent: makes what is kept of an agent, of its label and key.
        bounds: of its memory.
        times: after how long an agent is in which state.

    Attributes:
        sight: whether all of this is what holds now.
        dead_letters: how many of the input could not be used, by reason.
        agents_forgotten: agents that memory had no room for.
    """

    def __init__(
        self, make_agent: Callable[[LabelValue, bytes], A], bounds: FleetBounds, times: StateTimes = DEFAULT_TIMES
    ) -> None:
        self.sight = FleetSight(times.silent_s)
        self.dead_letters: Counter[LabelValue] = Counter()
        self.agents_forgotten = 0
        self._make_agent = make_agent
        self._bounds = bounds
        self._times = times
        self._agents: BoundedMemory[A] = BoundedMemory(bounds.agents)
        self._families: BoundedMemory[FamilyReading] = BoundedMemory(bounds.families)
        self._reasons = LabelBound(bounds.reasons)
        self._windows: BoundedMemory[None] = BoundedMemory(bounds.identities)
        self._begun: BoundedMemory[int] = BoundedMemory(bounds.identities)
        self._ended: BoundedMemory[EndedEpisode] = BoundedMemory(bounds.identities)
        self._letters: BoundedMemory[None] = BoundedMemory(bounds.identities)
        self._counted: BoundedMemory[tuple[int, int]] = BoundedMemory(bounds.identities)

    def take(self, reading: Reading, now_s: float) -> News[A] | None:
        """Takes one reading in. `now_s` only guards against times that lie in the future.

        Returns:
            what it brought, or None where it repeats what is known.
        """
        match reading:
            case AgentStatus():
                return self._take_status(reading, now_s)
            case WindowReading():
                return self._take_window(reading)
            case EpisodeBegun():
                return self._take_begun(reading)
            case EpisodeSummary():
                return self._take_summary(reading)
            case FamilyReading():
                return self._take_family(reading)

    def take_dead_letter(self, letter: DeadLetter) -> LabelValue | None:
        """Takes in that something of the input could not be used.

        Returns:
            the reason that it is filed under, or None where it repeats what is known.
        """
        if not self._letters.add(letter.identity, None):
            return None
        (reason,) = self._reasons.admit((clean_label_value(letter.reason),))
        self.dead_letters[reason] += 1
        return reason

    def agents(self) -> Iterable[A]:
        """All agents, the one that reported last at the end."""
        return self._agents.values()

    def agent(self, key: bytes) -> A | None:
        """The agent that a key stands for; None if it is not known, or not any more."""
        return self._agents.get(key)

    def families(self) -> Iterable[FamilyReading]:
        """The latest reading of each family, method and version."""
        return self._families.values()

    def idle_s(self, agent: AgentState, now_s: float) -> float:
        """For how long nothing was heard from an agent, without the time in which we saw nothing."""
        return self.sight.broker.unseen.elapsed(agent.activity.seen_s, now_s)

    def state_of(self, agent: AgentState, now_s: float) -> AgentStateName:
        """In which state an agent is."""
        agent.activity.in_rebound = bool(agent.open_windows)
        broker = self.sight.broker
        return agent.activity.state(now_s, broker.blind, unseen=broker.unseen, times=self._times)

    def _take_status(self, status: AgentStatus, now_s: float) -> StatusNews[A] | RefusedStatus | None:
        if not 0 < status.seen_s <= now_s + DAY_S:
            return RefusedStatus(status)  # a broker's clock that far off would make the agent the newest for good
        agent = self._agent(status.agent)
        name = fingerprint(status.producer)
        before = agent.producers.get(name) or ProducerRecord()
        if status.seen_s < before.seen_s:
            return None
        agent.producers.put(name, ProducerRecord(status.seen_s, status.session, status.counts))
        if before.session != status.session:
            # The agent has started anew: what its former session left open is over, also where nobody said so.
            agent.drop_windows(lambda place: place[0].session == before.session)
        newest = status.seen_s >= agent.activity.seen_s
        if newest:
            turns = agent.reporter not in (b"", name) and before.seen_s > -math.inf
            if turns and (status.step_s or 0.0) >= agent.activity.seen_s:
                # A producer that had been heard before speaks again after another one, with steps that are new.
                agent.contested_s = status.seen_s
            agent.reporter = name
            agent.activity.fold(status)
            agent.activity.contested_s = max(agent.activity.contested_s, agent.contested_s)
            agent.told = self._told_windows(status)
            if math.isfinite(status.clock_skew_s):
                agent.skew_s = status.clock_skew_s
        self.sight.heard(status.seen_s)
        steps = [
            self._new_steps(episode.key, episode.traits, episode.steps, episode.unscored_steps)
            for episode in status.episodes
            if not self._is_over(episode.key, episode.revision)
        ]
        return StatusNews(agent, status, before, newest, steps)

    def _told_windows(self, status: AgentStatus) -> dict[WindowPlace, OpenWindowRecord]:
        return {
            (episode.key, window.number): OpenWindowRecord(
                episode.traits, window.departure_time_s, window.recovery_cost, window.provisional
            )
            for episode in status.episodes
            if (window := episode.window) is not None
            and math.isfinite(window.departure_time_s)
            and fingerprint(window_identity(episode.key, window.number, opened=False, revision=episode.revision))
            not in self._windows
            and not self._is_over(episode.key, episode.revision)
        }

    def _take_window(self, window: WindowReading) -> WindowNews[A] | None:
        if not self._windows.add(fingerprint(window.identity), None):
            return None
        agent = self._agent(window.key.agent)
        place = window.key, window.number
        if window.state == "open":
            if not self._is_over(window.key, window.revision) and math.isfinite(window.departure_time_s):
                agent.opened[place] = OpenWindowRecord(
                    window.traits, window.departure_time_s, provisional=window.provisional
                )
            return WindowNews(agent, window, opens=True)
        agent.drop_windows(lambda other: other == place)
        # The reading of its opening may have been lost to retention, or come later: then it is a repetition.
        opening = fingerprint(window_identity(*place, opened=True))
        return WindowNews(agent, window, opens=self._windows.add(opening, None))

    def _take_begun(self, begun: EpisodeBegun) -> BegunNews | None:
        key = fingerprint(begun.key)
        known = self._begun.get(key)
        if known is not None and begun.revision <= known:
            return None
        self._begun.put(key, begun.revision)
        ended = self._ended.get(key)
        if ended is None or begun.revision <= ended.revision:
            return BegunNews(begun.key, begun.traits) if known is None else None
        self._counted.put(key, self._counted_before(key))
        self._ended.pop(key)
        return BegunNews(begun.key, begun.traits, goes_on=True)

    def _take_summary(self, summary: EpisodeSummary) -> EndNews[A] | None:
        key = fingerprint(summary.key)
        if self._is_over(summary.key, summary.revision) or summary.revision < (self._begun.get(key) or 0):
            return None  # a repetition, also of an end that was taken back since
        agent = self._agent(summary.key.agent)
        agent.drop_windows(lambda place: place[0] == summary.key)
        steps = self._new_steps(summary.key, summary.traits, summary.steps, summary.unscored_steps)
        corrects = key in self._ended  # that it had gone on was lost to retention
        self._ended.put(key, EndedEpisode(summary.revision, *self._counted_before(key)))
        self._counted.pop(key)
        begins = key not in self._begun
        self._begun.put(key, max(summary.revision, self._begun.get(key) or 0))
        return EndNews(agent, summary, begins, steps, corrects)

    def _is_over(self, key: EpisodeKey, revision: int) -> bool:
        """Whether the end of an episode was read, and it has not gone on since for the so many-th time."""
        ended = self._ended.get(fingerprint(key))
        return ended is not None and revision <= ended.revision

    def _take_family(self, reading: FamilyReading) -> FamilyNews | None:
        key = family_key(reading)
        held = self._families.get(key)
        if held is not None and not is_later(reading.sequence, reading.updated_s, held.sequence, held.updated_s):
            return None
        self._families.put(key, reading)
        return FamilyNews(key, reading)

    def _new_steps(self, key: EpisodeKey, traits: EpisodeTraits, steps: int, unscored: int) -> EpisodeSteps:
        """What is new since the episode was last reported: its counts run from its start."""
        episode = fingerprint(key)
        steps_before, unscored_before = self._counted_before(episode)
        steps, unscored = max(steps, steps_before), max(unscored, unscored_before)
        self._counted.put(episode, (steps, unscored))
        return EpisodeSteps(traits, steps - steps_before, unscored - unscored_before)

    def _counted_before(self, episode: bytes) -> tuple[int, int]:
        """The steps of an episode that were counted, and the unscored of them; also by an end that is taken back."""
        ended = self._ended.get(episode)
        return self._counted.get(episode) or ((0, 0) if ended is None else (ended.steps, ended.unscored))

    def _agent(self, name: str) -> A:
        label = clean_label_value(name)
        key = agent_key(label)
        agent = self._agents.get(key)
        if agent is None:
            self.agents_forgotten += len(self._agents) >= self._bounds.agents
            agent = self._make_agent(label, key)
        self._agents.put(key, agent)
        return agent


def agent_key(label: LabelValue) -> bytes:
    """What an agent is remembered by, and found by in addresses: its id may be anything, and long."""
    return hashlib.blake2b(label.encode(), digest_size=16).digest()


def clean_family(reading: FamilyReading) -> tuple[LabelValue, ...]:
    """Family, method and version as values of labels."""
    return clean_group(reading)


def clean_group(of: FamilyReading | EpisodeTraits) -> tuple[LabelValue, ...]:
    """Family, method and version of a family's reading, or of an episode, as values of labels."""
    return tuple(clean_label_value(part) for part in (of.family, of.method, of.version))


def family_key(reading: FamilyReading) -> bytes:
    """What a family, method and version are remembered by."""
    return fingerprint(clean_family(reading))


def is_later(sequence: int, updated_s: float, held_sequence: int, held_updated_s: float) -> bool:
    """Whether a family's reading replaces the one that is held, by how many changes each has seen, and its time.

    A worker whose state was lost with its broker counts from 1 again. A time that is none is older than any.

    >>> is_later(43, 1000.0, 42, 1000.0), is_later(42, 1000.0, 42, 1000.0), is_later(1, 2000.0, 42, 1000.0)
    (True, False, True)
    """
    times = [time_s if math.isfinite(time_s) else -math.inf for time_s in (updated_s, held_updated_s)]
    return sequence > held_sequence or times[0] > times[1] + _OTHER_COUNT_S
