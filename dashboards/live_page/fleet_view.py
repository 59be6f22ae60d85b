"""What the page shows, folded from readings: pure, and of bounded memory.

Repetitions change nothing, and the order between topics does not matter. A page that starts anew reads the topics
again, and shows what it showed before.

How many of something there were a second, over the last seconds.

The rebound windows that were heard of lately, over all agents.

Whether the page sees what agents do just now. Where it does not, no agent may be called silent, or calm.
"""

import hashlib
import math
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from springback.dashboards.live_page.agent_memory import AgentMemory
from springback.sinks.fleet.agent_state import DEFAULT_TIMES, AgentActivity, BrokerSight, StateTimes
from springback.sinks.fleet.families import is_later
from springback.sinks.fleet.labels import LabelBound, LabelValue, clean_label_value
from springback.sinks.fleet.memory import BoundedMemory, fingerprint
from springback.sinks.sink import DeadLetter
from springback.stream_processors.metrics.spec import AgentStateName
from springback.stream_processors.resilience.readings import (
    AgentStatus,
    EpisodeSummary,
    FamilyReading,
    Reading,
    WindowReading,
)


class EventRate:
    """Counts in whole seconds, in bounded memory.

    >>> rate = EventRate(window_s=10)
    >>> for second in range(20):
    ...     rate.count(3, float(second))
    >>> rate.per_second(20.0)
    3.0
    """

    def __init__(self, window_s: int = 10) -> None:
        self._window_s = window_s
        self._counts: deque[tuple[int, int]] = deque(maxlen=window_s + 1)

    def count(self, events: int, now_s: float) -> None:
        """So many happened now."""
        second = int(now_s)
        if self._counts and self._counts[-1][0] >= second:
            second, events = self._counts[-1][0], self._counts[-1][1] + events
            self._counts.pop()
        self._counts.append((second, events))

    def per_second(self, now_s: float) -> float:
        """Events a second, over the last whole seconds."""
        now = int(now_s)
        return sum(n for second, n in self._counts if now - self._window_s <= second < now) / self._window_s


class WindowMemory:
    """Each window once: as it closed, or as it opened where it has not.

    Args:
        limit: windows remembered.
    """

    def __init__(self, limit: int) -> None:
        self._windows: BoundedMemory[WindowReading] = BoundedMemory(limit)

    def __len__(self) -> int:
        """How many windows are remembered."""
        return len(self._windows)

    def take(self, window: WindowReading) -> bool:
        """Take in a window. False where it was known, or known to have closed."""
        place = fingerprint((window.key, window.number))
        known = self._windows.get(place)
        if known is not None and (known.state != "open" or window.state == "open"):
            return False
        self._windows.put(place, window)
        return True

    def newest_first(self) -> list[WindowReading]:
        """All of them, by the time of the departure."""
        return newest_first(self._windows.values())


def newest_first(windows: Iterable[WindowReading]) -> list[WindowReading]:
    """Windows by the time of the departure; those of one moment in an order that is always the same."""
    return sorted(windows, key=lambda w: (-w.departure_time_s, w.key.agent, w.key.session, w.key.episode, -w.number))


Blindness = Literal["no broker", "catching up", "no worker"]


class Sight:
    """The broker, the workers, and whether all is read that the topics hold. Times are seconds since 1970.

    Attributes:
        broker_reachable: whether the broker answers; None until that is known.
        caught_up: whether all has been read that was there at the start.
        frames_behind: frames that no worker has read yet, by partition; empty where the broker does not answer.
        newest_s: when an agent was last heard of; None before that.
    """

    def __init__(self, times: StateTimes = DEFAULT_TIMES) -> None:
        self.broker_reachable: bool | None = None
        self.caught_up = False
        self.frames_behind: Mapping[int, int] = {}
        self.newest_s: float | None = None
        self._times = times
        self._broker = BrokerSight(late_s=times.silent_s)

    def heard(self, seen_s: float) -> None:
        """An agent was seen by a worker."""
        self.newest_s = max(self.newest_s or seen_s, seen_s)

    def show_frames_behind(self, behind: Mapping[int, int], now_s: float) -> None:
        """The broker has answered: so many frames are unread, by partition."""
        self.broker_reachable = True
        self.frames_behind = dict(behind)
        self._broker.answer(now_s, sum(behind.values()), -math.inf if self.newest_s is None else self.newest_s)

    def show_broker_away(self, now_s: float) -> None:
        """The broker does not answer."""
        self.broker_reachable = False
        self.frames_behind = {}
        self._broker.silence(now_s)

    @property
    def blindness(self) -> Blindness | None:
        """Why nothing can be said of agents; None where it can."""
        if self.broker_reachable is False:
            return "no broker"
        if not self.caught_up or self.broker_reachable is None:
            return "catching up"
        return "no worker" if self._broker.blind else None

    def state_of(self, activity: AgentActivity, now_s: float) -> AgentStateName:
        """In which state an agent is."""
        blind = self.blindness is not None
        return activity.state(now_s, blind, unseen=self._broker.unseen, times=self._times)


_DAY_S = 86_400.0


class ViewBounds(NamedTuple):
    """What keeps the memory bounded.

    Attributes:
        agents: agents remembered, up to some 20 kB each: 100 MB at 5,000. The one longest unheard of goes first.
        windows: recent windows over all agents, 1 kB each.
        families: families by method and version, 10 kB each.
        reasons: distinct reasons of dead letters.
        identities: dead letters and episodes whose repetitions are known, 150 bytes each.
    """

    agents: int = 5_000
    windows: int = 1_000
    families: int = 1_000
    reasons: int = 50
    identities: int = 50_000


class FleetView:
    """The fold. Its times are seconds since 1970, and given.

    Attributes:
        bounds: of its memory.
        sight: whether all of this is what holds now.
        windows: the recent rebound windows.
        dead_letters: how many of the input could not be used, by reason.
        unreadable: messages in the topics of readings that were none.
        episodes_ended: episodes that were seen to end, or be broken off.
        agents_forgotten: agents that memory had no room for.
    """

    def __init__(self, bounds: ViewBounds | None = None, times: StateTimes = DEFAULT_TIMES) -> None:
        bounds = bounds or ViewBounds()
        self.sight = Sight(times)
        self.windows = WindowMemory(bounds.windows)
        self.dead_letters: Counter[str] = Counter()
        self.unreadable = 0
        self.episodes_ended = 0
        self.agents_forgotten = 0
        self.bounds = bounds
        self._agents: BoundedMemory[AgentMemory] = BoundedMemory(bounds.agents)
        self._families: BoundedMemory[FamilyReading] = BoundedMemory(bounds.families)
        self._reasons = LabelBound(bounds.reasons)
        self._letters: BoundedMemory[None] = BoundedMemory(bounds.identities)
        self._ended: BoundedMemory[None] = BoundedMemory(bounds.identities)
        self._reading_rate = EventRate()
        self._step_rate = EventRate()

    def fold(self, reading: Reading, now_s: float) -> None:
        """Take one reading in."""
        self._reading_rate.count(1, now_s)
        match reading:
            case AgentStatus():
                self._take_status(reading, now_s)
            case WindowReading():
                self.windows.take(reading)
                self._agent(reading.key.agent).take_window(reading)
            case FamilyReading():
                key = fingerprint(reading.identity)
                known = self._families.get(key)
                order = reading.sequence, reading.updated_s
                if known is None or is_later(*order, known.sequence, known.updated_s):
                    self._families.put(key, reading)
            case EpisodeSummary():
                self.episodes_ended += self._ended.add(fingerprint(reading.identity), None)

    def fold_dead_letter(self, letter: DeadLetter) -> None:
        """Take in that something of the input could not be used."""
        if self._letters.add(letter.identity, None):
            (reason,) = self._reasons.admit((clean_label_value(letter.reason),))
            self.dead_letters[reason] += 1

    def agents(self) -> Iterable[AgentMemory]:
        """All agents, the one heard of last at the end."""
        return self._agents.values()

    def agent(self, token: str) -> AgentMemory | None:
        """The agent that a token stands for; None where it is not known, or not any more."""
        try:
            return self._agents.get(bytes.fromhex(token))
        except ValueError:
            return None

    def state_of(self, agent: AgentMemory, now_s: float) -> AgentStateName:
        """In which state the agent is."""
        if agent.status is None:
            return "unknown"  # only a window of it was heard of
        return self.sight.state_of(agent.activity, now_s)

    def families(self) -> list[FamilyReading]:
        """The latest reading of each family, method and version, in the order of their names."""
        return sorted(self._families.values(), key=lambda family: family.identity)

    def readings_per_second(self, now_s: float) -> float:
        """Readings taken in, over the last ten seconds."""
        return self._reading_rate.per_second(now_s)

    def steps_per_second(self, now_s: float) -> float:
        """Steps that agents have taken, over the last ten seconds."""
        return self._step_rate.per_second(now_s)

    def _take_status(self, status: AgentStatus, now_s: float) -> None:
        if not 0 < status.seen_s < now_s + _DAY_S:
            return  # a broker's clock that far off would make the agent the newest for good
        agent = self._agent(status.agent)
        if not agent.take_status(status):
            return
        self.sight.heard(status.seen_s)
        self._step_rate.count(agent.steps_since(status), now_s)

    def _agent(self, name: str) -> AgentMemory:
        label = clean_label_value(name)
        key = agent_key(label)
        agent = self._agents.get(key)
        if agent is None:
            self.agents_forgotten += len(self._agents) >= self.bounds.agents
            agent = AgentMemory(label, key.hex())
        self._agents.put(key, agent)
        return agent


def agent_key(label: LabelValue) -> bytes:
    """What an agent is remembered by, and found by in addresses: its id may be anything, and long."""
    return hashlib.blake2b(label.encode(), digest_size=16).digest()
