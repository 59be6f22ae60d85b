"""The events of a mapping, read from TOML: which messages begin, end or reopen an episode, or end a session."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from springback.producers.mapping.conditions import OF_NUMBERS_AND_LISTS, Conditions, Guard, texts_of
from springback.producers.mapping.newest import Look, NewestBoard
from springback.producers.mapping.paths import FieldPath, TopicPattern
from springback.producers.mapping.rules import OUTCOMES
from springback.producers.mapping.toml_section import TomlSection
from springback.producers.mapping.transform_reading import read_transforms
from springback.producers.mapping.transforms import OTHERWISE
from springback.producers.mapping.values import text_of


@dataclass(frozen=True)
class EventRule:
    """What begins or ends something.

    Attributes:
        topic: which messages; None is all.
        look: what is looked at in them; None where the message itself is the event, or that the guard's conditions
            become true.
        equals: the texts of what stands there that make it an event; None where any value does.
        unknown: the texts of what stands for "not known": such a message says nothing.
        outcomes: for ends, the outcome of each text, or of any under `*`.
        each: whether every such message counts, not only the first of several equal ones in a row.
        guard: what must hold as well, and what must not.
    """

    topic: TopicPattern | None
    look: Look | None
    equals: frozenset[str] | None
    unknown: frozenset[str]
    outcomes: dict[str, str]
    each: bool
    guard: Guard

    @cached_property
    def is_message(self) -> bool:
        """Whether the message itself is the event: there is no field, and no condition looks into it."""
        when = () if self.guard.when is None else tuple(self.guard.when.looks())
        return self.look is None and self.topic is not None and not any(_of_topic(look, self.topic) for look in when)

    @cached_property
    def of_conditions(self) -> bool:
        """Whether it is that its conditions become true, and nothing else."""
        return self.look is None and not self.is_message

    @cached_property
    def looks(self) -> tuple[Look, ...]:
        """The places in messages that its conditions and divisors look at."""
        own = () if self.look is None else tuple(self.look.all())[:-1]
        return (*own, *self.guard.looks())

    @cached_property
    def of_one_topic(self) -> bool:
        """Whether all of it is about the messages of one topic."""
        return all(_of_topic(look, self.topic) for look in self.looks)

    def text_in(self, message: Any, board: NewestBoard) -> str | None:
        """What the event looks at in a message, as a text; None where the message has nothing there."""
        return OTHERWISE if self.look is None else text_of(self.look.of(message, board))

    def outcome_of(self, text: str) -> str:
        """The outcome of an end."""
        return self.outcomes.get(text, self.outcomes.get(OTHERWISE, "aborted"))


def read_events(owner: TomlSection, name: str, conditions: Conditions, *, ends: bool = False) -> tuple[EventRule, ...]:
    """The events under this key: one table or a list of tables.

    Args:
        owner: the table that has the key.
        name: the key.
        conditions: reads conditions.
        ends: whether they end an episode, and so have an outcome.

    Raises:
        MappingError: one of them is malformed.
    """
    return tuple(_event(section, conditions, ends=ends) for section in owner.sections(name))


def _event(section: TomlSection, conditions: Conditions, *, ends: bool) -> EventRule:
    topic = section.parsed("topic", TopicPattern, None)
    field = section.parsed("field", FieldPath, None)
    equals = texts_of(section, "equals")
    outcomes: dict[str, str] = {}
    if ends:
        outcomes = _outcomes(section)
        if equals is None and field is not None and OTHERWISE not in outcomes:
            equals = frozenset(outcomes)
    transforms = read_transforms(section, topic)
    unknown = texts_of(section, "unknown") or frozenset()
    tested = field is not None and bool(set(OF_NUMBERS_AND_LISTS) & set(section.values))
    if tested and (unknown or set(outcomes) - {OTHERWISE}):
        section.refuse("", section.values, "neither unknown nor outcomes beside a test of numbers or of a list")
    rule = EventRule(
        topic=topic,
        look=None if field is None or tested else Look(topic, field, transforms),
        equals=None if tested else equals,
        unknown=unknown,
        outcomes=outcomes,
        each=section.flag("each"),
        guard=conditions.guard(section, topic, of_field=tested),
    )
    section.finish(("outcome", "outcomes", *OF_NUMBERS_AND_LISTS))
    if topic is None and field is None and rule.guard.when is None:
        section.refuse(
            "", section.values, "a topic, a field or both, or conditions: otherwise every message would be this event"
        )
    if field is None and (equals is not None or transforms or unknown or set(outcomes) - {OTHERWISE}):
        section.refuse("field", None, "a field path, since equals, outcomes, unknown or transform ask for its value")
    return rule


def _of_topic(look: Look, topic: TopicPattern | None) -> bool:
    return (None if look.topic is None else look.topic.text) == (None if topic is None else topic.text)


def _outcomes(section: TomlSection) -> dict[str, str]:
    if ("outcome" in section.values) == ("outcomes" in section.values):
        section.refuse("outcome", section.values, "either outcome, or outcomes (a table of the field's values)")
    if "outcome" in section.values:
        return {OTHERWISE: section.one_of("outcome", OUTCOMES)}
    table = section.section("outcomes")
    return {key: table.one_of(key, OUTCOMES) for key in table.values}
