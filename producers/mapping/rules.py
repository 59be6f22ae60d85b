"""What a mapping says of one value: a constant, a named level of the topic, or fields of messages.

What a mapping says of the messages that begin and end episodes and sessions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from springback.producers.contract.frame import Outcome
from springback.producers.mapping.paths import MISSING, FieldPath, TopicPattern, text_of
from springback.producers.mapping.toml_section import SCALARS, Section
from springback.producers.mapping.transforms import (
    ADDED_UP,
    OTHERWISE,
    PLAIN,
    WITH_NUMBER,
    Transform,
    clip_transform,
    number_transform,
    plain_transform,
    table_transform,
)

Over = Literal["last", "sum", "count", "maximum", "mean"]


@dataclass(frozen=True, slots=True)
class ValueSource:
    """A field of the messages of some topics, and what is made of it.

    Attributes:
        topic: which messages; None is all.
        field: where in the message.
        transforms: applied in turn to each message's value.
        over: how the messages between two steps come to one value; `last` is held until the next one.
        stale_s: older values count for nothing; None is the step's own limit.
    """

    topic: TopicPattern | None
    field: FieldPath
    transforms: tuple[Transform, ...]
    over: Over
    stale_s: float | None

    def fresh_chain(self) -> Callable[[Any], Any]:
        """The transforms as one function of a value, with a memory of its own. None is no value."""
        functions = [transform.make() for transform in self.transforms]

        def apply(value: Any) -> Any:
            for function in functions:
                if value is None:
                    return None
                value = function(value)
            return value

        return apply


@dataclass(frozen=True, slots=True)
class ValueRule:
    """Where a value comes from: `constant`, else a `segment` of the topic, else `sources`, else `default`."""

    constant: Any = None
    segment: str | None = None
    sources: tuple[ValueSource, ...] = ()
    default: Any = None


@dataclass(frozen=True, slots=True)
class EventRule:
    """A message that begins or ends something.

    Attributes:
        topic: which messages; None is all.
        field: what is looked at; None where the message itself is the event.
        transforms: applied in turn to what the field holds, of each message for itself.
        equals: the texts of the result that make it one; None where any value does.
        outcomes: for ends: the outcome of each text, or of any under `*`.
        each: every such message counts, not only the first of a row of equal ones.
    """

    topic: TopicPattern | None
    field: FieldPath | None
    transforms: tuple[Transform, ...]
    equals: frozenset[str] | None
    outcomes: dict[str, str]
    each: bool

    def text_in(self, message: Any) -> str | None:
        """What the event looks at in a message, as a text; None where it holds nothing of the kind."""
        value = None if self.field is None else self.field.read(message)
        for transform in self.transforms if value is not MISSING else ():
            value = None if value is None else transform.make()(value)
        return text_of(value)


def read_source(section: Section) -> ValueSource:
    """The source that a table describes.

    Raises:
        MappingError: it is not as it must be.
    """
    topic = section.parsed("topic", TopicPattern, None)
    field = section.parsed("field", FieldPath, "")
    transforms = read_transforms(section)
    added_up = any(transform.name in ADDED_UP for transform in transforms)
    over: Over = section.one_of("over", get_args(Over), None) or ("sum" if added_up else "last")
    return ValueSource(topic, field, transforms, over, section.number("stale_s", None, least=0.0))


def read_transforms(section: Section) -> tuple[Transform, ...]:
    """The transforms under the key `transform`: one or a list, each a name or a table of one key.

    Raises:
        MappingError: one of them is not known, or its argument is not as it must be.
    """
    given = section.take("transform", [])
    listed = given if isinstance(given, list) else [given]
    return tuple(_transform(section, f"transform[{place}]", item) for place, item in enumerate(listed))


def _transform(section: Section, place: str, item: object) -> Transform:
    if isinstance(item, str) and item in PLAIN:
        return plain_transform(item)
    if isinstance(item, dict) and len(item) == 1:
        one = Section(item, section.file, section.key(place))
        (name,) = item
        if name in WITH_NUMBER:
            return number_transform(name, one.number(name))
        if name == "clip":
            match item[name]:
                case [int() | float() as low, int() | float() as high] if low <= high:
                    return clip_transform(float(low), float(high))
            one.refuse(name, item[name], "two numbers, the lower first")
        if name == "table":
            entries = one.section(name)
            for key, value in entries.values.items():
                if not isinstance(value, SCALARS):
                    entries.refuse(key, value, "a text or a number")
            return table_transform(entries.values)
    with_argument = ", ".join((*WITH_NUMBER, "clip", "table"))
    section.refuse(place, item, f"one of {', '.join(PLAIN)}, or a table of one key: {with_argument}")


def read_value(owner: Section, name: str, default: ValueRule | None = None) -> ValueRule:
    """The rule for a value: a plain constant, `{ segment = … }`, or one or more sources.

    Raises:
        MappingError: it is not as it must be, or missing with no default.
    """
    if default is not None and name not in owner.values:
        owner.take(name, None)
        return default
    value = owner.take(name)
    if isinstance(value, SCALARS):
        return ValueRule(constant=value)
    sections = owner.sections(name)
    if not sections:
        owner.refuse(name, value, "a text, a number, a table or a list of tables")
    otherwise = None
    segment = None
    sources = []
    for section in sections:
        otherwise = section.take("default", otherwise)
        if otherwise is not None and not isinstance(otherwise, SCALARS):
            section.refuse("default", otherwise, "a text or a number")
        if "segment" in section.values:
            segment = section.text("segment")
        else:
            sources.append(read_source(section))
        section.finish(("segment", "topic", "field", "transform", "over", "stale_s"))
    if segment is not None and len(sections) > 1:
        owner.refuse(name, value, "segment alone, or sources alone")
    return ValueRule(segment=segment, sources=tuple(sources), default=otherwise)


OUTCOMES = get_args(Outcome)


def read_events(owner: Section, name: str, *, ends: bool = False) -> tuple[EventRule, ...]:
    """The events under this key: one table or a list of tables.

    Args:
        owner: the table that has the key.
        name: the key.
        ends: whether they end an episode, and so have an outcome.

    Raises:
        MappingError: one is not as it must be.
    """
    return tuple(_event(section, ends=ends) for section in owner.sections(name))


def _event(section: Section, *, ends: bool) -> EventRule:
    topic = section.parsed("topic", TopicPattern, None)
    field = section.parsed("field", FieldPath, None)
    equals = section.take("equals", None)
    outcomes: dict[str, str] = {}
    if ends:
        outcomes = _outcomes(section)
        if equals is None and field is not None and OTHERWISE not in outcomes:
            equals = list(outcomes)
    transforms = read_transforms(section)
    rule = EventRule(topic, field, transforms, _texts(section, equals), outcomes, section.flag("each"))
    section.finish(("outcome", "outcomes"))
    if topic is None and field is None:
        section.refuse("", section.values, "a topic, a field or both: every message would be this event")
    if field is None and (equals is not None or transforms or set(outcomes) - {OTHERWISE}):
        section.refuse("field", None, "a field path, where equals, outcomes or transform ask for its value")
    return rule


def _texts(section: Section, equals: Any) -> frozenset[str] | None:
    if equals is None:
        return None
    values = equals if isinstance(equals, list) else [equals]
    if not values or not all(isinstance(value, SCALARS) for value in values):
        section.refuse("equals", equals, "a text, a number, true or false, or a list of them")
    return frozenset(text for value in values if (text := text_of(value)) is not None)


def _outcomes(section: Section) -> dict[str, str]:
    if ("outcome" in section.values) == ("outcomes" in section.values):
        section.refuse("outcome", section.values, "either outcome, or outcomes (a table of the field's values)")
    if "outcome" in section.values:
        return {OTHERWISE: section.one_of("outcome", OUTCOMES)}
    table = section.section("outcomes")
    return {key: table.one_of(key, OUTCOMES) for key in table.values}
