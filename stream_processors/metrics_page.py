"""The metrics that a process serves of itself, as Prometheus scrapes them: numbers in, a page out.

The page is computed when it is asked for, on the event loop that the numbers live on: nothing is kept twice.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from springback.stream_processors.resilience.metric_spec import MetricSpec


class Measurement(NamedTuple):
    """A counter's or gauge's value just now. `labels` are in the order of the metric's."""

    metric: MetricSpec
    value: float
    labels: tuple[str, ...] = ()


class MetricsPage:
    """A page of measurements, with those of the process (`process_*`) and of its Python.

    Args:
        registry: what the page shows; a new one for each process. What else it holds is shown too.
        catalogue: the metrics that are measured, in the order of the page.
        measure: measures them. A metric or series that is left out has no value just now, which is not 0.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        catalogue: Sequence[MetricSpec],
        measure: Callable[[], Iterable[Measurement]],
    ) -> None:
        self._registry = registry
        self._catalogue = catalogue
        self._measure = measure
        registry.register(self)
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)

    def render(self, accept: str) -> tuple[str, bytes]:
        """The page, in the format that a request's header `Accept` asks for: its content type, and its bytes."""
        encode, content_type = choose_encoder(accept)
        return content_type, encode(self._registry)

    def describe(self) -> Iterator[Metric]:
        """The metrics without their series, by which the registry sees clashes of names."""
        return (scalar_family(spec, {}) for spec in self._catalogue)

    def collect(self) -> Iterator[Metric]:
        """The metrics as of now."""
        series: dict[str, dict[tuple[str, ...], float]] = {spec.name: {} for spec in self._catalogue}
        for metric, value, labels in self._measure():
            series[metric.name][labels] = value
        return (scalar_family(spec, series[spec.name]) for spec in self._catalogue)


def scalar_family(spec: MetricSpec, series: Mapping[tuple[str, ...], float]) -> Metric:
    """A counter or gauge as Prometheus' client writes it, with the series given by their labels' values."""
    kind = CounterMetricFamily if spec.kind == "counter" else GaugeMetricFamily
    family = kind(spec.name, spec.help, labels=spec.labels)
    for labels, value in series.items():
        family.add_metric(labels, value)
    return family
