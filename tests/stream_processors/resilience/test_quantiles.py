"""Quantiles by rank against a literal count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.stream_processors.resilience.quantiles import quantile


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
