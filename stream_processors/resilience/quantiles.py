"""Quantiles by rank, of a list and of a stream: one definition that a sort and a mergeable sketch agree on (ours).

`QuantileSketch` keeps a stream in bounded memory (Apache DataSketches KLL). It is exact, and the same as `quantile`, up
to `SKETCH_K` values; beyond, the rank of an answer is off by 1 % at most with a probability of 0.99. Which values are
dropped then is a matter of chance, so two runs may differ by that.
"""

import math
from collections.abc import Sequence
from typing import Any

from datasketches import kll_doubles_sketch  # type: ignore[import-untyped]

SKETCH_K = 256
"""Values up to which a sketch is exact."""


def quantile(values: Sequence[float], rank: float) -> float:
    """The smallest value whose rank (share of values at or below it) reaches `rank`.

    Raises:
        ValueError: no values, or a rank outside (0, 1].

    >>> quantile([4.0, 1.0, 3.0, 2.0], 0.5)
    2.0
    >>> quantile([4.0, 1.0, 3.0, 2.0], 0.51)
    3.0
    """
    if not values or not 0 < rank <= 1:
        message = f"expected values and a rank in (0, 1], got {len(values)} values and rank {rank}"
        raise ValueError(message)
    return sorted(values)[rank_position(len(values), rank) - 1]


def rank_position(count: int, rank: float) -> int:
    """Which of so many values, counted from the smallest (1), is the first whose rank reaches `rank`.

    >>> rank_position(20, 0.95), rank_position(21, 0.95), rank_position(5, 0.1)
    (19, 20, 1)
    """
    # The ceiling is taken a hair low: 0.95 * 20 is 19 and not the 19.000000000000004 that floats make of it.
    return max(math.ceil(rank * count - 1e-9), 1)


class QuantileSketch:
    """A KLL sketch of float64 values, as part of a state: `encode_sketch` and `decode_sketch` are its msgspec hooks.

    >>> sketch = QuantileSketch([4.0, 1.0, 3.0, 2.0])
    >>> sketch.quantile(0.5), sketch.quantile(0.51), QuantileSketch().quantile(0.5)
    (2.0, 3.0, None)
    """

    __slots__ = ("_sketch",)

    def __init__(self, values: "list[float] | tuple[()]" = ()) -> None:
        self._sketch: Any = kll_doubles_sketch(SKETCH_K)
        for value in values:
            self.add(value)

    def __len__(self) -> int:
        """How many values it has taken in."""
        return int(self._sketch.n)

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same values in the same places."""
        return isinstance(other, QuantileSketch) and self.dump() == other.dump()

    __hash__ = None  # type: ignore[assignment]

    def add(self, value: float) -> None:
        """Takes in a value.

        Raises:
            ValueError: it is not finite.
        """
        if not math.isfinite(value):
            message = f"expected a finite number, got {value}"
            raise ValueError(message)
        self._sketch.update(value)

    def quantile(self, rank: float) -> float | None:
        """The smallest value whose rank (share of values at or below it) reaches `rank`; None without values."""
        count = len(self)
        if not count:
            return None
        # The position is that of `quantile`, asked for by a rank half way between it and the one before.
        return float(self._sketch.get_quantile((rank_position(count, rank) - 0.5) / count, True))

    def dump(self) -> bytes:
        """The sketch in DataSketches' own format."""
        return bytes(self._sketch.serialize())

    @classmethod
    def load(cls, data: bytes) -> "QuantileSketch":
        """The sketch in the bytes.

        Raises:
            ValueError: they hold no sketch.
        """
        loaded = cls()
        try:
            loaded._sketch = kll_doubles_sketch.deserialize(data)
        except (RuntimeError, ValueError, IndexError) as error:
            message = f"expected a KLL sketch of float64, got {len(data)} other bytes: {error}"
            raise ValueError(message) from error
        return loaded


def encode_sketch(value: object) -> bytes:
    """A sketch within a struct as bytes: msgspec's `enc_hook`."""
    if isinstance(value, QuantileSketch):
        return value.dump()
    message = f"cannot encode {type(value).__name__}"
    raise NotImplementedError(message)


def decode_sketch(kind: type, data: object) -> QuantileSketch:
    """A sketch out of the bytes in a struct: msgspec's `dec_hook`."""
    if kind is QuantileSketch and isinstance(data, bytes):
        return QuantileSketch.load(data)
    message = f"cannot decode {kind.__name__}"
    raise NotImplementedError(message)
