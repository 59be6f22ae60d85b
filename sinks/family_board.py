"""What is known of each family, method and version: its latest reading as series, kept to a bound.

The series are a function of the latest readings alone, totals among them, so they are the same after a restart that
finds only those in the compacted topic, and on two exporters. The `cap` families with the newest readings have series,
which end when newer ones need the room: whichever order the readings came in, the same ones are shown. There is no
series for the rest together, since the stress capacities of different families add up to nothing.
"""

import math
from dataclasses import dataclass

from springback.sinks.bounded_memory import BoundedMemory, fingerprint
from springback.sinks.family_order import is_later
from springback.sinks.family_series import FamilySeries, clean_family, family_series
from springback.sinks.metric_series import Labels, MetricSeries
from springback.stream_processors.resilience.exporter_metrics import UNSHOWN_FAMILIES
from springback.stream_processors.resilience.family_metrics import FAMILY_METRICS
from springback.stream_processors.resilience.family_readings import FamilyReading
from springback.stream_processors.resilience.navigation_metrics import NAVIGATION_METRICS

_METRICS = (*FAMILY_METRICS, *NAVIGATION_METRICS)


@dataclass(frozen=True, slots=True)
class _Family:
    label: Labels
    sequence: int
    updated_s: float
    series: FamilySeries


class FamilyBoard:
    """The families.

    Args:
        series: where the series are.
        cap: families (by method and version) with series.
        remembered: families whose latest reading is known.
    """

    def __init__(self, series: MetricSeries, *, cap: int, remembered: int) -> None:
        self._series = series
        self._cap = cap
        self._known: BoundedMemory[_Family] = BoundedMemory(remembered)

    def take(self, reading: FamilyReading) -> bool:
        """Take in what is known of a family. False where this is known already, or something later."""
        label = clean_family(reading)
        key = fingerprint(label)
        held = self._known.get(key)
        updated_s = reading.updated_s if math.isfinite(reading.updated_s) else -math.inf
        if held is not None and not is_later(reading.sequence, updated_s, held.sequence, held.updated_s):
            return False
        self._known.put(key, _Family(label, reading.sequence, updated_s, family_series(reading, self._series)))
        return True

    def publish(self) -> None:
        """Bring the series to what holds now."""
        families = sorted(self._known.values(), key=lambda family: (-family.updated_s, family.label))
        shown = families[: self._cap]
        for spec in _METRICS:
            self._series.replace(
                spec,
                {
                    (*family.label, *rest): value
                    for family in shown
                    for rest, value in family.series.get(spec.name, {}).items()
                },
            )
        self._series.set(UNSHOWN_FAMILIES, len(families) - len(shown))
