"""One reading of a family as the series that it makes. What is not known makes none: neither 0 nor NaN.

Labels whose values come from settings or producers are bounded here, for each family: stress levels and attack kinds.
"""

from collections.abc import Iterable, Mapping
from typing import get_args

from springback.sinks.label_values import OTHER_VALUE, LabelValue, clean_label_value, closed_label_value
from springback.sinks.metric_series import Labels, MetricSeries
from springback.stream_processors.resilience import family_metrics as metrics
from springback.stream_processors.resilience import navigation_metrics as navigation
from springback.stream_processors.resilience.exporter_metrics import OVERFLOW_READINGS
from springback.stream_processors.resilience.family_readings import (
    CapacityFlag,
    ContractThresholds,
    ExtensibilityRatios,
    FamilyReading,
    NavigationScores,
    StressMargin,
)
from springback.stream_processors.resilience.metric_spec import MetricSpec
from springback.stream_processors.resilience.navigation_safety import ALL_KINDS, OTHER_KINDS

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
