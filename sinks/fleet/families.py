"""What is known of each family, method and version: its latest reading as series, kept to a bound.

The series are a function of the latest readings alone, totals among them, so they are the same after a restart that
finds only those in the compacted topic, and on two exporters. The `cap` families with the newest readings have series,
which end when newer ones need the room: whichever order the readings came in, the same ones are shown. There is no
series for the rest together, since the stress capacities of different families add up to nothing.

Which of two readings of a family holds: the later one.

One reading of a family as the series that it makes. What is not known makes none: neither 0 nor NaN.

Labels whose values come from settings or producers are bounded here, for each family: stress levels and attack kinds.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import get_args

from springback.sinks.fleet.labels import OTHER_VALUE, LabelValue, clean_label_value, closed_label_value
from springback.sinks.fleet.memory import BoundedMemory, fingerprint
from springback.sinks.fleet.series import Labels, MetricSeries
from springback.stream_processors.metrics import families as metrics
from springback.stream_processors.metrics import families as navigation
from springback.stream_processors.metrics.exporter import OVERFLOW_READINGS, UNSHOWN_FAMILIES
from springback.stream_processors.metrics.families import FAMILY_METRICS, NAVIGATION_METRICS
from springback.stream_processors.metrics.spec import MetricSpec
from springback.stream_processors.resilience.families.navigation_safety import ALL_KINDS, OTHER_KINDS
from springback.stream_processors.resilience.readings import (
    CapacityFlag,
    ContractThresholds,
    ExtensibilityRatios,
    FamilyReading,
    NavigationScores,
    StressMargin,
)

_OTHER_COUNT_S = 60.0
"""How much newer a reading must be that counts from the beginning again; a repetition is no newer at all."""


def is_later(sequence: int, updated_s: float, held_sequence: int, held_updated_s: float) -> bool:
    """Whether a reading replaces the one that is held, by how many changes each has seen, and when the last was.

    A worker whose state was lost with its broker counts from 1 again.

    >>> is_later(43, 1000.0, 42, 1000.0), is_later(42, 1000.0, 42, 1000.0), is_later(1, 2000.0, 42, 1000.0)
    (True, False, True)
    """
    return sequence > held_sequence or updated_s > held_updated_s + _OTHER_COUNT_S


STRESS_LEVELS = 21
"""Stress levels of a family with series of their own, the lowest first: a grid of steps of 0.05."""

ATTACKS = 16
"""Attack kinds of a family with series of their own, in the order of their names, besides `all` and `other`."""

FamilySeries = Mapping[str, Mapping[Labels, float]]
"""By the metric's name, and by the label values that follow the family's, the value."""


def clean_family(reading: FamilyReading) -> Labels:
    """Family, method and version as values of labels."""
    return tuple(clean_label_value(part) for part in reading.identity)


def family_series(reading: FamilyReading, series: MetricSeries) -> FamilySeries:
    """The series of a reading.

    Args:
        reading: the reading.
        series: refuses and counts what may not enter, and is told where a bound was reached; nothing is set there.
    """
    found = _Found(series)
    for spec, value in _figures(reading):
        found.put(spec, value)
    for kind, beta in reading.beta_by_kind.items():
        found.put_largest(metrics.BETA_BY_PERTURBATION, beta, closed_label_value("perturbation", kind))
    for flag in get_args(CapacityFlag):
        found.put(metrics.CAPACITY_FLAG, flag == reading.capacity_flag, closed_label_value("flag", flag))
    found.put_quantities(metrics.CONTRACT_THRESHOLD, reading.thresholds)
    _put_margins(found, reading.margins)
    _put_navigation(found, reading.navigation)
    return found.values


class _Found:
    def __init__(self, series: MetricSeries) -> None:
        self._series = series
        self.values: dict[str, dict[Labels, float]] = {}

    def put(self, spec: MetricSpec, value: float | None, *labels: LabelValue) -> None:
        if value is not None and self.accepts(spec, value):
            self.values.setdefault(spec.name, {})[labels] = float(value)

    def put_largest(self, spec: MetricSpec, value: float, *labels: LabelValue) -> None:
        """Several kinds may stand under `other`."""
        held = self.values.get(spec.name, {}).get(labels)
        if held is None or value > held:
            self.put(spec, value, *labels)

    def put_quantities(
        self, spec: MetricSpec, of: ContractThresholds | ExtensibilityRatios, *labels: LabelValue
    ) -> None:
        for name in of.__struct_fields__:
            self.put(spec, getattr(of, name), *labels, closed_label_value("quantity", name))

    def accepts(self, spec: MetricSpec, value: float) -> bool:
        return self._series.accepts(spec, value)

    def overflow(self, bound: str) -> None:
        self._series.add(OVERFLOW_READINGS, 1, closed_label_value("bound", bound))


def _figures(reading: FamilyReading) -> Iterable[tuple[MetricSpec, float | None]]:
    return (
        (metrics.FAMILY_UPDATED, reading.updated_s),
        (metrics.FAMILY_EPISODES, reading.episodes),
        (metrics.BETA, reading.beta),
        (metrics.BETA_UPPER, reading.beta_p95),
        (metrics.BETA_UNPAIRED, reading.beta_unpaired),
        (metrics.STABILITY_PAIRS, reading.pairs),
        (metrics.TASKS_LET_GO, reading.tasks_let_go),
        (metrics.STRESS_CAPACITY, reading.capacity),
        (metrics.FIRST_BREACH, reading.first_breach),
        (metrics.CONTRACT_VIOLATIONS, reading.violations),
        (metrics.LIVE_STRESS, reading.live_stress),
        (metrics.IN_STRESS_BREACH, reading.in_breach),
        (metrics.STRESS_BREACHES, reading.breaches),
        (metrics.SUCCESS_RATIO, reading.success_rate),
        (metrics.COMPLETION_RATIO, reading.completion),
        (metrics.MEAN_STEPS, reading.mean_steps),
        (metrics.MEAN_COST, reading.recovery_cost_mean),
        (metrics.MEAN_STABILITY_LOSS, reading.stability_loss_mean),
    )


def _put_margins(found: _Found, margins: Iterable[StressMargin]) -> None:
    known = [margin for margin in margins if found.accepts(metrics.STRESS_MARGIN, margin.stress)]
    levels = {LabelValue(f"{margin.stress:g}"): margin for margin in sorted(known, key=lambda margin: margin.stress)}
    for level, margin in list(levels.items())[:STRESS_LEVELS]:
        found.put(metrics.STRESS_MARGIN, margin.margin, level)
        found.put(metrics.STRESS_EPISODES, margin.episodes, level)
        found.put(metrics.STRESS_SUFFICIENT, margin.sufficient, level)
        found.put_quantities(metrics.EXTENSIBILITY_RATIO, margin.ratios, level)
    if len(levels) > STRESS_LEVELS:
        found.overflow("stress")


def _put_navigation(found: _Found, by_attack: Mapping[str, NavigationScores]) -> None:
    together = by_attack.keys() & {ALL_KINDS, OTHER_KINDS}
    kinds = sorted(by_attack.keys() - together)
    for kind in (*kinds[:ATTACKS], *sorted(together)):
        # The reading itself calls by `other` what it has no room for: that is our own word here, not an id.
        scores, label = by_attack[kind], OTHER_VALUE if kind == OTHER_KINDS else clean_label_value(kind)
        found.put(navigation.NAVIGATION_EPISODES, scores.episodes, label)
        found.put(navigation.NAVIGATION_SUCCESS, scores.success_rate, label)
        found.put(navigation.NAVIGATION_SPL, scores.spl, label)
        found.put(navigation.NAVIGATION_SEL, scores.sel, label)
        found.put(navigation.NAVIGATION_GOALS, scores.goal_completion, label)
    if len(kinds) > ATTACKS:
        found.overflow("attack")


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
