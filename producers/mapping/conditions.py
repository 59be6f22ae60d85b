"""Conditions of a mapping: and, or, not and unless over fields of messages, and for any or for all items of a list.

A condition looks at the **newest message of its topic**; what that message does not have is not so. Conditions on
several topics therefore hold together once the newest message of each says so. All of it is ours.

>>> section = TomlSection({"all": [{"field": "left", "equals": 0}, {"not": {"field": "by_hand", "equals": True}}]}, "m")
>>> condition = Conditions({}, "m").read(section, None)
>>> board = NewestBoard()
>>> board.hear(condition.looks(), {"left": 0, "by_hand": True})
>>> condition.holds(board)
False
>>> board.hear(condition.looks(), {"left": 0})
>>> condition.holds(board)
True
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from springback.producers.errors import MappingError
from springback.producers.mapping.newest import ItemBoard, Look, NewestBoard
from springback.producers.mapping.paths import FieldPath, TopicPattern
from springback.producers.mapping.toml_section import SCALARS, TomlSection
from springback.producers.mapping.transform_reading import read_transforms
from springback.producers.mapping.values import number_of, text_of

OF_NUMBERS_AND_LISTS: Final = ("at_least", "at_most", "for_all", "for_any")
OF_A_FIELD: Final = ("equals", *OF_NUMBERS_AND_LISTS)
OF_CONDITIONS: Final = ("all", "any", "not")
GUARDS: Final = (*OF_CONDITIONS, "unless")


class Condition(ABC):
    """Something that holds or does not."""

    @abstractmethod
    def holds(self, board: NewestBoard) -> bool:
        """Whether it holds by what was said last."""

    @abstractmethod
    def looks(self) -> Iterator[Look]:
        """The places in messages that it looks at."""


@dataclass(frozen=True, eq=False)
class FieldTest(Condition):
    """A test of one field; without any of the tests, whether there is something.

    Attributes:
        look: the field.
        equals: the texts that it may be; None where any will do.
        at_least, at_most: bounds on a number.
    """

    look: Look
    equals: frozenset[str] | None = None
    at_least: float | None = None
    at_most: float | None = None

    def holds(self, board: NewestBoard) -> bool:
        """Whether the newest message has such a value there."""
        value = board.said(self.look)
        if self.equals is not None and text_of(value) not in self.equals:
            return False
        if self.at_least is None and self.at_most is None:
            return value is not None
        number = number_of(value)
        above = number is not None and (self.at_least is None or number >= self.at_least)
        return above and (self.at_most is None or (number is not None and number <= self.at_most))

    def looks(self) -> Iterator[Look]:
        """Its one field."""
        return self.look.all()


@dataclass(frozen=True, eq=False)
class ListTest(Condition):
    """Whether a condition holds for every item of a list, or for any; an empty list has none that it fails for.

    Attributes:
        look: the list. What is no list counts as a list of that one value.
        each: the condition, with fields inside an item.
        every: whether all items must meet it.
    """

    look: Look
    each: Condition
    every: bool

    def holds(self, board: NewestBoard) -> bool:
        """Whether the items of the newest message's list meet it. Where there is no list, it does not hold."""
        value = board.said(self.look)
        if value is None:
            return False
        items = value if isinstance(value, (list, tuple, np.ndarray)) else [value]
        met = (self.each.holds(ItemBoard(item)) for item in items)
        return all(met) if self.every else any(met)

    def looks(self) -> Iterator[Look]:
        """The list's field."""
        return self.look.all()


@dataclass(frozen=True, eq=False)
class Together(Condition):
    """Several conditions of which all must hold, or one.

    >>> Together((), every=True).holds(NewestBoard()), Together((), every=False).holds(NewestBoard())
    (True, False)
    """

    parts: tuple[Condition, ...]
    every: bool

    def holds(self, board: NewestBoard) -> bool:
        """Whether all of them, or one, hold."""
        met = (part.holds(board) for part in self.parts)
        return all(met) if self.every else any(met)

    def looks(self) -> Iterator[Look]:
        """Those of all parts."""
        for part in self.parts:
            yield from part.looks()


@dataclass(frozen=True, eq=False)
class Opposite(Condition):
    """That a condition does not hold."""

    part: Condition

    def holds(self, board: NewestBoard) -> bool:
        """Whether the part does not."""
        return not self.part.holds(board)

    def looks(self) -> Iterator[Look]:
        """Those of the part."""
        return self.part.looks()


@dataclass(frozen=True)
class Guard:
    """What an event or a value asks for beyond its own field.

    Attributes:
        when: what must hold; None for nothing.
        unless: while this holds, what is said is passed over; None for nothing.
    """

    when: Condition | None = None
    unless: Condition | None = None

    @property
    def asks(self) -> bool:
        """Whether it asks for anything."""
        return self.when is not None or self.unless is not None

    def looks(self) -> Iterator[Look]:
        """The places in messages that it looks at."""
        for condition in (self.when, self.unless):
            if condition is not None:
                yield from condition.looks()

    def lets_pass(self, board: NewestBoard) -> bool:
        """Whether what must hold holds, and what must not does not."""
        return (self.when is None or self.when.holds(board)) and not self.passes_over(board)

    def passes_over(self, board: NewestBoard) -> bool:
        """Whether what is said now is passed over."""
        return self.unless is not None and self.unless.holds(board)


NO_GUARD: Final = Guard()


class Conditions:
    """Reads conditions, those that the table `[conditions]` names among them.

    Args:
        named: that table, as it is.
        file: the file's name.
    """

    def __init__(self, named: Mapping[str, Any], file: str) -> None:
        self._named = named
        self._file = file
        self._reading: list[str] = []
        self._read: dict[tuple[str, str | None], Condition] = {}  # so that each place is looked at but once

    def guard(self, section: TomlSection, topic: TopicPattern | None, *, of_field: bool = False) -> Guard:
        """The guard of an event or a value: its keys `all`, `any`, `not` and `unless`.

        Args:
            section: the table that has the keys.
            topic: the topic of conditions that name none.
            of_field: whether a test of its own field is part of it.

        Raises:
            MappingError: one of them is malformed.
        """
        parts = (*(self._of_field(section, topic) if of_field else ()), *self._of_conditions(section, topic))
        when = parts[0] if len(parts) == 1 else Together(parts, every=True) if parts else None
        return Guard(when, self._one(section, "unless", topic) if "unless" in section.values else None)

    def optional(self, section: TomlSection, name: str) -> Condition | None:
        """The condition under a key, or any of a list; None if not given.

        Raises:
            MappingError: it is malformed.
        """
        return self._one(section, name, None) if section.take(name, None) is not None else None

    def read(self, section: TomlSection, topic: TopicPattern | None, *, of_item: bool = False) -> Condition:
        """The condition that a table states: all that it says must hold.

        Args:
            section: the table.
            topic: the topic of conditions that name none.
            of_item: whether it is about an item of a list, which has no topic.

        Raises:
            MappingError: it is malformed.
        """
        if not of_item:
            topic = section.parsed("topic", TopicPattern, None) or topic
        parts = list(self._of_field(section, topic))
        parts += self._of_conditions(section, topic, of_item=of_item)
        section.finish(("topic", "field", "transform", *OF_A_FIELD, *OF_CONDITIONS))
        if not parts:
            section.refuse("", section.values, "a field, or one of all, any, not")
        return parts[0] if len(parts) == 1 else Together(tuple(parts), every=True)

    def check_named(self) -> None:
        """Reads each named condition once, so that a mistake in one that nobody uses is told too.

        Raises:
            MappingError: one of them is malformed.
        """
        section = TomlSection(dict(self._named), self._file, "conditions")
        for name in self._named:
            self.read(section.section(name), None)

    def _of_field(self, section: TomlSection, topic: TopicPattern | None) -> Iterator[Condition]:
        field = section.parsed("field", FieldPath, None)
        asked = [name for name in (*OF_A_FIELD, "transform") if name in section.values]
        if field is None and not asked:
            return
        look = Look(topic, field or FieldPath(""), read_transforms(section, topic))
        for name in ("for_all", "for_any"):
            if name in section.values:
                yield ListTest(look, self._each(section, name), every=name == "for_all")
        equals = texts_of(section, "equals")
        at_least, at_most = section.number("at_least", None), section.number("at_most", None)
        if not {"for_all", "for_any"} & set(asked) or (equals, at_least, at_most) != (None, None, None):
            yield FieldTest(look, equals, at_least, at_most)

    def _each(self, section: TomlSection, name: str) -> Condition:
        value = section.take(name)
        if isinstance(value, dict) or (isinstance(value, str) and value in self._named):
            return self._made(section, name, value, None, of_item=True)
        return FieldTest(Look(None, FieldPath("")), texts_of(section, name))

    def _of_conditions(
        self, section: TomlSection, topic: TopicPattern | None, *, of_item: bool = False
    ) -> Iterator[Condition]:
        for name in ("all", "any"):
            given = section.take(name, None)
            if given is not None:
                listed = given if isinstance(given, list) else [given]
                yield Together(self._parts(section, name, listed, topic, of_item=of_item), every=name == "all")
        if section.take("not", None) is not None:
            yield Opposite(self._one(section, "not", topic, of_item=of_item))

    def _one(self, section: TomlSection, name: str, topic: TopicPattern | None, *, of_item: bool = False) -> Condition:
        """One condition under a key; of a list, any."""
        given = section.take(name)
        if not isinstance(given, list):
            return self._made(section, name, given, topic, of_item=of_item)
        return Together(self._parts(section, name, given, topic, of_item=of_item), every=False)

    def _parts(
        self, section: TomlSection, name: str, given: list[Any], topic: TopicPattern | None, *, of_item: bool
    ) -> tuple[Condition, ...]:
        return tuple(
            self._made(section, f"{name}[{place}]", part, topic, of_item=of_item) for place, part in enumerate(given)
        )

    def _made(
        self, section: TomlSection, place: str, given: Any, topic: TopicPattern | None, *, of_item: bool
    ) -> Condition:
        if isinstance(given, dict):
            return self.read(TomlSection(given, section.file, section.key(place)), topic, of_item=of_item)
        if not isinstance(given, str) or given not in self._named:
            known = f"the name of one in [conditions] ({', '.join(self._named) or 'it has none'})"
            section.refuse(place, given, f"a condition: a table, or {known}")
        if given in self._reading:
            message = f"{self._file}: conditions.{given}: it is part of itself: {' > '.join((*self._reading, given))}"
            raise MappingError(message)
        key = given, None if topic is None else topic.text
        if key not in self._read:
            self._reading.append(given)
            named = TomlSection(self._named[given], self._file, f"conditions.{given}")
            self._read[key] = self.read(named, topic, of_item=of_item)
            self._reading.pop()
        return self._read[key]


def texts_of(section: TomlSection, name: str) -> frozenset[str] | None:
    """The texts of a scalar or a list of scalars under this key; None if not given.

    Raises:
        MappingError: it is something else.
    """
    given = section.take(name, None)
    if given is None:
        return None
    values = given if isinstance(given, list) else [given]
    if not values or not all(isinstance(value, SCALARS) for value in values):
        section.refuse(name, given, "a text, a number, true or false, or a list of them")
    return frozenset(text for value in values if (text := text_of(value)) is not None)
