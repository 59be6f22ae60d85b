"""The rules of a mapping, read from TOML: where a value comes from, and which messages begin and end things.

A value is a constant, a named level of the topic, or fields of messages. What the file itself fixes (a constant, a
default, how messages add up) is checked against what the value is for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from springback.producers.contract.columns import COLUMN_BY_NAME
from springback.producers.contract.frame import Outcome
from springback.producers.emitter.signal_checks import checked_header
from springback.producers.errors import MappingError, SignalError
from springback.producers.mapping.paths import MISSING, FieldPath, TopicPattern
from springback.producers.mapping.toml_section import SCALARS, TomlSection
from springback.producers.mapping.transforms import (
    ADDED_UP,
    OTHERWISE,
    PLAIN,
    WITH_NUMBER,
    Transform,
    clip_transform,
    linear_transform,
    number_transform,
    plain_transform,
    table_transform,
)
from springback.producers.mapping.values import count_of, number_of, plain_text, text_of, truth_of

Over = Literal["last", "sum", "count", "maximum", "mean"]
Group = Literal["header", "signals", "navigation", "episode"]
Convert = Callable[[Any], Any]
"""Makes a raw value plain; None where it cannot be used."""

OUTCOMES: Final = get_args(Outcome)
_NUMBERS_OF_HEADER: Final = ("stress", "magnitude")
_DISTANCES: Final = ("shortest_path", "path", "final_distance", "metres_per_unit")


@dataclass(frozen=True, slots=True)
class ValueSource:
    """A field of the messages of some topics, and what is made of it.

    Attributes:
        topic: which messages; None is all.
        field: where in the message.
        transforms: applied in turn to each message's value.
        over: how the messages between two steps are combined into one value; `last` is held until the next one.
        stale_s: older values are ignored; None stands for the step's own limit.
    """

    topic: TopicPattern | None
    field: FieldPath
    transforms: tuple[Transform, ...]
    over: Over
    stale_s: float | None

    def fresh_chain(self) -> Callable[[Any], Any]:
        """The transforms as one function of a value, with a memory of its own. None stands for no value."""
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
        transforms: applied in turn to what the field holds, to each message on its own.
        equals: the texts of the result that make it an event; None where any value does.
        outcomes: for ends, the outcome of each text, or of any under `*`.
        each: whether every such message counts, not only the first of several equal ones in a row.
    """

    topic: TopicPattern | None
    field: FieldPath | None
    transforms: tuple[Transform, ...]
    equals: frozenset[str] | None
    outcomes: dict[str, str]
    each: bool

    def text_in(self, message: Any) -> str | None:
        """What the event looks at in a message, as a text; None where the message has nothing there."""
        value = None if self.field is None else self.field.read(message)
        for transform in self.transforms if value is not MISSING else ():
            value = None if value is None else transform.make()(value)
        return text_of(value)


def conversion_of(group: Group, name: str) -> Convert:
    """The conversion that makes the values of a key plain."""
    if group == "signals":
        return number_of if COLUMN_BY_NAME[name].kind == "number" else plain_text
    if group == "navigation":
        return number_of if name in _DISTANCES else truth_of if name == "target_in_view" else count_of
    if group == "header" and name in _NUMBERS_OF_HEADER:
        return number_of
    return truth_of if group == "header" and name == "reference" else plain_text


def read_rule(owner: TomlSection, group: Group, name: str, default: ValueRule | None = None) -> ValueRule:
    """The rule for one value: a plain constant, `{ segment = … }`, or one or more sources.

    Args:
        owner: the table that has the key.
        group: what the value is for.
        name: the key.
        default: the rule where the key is absent.

    Raises:
        MappingError: it is malformed, it fixes something impossible, or it is missing and there is no default.
    """
    rule = _value_rule(owner, name, default)
    convert = conversion_of(group, name)
    fixed = rule.constant if rule.constant is not None else rule.default
    if fixed is not None:
        plain = convert(fixed)
        if plain is None or not _in_range(group, name, plain):
            owner.refuse(name, fixed, _expected(group, name, convert))
        if group == "header":
            _check_header(owner, name, plain)
    if convert not in (number_of, count_of):
        for source in rule.sources:
            if source.over != "last":
                owner.refuse(name, source.over, "over = last, since this value is not a number")
    return rule


def read_transforms(section: TomlSection) -> tuple[Transform, ...]:
    """The transforms under the key `transform`: one or a list, each a name or a table of one key.

    Raises:
        MappingError: one of them is unknown, or its argument is malformed.
    """
    given = section.take("transform", [])
    listed = given if isinstance(given, list) else [given]
    return tuple(_transform(section, f"transform[{place}]", item) for place, item in enumerate(listed))


def read_events(owner: TomlSection, name: str, *, ends: bool = False) -> tuple[EventRule, ...]:
    """The events under this key: one table or a list of tables.

    Args:
        owner: the table that has the key.
        name: the key.
        ends: whether they end an episode, and so have an outcome.

    Raises:
        MappingError: one of them is malformed.
    """
    return tuple(_event(section, ends=ends) for section in owner.sections(name))


def _value_rule(owner: TomlSection, name: str, default: ValueRule | None) -> ValueRule:
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
            sources.append(_source(section))
        section.finish(("segment", "topic", "field", "transform", "over", "stale_s"))
    if segment is not None and len(sections) > 1:
        owner.refuse(name, value, "segment alone, or sources alone")
    return ValueRule(segment=segment, sources=tuple(sources), default=otherwise)


def _source(section: TomlSection) -> ValueSource:
    topic = section.parsed("topic", TopicPattern, None)
    field = section.parsed("field", FieldPath, "")
    transforms = read_transforms(section)
    added_up = any(transform.name in ADDED_UP for transform in transforms)
    over: Over = section.one_of("over", get_args(Over), None) or ("sum" if added_up else "last")
    return ValueSource(topic, field, transforms, over, section.number("stale_s", None, least=0.0))


def _transform(section: TomlSection, place: str, item: object) -> Transform:
    if isinstance(item, str) and item in PLAIN:
        return plain_transform(item)
    if isinstance(item, dict) and len(item) == 1:
        one = TomlSection(item, section.file, section.key(place))
        (name,) = item
        if name in WITH_NUMBER:
            return number_transform(name, one.number(name))
        if name == "clip":
            match item[name]:
                case [int() | float() as low, int() | float() as high] if low <= high:
                    return clip_transform(float(low), float(high))
            one.refuse(name, item[name], "two numbers, the lower first")
        if name == "linear":
            match item[name]:
                case [int() | float() as zero, int() | float() as end] if zero != end:
                    return linear_transform(float(zero), float(end))
            one.refuse(name, item[name], "two different numbers: what counts as 0, and what counts as 1")
        if name == "table":
            entries = one.section(name)
            for key, value in entries.values.items():
                if not isinstance(value, SCALARS):
                    entries.refuse(key, value, "a text or a number")
            return table_transform(entries.values)
    with_argument = ", ".join((*WITH_NUMBER, "clip", "linear", "table"))
    section.refuse(place, item, f"one of {', '.join(PLAIN)}, or a table of one key: {with_argument}")


def _event(section: TomlSection, *, ends: bool) -> EventRule:
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
        section.refuse("", section.values, "a topic, a field or both: otherwise every message would be this event")
    if field is None and (equals is not None or transforms or set(outcomes) - {OTHERWISE}):
        section.refuse("field", None, "a field path, since equals, outcomes or transform ask for its value")
    return rule


def _texts(section: TomlSection, equals: Any) -> frozenset[str] | None:
    if equals is None:
        return None
    values = equals if isinstance(equals, list) else [equals]
    if not values or not all(isinstance(value, SCALARS) for value in values):
        section.refuse("equals", equals, "a text, a number, true or false, or a list of them")
    return frozenset(text for value in values if (text := text_of(value)) is not None)


def _outcomes(section: TomlSection) -> dict[str, str]:
    if ("outcome" in section.values) == ("outcomes" in section.values):
        section.refuse("outcome", section.values, "either outcome, or outcomes (a table of the field's values)")
    if "outcome" in section.values:
        return {OTHERWISE: section.one_of("outcome", OUTCOMES)}
    table = section.section("outcomes")
    return {key: table.one_of(key, OUTCOMES) for key in table.values}


def _in_range(group: Group, name: str, plain: Any) -> bool:
    spec = COLUMN_BY_NAME[name] if group == "signals" else None
    return spec is None or spec.kind != "number" or spec.minimum <= plain <= spec.maximum


def _expected(group: Group, name: str, convert: Convert) -> str:
    if convert is number_of and group == "signals":
        return f"a number from {COLUMN_BY_NAME[name].minimum:g} to {COLUMN_BY_NAME[name].maximum:g}"
    kinds: dict[Convert, str] = {number_of: "a number", count_of: "a whole number", truth_of: "true or false"}
    return kinds.get(convert, "a text")


def _check_header(owner: TomlSection, name: str, plain: Any) -> None:
    try:
        checked_header({"agent": "a", "episode": "0", "family": "f", name: plain})
    except SignalError as error:
        message = f"{owner.file}: {owner.key(name)}: got {plain!r}: {error.__cause__ or error}"
        raise MappingError(message) from error
