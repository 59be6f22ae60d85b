"""What the newest message of each topic says at the places that conditions and divisors of a mapping look at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from springback.producers.mapping.paths import MISSING, FieldPath, TopicPattern
from springback.producers.mapping.transforms import NO_DIVISOR, Function, Transform, each_number
from springback.producers.mapping.values import number_of


@dataclass(frozen=True, eq=False)
class Look:
    """A place in the messages of a topic, and what is made of what stands there, message by message.

    Attributes:
        topic: which messages; None is all.
        field: where in the message.
        transforms: applied in turn.
    """

    topic: TopicPattern | None
    field: FieldPath
    transforms: tuple[Transform, ...] = ()

    def all(self) -> Iterator[Look]:
        """The places that its divisors look at, and then itself."""
        yield from divisors_of(self.transforms)
        yield self

    def of(self, message: Any, board: NewestBoard) -> Any:
        """What the message has there; None for nothing."""
        value = self.field.read(message)
        if not self.transforms or value is MISSING:
            return None if value is MISSING else value
        return Chain(self.transforms).apply(value, board)


class NewestBoard:
    """What the newest messages of one agent have said."""

    def __init__(self) -> None:
        self._said: dict[Look, Any] = {}

    def hear(self, looks: Iterable[Look], message: Any) -> None:
        """Takes a message of a topic that these look at, divisors first."""
        for look in looks:
            self._said[look] = look.of(message, self)

    def share(self, other: NewestBoard) -> None:
        """Has what the other has heard, and what it hears from now on."""
        self._said = other._said

    def said(self, look: Look) -> Any:
        """What the newest message said there; None where it said nothing, or none has come."""
        return self._said.get(look)


class ItemBoard(NewestBoard):
    """An item of a list, in place of messages.

    Args:
        item: the item.
    """

    def __init__(self, item: Any) -> None:
        super().__init__()
        self._item = item

    def said(self, look: Look) -> Any:
        """What the item has there; None for nothing."""
        return look.of(self._item, self)


class Chain:
    """Transforms in turn, each with a memory of its own where it has one.

    Args:
        transforms: what is applied.

    Attributes:
        remark: what a transform had to say of the last value, a word of `transforms.REMARKS`; None for nothing.
    """

    __slots__ = ("_steps", "remark")

    def __init__(self, transforms: tuple[Transform, ...]) -> None:
        self._steps: list[tuple[Transform, Function]] = [(transform, transform.make()) for transform in transforms]
        self.remark: str | None = None

    def apply(self, value: Any, board: NewestBoard) -> Any:
        """What becomes of a value; None for no value."""
        self.remark = None
        for transform, function in self._steps:
            if value is None:
                return None
            if transform.divisor is None:
                value = function(value)
            else:
                by = number_of(board.said(transform.divisor))
                self.remark = self.remark if by else NO_DIVISOR
                value = divided(value, by)
            self.remark = getattr(function, "remark", None) or self.remark
        return value


def divisors_of(transforms: tuple[Transform, ...]) -> Iterator[Look]:
    """The places where the divisors of these transforms stand."""
    for transform in transforms:
        if transform.divisor is not None:
            yield from transform.divisor.all()


def divided(value: Any, by: float | None) -> Any:
    """A number, or each item of a list, divided; None where there is no divisor, or it is 0.

    >>> divided(3, 4.0), divided([1, 2], 4.0), divided(3, 0.0), divided("a", 4.0)
    (0.75, [0.25, 0.5], None, None)
    """
    return each_number(lambda number: number / by)(value) if by else None
