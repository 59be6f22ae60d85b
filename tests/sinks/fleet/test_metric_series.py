import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.sinks.errors import MetricLabelsError
from springback.sinks.fleet.labels import clean_label_value
from springback.sinks.fleet.series import MetricSeries
from springback.stream_processors.metrics.exporter import REFUSED_VALUES
from springback.stream_processors.metrics.spec import MetricSpec

COUNTER = MetricSpec(name="t_total", kind="counter", unit="1", help="h", source="ours")
GAUGE = MetricSpec(name="t_gauge", kind="gauge", unit="1", help="h", source="ours", labels=("agent",))
HISTOGRAM = MetricSpec(name="t_cost", kind="histogram", unit="1", help="h", source="ours", buckets=(1.0, 2.0))
ALL = (COUNTER, GAUGE, HISTOGRAM, REFUSED_VALUES)
AGENT = clean_label_value("robot-7")


def samples(series: MetricSeries) -> dict[str, float]:
    found = {}
    for family in series.families():
        for sample in family.samples:
            found[sample.name + (sample.labels.get("le") or "")] = sample.value
    return found


@given(st.lists(st.floats(), max_size=30))
def test_no_series_is_ever_not_finite(values: list[float]) -> None:
    series = MetricSeries(ALL)
    for value in values:
        series.add(COUNTER, value)
        series.set(GAUGE, value, AGENT)
        series.observe(HISTOGRAM, value)
        series.replace(GAUGE, {(AGENT,): value})
    assert all(map(math.isfinite, samples(series).values()))


@given(st.lists(st.floats(), max_size=30))
def test_a_counter_never_falls(values: list[float]) -> None:
    series, last = MetricSeries(ALL), 0.0
    for value in values:
        series.add(COUNTER, value)
        assert series.values(COUNTER)[()] >= last
        last = series.values(COUNTER)[()]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_refused_is_counted(value: float) -> None:
    series = MetricSeries(ALL)
    series.add(COUNTER, value)
    series.set(GAUGE, value, AGENT)
    series.observe(HISTOGRAM, value)
    assert [series.values(REFUSED_VALUES)[clean_label_value(spec.name),] for spec in ALL[:3]] == [1, 1, 1]
    assert series.values(GAUGE) == {}
    assert "t_cost_count" not in samples(series)


def test_sums_that_would_overflow_are_refused() -> None:
    series = MetricSeries(ALL)
    for _ in range(2):
        series.add(COUNTER, 1.7e308)
        series.observe(HISTOGRAM, 1.7e308)
    assert samples(series)["t_total"] == 1.7e308
    assert samples(series)["t_cost_count"] == 1


def test_a_bucket_holds_its_own_bound_and_all_below() -> None:
    series = MetricSeries(ALL)
    for value in (0.5, 1.0, 1.5, 2.0, 9.0):
        series.observe(HISTOGRAM, value)
    found = samples(series)
    assert (found["t_cost_bucket1.0"], found["t_cost_bucket2.0"], found["t_cost_bucket+Inf"]) == (2, 4, 5)
    assert (found["t_cost_count"], found["t_cost_sum"]) == (5, 14)


def test_a_counter_without_labels_begins_at_zero() -> None:
    assert samples(MetricSeries(ALL)) == {"t_total": 0.0}


def test_labels_that_the_catalogue_does_not_declare_are_an_error() -> None:
    with pytest.raises(MetricLabelsError, match="t_gauge"):
        MetricSeries(ALL).set(GAUGE, 1.0)
