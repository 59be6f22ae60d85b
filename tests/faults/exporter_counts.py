"""The exporter's counters and histograms: those of its page, and those that the readings of the oracle come to."""

import math
from collections.abc import Iterable
from urllib.request import ProxyHandler, build_opener

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from springback.sinks.prometheus_sink import PrometheusSink
from springback.sinks.sink import DeadLetter
from springback.stream_processors.metrics.catalogue import METRIC_CATALOGUE
from springback.stream_processors.metrics.exporter import EXPORTER_METRICS
from springback.stream_processors.resilience.readings import Reading

_OPENER = build_opener(ProxyHandler({}))
_PAGE_S = 30.0
_OF_ITSELF = {spec.name for spec in EXPORTER_METRICS}
_COUNTED = {
    spec.name.removesuffix("_total"): spec.kind
    for spec in METRIC_CATALOGUE
    if spec.kind in ("counter", "histogram") and spec.name not in _OF_ITSELF
}
_SAMPLES = ("_total", "_bucket", "_count", "_sum")

Counts = dict[tuple[str, tuple[tuple[str, str], ...]], float]
"""The value of each series, by its name and its labels."""


def counts_of_page(address: str) -> Counts:
    """The counters and histograms that an exporter shows."""
    text = _OPENER.open(address, timeout=_PAGE_S).read().decode("utf-8")
    return _counts(text_string_to_metric_families(text))


def counts_of_readings(readings: Iterable[Reading], letters: Iterable[DeadLetter]) -> Counts:
    """What a new exporter would show that has read these and nothing else."""
    registry = CollectorRegistry()
    sink = PrometheusSink(registry)
    for reading in readings:
        sink.write(reading)
    for letter in letters:
        sink.write_dead_letter(letter)
    sink.caught_up()
    return _counts(sink.collect())


def count_differences(found: Counts, expected: Counts) -> list[str]:
    """Where the page is not what it should be; sums to a part in 10⁹, as their order is free."""
    wrong = []
    for series in sorted(found.keys() | expected.keys()):
        told, known = found.get(series, 0.0), expected.get(series, 0.0)
        if not math.isclose(told, known, rel_tol=1e-9, abs_tol=1e-9):
            labels = ",".join(f"{name}={value}" for name, value in series[1])
            wrong.append(f"exporter: {series[0]}{{{labels}}}: expected {known:g}, found {told:g}")
    return wrong


def _counts(families: Iterable[Metric]) -> Counts:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        if family.name in _COUNTED
        for sample in family.samples
        if sample.name.endswith(_SAMPLES)
    }
