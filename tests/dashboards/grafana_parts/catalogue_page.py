"""A metrics page with every metric of the catalogue, whose counters rise: what a Prometheus scrapes in these tests."""

import contextlib
import itertools
from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from springback.sinks.fleet.labels import LabelValue
from springback.sinks.fleet.series import MetricSeries
from springback.sinks.metrics_server import metrics_server
from springback.stream_processors.metrics.agents import AGENT_INFO, AGENT_STATE
from springback.stream_processors.metrics.catalogue import METRIC_CATALOGUE
from springback.stream_processors.metrics.services import WORKER_METRICS
from springback.stream_processors.metrics.spec import CLOSED_LABELS, OTHER, MetricSpec
from springback.stream_processors.metrics.stress import CAPACITY_FLAG, LEVEL_STATE, STRESS_STATE

SPECS = tuple({spec.name: spec for spec in (*METRIC_CATALOGUE, *WORKER_METRICS)}.values())
AGENT = 'robot "7"\\'
_AGENTS = (AGENT, "rover-1", OTHER)
_OPEN_VALUES = {
    "agent": _AGENTS,
    "family": ("navigation", "assembly"),
    "stress": ("0", "0.2", "0.4", "undeclared"),
    "attack": ("all", "physical"),
    "stage": ("track_steps", "learn_baselines", "aggregate_families"),
}
_HOLDING = {
    AGENT_STATE.name: "rebound",
    STRESS_STATE.name: "untested",
    LEVEL_STATE.name: "undecided",
    CAPACITY_FLAG.name: "open",
}
"""Which of their states hold."""


class CataloguePage:
    """A collector with some series of every metric. Each scrape, its counters have risen by 1."""

    def __init__(self) -> None:
        self._series = MetricSeries(SPECS)

    def collect(self) -> Iterator[Metric]:
        for spec in SPECS:
            for values in _label_values(spec):
                self._fill(spec, values)
        return iter(list(self._series.families()))

    def _fill(self, spec: MetricSpec, values: tuple[LabelValue, ...]) -> None:
        if spec.kind == "histogram":
            self._series.observe(spec, spec.buckets[len(spec.buckets) // 2], *values)
        elif spec.kind == "counter":
            self._series.add(spec, 1, *values)
        elif spec.name in _HOLDING:
            self._series.set(spec, _HOLDING[spec.name] in values, *values)
        else:
            self._series.set(spec, 1, *values)


@contextlib.contextmanager
def catalogue_page() -> Iterator[str]:
    """The address of such a page, for as long as the block runs."""
    registry = CollectorRegistry()
    registry.register(CataloguePage())
    with metrics_server(registry, "127.0.0.1", 0) as address:
        yield address


def _label_values(spec: MetricSpec) -> Iterator[tuple[LabelValue, ...]]:
    for values in itertools.product(*(_values(spec, label) for label in spec.labels)):
        # An agent is of one family, and `other` is no agent.
        if spec is not AGENT_INFO or (OTHER not in values and "navigation" in values):
            yield tuple(map(LabelValue, values))


def _values(spec: MetricSpec, label: str) -> tuple[str, ...]:
    if label == "state":
        return spec.states
    if label in CLOSED_LABELS:
        return tuple(sorted(CLOSED_LABELS[label]))
    return _OPEN_VALUES.get(label, ("1",))
