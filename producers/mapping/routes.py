"""Which rules of a mapping a topic's messages are for, worked out once a topic."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

from springback.producers.mapping.paths import FieldPath, TopicPattern
from springback.producers.mapping.rules import EventRule
from springback.producers.mapping.signal_mapping import SignalMapping

MOST_TOPICS = 10_000
AGENT = "agent"
EPISODE_ID = "episode.id"
OUTCOME = "episode.outcome"
HEADER, SIGNALS, NAVIGATION = "header.", "signals.", "navigation."


@dataclass(slots=True)
class Route:
    """What the messages of one topic are for; places count a rule's sources.

    Attributes:
        segments: the named levels of the topic.
        agent, traits, values: (key of the rule, place, path) of the sources that read them: of the agent's id, of what
            an episode says of itself, and of what belongs to the episode that runs.
        trigger: whether they make steps.
        begin, end, session_end: (place, event) that they may be.
    """

    segments: dict[str, str] = field(default_factory=dict)
    agent: list[tuple[str, int, FieldPath]] = field(default_factory=list)
    traits: list[tuple[str, int, FieldPath]] = field(default_factory=list)
    values: list[tuple[str, int, FieldPath]] = field(default_factory=list)
    trigger: bool = False
    begin: list[tuple[int, EventRule]] = field(default_factory=list)
    end: list[tuple[int, EventRule]] = field(default_factory=list)
    session_end: list[tuple[int, EventRule]] = field(default_factory=list)

    @property
    def of_use(self) -> bool:
        """Whether any rule reads them."""
        return bool(self.traits or self.values or self.trigger or self.begin or self.end or self.session_end)

    def fingerprint(self, value: Any) -> str:
        """All that the mapping reads of a message, digested."""
        paths = [path for _, _, path in (*self.traits, *self.values)]
        paths += [event.field for _, event in (*self.begin, *self.end, *self.session_end) if event.field is not None]
        read = repr([path.read(value) for path in paths])
        return hashlib.blake2s(read.encode(errors="replace"), digest_size=16).hexdigest()


class Routes:
    """The routes of all topics met so far."""

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
        for events, into_events in (
            (mapping.episode.begin, route.begin),
            (mapping.episode.end, route.end),
            (mapping.session_end, route.session_end),
        ):
            into_events += [(place, event) for place, event in enumerate(events) if matches(event.topic)]
        return route
