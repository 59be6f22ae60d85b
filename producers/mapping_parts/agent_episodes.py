"""One agent under a mapping: its session, the episode that runs, and the steps and ends that its messages come to."""

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from producers.errors import SignalError
from producers.frame_building import ReportedEnd, ReportedStep
from producers.frame_parts import EpisodeHeader, NavigationOutcome
from producers.mapping_parts.field_path import MISSING, FieldPath, text_of
from producers.mapping_parts.message_routes import EPISODE_ID, HEADER, NAVIGATION, OUTCOME, SIGNALS, Route
from producers.mapping_parts.plain_values import number_of
from producers.mapping_parts.session_clock import SessionClock
from producers.mapping_parts.transforms import OTHERWISE
from producers.mapping_parts.value_cells import RuleCells, count_of, truth_of
from producers.mapping_parts.value_rules import EventRule
from producers.signal_checks import checked_header, checked_outcome
from producers.signal_mapping import SignalMapping, TimedMessage
from producers.step_columns import COLUMN_BY_NAME
from producers.text_repair import without_lone_surrogates

MOST_REMEMBERED: Final = 256
MOST_LATE: Final = 64
_NUMBERS_OF_HEADER: Final = ("stress", "magnitude")
_DISTANCES: Final = ("shortest_path", "path", "final_distance")


class OpenEpisode(NamedTuple):
    """An episode that runs; its header is made at its first step, when all that is known by then goes into it."""

    header: EpisodeHeader | None
    id: str | None
    active_s: float
    next_step: int


class AgentEpisodes:
    """The state of one agent in one session.

    Args:
        mapping: what to make of messages.
        agent: its id.
        session: the session's id.
        count: told of everything that is left out, by a snake_case reason.
    """

    def __init__(self, mapping: SignalMapping, agent: str, session: str, count: Callable[[str, str], None]) -> None:
        self.agent = agent
        self.session = session
        self.clock = SessionClock()
        self.seen_s = -math.inf
        self.late: deque[tuple[TimedMessage, Route, float | None]] = deque(maxlen=MOST_LATE)
        self._mapping = mapping
        self._count = count
        self._segments: dict[str, str] = {}
        self._traits = {EPISODE_ID: RuleCells(mapping.episode.id, _text)}
        for name, rule in mapping.header.items():
            self._traits[HEADER + name] = RuleCells(rule, _conversion_of_header(name))
        self._values = {OUTCOME: RuleCells(mapping.episode.outcome, _text)}
        for name, rule in mapping.signals.items():
            number = COLUMN_BY_NAME[name].kind == "number"
            self._values[SIGNALS + name] = RuleCells(rule, number_of if number else _text)
        for name, rule in mapping.episode.navigation.items():
            self._values[NAVIGATION + name] = RuleCells(rule, _conversion_of_navigation(name))
        self._told: dict[tuple[str, int], str] = {}
        self._recent: deque[tuple[str, str, float | None]] = deque(maxlen=MOST_REMEMBERED)
        self._latest_own_s = -math.inf
        self._episode: OpenEpisode | None = None
        self._episodes = 0
        self._next_due_s = math.inf

    @property
    def is_open(self) -> bool:
        """Whether an episode runs."""
        return self._episode is not None

    def inherit(self, before: "AgentEpisodes") -> None:
        """Go on from an earlier session of the agent: what it said of itself holds, and that it said good-bye."""
        self._segments, self._traits = before._segments, before._traits
        self._told = {key: text for key, text in before._told.items() if key[0] == "session_end"}

    def repeats(self, message: TimedMessage, route: Route, own_s: float | None) -> bool:
        """Whether the message is one that has been here before, as far as that can be told.

        Args:
            message: the message.
            route: of its topic.
            own_s: the time that the message itself gives, whichever clock the mapping goes by.
        """
        if own_s is not None:
            if own_s < self._latest_own_s - self._mapping.reorder_s:
                self._recent.clear()  # a recording that is played in a loop says all of it again
                self._latest_own_s = own_s
            self._latest_own_s = max(self._latest_own_s, own_s)
        path = self._mapping.message_id
        known = None if path is None else text_of(path.read(message.value))
        if known is None:
            if not message.redelivered and own_s is None:
                return False
            known = route.fingerprint(message.value)
        key = (message.topic, known, own_s)
        if key in self._recent:
            return True
        self._recent.append(key)
        return False

    def remember_traits(self, message: TimedMessage, route: Route) -> None:
        """Keep what a message says of the agent and its tasks."""
        self._segments |= route.segments
        self._take(self._traits, route.traits, message, message.receive_s)

    def take(self, message: TimedMessage, route: Route, time_s: float) -> Iterator[ReportedStep | ReportedEnd]:
        """Make of a message what the mapping says; it is in order, and no repetition.

        Yields:
            Steps and ends, each before the next is worked out.
        """
        yield from self.advance(time_s)
        begins = any([self._fires("begin", place, event, message) is not None for place, event in route.begin])
        if begins and self._episode is not None:
            yield from self.end(self._outcome(), time_s)
        if begins or (self._episode is None and not self._mapping.episode.begin and (route.values or route.trigger)):
            self._begin(time_s)
        self._take(self._values, route.values, message, time_s)
        if route.trigger and self._episode is not None:
            yield from self._step(time_s)
        for place, event in route.end:
            text = self._fires("end", place, event, message)
            if text is not None:
                yield from self.end(event.outcomes.get(text, event.outcomes.get(OTHERWISE, "aborted")), time_s)

    def other_id(self) -> bool:
        """Whether the agent now speaks of another episode than the one that runs."""
        episode_id = self._traits[EPISODE_ID].read(math.inf, math.inf, self._segments)
        known = self._episode is not None and self._episode.id is not None
        return known and self._episode is not None and episode_id not in (None, self._episode.id)

    def begin_id(self) -> None:
        """The agent speaks of another episode: its clock may begin anew, and what is told of it is news."""
        self.clock.begin()
        self._told.clear()

    def ends_session(self, message: TimedMessage, route: Route) -> bool:
        """Whether the message ends the session."""
        return any(
            [self._fires("session_end", place, event, message) is not None for place, event in route.session_end]
        )

    def advance(self, now_s: float) -> Iterator[ReportedStep | ReportedEnd]:
        """Make the steps of a fixed rate that are due, and end an episode that has been silent for too long."""
        cycle_s = self._mapping.step.cycle_s
        if cycle_s is not None and self._episode is not None:
            progress = self._values[SIGNALS + "progress"]
            while self._next_due_s <= now_s:
                if progress.read(self._next_due_s, self._mapping.step.stale_s, self._segments) is None:
                    cycles = math.floor((now_s - self._next_due_s) / cycle_s) + 1
                    self._skip(cycles)
                    self._next_due_s += cycles * cycle_s
                else:
                    due_s, self._next_due_s = self._next_due_s, self._next_due_s + cycle_s
                    yield from self._step(due_s)
        gap_s, episode = self._mapping.episode.gap_s, self._episode
        if gap_s is not None and episode is not None and now_s - episode.active_s > gap_s:
            yield from self.end(self._outcome(), episode.active_s)

    def move(self, by_s: float) -> None:
        """The clock was set: what was timed so far is moved along."""
        if self._episode is not None:
            self._episode = self._episode._replace(active_s=self._episode.active_s + by_s)
            self._next_due_s += by_s
        for rule in (*self._traits.values(), *self._values.values()):
            for cell in rule.cells:
                cell.time_s += by_s

    def end(self, outcome: str | None, time_s: float | None = None) -> Iterator[ReportedEnd]:
        """End the episode that runs, if one does; of one without steps nothing was told. None: as the mapping says."""
        episode, self._episode = self._episode, None
        self._next_due_s = math.inf
        if episode is None or episode.header is None:
            return
        told = checked_outcome(self._outcome() if outcome is None else outcome)
        yield ReportedEnd(episode.header, told, self.clock.now_s if time_s is None else time_s, self._navigation())

    def _begin(self, time_s: float) -> None:
        for cells in self._values.values():
            cells.forget()
        self._episode = OpenEpisode(None, None, time_s, 0)
        if self._mapping.step.cycle_s is not None:
            self._next_due_s = time_s + self._mapping.step.cycle_s

    def _skip(self, cycles: int) -> None:
        self._count("no_progress", f"{self.agent}: no value of signals.progress that is new enough")
        episode = self._episode
        if episode is not None and episode.header is not None:
            self._episode = episode._replace(next_step=episode.next_step + cycles)

    def _step(self, time_s: float) -> Iterator[ReportedStep]:
        stale_s = self._mapping.step.stale_s
        signals: dict[str, Any] = {}
        for name in self._mapping.signals:
            value = self._values[SIGNALS + name].read(time_s, stale_s, self._segments)
            if value is not None:
                signals[name] = value[: int(COLUMN_BY_NAME[name].maximum)] if isinstance(value, str) else value
        if "progress" not in signals:
            self._skip(1)
            return
        episode = self._episode
        if episode is not None and episode.header is None:
            episode = self._headed(episode)
        if episode is None or episode.header is None:
            return
        signals["time_s"] = time_s
        self.clock.has_stepped = True
        self._episode = episode._replace(active_s=time_s, next_step=episode.next_step + 1)
        for cells in self._values.values():
            cells.close_step()
        yield ReportedStep(episode.header, episode.next_step, signals)

    def _headed(self, episode: OpenEpisode) -> OpenEpisode | None:
        known = {
            name: value
            for name in self._mapping.header
            if (value := self._traits[HEADER + name].read(math.inf, math.inf, self._segments)) is not None
        }
        episode_id = self._traits[EPISODE_ID].read(math.inf, math.inf, self._segments)
        if episode_id is None and not self._mapping.episode.id.sources:
            episode_id = str(self._episodes)
        try:
            header = checked_header({"agent": self.agent, "episode": episode_id, **known})
        except SignalError as error:
            self._count("unusable_header", str(error))
            return None
        self._episodes += 1
        return episode._replace(header=header, id=episode_id)

    def _outcome(self) -> str:
        told = self._values[OUTCOME].read(math.inf, math.inf, self._segments)
        try:
            return checked_outcome(told)
        except SignalError as error:
            self._count("unusable_outcome", str(error))
            return "aborted"

    def _navigation(self) -> NavigationOutcome | None:
        read = {
            name: self._values[NAVIGATION + name].read(math.inf, math.inf, self._segments)
            for name in self._mapping.episode.navigation
        }
        known = {name: value for name, value in read.items() if value is not None}
        return NavigationOutcome(**known) if known else None

    def _take(
        self, into: dict[str, RuleCells], paths: list[tuple[str, int, FieldPath]], message: TimedMessage, time_s: float
    ) -> None:
        for key, place, path in paths:
            raw = path.read(message.value)
            if raw is MISSING:
                self._count("missing_field", f"{key}: {message.topic or 'a row'} has no {path.text}")
            elif not into[key].cells[place].take(raw, time_s) and raw != []:  # a list of none says that there are none
                self._count("unusable_value", f"{key}: {message.topic or 'a row'} has {str(raw)[:80]!r} as {path.text}")

    def _fires(self, kind: str, place: int, event: EventRule, message: TimedMessage) -> str | None:
        if event.field is None:
            return OTHERWISE
        text = event.text_in(message.value)
        if text is None:
            return None
        before = self._told.get((kind, place))
        self._told[(kind, place)] = text
        wanted = event.equals is None or text in event.equals
        return text if wanted and (event.each or text != before) else None


def _text(value: Any) -> str | None:
    text = text_of(value)
    return None if text is None else without_lone_surrogates(text)


def _conversion_of_header(name: str) -> Callable[[Any], Any]:
    if name in _NUMBERS_OF_HEADER:
        return number_of
    return truth_of if name == "reference" else _text


def _conversion_of_navigation(name: str) -> Callable[[Any], Any]:
    if name in _DISTANCES:
        return number_of
    return truth_of if name == "target_in_view" else count_of
