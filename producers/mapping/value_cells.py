"""What the messages of one agent have said so far of each value of a mapping.

Tells a message that has been here before, as far as that can be told.
"""

import math
from collections.abc import Callable
from typing import Any, Final

from springback.producers.mapping.paths import text_of
from springback.producers.mapping.routes import Route
from springback.producers.mapping.rules import ValueRule, ValueSource
from springback.producers.mapping.signal_mapping import SignalMapping
from springback.producers.mapping.timed_message import TimedMessage


class ValueCell:
    """What one source has said: the last value held, or what came together since the last step.

    Args:
        source: where the values come from.
        convert: makes a value plain; None where it cannot be used.
    """

    __slots__ = ("_apply", "_convert", "_count", "_held", "_sum", "source", "time_s")

    def __init__(self, source: ValueSource, convert: Callable[[Any], Any]) -> None:
        self.source = source
        self._convert = convert
        self.forget()

    def forget(self) -> None:
        """Begin anew: an episode has begun."""
        self._apply = self.source.fresh_chain()
        self._held: Any = None
        self._sum = 0.0
        self._count = 0
        self.time_s = -math.inf

    def take(self, raw: Any, time_s: float) -> bool:
        """Take what a message says. False where it is of no use; a value that was held is then known no more."""
        value = self._apply(raw)
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

    def read(self, now_s: float, stale_s: float) -> Any:
        """The value at this time (infinite: at any); None where there is none, or it is older than the limit."""
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

    def close_step(self) -> None:
        """A step has used it: sums begin anew, and what is held stays."""
        if self.source.over == "mean" and self._count:
            self._held = self._sum / self._count
        self._sum = 0.0
        self._count = 0


class RuleCells:
    """All that a rule may take its value from.

    Args:
        rule: the rule.
        convert: makes a value plain; None where it cannot be used.
    """

    __slots__ = ("_fixed", "cells", "rule")

    def __init__(self, rule: ValueRule, convert: Callable[[Any], Any]) -> None:
        self.rule = rule
        self.cells = [ValueCell(source, convert) for source in rule.sources]
        self._fixed = convert(rule.constant if rule.constant is not None else rule.default)

    def read(self, now_s: float, stale_s: float, segments: dict[str, str]) -> Any:
        """The value at this time: what adds up from all sources together, else the newest; None where there is none."""
        if self.rule.segment is not None:
            return segments.get(self.rule.segment, self._fixed)
        known = [(cell, value) for cell in self.cells if (value := cell.read(now_s, stale_s)) is not None]
        if not known:
            return self._fixed
        added = [value for cell, value in known if cell.source.over in ("sum", "count")]
        if added:
            return sum(added)
        return max(known, key=lambda pair: pair[0].time_s)[1]

    def forget(self) -> None:
        """Begin anew: an episode has begun."""
        for cell in self.cells:
            cell.forget()

    def close_step(self) -> None:
        """A step has used it."""
        for cell in self.cells:
            cell.close_step()


MOST_REMEMBERED: Final = 256


class Repetitions:
    """The latest messages of one agent, by the id that the mapping names, or by their time and what is read of them.

    Args:
        mapping: which field is the id.
    """

    def __init__(self, mapping: SignalMapping) -> None:
        self._path = mapping.message_id
        self._reorder_s = mapping.reorder_s
        self._recent: dict[tuple[str, str, float | None], None] = {}
        self._latest_s = -math.inf

    def seen(self, message: TimedMessage, route: Route, own_s: float | None) -> bool:
        """Whether it is a repetition; else it is remembered. One without a time, an id or a mark (DUP) never is.

        Args:
            message: the message.
            route: of its topic.
            own_s: the time that the message itself gives, whichever clock the mapping goes by.
        """
        if own_s is not None:
            if own_s < self._latest_s - self._reorder_s:
                self._recent.clear()  # a recording that is played in a loop says all of it again
                self._latest_s = own_s
            self._latest_s = max(self._latest_s, own_s)
        known = None if self._path is None else text_of(self._path.read(message.value))
        if known is None:
            if not message.redelivered and own_s is None:
                return False
            known = route.fingerprint(message.value)
        key = (message.topic, known, own_s)
        if key in self._recent:
            return True
        self._recent[key] = None
        if len(self._recent) > MOST_REMEMBERED:
            del self._recent[next(iter(self._recent))]
        return False
