"""Quantiles by rank against a literal count; the sketch is the sort up to its k, near it beyond, also after storage."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.stream_processors.resilience.quantiles import (
    SKETCH_K,
    QuantileSketch,
    decode_sketch,
    encode_sketch,
    quantile,
)

VALUES = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=SKETCH_K)
RANKS = st.sampled_from([0.05, 0.1, 0.5, 0.9, 1 - 0.1, 0.95]) | st.floats(0.001, 1.0)


@given(values=st.lists(st.integers(0, 9), min_size=1, max_size=60), percent=st.integers(1, 100))
def test_is_the_smallest_value_whose_rank_reaches_it(values: list[int], percent: int) -> None:
    numbers = [float(value) for value in values]
    found = quantile(numbers, percent / 100)
    reaching = [v for v in numbers if 100 * sum(w <= v for w in numbers) >= percent * len(numbers)]  # in integers
    assert found == min(reaching)


@pytest.mark.parametrize(("values", "rank"), [([], 0.5), ([1.0], 0.0), ([1.0], 1.5), ([1.0], float("nan"))])
def test_refuses_what_has_no_quantile(values: list[float], rank: float) -> None:
    with pytest.raises(ValueError, match="expected values and a rank"):
        quantile(values, rank)


@given(VALUES, RANKS)
def test_exact_up_to_k(values: list[float], rank: float) -> None:
    assert QuantileSketch(values).quantile(rank) == quantile(values, rank)


def test_every_position_of_every_count_is_the_sorts() -> None:
    for count in range(1, SKETCH_K + 1):
        values = [float(value) for value in range(count)]
        sketch = QuantileSketch(values)
        ranks = [position / count for position in range(1, count + 1)]
        assert [sketch.quantile(rank) for rank in ranks] == [quantile(values, rank) for rank in ranks] == values


@given(VALUES, RANKS)
def test_bytes_hold_it_all(values: list[float], rank: float) -> None:
    sketch = QuantileSketch(values)
    again = QuantileSketch.load(sketch.dump())
    assert again == sketch
    assert (len(again), again.quantile(rank)) == (len(values), quantile(values, rank))


def test_beyond_k_the_rank_is_near() -> None:
    values = np.random.default_rng(3).permutation(20_000) / 20_000
    sketch = QuantileSketch(values.tolist())
    for rank in (0.1, 0.5, 0.9, 0.95):
        assert sketch.quantile(rank) == pytest.approx(rank, abs=0.03)
    assert len(sketch.dump()) < 8 * 4 * SKETCH_K


def test_no_values_no_quantile() -> None:
    empty = QuantileSketch()
    assert (len(empty), empty.quantile(0.5), QuantileSketch.load(empty.dump()).quantile(0.5)) == (0, None, None)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused(value: float) -> None:
    sketch = QuantileSketch([1.0])
    with pytest.raises(ValueError, match="expected a finite number"):
        sketch.add(value)
    assert len(sketch) == 1


@pytest.mark.parametrize("data", [b"", b"not a sketch at all", QuantileSketch([1.0, 2.0, 3.0]).dump()[:-4]])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="expected a KLL sketch"):
        QuantileSketch.load(data)


def test_hooks_know_sketches_alone() -> None:
    with pytest.raises(NotImplementedError, match="complex"):
        encode_sketch(1j)
    with pytest.raises(NotImplementedError, match="complex"):
        decode_sketch(complex, b"")
