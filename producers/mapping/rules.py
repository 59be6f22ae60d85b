"""The rules for the values of a mapping, read from TOML: where each comes from.

A value is a constant, a named level of the topic, or fields of messages. What the file itself fixes (a constant, a
default, how messages add up) is checked against what the value is for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import msgspec
import numpy as np

from springback.producers.contract.columns import COLUMN_BY_NAME
from springback.producers.contract.fault_words import told
from springback.producers.contract.frame import EpisodeHeader, Outcome
from springback.producers.emitter.signal_checks import checked_header
from springback.producers.errors import MappingError, SignalError
from springback.producers.mapping.conditions import GUARDS, NO_GUARD, Conditions, Guard, texts_of
from springback.producers.mapping.newest import Chain
from springback.producers.mapping.paths import MISSING, FieldPath, TopicPattern
from springback.producers.mapping.toml_section import SCALARS, TomlSection
from springback.producers.mapping.transform_reading import read_transforms
from springback.producers.mapping.transforms import ADDED_UP, Transform
from springback.producers.mapping.values import count_of, number_of, plain_text, text_of, truth_of

Over = Literal["last", "sum", "count", "maximum", "mean"]
Group = Literal["header", "signals", "navigation", "episode"]
Convert = Callable[[Any], Any]
"""Makes a raw value plain; None where it cannot be used."""

OUTCOMES: Final = get_args(Outcome)
_NUMBERS_OF_HEADER: Final = ("stress", "magnitude")
_OF_SOURCES: Final = ("topic", "field", "transform", "over", "stale_s", "latest_by", "unknown", *GUARDS)
_LEVEL: Final = re.compile(r"\{([a-z_][a-z0-9_]*)\}")
_DISTANCES: Final = ("shortest_path", "path", "final_distance", "metres_per_unit")


@dataclass(frozen=True)
class ValueSource:
    """A field of the messages of some topics, and what is made of it.

    Attributes:
        topic: which messages; None is all.
        field: where in the message.
        transforms: applied in turn to each message's value.
        over: how the messages between two steps are combined into one value; `last` is held until the next one.
        stale_s: older values are ignored; None stands for the step's own limit.
        latest_by: what names the item of a list, or the message: fields of it, or named levels of its topic as texts.
            The latest of each name is kept, and the transforms work on the list of those that are not stale.
        unknown: the texts of what stands for "not known": such a value says nothing, and what was said before holds.
        guard: what must hold, and must not, for a message to say anything.
    """

    topic: TopicPattern | None
    field: FieldPath
    transforms: tuple[Transform, ...]
    over: Over
    stale_s: float | None
    latest_by: tuple[FieldPath | str, ...] = ()
    unknown: frozenset[str] = frozenset()
    guard: Guard = NO_GUARD

    def known(self, raw: Any) -> Any:
        """What a message says without what stands for unknown: `MISSING` for that itself, a list without such items."""
        if not self.unknown:
            return raw
        if isinstance(raw, (list, tuple, np.ndarray)):
            return [item for item in raw if text_of(item) not in self.unknown]
        return MISSING if text_of(raw) in self.unknown else raw

    def fresh_chain(self) -> Chain:
        """The transforms as one function of a value, with a memory of its own."""
        return Chain(self.transforms)


@dataclass(frozen=True)
class ValueRule:
    """Where a value comes from: `constant`, else a `segment` of the topic, else `sources`, else `default`."""

    constant: Any = None
    segment: str | None = None
    sources: tuple[ValueSource, ...] = ()
    default: Any = None


def conversion_of(group: Group, name: str) -> Convert:
    """The conversion that makes the values of a key plain."""
    if group == "signals":
        return number_of if COLUMN_BY_NAME[name].kind == "number" else plain_text
    if group == "navigation":
        return number_of if name in _DISTANCES else truth_of if name == "target_in_view" else count_of
    if group == "header" and name in _NUMBERS_OF_HEADER:
        return number_of
    return truth_of if group == "header" and name == "reference" else plain_text


def read_rule(
    owner: TomlSection, group: Group, name: str, conditions: Conditions, default: ValueRule | None = None
) -> ValueRule:
    """The rule for one value: a plain constant, `{ segment = … }`, or one or more sources.

    Args:
        owner: the table that has the key.
        group: what the value is for.
        name: the key.
        conditions: reads conditions.
        default: the rule where the key is absent.

    Raises:
        MappingError: it is malformed, it fixes something impossible, or it is missing and there is no default.
    """
    rule = _value_rule(owner, name, conditions, default)
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


def _value_rule(owner: TomlSection, name: str, conditions: Conditions, default: ValueRule | None) -> ValueRule:
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
            sources.append(_source(section, conditions))
        section.finish(("segment", *_OF_SOURCES))
    if segment is not None and len(sections) > 1:
        owner.refuse(name, value, "segment alone, or sources alone")
    return ValueRule(segment=segment, sources=tuple(sources), default=otherwise)


def _source(section: TomlSection, conditions: Conditions) -> ValueSource:
    topic = section.parsed("topic", TopicPattern, None)
    field = section.parsed("field", FieldPath, "")
    transforms = read_transforms(section, topic)
    added_up = any(transform.name in ADDED_UP for transform in transforms)
    over: Over = section.one_of("over", get_args(Over), None) or ("sum" if added_up else "last")
    latest_by = _names(section, topic)
    if latest_by and over != "last":
        section.refuse("latest_by", section.values["latest_by"], f"no latest_by where over is {over!r}")
    return ValueSource(
        topic=topic,
        field=field,
        transforms=transforms,
        over=over,
        stale_s=section.number("stale_s", None, least=0.0),
        latest_by=latest_by,
        unknown=texts_of(section, "unknown") or frozenset(),
        guard=conditions.guard(section, topic),
    )


def _names(section: TomlSection, topic: TopicPattern | None) -> tuple[FieldPath | str, ...]:
    given = section.take("latest_by", [])
    listed = given if isinstance(given, list) else [given]
    names: list[FieldPath | str] = []
    for place, text in enumerate(listed):
        one = TomlSection({f"latest_by[{place}]": text}, section.file, section.place)
        level = _LEVEL.fullmatch(text) if isinstance(text, str) else None
        if level is not None and (topic is None or level[1] not in topic.names):
            section.refuse("latest_by", text, f"a field, or a level that the topic names, as in fleet/{text}/state")
        names.append(one.parsed(f"latest_by[{place}]", FieldPath) if level is None else level[1])
    return tuple(names)


def _in_range(group: Group, name: str, plain: Any) -> bool:
    spec = COLUMN_BY_NAME[name] if group == "signals" else None
    return spec is None or spec.kind != "number" or spec.minimum <= plain <= spec.maximum


def _expected(group: Group, name: str, convert: Convert) -> str:
    if convert is number_of and group == "signals":
        return f"a number from {COLUMN_BY_NAME[name].minimum:g} to {COLUMN_BY_NAME[name].maximum:g}"
    kinds: dict[Convert, str] = {number_of: "a number", count_of: "a whole number", truth_of: "true or false"}
    return kinds.get(convert, "a text")


def _check_header(owner: TomlSection, name: str, plain: Any) -> None:
    header = {"agent": "a", "episode": "0", "family": "f", name: plain}
    try:
        checked_header(header)
    except SignalError as error:
        said = f"got {plain!r}: {error}"
        if isinstance(error.__cause__, msgspec.ValidationError):
            said = told(EpisodeHeader, header, error.__cause__)[1].removeprefix(f"{name}: ")
        message = f"{owner.file}: {owner.key(name)}: {said}"
        raise MappingError(message) from error
