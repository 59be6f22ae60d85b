"""What a metric is, and the labels and buckets that metrics share. The metrics themselves: `catalogue`.

No label ever holds an episode or a step: their number has no bound. The choice of buckets is ours.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, Literal, TypeVar, get_args

import msgspec

from springback.stream_processors.metrics.glossary import LEVEL_STATES, LIVE_STATES
from springback.stream_processors.resilience.readings import (
    CapacityFlag,
    ExtensibilityRatios,
    Outcome,
    UnpairedReason,
    UnusedReason,
    WindowCause,
)

MetricKind = Literal["counter", "gauge", "histogram", "info"]

GROUP = ("family", "method", "version")
"""What results are compared by: the task family, the agent's method and the version of that."""

AgentStateName = Literal["calm", "rebound", "stalled", "stale", "silent", "contested", "ended", "unknown"]

AGENT_STATES: tuple[AgentStateName, ...] = get_args(AgentStateName)
"""What state an agent may be in. `sinks/fleet/agent_state.py` decides it."""

WINDOW_STATES = ("recovered", "unrecovered", "censored")
"""How a rebound window may have closed."""

UNPAIRED_REASONS: tuple[UnpairedReason, ...] = get_args(UnpairedReason)
"""Why a perturbed episode may be in no pair."""

LATE_REASONS: tuple[UnusedReason, ...] = tuple(reason for reason in get_args(UnusedReason) if reason != "duplicate")
"""Why a step that is no copy may not be taken in."""

CHANNELS = ("cognitive", "physical", "debt")
"""The channels, in the order of `EpisodeStatus.intensity_by_channel`."""

OTHER = "other"
"""The value of a label whose own values have grown beyond their bound, and of a closed label with an unknown value."""

CLOSED_LABELS: Mapping[str, frozenset[str]] = {
    "outcome": frozenset(get_args(Outcome)),
    "state": frozenset({*WINDOW_STATES, *AGENT_STATES, *LEVEL_STATES, *LIVE_STATES}),
    "cause": frozenset(get_args(WindowCause)),
    "perturbation": frozenset({"none", "physical", "semantic", "object_state", "perception", "mixed"}),
    "channel": frozenset(CHANNELS),
    "quantity": frozenset(ExtensibilityRatios.__struct_fields__),
    "flag": frozenset(get_args(CapacityFlag)),
    "declared": frozenset({"yes", "no"}),
    "why": frozenset({*UNPAIRED_REASONS, *LATE_REASONS}),
    "kind": frozenset({"window", "begun", "episode", "status", "family", "dead_letter"}),
    "bound": frozenset({"group", "reason", "stress", "attack"}),
}
"""Labels whose values are known beforehand; any other value is filed under `other`."""

COST_BUCKETS = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
"""Recovery costs of clean Habitat episodes are 0 or below 1, of disturbed ones up to some tens; the first is `none`."""

LOSS_BUCKETS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0, 64.0)
"""Stability losses: of clean Habitat episodes 2 to 5, of disturbed ones up to 27."""

STEP_BUCKETS = (1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 34.0, 55.0, 89.0, 144.0, 233.0, 377.0)
"""Window lengths in steps: they spread over orders of magnitude, so the buckets grow by the golden ratio."""

SECOND_BUCKETS = (0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1280.0)
"""Window lengths in seconds, for decision cycles from tenths of a second to some seconds."""


class MetricSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One exported metric.

    `unit` is for the reader (`1` is a pure number). `buckets` are a histogram's upper bounds, without infinity.
    `source` names the equation or section of the definition that the figure follows, or says that it is ours. `states`
    are the values of the label `state`, where it has that label.
    """

    name: str
    kind: MetricKind
    unit: str
    help: str
    source: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    states: tuple[str, ...] = ()


R = TypeVar("R")

Row = tuple[float | None, *tuple[str, ...]]
"""A value (None where it is not known) and the values of the labels that follow the agent or the group."""


class ReadMetric(MetricSpec, Generic[R], frozen=True, kw_only=True):
    """A metric whose values readings carry: it says itself where, so that an exporter needs to know nothing of it.

    A gauge of an agent or a family shows the latest reading; a counter or histogram of windows or episodes takes each
    one in, with the episode's own perturbation where it has that label.

    Attributes:
        rows: a reading's values.
        combine: what several with the same labels come to: of one reading, and of all agents under agent=other.
    """

    rows: Callable[[R], Iterable[Row]]
    combine: Callable[[Iterable[float]], float] = max
