"""The values of all series, by the metric catalogue: the one place where numbers enter them.

A NaN that is added to a counter, or observed by a histogram, stays there for good: so whatever is not finite, or would
make a counter run backwards, is refused here and counted.

A bucket of a histogram names the episode that its latest value came from, as its exemplar (OpenMetrics only). An
exemplar is no label of a series, so it may hold what has no bound: each bucket keeps the latest one alone.
"""

import itertools
import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.samples import Exemplar
from prometheus_client.utils import floatToGoString

from springback.sinks.errors import MetricLabelsError
from springback.sinks.fleet.labels import LabelValue, clean_label_value
from springback.stream_processors.metrics.exporter import REFUSED_VALUES
from springback.stream_processors.metrics.spec import MetricSpec
from springback.stream_processors.resilience.readings import EpisodeKey

LONGEST_EXEMPLAR = 128
"""Characters of all names and values of an exemplar's labels together, by the OpenMetrics specification."""

# Parsers of OpenMetrics, including that of Prometheus' own Python client, stumble over escapes in exemplars.
_ESCAPED = str.maketrans({'"': "\x01", "\\": "\x02"})
_LONGEST_ID = (LONGEST_EXEMPLAR - len("agent") - len("episode")) // 2


class Origin(NamedTuple):
    """What a value is of. In the order of time, and then of names, so that the order of arrival does not matter."""

    time_s: float
    agent: LabelValue
    episode: LabelValue


def origin_of(key: EpisodeKey, time_s: float, now_s: float) -> Origin | None:
    """The origin of a value of an episode; None without a time that can be.

    Args:
        key: the episode.
        time_s: when the value came about, by the broker's clock as far as the agent's skew is known. A time ahead would
            have Prometheus refuse the exemplars after it, so none is later than the present.
        now_s: the present.
    """
    if not math.isfinite(time_s) or time_s < 0:
        return None
    agent, episode = (clean_label_value(part.translate(_ESCAPED), _LONGEST_ID) for part in (key.agent, key.episode))
    return Origin(round(min(time_s, now_s), 3), agent, episode)


def exemplar_of(origin: Origin, value: float) -> Exemplar:
    """The exemplar as Prometheus' client writes it."""
    return Exemplar({"agent": origin.agent, "episode": origin.episode}, value, origin.time_s)


Labels = tuple[LabelValue, ...]


class _Distribution:
    __slots__ = ("counts", "latest", "sum")

    def __init__(self, buckets: int) -> None:
        self.counts = [0] * (buckets + 1)
        self.latest: list[tuple[Origin, float] | None] = [None] * (buckets + 1)
        self.sum = 0.0


class MetricSeries:
    """Counters, gauges and histograms in memory. Not safe between threads: its owner locks.

    Args:
        catalogue: the metrics that there are. Those without labels begin at 0, except gauges, which begin absent.
    """

    def __init__(self, catalogue: Iterable[MetricSpec]) -> None:
        self._catalogue = tuple(catalogue)
        self._values: dict[str, dict[Labels, float]] = {}
        self._distributions: dict[str, dict[Labels, _Distribution]] = {}
        for spec in self._catalogue:
            if spec.kind == "histogram":
                self._distributions[spec.name] = {}
            else:
                self._values[spec.name] = {(): 0.0} if spec.kind == "counter" and not spec.labels else {}

    def accepts(self, spec: MetricSpec, value: float) -> bool:
        """Whether a value may enter a series of the metric; one that may not is counted as refused."""
        if math.isfinite(value) and (value >= 0 or spec.kind != "counter"):
            return True
        self.refuse(spec)
        return False

    def refuse(self, spec: MetricSpec) -> None:
        """Counts a value as kept out of the metric's series."""
        self.add(REFUSED_VALUES, 1, clean_label_value(spec.name))

    def add(self, spec: MetricSpec, amount: float, *labels: LabelValue) -> None:
        """Raises a counter; an amount below 0 is refused."""
        series = self._values[spec.name]
        risen = series.get(_checked(spec, labels), 0.0) + amount
        if amount < 0:
            self.refuse(spec)
        elif self.accepts(spec, risen):
            series[labels] = risen

    def set(self, spec: MetricSpec, value: float, *labels: LabelValue) -> None:
        """Sets a gauge, or an info's one series."""
        _checked(spec, labels)
        if self.accepts(spec, value):
            self._values[spec.name][labels] = value

    def replace(self, spec: MetricSpec, values: Mapping[Labels, float]) -> None:
        """Gives a gauge, or a counter whose totals come whole, these series and no others."""
        self._values[spec.name] = {
            _checked(spec, labels): value for labels, value in values.items() if self.accepts(spec, value)
        }

    def observe(self, spec: MetricSpec, value: float, *labels: LabelValue, origin: Origin | None = None) -> None:
        """Counts a value in a histogram; one below 0 is refused, since all that we measure this way is a size.

        Args:
            spec: the histogram.
            value: the value.
            labels: the series.
            origin: what the value is of; its bucket shows the latest as its exemplar.
        """
        series = self._distributions[spec.name]
        found = series.get(_checked(spec, labels)) or _Distribution(len(spec.buckets))
        if value < 0:
            self.refuse(spec)
        elif self.accepts(spec, found.sum + value):
            found.sum += value
            bucket = bisect_left(spec.buckets, value)
            found.counts[bucket] += 1
            if origin is not None:
                found.latest[bucket] = max((origin, value), found.latest[bucket] or (origin, value))
            series[labels] = found

    def values(self, spec: MetricSpec) -> Mapping[Labels, float]:
        """The series of a counter, gauge or info, by their labels' values."""
        return self._values[spec.name]

    def families(self, wanted: Iterable[MetricSpec] | None = None) -> Iterator[Metric]:
        """The series as Prometheus' client writes them: of all metrics, or of those wanted."""
        for spec in self._catalogue if wanted is None else wanted:
            if spec.kind == "histogram":
                yield _histogram_family(spec, self._distributions[spec.name])
            else:
                yield _scalar_family(spec, self._values[spec.name])


def _checked(spec: MetricSpec, labels: Labels) -> Labels:
    if len(labels) != len(spec.labels):
        message = f"{spec.name} was given the label values {labels}, expected one for each of {spec.labels}."
        raise MetricLabelsError(message)
    return labels


def _scalar_family(spec: MetricSpec, series: Mapping[Labels, float]) -> Metric:
    if spec.kind == "info":
        info = InfoMetricFamily(spec.name.removesuffix("_info"), spec.help)
        for labels in series:
            info.add_metric([], dict(zip(spec.labels, labels, strict=True)))
        return info
    kind = CounterMetricFamily if spec.kind == "counter" else GaugeMetricFamily
    family = kind(spec.name, spec.help, labels=spec.labels)
    for labels, value in series.items():
        family.add_metric(labels, value)
    return family


def _histogram_family(spec: MetricSpec, series: Mapping[Labels, _Distribution]) -> Metric:
    family = HistogramMetricFamily(spec.name, spec.help, labels=spec.labels)
    bounds = [*map(floatToGoString, spec.buckets), "+Inf"]
    for labels, found in series.items():
        running = map(float, itertools.accumulate(found.counts))
        buckets = [
            (bound, count) if latest is None else (bound, count, exemplar_of(*latest))
            for bound, count, latest in zip(bounds, running, found.latest, strict=True)
        ]
        family.add_metric(labels, buckets, found.sum)
    return family
