"""What the messages of one agent have said so far about each value of a mapping."""

import math
from typing import Any

from springback.producers.mapping.rules import Convert, ValueRule, ValueSource


class ValueCell:
    """What one source has said: the last value, held, or what has accumulated since the last step.

    Args:
        source: where the values come from.
        convert: makes a value plain.
    """

    __slots__ = ("_apply", "_convert", "_count", "_held", "_sum", "source", "time_s")

    def __init__(self, source: ValueSource, convert: Convert) -> None:
        self.source = source
        self._convert = convert
        self.forget()

    def forget(self) -> None:
        """Starts afresh, since an episode has begun."""
        self._apply = self.source.fresh_chain()
        self._held: Any = None
        self._sum = 0.0
        self._count = 0
        self.time_s = -math.inf

    def take(self, raw: Any, time_s: float) -> bool:
        """Takes what a message says; returns False where it cannot be used, and then forgets a value that was held."""
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

    def close_step(self) -> None:
        """Starts sums afresh, since a step has used them; what is held stays."""
        if self.source.over == "mean" and self._count:
            self._held = self._sum / self._count
        self._sum = 0.0
        self._count = 0


class RuleCells:
    """Everything that a rule may take its value from.

    Args:
        rule: the rule.
        convert: makes a value plain.
    """

    __slots__ = ("_fixed", "cells", "rule")

    def __init__(self, rule: ValueRule, convert: Convert) -> None:
        self.rule = rule
        self.cells = [ValueCell(source, convert) for source in rule.sources]
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

    def forget(self) -> None:
        """Starts afresh, since an episode has begun."""
        for cell in self.cells:
            cell.forget()

    def close_step(self) -> None:
        """Starts sums afresh, since a step has used them."""
        for cell in self.cells:
            cell.close_step()
