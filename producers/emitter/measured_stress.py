"""Stress from what was measured: a payload, the wind, a crowd, on a scale that is stated once. Ours.

A robot in the field has no severity that somebody chose, but often a quantity that makes its work harder. The scale
says at which value of it the stress λ is 0, and at which 1; between them it rises evenly.

>>> payload = MeasuredStress("payload_kg", zero=0.0, one=20.0)
>>> payload.of(5.0), payload.of(30.0), payload.of(None)
(0.25, 1.0, None)
>>> MeasuredStress("light_lux", zero=300.0, one=20.0)({"light_lux": 160.0})  # the darker, the harder
0.5
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np


def linear_share(value: float, zero: float, one: float) -> float:
    """Where a value lies between the one that counts as 0 and the one that counts as 1, clipped to [0, 1]."""
    return min(max((value - zero) / (one - zero), 0.0), 1.0)


def is_scale(zero: float, one: float) -> bool:
    """Whether these can be the two ends of a scale: they are finite, and differ."""
    return math.isfinite(zero) and math.isfinite(one) and zero != one


@dataclass(frozen=True)
class MeasuredStress:
    """The scale of one quantity; also a hook: `SignalHooks(stress=MeasuredStress("payload_kg", zero=0, one=20))`.

    Attributes:
        quantity: its name, with its unit: the key in a reset's info.
        zero: where stress is 0.
        one: where stress is 1; it may be the smaller of the two.

    Raises:
        ValueError: the two are equal, or not finite.
    """

    quantity: str
    zero: float
    one: float

    def __post_init__(self) -> None:
        """Checks the scale."""
        if not is_scale(self.zero, self.one):
            ends = f"{self.zero!r} and {self.one!r}"
            message = f"a scale needs two different numbers, one that counts as 0 and one as 1; got {ends}"
            raise ValueError(message)

    def of(self, value: Any) -> float | None:
        """λ of a measured value; None, which is undeclared, where it is no finite number."""
        if isinstance(value, (np.ndarray, np.generic)) and value.size == 1:
            value = value.item()
        if not isinstance(value, Real) or not math.isfinite(value):
            return None
        return linear_share(float(value), self.zero, self.one)

    def __call__(self, info: Mapping[str, Any]) -> float | None:
        """λ of the value that a reset's info has under the quantity's name; None where it has none."""
        return self.of(info.get(self.quantity))
