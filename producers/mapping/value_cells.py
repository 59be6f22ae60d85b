"""What the messages of one agent have said so far about each value of a mapping."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from springback.producers.mapping.newest import NewestBoard
from springback.producers.mapping.paths import FieldPath
from springback.producers.mapping.rules import Convert, ValueRule, ValueSource
from springback.producers.mapping.values import text_of

MOST_NAMES: Final = 1000
"""The most names of which a source with `latest_by` keeps the latest; the one said longest ago goes first."""


class ValueCell:
    """What one source has said: the last value, held, or what has accumulated since the last step.

    Args:
        source: where the values come from.
        convert: makes a value plain.
        board: what the agent's newest messages have said.

    Attributes:
        time_s: when it was said, s UTC epoch.
        remark: what a transform had to say of the last value; None for nothing.
    """

    __slots__ = ("_board", "_chain", "_convert", "_count", "_held", "_sum", "remark", "source", "time_s")

    def __init__(self, source: ValueSource, convert: Convert, board: NewestBoard) -> None:
        self.source = source
        self._convert = convert
        self._board = board
        self.forget()

    def forget(self) -> None:
        """Starts afresh, since an episode has begun."""
        self._chain = self.source.fresh_chain()
        self._held: Any = None
        self._sum = 0.0
        self._count = 0
        self.time_s = -math.inf
        self.remark: str | None = None

    def take(self, raw: Any, time_s: float) -> bool:
        """Takes what a message says; returns False where it cannot be used, and then forgets a value that was held."""
        value = self._chain.apply(raw, self._board)
        self.remark = self._chain.remark
        over = self.source.over
        if over == "count":
            if value is None:
                return False
        else:
            value = self._convert(value)
            if value is None:
                if over == "last":
                    self._held = None
                return False
        self.time_s = time_s
        self._count += 1
        if over == "last":
            self._held = value
        elif over == "maximum":
            self._held = value if self._count == 1 else max(self._held, value)
        elif over != "count":
            self._sum += value
        return True

    def move(self, by_s: float) -> None:
        """Moves what was timed so far by this much, since the clock was set."""
        self.time_s += by_s

    def read(self, now_s: float, stale_s: float) -> Any:
        """The value at this time (infinite: at any time); None where there is none, or it is older than the limit."""
        over = self.source.over
        if self.time_s == -math.inf:
            return None
        if over == "sum":
            return self._sum
        if over == "count":
            return float(self._count)
        limit = stale_s if self.source.stale_s is None else self.source.stale_s
        if math.isfinite(now_s) and now_s - self.time_s > limit:
            return None
        if over == "mean" and self._count:
            return self._sum / self._count
        return self._held

    def has_said(self, time_s: float) -> bool:
        """Whether it holds a value that was said at this time."""
        return self.time_s == time_s and self._held is not None

    def close_step(self) -> None:
        """Starts sums afresh, since a step has used them; what is held stays."""
        if self.source.over == "mean" and self._count:
            self._held = self._sum / self._count
        self._sum = 0.0
        self._count = 0


class NamedCell(ValueCell):
    """What a source with `latest_by` has said: the latest of each name, made into one value of those not stale."""

    __slots__ = ("_latest",)

    def forget(self) -> None:
        """Starts afresh, since an episode has begun."""
        super().forget()
        self._latest: dict[tuple[str, ...], tuple[list[Any], float]] = {}

    def take_items(
        self, items: Iterable[tuple[Any, Any]], message: Any, segments: Mapping[str, str], time_s: float
    ) -> Any:
        """Takes what a message says of each item; returns one that has no name, or None.

        Args:
            items: the items and what stands in them.
            message: the message, where an item does not have its name itself.
            segments: the named levels of its topic.
            time_s: when it was said.
        """
        nameless = None
        said: dict[tuple[str, ...], list[Any]] = {}
        for item, raw in items:
            name = tuple(
                text for by in self.source.latest_by if (text := _name(by, item, message, segments)) is not None
            )
            if len(name) < len(self.source.latest_by):
                nameless = item
            elif text_of(raw) not in self.source.unknown:
                said.setdefault(name, []).append(raw)
        for name, raws in said.items():
            self._latest.pop(name, None)
            self._latest[name] = raws, time_s
            self.time_s = time_s
        while len(self._latest) > MOST_NAMES:
            del self._latest[next(iter(self._latest))]
        return nameless

    def read(self, now_s: float, stale_s: float) -> Any:
        """The value of all that was said last under each name, without what is older than the limit."""
        limit = stale_s if self.source.stale_s is None else self.source.stale_s
        now_s = now_s if math.isfinite(now_s) else -math.inf
        fresh = [raw for raws, said_s in self._latest.values() if now_s - said_s <= limit for raw in raws]
        return self._convert(self._chain.apply(fresh, self._board)) if fresh else None

    def move(self, by_s: float) -> None:
        """Moves what was timed so far by this much, since the clock was set."""
        super().move(by_s)
        self._latest = {name: (raws, said_s + by_s) for name, (raws, said_s) in self._latest.items()}


def _name(by: FieldPath | str, item: Any, message: Any, segments: Mapping[str, str]) -> str | None:
    if isinstance(by, str):
        return segments.get(by)
    text = text_of(by.read(item))
    return text_of(by.read(message)) if text is None else text


class RuleCells:
    """Everything that a rule may take its value from.

    Args:
        rule: the rule.
        convert: makes a value plain.
        board: what the agent's newest messages have said.
    """

    __slots__ = ("_fixed", "cells", "rule")

    def __init__(self, rule: ValueRule, convert: Convert, board: NewestBoard) -> None:
        self.rule = rule
        self.cells = [(NamedCell if source.latest_by else ValueCell)(source, convert, board) for source in rule.sources]
        self._fixed = convert(rule.constant if rule.constant is not None else rule.default)

    def read(self, now_s: float, stale_s: float, segments: dict[str, str]) -> Any:
        """The value at this time: the sum where sources add up, else the newest; None where there is none."""
        if self.rule.segment is not None:
            return segments.get(self.rule.segment, self._fixed)
        known = [(cell, value) for cell in self.cells if (value := cell.read(now_s, stale_s)) is not None]
        if not known:
            return self._fixed
        added = [value for cell, value in known if cell.source.over in ("sum", "count")]
        if added:
            return sum(added)
        return max(known, key=lambda pair: pair[0].time_s)[1]

    def counts(self, place: int, time_s: float) -> bool:
        """Whether what this source says now is read: the first of equally new ones is, unless they add up."""
        added = self.cells[place].source.over in ("sum", "count")
        return added or not any(cell.has_said(time_s) for cell in self.cells[:place])

    def forget(self) -> None:
        """Starts afresh, since an episode has begun."""
        for cell in self.cells:
            cell.forget()

    def close_step(self) -> None:
        """Starts sums afresh, since a step has used them."""
        for cell in self.cells:
            cell.close_step()
