"""What a mapping says of the messages that begin and end episodes and sessions."""

from typing import Any, get_args

from springback.producers.frame_parts import Outcome
from springback.producers.mapping_parts.field_path import FieldPath, text_of
from springback.producers.mapping_parts.toml_section import SCALARS, Section
from springback.producers.mapping_parts.topic_pattern import TopicPattern
from springback.producers.mapping_parts.transforms import OTHERWISE
from springback.producers.mapping_parts.value_rules import EventRule, read_transforms

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
