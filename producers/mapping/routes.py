"""What a message is for: the rules of a mapping that read its topic, and whether the same message was here before."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from springback.producers.mapping.events import EventRule
from springback.producers.mapping.newest import Look
from springback.producers.mapping.paths import FieldPath, TopicPattern
from springback.producers.mapping.signal_mapping import SignalMapping, TimedMessage
from springback.producers.mapping.values import text_of

MOST_TOPICS: Final = 10_000
MOST_REMEMBERED: Final = 256
AGENT: Final = "agent"
EPISODE_ID: Final = "episode.id"
OUTCOME: Final = "episode.outcome"
HEADER, SIGNALS, NAVIGATION = "header.", "signals.", "navigation."


class RoutedEvent(NamedTuple):
    """An event that messages of a topic may be, or bring about.

    Attributes:
        place: its place among those of its kind.
        event: the event.
        own: whether it is looked for in these messages; otherwise only its conditions are.
    """

    place: int
    event: EventRule
    own: bool


@dataclass
class Route:
    """What the messages of one topic are for; places count a rule's sources.

    Attributes:
        segments: the named levels of the topic.
        agent, traits, values: (key of the rule, place, path) of the sources that read them: for the agent's id, for
            what an episode says of itself, and for what belongs to the episode under way.
        trigger: whether they make steps.
        begin, end, reopen, session_end: (place, event, whether the event is looked for in them, or only its
            conditions) that they may be or bring about.
        looks: the places in them that conditions and divisors look at.
    """

    segments: dict[str, str] = field(default_factory=dict)
    agent: list[tuple[str, int, FieldPath]] = field(default_factory=list)
    traits: list[tuple[str, int, FieldPath]] = field(default_factory=list)
    values: list[tuple[str, int, FieldPath]] = field(default_factory=list)
    trigger: bool = False
    begin: list[RoutedEvent] = field(default_factory=list)
    end: list[RoutedEvent] = field(default_factory=list)
    reopen: list[RoutedEvent] = field(default_factory=list)
    session_end: list[RoutedEvent] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)

    @property
    def events(self) -> list[RoutedEvent]:
        """All events."""
        return [*self.begin, *self.end, *self.reopen, *self.session_end]

    @property
    def of_use(self) -> bool:
        """Whether any rule reads them."""
        return bool(self.traits or self.values or self.trigger or self.events or self.looks)

    @property
    def states(self) -> list[int]:
        """The places of the events by which each message names the episode that it is of, whenever that began."""
        return [one.place for one in self.begin if one.own and one.event.look is not None and one.event.equals is None]

    def fingerprint(self, value: Any) -> str:
        """A digest of all that the mapping reads of a message."""
        paths = [path for _, _, path in (*self.traits, *self.values)]
        paths += [one.event.look.field for one in self.events if one.event.look is not None]
        paths += [look.field for look in self.looks]
        read = repr([path.read(value) for path in paths])
        return hashlib.blake2s(read.encode(errors="replace"), digest_size=16).hexdigest()


class Routes:
    """The routes of all topics met so far, each worked out once."""

    def __init__(self, mapping: SignalMapping) -> None:
        self._mapping = mapping
        self._known: dict[str, Route] = {}

    def of(self, topic: str) -> Route:
        """The route of a topic."""
        route = self._known.get(topic)
        if route is None:
            if len(self._known) >= MOST_TOPICS:
                self._known.clear()
            route = self._known[topic] = self._made(topic)
        return route

    def _made(self, topic: str) -> Route:
        mapping, route = self._mapping, Route()

        def matches(pattern: TopicPattern | None) -> bool:
            if pattern is None:
                return True
            named = pattern.match(topic)
            if named is None:
                return False
            route.segments |= named
            return True

        for into, key, rule in [
            (route.agent, AGENT, mapping.agent),
            (route.traits, EPISODE_ID, mapping.episode.id),
            *((route.traits, HEADER + name, rule) for name, rule in mapping.header.items()),
            *((route.values, SIGNALS + name, rule) for name, rule in mapping.signals.items()),
            (route.values, OUTCOME, mapping.episode.outcome),
            *((route.values, NAVIGATION + name, rule) for name, rule in mapping.episode.navigation.items()),
        ]:
            into += [(key, place, source.field) for place, source in enumerate(rule.sources) if matches(source.topic)]
        route.trigger = any([matches(pattern) for pattern in mapping.step.triggers])
        for kind, events in mapping.events.items():
            into_events: list[RoutedEvent] = getattr(route, kind)
            for place, event in enumerate(events):
                own = not event.of_conditions and matches(event.topic)
                if own or any([matches(look.topic) for look in event.looks]):
                    into_events.append(RoutedEvent(place, event, own))
        route.looks = [look for look in mapping.looks() if matches(look.topic)]
        return route


class Repetitions:
    """The latest messages of one agent, by the id that the mapping names, or by their time and what is read of them.

    Args:
        mapping: which field is the id.
    """

    def __init__(self, mapping: SignalMapping) -> None:
        self._path = mapping.message_id
        self._reorder_s = mapping.reorder_s
        self._recent: dict[tuple[str, str, float | None], None] = {}
        self._latest_s = -math.inf

    def seen(self, message: TimedMessage, route: Route, own_s: float | None) -> bool:
        """Whether it is a repetition; otherwise it is remembered. One without a time, an id or a mark (DUP) never is.

        Args:
            message: the message.
            route: the route of its topic.
            own_s: the time that the message itself gives, whichever clock the mapping goes by.
        """
        if own_s is not None:
            if own_s < self._latest_s - self._reorder_s:
                self._recent.clear()  # a recording that is played in a loop says all of it again
                self._latest_s = own_s
            self._latest_s = max(self._latest_s, own_s)
        known = None if self._path is None else text_of(self._path.read(message.value))
        if known is None:
            if not message.redelivered and own_s is None:
                return False
            known = route.fingerprint(message.value)
        key = (message.topic, known, own_s)
        if key in self._recent:
            return True
        self._recent[key] = None
        if len(self._recent) > MOST_REMEMBERED:
            del self._recent[next(iter(self._recent))]
        return False
