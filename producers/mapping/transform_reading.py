"""Transforms as a mapping declares them: `"norm"`, `{ scale = 0.1 }`, `{ divide_by = "total" }`, or a list of such."""

from __future__ import annotations

from typing import Any

from springback.producers.emitter.measured_stress import is_scale
from springback.producers.mapping.newest import Look
from springback.producers.mapping.paths import FieldPath, TopicPattern
from springback.producers.mapping.toml_section import SCALARS, TomlSection
from springback.producers.mapping.transforms import (
    PLAIN,
    WITH_NUMBER,
    Transform,
    clip_transform,
    linear_transform,
    number_transform,
    plain_transform,
    quotient_transform,
    table_transform,
)


def read_transforms(section: TomlSection, topic: TopicPattern | None = None) -> tuple[Transform, ...]:
    """The transforms under the key `transform`: one or a list, each a name or a table of one key.

    Args:
        section: the table that has the key.
        topic: the topic of a divisor that names none.

    Raises:
        MappingError: one of them is unknown, or its argument is malformed.
    """
    given = section.take("transform", [])
    listed = given if isinstance(given, list) else [given]
    return tuple(_transform(section, f"transform[{place}]", item, topic) for place, item in enumerate(listed))


def _transform(section: TomlSection, place: str, item: object, topic: TopicPattern | None) -> Transform:
    if isinstance(item, str) and item in PLAIN:
        return plain_transform(item)
    if isinstance(item, dict) and len(item) == 1:
        one = TomlSection(item, section.file, section.key(place))
        (name,) = item
        if name in WITH_NUMBER:
            return number_transform(name, one.number(name))
        if name == "clip":
            two = _two_numbers(item[name])
            if two is not None and two[0] <= two[1]:
                return clip_transform(*two)
            one.refuse(name, item[name], "two numbers, the lower first")
        if name == "linear":
            two = _two_numbers(item[name])
            if two is not None and is_scale(*two):
                return linear_transform(*two)
            one.refuse(name, item[name], "two different numbers: what counts as 0, and what counts as 1")
        if name == "table":
            entries = one.section(name)
            for key, value in entries.values.items():
                if not isinstance(value, SCALARS):
                    entries.refuse(key, value, "a text or a number")
            return table_transform(entries.values)
        if name == "divide_by":
            return quotient_transform(_divisor(one, item[name], topic))
    with_argument = ", ".join((*WITH_NUMBER, "clip", "linear", "table", "divide_by"))
    section.refuse(place, item, f"one of {', '.join(PLAIN)}, or a table of one key: {with_argument}")


def _two_numbers(given: object) -> tuple[float, float] | None:
    if isinstance(given, list) and len(given) == 2 and all(isinstance(each, (int, float)) for each in given):
        return float(given[0]), float(given[1])
    return None


def _divisor(one: TomlSection, given: Any, topic: TopicPattern | None) -> Look:
    if isinstance(given, dict):
        section = one.section("divide_by")
        own = section.parsed("topic", TopicPattern, None) or topic
        look = Look(own, section.parsed("field", FieldPath), read_transforms(section, own))
        section.finish()
        return look
    if not isinstance(given, str):
        one.refuse("divide_by", given, "a field of the same message, or { topic, field } of another")
    return Look(topic, one.parsed("divide_by", FieldPath))
