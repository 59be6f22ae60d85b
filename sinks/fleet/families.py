"""The series of whole families, by method and version: their latest readings, kept to a bound.

The series are a function of the latest readings alone, totals among them, so they are the same after a restart that
finds only those in the compacted topic, and on two exporters. The `cap` families with the newest readings have series,
which end when newer ones need the room: whichever order the readings came in, the same ones are shown. There is no
series for the rest together, since the stress capacities of different families add up to nothing.

What is not known makes no series: neither 0 nor NaN. Labels whose values come from settings or producers are bounded
for each family: stress levels and attack kinds.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from springback.sinks.fleet.fleet_state import FamilyNews, clean_family
from springback.sinks.fleet.labels import OTHER_VALUE, LabelValue, clean_label_value, closed_label_value, label_value
from springback.sinks.fleet.memory import BoundedMemory
from springback.sinks.fleet.series import Labels, MetricSeries
from springback.stream_processors.metrics.exporter import OVERFLOW_READINGS, UNSHOWN_FAMILIES
from springback.stream_processors.metrics.families import FAMILY_METRICS, NAVIGATION_METRICS
from springback.stream_processors.metrics.figure_words import UNDECLARED
from springback.stream_processors.metrics.spec import GROUP, ReadMetric
from springback.stream_processors.resilience.families.navigation_safety import ALL_KINDS, OTHER_KINDS
from springback.stream_processors.resilience.readings import FamilyReading

STRESS_LEVELS = 21
"""Stress levels of a family with series of their own, the lowest first, besides `undeclared`: steps of 0.05."""

ATTACKS = 16
"""Attack kinds of a family with series of their own, in the order of their names, besides `all` and `other`."""

_METRICS = (*FAMILY_METRICS, *NAVIGATION_METRICS)

_Rows = list[tuple[float | None, list[str]]]

Shown = Mapping[str, Mapping[Labels, float]]
"""By the metric's name, and by the label values that follow the family's, the value."""


@dataclass(frozen=True, slots=True)
class _Family:
    label: Labels
    updated_s: float
    shown: Shown


class FamilySeries:
    """The series of all families.

    Args:
        series: where they are.
        cap: families (by method and version) with series.
        remembered: families whose latest reading is known.
    """

    def __init__(self, series: MetricSeries, *, cap: int, remembered: int) -> None:
        self._series = series
        self._cap = cap
        self._known: BoundedMemory[_Family] = BoundedMemory(remembered)

    def take(self, news: FamilyNews) -> None:
        """Takes in the latest reading of a family."""
        reading = news.reading
        updated_s = reading.updated_s if math.isfinite(reading.updated_s) else -math.inf
        self._known.put(news.key, _Family(clean_family(reading), updated_s, self._shown(reading)))

    def publish(self) -> None:
        """Brings the series to what holds now."""
        families = sorted(self._known.values(), key=lambda family: (-family.updated_s, family.label))
        shown = families[: self._cap]
        for spec in _METRICS:
            self._series.replace(
                spec,
                {
                    (*family.label, *rest): value
                    for family in shown
                    for rest, value in family.shown.get(spec.name, {}).items()
                },
            )
        self._series.set(UNSHOWN_FAMILIES, len(families) - len(shown))

    def _shown(self, reading: FamilyReading) -> Shown:
        overflown: set[str] = set()
        shown = {spec.name: self._values(spec, reading, overflown) for spec in _METRICS}
        for bound in sorted(overflown):
            self._series.add(OVERFLOW_READINGS, 1, closed_label_value("bound", bound))
        return shown

    def _values(
        self, spec: ReadMetric[FamilyReading], reading: FamilyReading, overflown: set[str]
    ) -> dict[Labels, float]:
        names = spec.labels[len(GROUP) :]
        rows = [(value, labels) for value, *labels in spec.rows(reading)]
        for place, name in enumerate(names):
            if name == "stress":
                usable = [row for row in rows if _is_level(row[1][place])]
                for _ in range(len(rows) - len(usable)):
                    self._series.refuse(spec)
                rows = usable
            if name in _BOUNDED:
                rows, all_shown = _bounded(rows, place, _BOUNDED[name])
                if not all_shown:
                    overflown.add(name)
        found: dict[Labels, list[float]] = {}
        for value, labels in rows:
            if value is not None and self._series.accepts(spec, value):
                found.setdefault(tuple(map(_label_of, names, labels)), []).append(float(value))
        return {labels: spec.combine(values) for labels, values in found.items()}


def _bounded(rows: _Rows, place: int, shown: Callable[[set[str]], list[str]]) -> tuple[_Rows, bool]:
    """The rows whose label at a place is shown, in the order of those labels, and whether these are all."""
    told = {labels[place] for _, labels in rows}
    order = {label: number for number, label in enumerate(shown(told))}
    kept = sorted((row for row in rows if row[1][place] in order), key=lambda row: order[row[1][place]])
    return kept, len(order) == len(told)


def _is_level(stress: str) -> bool:
    return stress == UNDECLARED or math.isfinite(float(stress))


def _lowest(levels: set[str]) -> list[str]:
    undeclared = levels & {UNDECLARED}
    return [*sorted(levels - undeclared, key=float)[:STRESS_LEVELS], *undeclared]


def _first_named(kinds: set[str]) -> list[str]:
    together = kinds & {ALL_KINDS, OTHER_KINDS}
    return [*sorted(kinds - together)[:ATTACKS], *sorted(together)]


_BOUNDED = {"stress": _lowest, "attack": _first_named}


def _label_of(name: str, raw: str) -> LabelValue:
    # The reading itself calls by `other` what it has no room for: that is our own word here, not an id.
    if name == "attack":
        return OTHER_VALUE if raw == OTHER_KINDS else clean_label_value(raw)
    return label_value(name, raw)
