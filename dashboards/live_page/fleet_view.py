"""What the page shows, folded from readings: pure, and of bounded memory.

Repetitions change nothing, and the order between topics does not matter. A page that starts anew reads the topics
again, and shows what it showed before.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from springback.dashboards.live_page.agent_memory import AgentMemory
from springback.dashboards.live_page.event_rate import EventRate
from springback.dashboards.live_page.sight import Sight
from springback.dashboards.live_page.window_memory import WindowMemory
from springback.sinks.agent_state import DEFAULT_TIMES, StateTimes
from springback.sinks.bounded_memory import BoundedMemory, fingerprint
from springback.sinks.family_order import is_later
from springback.sinks.label_values import LabelBound, LabelValue, clean_label_value
from springback.sinks.sink import DeadLetter
from springback.stream_processors.resilience.family_readings import FamilyReading
from springback.stream_processors.resilience.metric_spec import AgentStateName
from springback.stream_processors.resilience.readings import AgentStatus, EpisodeSummary, Reading, WindowReading

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
