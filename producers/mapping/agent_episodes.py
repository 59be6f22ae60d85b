"""One agent under a mapping: its session, the episode under way, and the steps and ends that its messages make."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Protocol

from springback.producers.contract.columns import COLUMN_BY_NAME
from springback.producers.contract.frame import EpisodeHeader, NavigationOutcome
from springback.producers.emitter.reports import ReportedEnd, ReportedStep
from springback.producers.emitter.signal_checks import checked_header, checked_outcome
from springback.producers.errors import SignalError
from springback.producers.mapping.clocks import SessionClock
from springback.producers.mapping.newest import NewestBoard
from springback.producers.mapping.paths import MISSING, FieldPath
from springback.producers.mapping.routes import (
    EPISODE_ID,
    HEADER,
    NAVIGATION,
    OUTCOME,
    SIGNALS,
    Repetitions,
    Route,
    RoutedEvent,
)
from springback.producers.mapping.rules import conversion_of
from springback.producers.mapping.signal_mapping import EventKind, SignalMapping, TimedMessage
from springback.producers.mapping.transforms import EXTENDED, OTHERWISE, REMARKS
from springback.producers.mapping.value_cells import NamedCell, RuleCells
from springback.producers.mapping.values import plain_text

MOST_LATE: Final = 64
MOST_IDS: Final = 10_000


EventKey = tuple[EventKind, int, str]
"""Which event: what it does, its place among those that do it, and the topic for those that each topic has anew."""


class CountLeftOut(Protocol):
    """Counts what is left out."""

    def __call__(self, reason: str, detail: str, key: str = "") -> None:
        """Counts one more: a snake_case reason, an example in words, and the mapping's key that it belongs to."""


class RunningEpisode(NamedTuple):
    """An episode under way; its header is made at its first step, of all that is known by then.

    `extended` says that work was added to it, `joined` that its beginning was not seen.
    """

    header: EpisodeHeader | None
    id: str | None
    active_s: float
    next_step: int
    extended: bool = False
    joined: bool = False


class AgentEpisodes:
    """The state of one agent in one session.

    Args:
        mapping: what to make of messages.
        agent: its id.
        session: the session's id.
        count: counts everything that is left out.
        live: whether somebody listens, who may have begun to in the midst of an episode; a recording is whole.
    """

    def __init__(
        self, mapping: SignalMapping, agent: str, session: str, count: CountLeftOut, *, live: bool = True
    ) -> None:
        self.agent = agent
        self.session = session
        self.clock = SessionClock()
        self.seen_s = -math.inf
        self.heard = 0
        self.repetitions = Repetitions(mapping)
        self.late: deque[tuple[TimedMessage, Route, float | None]] = deque(maxlen=MOST_LATE)
        self._mapping = mapping
        self._count = count
        self._segments: dict[str, str] = {}
        self._board = board = NewestBoard()
        self._traits = {EPISODE_ID: RuleCells(mapping.episode.id, plain_text, board)}
        for name, rule in mapping.header.items():
            self._traits[HEADER + name] = RuleCells(rule, conversion_of("header", name), board)
        self._signals = {
            SIGNALS + name: RuleCells(rule, conversion_of("signals", name), board)
            for name, rule in mapping.signals.items()
        }
        self._values = self._signals | {OUTCOME: RuleCells(mapping.episode.outcome, plain_text, board)}
        for name, rule in mapping.episode.navigation.items():
            self._values[NAVIGATION + name] = RuleCells(rule, conversion_of("navigation", name), board)
        self._told: dict[EventKey, str] = {}
        self._held: dict[EventKey, str | None] = {}
        self._lasting = {  # events of which another id makes nothing new: part of them is what other topics say
            (kind, place)
            for kind, events in mapping.events.items()
            for place, one in enumerate(events)
            if not one.of_one_topic
        }
        self._live = live
        self._states_heard: set[int] = set()
        self._episode: RunningEpisode | None = None
        self._episodes = 0
        self._ids: Counter[str] = Counter()
        self._over: str | None = None
        self._next_due_s = math.inf
        self._heard_s = -math.inf

    @property
    def is_open(self) -> bool:
        """Whether an episode is under way."""
        return self._episode is not None

    def inherit(self, before: AgentEpisodes) -> None:
        """Goes on from an earlier session of the agent: what it said of itself holds, and that it has said goodbye."""
        self._segments, self._traits = before._segments, before._traits
        self._board.share(before._board)
        self._told = {key: text for key, text in before._told.items() if key[0] == "session_end"}
        self._held = {key: text for key, text in before._held.items() if key[0] == "session_end"}

    def hear(self, message: TimedMessage, route: Route) -> None:
        """Notes what the newest message of its topic says where conditions and divisors look."""
        self._board.hear(route.looks, message.value)

    def remember_traits(self, message: TimedMessage, route: Route) -> None:
        """Keeps what a message says of the agent and its tasks."""
        self._segments |= route.segments
        self._take(self._traits, route.traits, message, route, message.receive_s)

    def take(self, message: TimedMessage, route: Route, time_s: float) -> Iterator[ReportedStep | ReportedEnd]:
        """Makes of a message what the mapping says; it must be in order, and not a repetition.

        Yields:
            steps and ends, each before the next is worked out.
        """
        yield from self.advance(time_s)
        joined = self._live and route.trigger and not self._states_heard.issuperset(route.states)
        self._states_heard.update(route.states)
        begins = any([self._fires("begin", event, message) is not None for event in route.begin])
        reopens = any([self._fires("reopen", event, message) is not None for event in route.reopen])
        if begins and self._episode is not None:
            yield from self.end(self._outcome(), time_s)
        over = self._episode is None and self._is_over()
        unsaid = self._episode is None and not over and self._begins_unsaid(route)
        if begins or unsaid or (over and reopens):
            if over and reopens:
                self._count(
                    "reopened", f"{self.agent}: episode {self._over!r} was ended, and yet goes on: as another one"
                )
            self._begin(time_s, joined=begins and joined)
        elif over and route.trigger:
            said = "an event `begin` or `reopen` can begin another of this id"
            self._count("after_end", f"{self.agent}: episode {self._over!r} is over; {said}")
        self._heard_s = time_s
        self._take(self._values, route.values, message, route, time_s)
        if route.trigger and self._episode is not None:
            yield from self._step(time_s)
        for event in route.end:
            text = self._fires("end", event, message)
            if text is not None and self._episode is not None:
                self._over = self._episode.id
                yield from self.end(event.event.outcome_of(text), time_s)

    def other_id(self) -> bool:
        """Whether the agent now names an episode other than the one under way."""
        running = None if self._episode is None else self._episode.id
        return running is not None and self._read_id() not in (None, running)

    def begin_id(self) -> None:
        """Prepares for another episode id: the clock may begin afresh, and every event is new."""
        self.clock.begin()
        self._told = {key: text for key, text in self._told.items() if key[:2] in self._lasting}

    def ends_session(self, message: TimedMessage, route: Route) -> bool:
        """Whether the message ends the session."""
        return any([self._fires("session_end", event, message) is not None for event in route.session_end])

    def advance(self, now_s: float) -> Iterator[ReportedStep | ReportedEnd]:
        """Makes the fixed-rate steps that are due, and ends an episode that has been silent for too long."""
        cycle_s = self._mapping.step.cycle_s
        if cycle_s is not None and self._episode is not None:
            progress = self._signals[SIGNALS + "progress"]
            stale_s = self._mapping.step.stale_s
            while self._next_due_s <= now_s:
                silent = self._next_due_s - self._heard_s > stale_s  # a default or a sum never gets stale by itself
                if silent or progress.read(self._next_due_s, stale_s, self._segments) is None:
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
        """Moves what was timed so far by this much, since the clock was set."""
        if self._episode is not None:
            self._episode = self._episode._replace(active_s=self._episode.active_s + by_s)
            self._next_due_s += by_s
        self._heard_s += by_s
        for rule in (*self._traits.values(), *self._values.values()):
            for cell in rule.cells:
                cell.move(by_s)

    def end(self, outcome: str | None, time_s: float | None = None) -> Iterator[ReportedEnd]:
        """Ends the episode under way, if it has steps; an outcome of None stands for the one that the mapping gives."""
        episode, self._episode = self._episode, None
        self._next_due_s = math.inf
        if episode is None or episode.header is None:
            return
        told = checked_outcome(self._outcome() if outcome is None else outcome)
        at_s = self.clock.now_s if time_s is None else time_s
        yield ReportedEnd(episode.header, told, at_s, self._navigation(), extended=episode.extended)

    def _begin(self, time_s: float, *, joined: bool) -> None:
        for cells in self._values.values():
            cells.forget()
        self._episode, self._over = RunningEpisode(None, None, time_s, 0, joined=joined), None
        for key in [key for key in self._held if key[0] in ("end", "reopen")]:
            del self._held[key]  # what was said before an episode does not end it
        if self._mapping.step.cycle_s is not None:
            self._next_due_s = time_s + self._mapping.step.cycle_s

    def _begins_unsaid(self, route: Route) -> bool:
        """Whether a message of this route begins an episode without an event."""
        return not self._mapping.episode.begin and bool(route.values or route.trigger)

    def _is_over(self) -> bool:
        """Whether the agent still names the episode that was ended last."""
        return self._over is not None and self._read_id() == self._over

    def _read_id(self) -> str | None:
        told: str | None = self._traits[EPISODE_ID].read(math.inf, math.inf, self._segments)
        return told

    def _skip(self, cycles: int) -> None:
        self._count("no_progress", f"{self.agent}: signals.progress has no value that is recent enough")
        episode = self._episode
        if episode is not None and episode.header is not None:
            self._episode = episode._replace(next_step=episode.next_step + cycles)

    def _step(self, time_s: float) -> Iterator[ReportedStep]:
        stale_s = self._mapping.step.stale_s
        signals: dict[str, Any] = {}
        for name in self._mapping.signals:
            value = self._signals[SIGNALS + name].read(time_s, stale_s, self._segments)
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
        for cells in self._signals.values():  # what is reported at the end adds up over the whole episode
            cells.close_step()
        yield ReportedStep(episode.header, episode.next_step, signals)

    def _headed(self, episode: RunningEpisode) -> RunningEpisode | None:
        known = {
            name: value
            for name in self._mapping.header
            if (value := self._traits[HEADER + name].read(math.inf, math.inf, self._segments)) is not None
        }
        episode_id = self._read_id()
        if episode_id is None and not self._mapping.episode.id.sources:
            episode_id = str(self._episodes)
        name = episode_id
        if episode_id is not None and episode_id in self._ids:
            name = f"{episode_id}#{self._ids[episode_id] + 1}"
            known.setdefault("task", episode_id)
        try:
            header = checked_header({"agent": self.agent, "episode": name, **known})
        except SignalError as error:
            self._count("unusable_header", str(error))
            return None
        if name != episode_id:
            self._count("id_again", f"{self.agent}: a second episode {episode_id!r} came; it is called {name!r}")
        self._episodes += 1
        self._remember_id(str(episode_id))
        joined = self._mapping.episode.joined
        if episode.joined or (joined is not None and joined.holds(self._board)):
            self._count("joined", f"{self.agent}: the beginning of episode {name!r} was not seen: it teaches nothing")
            episode = episode._replace(next_step=1)  # an episode whose first step is not 0 is no reference
        return episode._replace(header=header, id=episode_id)

    def _remember_id(self, episode_id: str) -> None:
        self._ids[episode_id] += 1
        if len(self._ids) > MOST_IDS:
            del self._ids[next(iter(self._ids))]

    def _outcome(self) -> str:
        told = self._values[OUTCOME].read(math.inf, math.inf, self._segments)
        try:
            return checked_outcome(told)
        except SignalError as error:
            self._count("unusable_outcome", str(error))
            return "aborted"

    def _navigation(self) -> NavigationOutcome | None:
        read = {
            name: conversion_of("navigation", name)(
                self._values[NAVIGATION + name].read(math.inf, math.inf, self._segments)
            )
            for name in self._mapping.episode.navigation
        }
        known = {name: value for name, value in read.items() if value is not None}
        return NavigationOutcome(**known) if known else None

    def _take(
        self,
        into: dict[str, RuleCells],
        paths: list[tuple[str, int, FieldPath]],
        message: TimedMessage,
        route: Route,
        time_s: float,
    ) -> None:
        for key, place, path in paths:
            cell = into[key].cells[place]
            if not cell.source.guard.lets_pass(self._board):
                continue
            said = f"{message.topic or 'a row'} has"
            raw = path.read(message.value)
            known = raw if raw is MISSING else cell.source.known(raw)
            if raw is MISSING:
                self._count("missing_field", f"{said} no {path.text}", key)
            elif known is MISSING:
                self._count("unknown", f"{said} {str(raw)[:80]!r} as {path.text}: not known", key)
            elif isinstance(cell, NamedCell):
                nameless = cell.take_items(path.items(message.value), message.value, route.segments, time_s)
                if nameless is not None:
                    self._count("no_name", f"{said} {str(nameless)[:80]!r} without what latest_by asks for", key)
            elif not cell.take(known, time_s) and cell.remark is None:
                if known != []:  # an empty list says that there are none
                    self._count("unusable_value", f"{said} {str(raw)[:80]!r} as {path.text}", key)
            elif cell.remark is not None and into[key].counts(place, time_s):
                self._count(cell.remark, f"{said} {str(raw)[:80]!r} as {path.text}: {REMARKS[cell.remark]}", key)
                if cell.remark == EXTENDED and self._episode is not None:
                    self._episode = self._episode._replace(extended=True)

    def _fires(self, kind: EventKind, routed: RoutedEvent, message: TimedMessage) -> str | None:
        """The text by which an event happens with this message; None where it does not."""
        place, event, own = routed
        guard = event.guard
        if event.is_message:
            return OTHERWISE if own and guard.lets_pass(self._board) else None
        key: EventKey = (kind, place, "" if guard.asks else message.topic)
        text: str | None = OTHERWISE
        if not event.of_conditions:
            text = event.text_in(message.value, self._board) if own else self._held.get(key)
            if text in event.unknown:
                return None
            if guard.asks:
                self._held[key] = text
        before = self._told.pop(key, None)
        if text is None or (guard.when is not None and not guard.when.holds(self._board)):
            return None
        self._told[key] = text
        if guard.passes_over(self._board) or (event.equals is not None and text not in event.equals):
            return None
        return text if text != before or (event.each and (own or event.of_conditions)) else None
