"""Readings as Prometheus metrics: a collector whose page is computed when it is asked for."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from springback.sinks.fleet.agent_state import DEFAULT_TIMES, StateTimes
from springback.sinks.fleet.fleet_series import FleetSeries
from springback.sinks.fleet.labels import OTHER_VALUE, LabelBound, clean_label_value
from springback.sinks.fleet.series import Labels, MetricSeries
from springback.sinks.fleet.series_bounds import MOST_READING_TOPICS, MOST_SINKS, SeriesBounds
from springback.sinks.sink import DeadLetter, ReadingBack
from springback.stream_processors.metrics import exporter as own_metrics
from springback.stream_processors.metrics.catalogue import FRAMES_BEHIND, METRIC_CATALOGUE
from springback.stream_processors.metrics.exporter import EXPORTER_METRICS
from springback.stream_processors.resilience.readings import READING_SCHEMA_VERSION, Reading


class PrometheusSink:
    """A sink, and a collector for a Prometheus registry.

    Until `caught_up` is called the page holds the exporter's own metrics alone: half-folded counters would look like
    resets, and what follows them like a burst.

    Args:
        registry: where it registers itself.
        bounds: how many series there may be.
        times: after how long an agent is in which state.
        version: of the product, as the page tells it.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        bounds: SeriesBounds | None = None,
        times: StateTimes = DEFAULT_TIMES,
        version: str = "unknown",
        clock: Callable[[], float] = time.time,
    ) -> None:
        bounds = bounds or SeriesBounds()
        self._clock = clock
        # The page is asked for on the HTTP server's threads.
        self._lock = threading.Lock()
        self._series = MetricSeries(METRIC_CATALOGUE)
        self._partitions = bounds.partitions
        self._topics = LabelBound(MOST_READING_TOPICS)
        self._sinks = LabelBound(MOST_SINKS)
        self._fleet = FleetSeries(self._series, bounds, times)
        self._series.set(
            own_metrics.EXPORTER, 1, clean_label_value(version), clean_label_value(str(READING_SCHEMA_VERSION))
        )
        self._series.set(own_metrics.CAUGHT_UP, 0)
        self._series.set(own_metrics.BROKER_REACHABLE, 0)
        self._unread: ReadingBack | None = None
        registry.register(self)

    @property
    def name(self) -> str:
        """What the sink is called."""
        return "prometheus"

    def write(self, reading: Reading) -> None:
        """Folds one reading into the series."""
        with self._lock:
            self._fleet.take(reading, self._clock())

    def write_dead_letter(self, letter: DeadLetter) -> None:
        """Counts that something could not be used."""
        with self._lock:
            self._fleet.take_dead_letter(letter)

    def flush(self) -> None:
        """Does nothing: the page is computed when it is asked for."""

    def close(self) -> None:
        """Does nothing: the HTTP server belongs to whoever started it."""

    def reading_back(self, progress: ReadingBack) -> None:
        """Shows how much of what was in the topics at the start is still to be read, and how far back it goes."""
        with self._lock:
            self._unread = progress
            self._series.set(own_metrics.UNREAD_READINGS, progress.total - progress.read)
            reach = {
                self._topics.admit((clean_label_value(topic),)): since_s
                for topic, since_s, _ in progress.reaches
                if since_s is not None
            }
            self._series.replace(own_metrics.REACH, reach)

    @property
    def waits_for(self) -> str | None:
        """What keeps the page from being whole, in words; None where it is whole, or nothing is known."""
        if self.ready or self._unread is None:
            return None
        return f"read {self._unread.read:,} of {self._unread.total:,} that the topics hold"

    def unreadable(self, topic: str) -> None:
        """Counts a message that is no reading."""
        with self._lock:
            self._series.add(own_metrics.UNREADABLE_MESSAGES, 1, *self._topics.admit((clean_label_value(topic),)))

    def retried(self, sink: str) -> None:
        """Counts a write that is tried again."""
        with self._lock:
            self._series.add(own_metrics.SINK_RETRIES, 1, *self._sinks.admit((clean_label_value(sink),)))

    @property
    def ready(self) -> bool:
        """Whether the page shows the folded series."""
        return self._fleet.fleet.sight.caught_up

    def caught_up(self) -> None:
        """Shows the folded series from now on."""
        with self._lock:
            self._fleet.fleet.sight.caught_up = True
            self._series.set(own_metrics.CAUGHT_UP, 1)
            self._unread = None

    def show_frames_behind(self, behind: Mapping[int, int]) -> None:
        """Shows how many frames are unread, by partition: the broker has answered."""
        values: dict[Labels, float] = {}
        for number, (partition, frames) in enumerate(sorted(behind.items())):
            label = clean_label_value(str(partition)) if number < self._partitions else OTHER_VALUE
            values[(label,)] = values.get((label,), 0) + frames
        with self._lock:
            self._series.set(own_metrics.BROKER_REACHABLE, 1)
            self._series.replace(FRAMES_BEHIND, values)
            self._fleet.fleet.sight.show_frames_behind(behind, self._clock())

    def show_broker_away(self) -> None:
        """Shows that the broker does not answer, and no longer what it last said: what agents do is unknown."""
        with self._lock:
            self._series.set(own_metrics.BROKER_REACHABLE, 0)
            self._series.replace(FRAMES_BEHIND, {})
            self._fleet.fleet.sight.show_broker_away(self._clock())

    def describe(self) -> Iterator[Metric]:
        """The metrics without their series, by which the registry sees clashes of names."""
        return MetricSeries(METRIC_CATALOGUE).families()

    def collect(self) -> Iterator[Metric]:
        """The page as of now."""
        with self._lock:
            if not self.ready:
                return iter(list(self._series.families(EXPORTER_METRICS)))
            self._fleet.publish(self._clock())
            return iter(list(self._series.families()))
