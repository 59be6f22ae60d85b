"""What the page shows: the state of the fleet, and beside it what only a page needs.

That is, of the last seconds, how many readings and steps there were; of the last minutes, what each agent did; and the
rebound windows that were read lately, over all agents. A page that starts anew reads the topics again, and shows what
it showed before.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from springback.dashboards.live_page.agent_memory import AgentMemory, end_place
from springback.dashboards.live_page.alerts.recent_letters import RecentLetters
from springback.sinks.fleet.agent_state import DEFAULT_TIMES, StateTimes
from springback.sinks.fleet.fleet_state import (
    BegunNews,
    EndNews,
    FleetBounds,
    FleetState,
    StatusNews,
    WindowNews,
    WindowPlace,
    agent_key,
    clean_group,
)
from springback.sinks.fleet.labels import clean_label_value
from springback.sinks.fleet.memory import NewestMemory, Place
from springback.sinks.fleet.sight import FleetSight
from springback.sinks.sink import DeadLetter, ReadingBack, TopicReach
from springback.stream_processors.metrics.spec import AgentStateName
from springback.stream_processors.resilience.readings import (
    EpisodeKey,
    EpisodeSummary,
    FamilyReading,
    Reading,
    WindowReading,
)


class EventRate:
    """Counts in whole seconds, in bounded memory. In which order they come does not matter.

    >>> rate = EventRate(window_s=10)
    >>> for second in range(20):
    ...     rate.count(3, float(second), 20.0)
    >>> rate.per_second(20.0)
    3.0
    """

    def __init__(self, window_s: int = 10) -> None:
        self._window_s = window_s
        self._counts: Counter[int] = Counter()

    def count(self, events: int, time_s: float, now_s: float) -> None:
        """So many happened at a time, which counts if it is not long past."""
        if now_s - self._window_s - 1 <= time_s <= now_s:
            self._counts[int(time_s)] += events
        if len(self._counts) > 2 * self._window_s:
            now = int(now_s)
            self._counts = Counter({s: n for s, n in self._counts.items() if now - self._window_s <= s <= now})

    def per_second(self, now_s: float) -> float:
        """Events a second, over the last whole seconds."""
        now = int(now_s)
        return sum(self._counts[second] for second in range(now - self._window_s, now)) / self._window_s


def newest_first(
    windows: Iterable[WindowReading], skew_s: Callable[[str], float] = lambda agent: 0.0
) -> list[WindowReading]:
    """Windows by the time of the departure; those of one moment in an order that is always the same.

    Args:
        windows: of one agent, or of several.
        skew_s: how far an agent's clock, by which its windows' times are, is ahead of the broker's.
    """

    def place(window: WindowReading) -> tuple[float, str, str, str, int]:
        key = window.key
        return skew_s(key.agent) - window.departure_time_s, key.agent, key.session, key.episode, -window.number

    return sorted(windows, key=place)


class ViewBounds(NamedTuple):
    """What keeps the memory bounded.

    Attributes:
        agents: agents remembered, up to some 30 kB each: 150 MB at 5,000. The one silent for longest goes first.
        windows: recent windows over all agents, with their evidence up to some 40 kB each. Of older ones that an agent
            has, the evidence is not remembered.
        episodes: recent episodes over all agents, 1.5 kB each.
        families: families by method and version, 10 kB each.
        groups: of these, whose single episodes are remembered: those of which one ended last.
        group_episodes: the latest episodes of each of them, 1.5 kB each: 45 MB in all.
        reasons: distinct reasons of dead letters.
        identities: of each kind of reading, how many are known as repetitions, 150 bytes each.
    """

    agents: int = 5_000
    windows: int = 1_000
    episodes: int = 1_000
    families: int = 1_000
    groups: int = 100
    group_episodes: int = 300
    reasons: int = 50
    identities: int = 20_000


class FleetView:
    """What the page shows. Times are seconds since 1970, and given.

    Attributes:
        bounds: of its memory.
        times: after how long an agent is in which state.
        unreadable: messages in the topics of readings that were none.
        read_back: how far what was in the topics at the start has been read, and how far back that goes.
        episodes_ended: episodes that were seen to end, or be broken off.
        letters: what of the input could not be used lately.
    """

    def __init__(self, bounds: ViewBounds | None = None, times: StateTimes = DEFAULT_TIMES) -> None:
        self.bounds = bounds = bounds or ViewBounds()
        self.times = times
        self.unreadable = 0
        self.read_back = ReadingBack()
        self.episodes_ended = 0
        self.letters = RecentLetters()
        kept = FleetBounds(bounds.agents, bounds.families, bounds.reasons, bounds.identities)
        self._fleet: FleetState[AgentMemory] = FleetState(AgentMemory, kept, times)
        self._windows: NewestMemory[WindowPlace, WindowReading] = NewestMemory(bounds.windows)
        self._episodes: NewestMemory[EpisodeKey, EpisodeSummary] = NewestMemory(bounds.episodes)
        self._groups: NewestMemory[tuple[str, ...], NewestMemory[EpisodeKey, EpisodeSummary]]
        self._groups = NewestMemory(bounds.groups)
        self._reading_rate = EventRate()
        self._step_rate = EventRate()

    @property
    def sight(self) -> FleetSight:
        """Whether all of this is what holds now."""
        return self._fleet.sight

    @property
    def dead_letters(self) -> Counter[str]:
        """How many of the input could not be used, by reason."""
        return Counter({str(reason): number for reason, number in self._fleet.dead_letters.items()})

    @property
    def agents_forgotten(self) -> int:
        """Agents that memory had no room for."""
        return self._fleet.agents_forgotten

    def take(self, reading: Reading, now_s: float, sent_s: float | None = None) -> None:
        """Takes one reading in.

        Args:
            reading: what was read.
            now_s: the present.
            sent_s: when the broker got it; the present where not given. It decides what is recent.
        """
        sent_s = now_s if sent_s is None else sent_s
        # By our own clock, which decides what the last seconds are; what is read back came when the broker got it.
        came_s = now_s if self.sight.caught_up else min(sent_s, now_s)
        self._reading_rate.count(1, came_s, now_s)
        match news := self._fleet.take(reading, now_s):
            case StatusNews():
                self._take_status(news, came_s, now_s)
            case WindowNews():
                place = news.window.key, news.window.number
                self._windows.put(place, news.window, (sent_s, *_names(news.window.key), news.window.number))
                news.agent.take_window(replace(news.window, evidence=None))
            case BegunNews() if news.goes_on:
                self._take_back(news)
            case EndNews():
                self.episodes_ended += not news.corrects
                self._take_end(news, sent_s)

    def take_dead_letter(self, letter: DeadLetter) -> None:
        """Takes in that something of the input could not be used."""
        reason = self._fleet.take_dead_letter(letter)
        if reason is not None and letter.sent_s is not None:
            self.letters.take(str(reason), letter.sent_s)

    def agents(self) -> Iterable[AgentMemory]:
        """All agents of which a status or a window was read, the one that reported last at the end."""
        return (agent for agent in self._fleet.agents() if agent.status is not None or agent.windows)

    def agent(self, token: str) -> AgentMemory | None:
        """The agent that a token stands for; None if it is not known, or not any more."""
        try:
            return self._fleet.agent(bytes.fromhex(token))
        except ValueError:
            return None

    def state_of(self, agent: AgentMemory, now_s: float) -> AgentStateName:
        """In which state the agent is; unknown while we do not see, or where only a window of it was read."""
        if self.sight.blindness is not None or agent.status is None:
            return "unknown"
        return self._fleet.state_of(agent, now_s)

    def families(self) -> list[FamilyReading]:
        """The latest reading of each family, method and version, in the order of their names."""
        return sorted(self._fleet.families(), key=lambda family: family.identity)

    def windows(self) -> list[WindowReading]:
        """The recent rebound windows over all agents, each as it closed or, where it has not, as it opened."""
        return newest_first(self._windows.newest(), self.skew_s)

    def windows_of(self, key: EpisodeKey) -> list[WindowReading]:
        """The windows of an episode that are remembered, by their numbers; those of the recent ones with evidence."""
        agent = self._agent_named(key.agent)
        found = {} if agent is None else {place: window for place, window in agent.windows.items() if place[0] == key}
        found |= {(key, window.number): window for window in self._windows.newest() if window.key == key}
        return [found[place] for place in sorted(found, key=lambda place: place[1])]

    def summary_of(self, key: EpisodeKey) -> EpisodeSummary | None:
        """How an episode ended; None where that is not remembered."""
        agent = self._agent_named(key.agent)
        ends = [*(() if agent is None else agent.episodes), *self._episodes.newest()]
        return next((summary for summary in ends if summary.key == key), None)

    def recent_keys(self) -> Iterator[EpisodeKey]:
        """The recent episodes that have ended or had a rebound window, in no order and more than once."""
        yield from (summary.key for summary in self._episodes.newest())
        yield from (window.key for window in self._windows.newest())

    def episodes(self) -> list[EpisodeSummary]:
        """The recent episodes over all agents that have ended, the one that ended last first."""

        def place(summary: EpisodeSummary) -> Place:
            ended_s, agent, session, episode, revision = end_place(summary)
            return ended_s - self.skew_s(agent), agent, session, episode, revision

        return sorted(self._episodes.newest(), key=place, reverse=True)

    def ended_of(self, family: str) -> dict[tuple[str, ...], list[EpisodeSummary]]:
        """The latest episodes of a family that have ended, by family, method and version as they are shown.

        Args:
            family: its name, safe to be shown.
        """
        return {names: group.newest() for names, group in self._groups.newest_items() if names[0] == family}

    def _agent_named(self, name: str) -> AgentMemory | None:
        return self._fleet.agent(agent_key(clean_label_value(name)))

    def skew_s(self, agent: str) -> float:
        """How far an agent's clock is ahead of the broker's, in seconds; 0 where that is not known.

        Args:
            agent: its id, as it came.
        """
        known = self._agent_named(agent)
        return 0.0 if known is None else known.skew_s

    def reach_of(self, topic: str) -> TopicReach | None:
        """How far back the reading of a topic goes; None where that is not known.

        Args:
            topic: its name without the prefix.
        """
        return next((reach for reach in self.read_back.reaches if reach.topic.endswith(topic)), None)

    def readings_per_second(self, now_s: float) -> float:
        """Readings taken in, over the last ten seconds."""
        return self._reading_rate.per_second(now_s)

    def steps_per_second(self, now_s: float) -> float:
        """Steps that agents have taken, over the last ten seconds."""
        return self._step_rate.per_second(now_s)

    def _take_end(self, news: EndNews[AgentMemory], sent_s: float) -> None:
        summary = news.summary
        place = sent_s, *_names(summary.key), summary.revision
        self._episodes.put(summary.key, summary, place)
        news.agent.take_end(summary)
        names = clean_group(summary.traits)
        group = self._groups.get(names)
        if group is None:
            group = NewestMemory(self.bounds.group_episodes)
        group.put(summary.key, summary, place)
        self._groups.put(names, group, place)

    def _take_back(self, news: BegunNews) -> None:
        """Takes in that an episode goes on that silence had ended."""
        self.episodes_ended -= 1
        self._episodes.pop(news.key)
        group = self._groups.get(clean_group(news.traits))
        if group is not None:
            group.pop(news.key)
        agent = self._agent_named(news.key.agent)
        if agent is not None:
            agent.take_back(news.key)

    def _take_status(self, news: StatusNews[AgentMemory], came_s: float, now_s: float) -> None:
        agent, status, before = news.agent, news.status, news.before
        if before.session == status.session:  # another start counts from where it is
            self._step_rate.count(max(0, status.counts.steps - before.counts.steps), came_s, now_s)
        if news.newest and status != agent.status:
            agent.take_status(status)


def _names(key: EpisodeKey) -> tuple[str, str, str]:
    return key.agent, key.session, key.episode
