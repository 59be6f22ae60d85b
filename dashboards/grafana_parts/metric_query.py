"""PromQL made from the metric catalogue, so that a metric or label that is renamed fails the build, not a panel.

Two exporters side by side show the same series, told apart by `instance` alone. Every query therefore first takes the
largest over what the catalogue does not name, and only then adds up: nothing is counted twice.
"""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from springback.dashboards.errors import MetricQueryError
from springback.dashboards.grafana_parts.colour_scheme import (
    FLAG_NUMBERS,
    LEVEL_STATE_NUMBERS,
    LIVE_STATE_NUMBERS,
    STATE_NUMBERS,
)
from springback.stream_processors.metrics.agents import AGENT_INFO, AGENT_STATE
from springback.stream_processors.metrics.exporter import CAUGHT_UP
from springback.stream_processors.metrics.spec import CLOSED_LABELS, GROUP, OTHER, MetricSpec
from springback.stream_processors.metrics.stress import CAPACITY_FLAG, LEVEL_STATE, STRESS_STATE

Suffix = Literal["", "_bucket", "_sum", "_count"]

RATE_WINDOW = "$__rate_interval"
"""Grafana's own: at least four scrapes long, so that a rate always has two samples."""

WHOLE_RANGE = "$__range"
"""Grafana's own: the time range that the dashboard shows."""

BY_INSTANCE = ("instance",)
"""The label by which Prometheus tells processes apart: for metrics that each worker serves of itself."""


class MetricQueries(NamedTuple):
    """Queries within what a dashboard's variables select.

    Attributes:
        scope: a matcher for each label that a variable selects, such as `{"family": '=~"$family"'}`. It is laid on
            every metric that has the label.
    """

    scope: Mapping[str, str]

    def series(self, spec: MetricSpec, suffix: Suffix = "", /, **values: str) -> str:
        """The metric's series that have these label values.

        >>> from springback.stream_processors.metrics.agents import AGENT_STATE
        >>> MetricQueries({"agent": '="$agent"'}).series(AGENT_STATE, state="silent")
        'springback_agent_state{agent="$agent",state="silent"}'

        Raises:
            MetricQueryError: the catalogue declares no such label, value or suffix.
        """
        if bool(suffix) != (spec.kind == "histogram"):
            message = f"{spec.name} is a {spec.kind}, so it has no series {spec.name}{suffix}."
            raise MetricQueryError(message)
        within = self._within(spec, values)
        return f"{spec.name}{suffix}" + (f"{{{','.join(within)}}}" if within else "")

    def shown(self, spec: MetricSpec, /, **values: str) -> str:
        """What a gauge or info shows, each series once."""
        return f"max by ({', '.join(spec.labels)}) ({self.series(spec, **values)})"

    def of_agents(self, spec: MetricSpec, /, **values: str) -> str:
        """What a gauge shows of each agent that has series of its own: without the one that stands for all others."""
        _check_labels(spec, ("agent",))
        within = [*self._within(spec, values), f'agent!="{OTHER}"']
        return f"max by ({', '.join(spec.labels)}) ({spec.name}{{{','.join(within)}}})"

    def of_each(self, spec: MetricSpec, /, **values: str) -> str:
        """What each process shows of itself (a worker's gauge)."""
        return f"max by ({', '.join((*BY_INSTANCE, *spec.labels))}) ({self.series(spec, **values)})"

    def total(self, spec: MetricSpec, by: Iterable[str] = (), /, **values: str) -> str:
        """The sum of a gauge over all labels but these; 0 where there is no series and all are summed up."""
        return _sum(spec, by, self.shown(spec, **values))

    def rate(self, spec: MetricSpec, by: Iterable[str] = (), /, **values: str) -> str:
        """How much a counter rises in a second."""
        return _sum(spec, by, self._rate(spec, spec.labels, values))

    def rise(self, spec: MetricSpec, by: Iterable[str] = (), /, window: str = RATE_WINDOW, **values: str) -> str:
        """How much a counter of the exporter's has risen within a window."""
        return _sum(spec, by, self._risen(spec, "", window, spec.labels, values))

    def rate_of_each(self, spec: MetricSpec, by: Iterable[str] = (), /, **values: str) -> str:
        """How much the counters of single processes rise in a second, added up over them (a worker's counter)."""
        each = self._rate(spec, (*BY_INSTANCE, *spec.labels), values)
        return f"sum by ({', '.join(by)}) ({each})" if by else f"sum({each}) or vector(0)"

    def distribution(self, spec: MetricSpec, by: Iterable[str] = (), /, window: str = RATE_WINDOW) -> str:
        """How many observations came within a window, cumulated by bucket: for heat maps, or a quantile of them."""
        _check_labels(spec, by)
        each = self._risen(spec, "_bucket", window, ("le", *spec.labels), {})
        return f"sum by ({', '.join(('le', *by))}) ({each})"

    def quantile(self, rank: float, spec: MetricSpec, by: Iterable[str] = (), /, window: str = RATE_WINDOW) -> str:
        """A quantile of what was observed within a window."""
        return f"histogram_quantile({rank:g}, {self.distribution(spec, by, window=window)})"

    def selected(self, per_agent: str) -> str:
        """Of series by agent, those whose agent is of the selected family, method and version."""
        return f"({per_agent}) and on (agent) ({self.shown(AGENT_INFO)})"

    def with_group(self, per_agent: str) -> str:
        """Series by agent with their agent's family, method and version as labels, where these are selected.

        One group an agent: two exporters may for a moment not agree on which.
        """
        info = f"topk by (agent) (1, {self.shown(AGENT_INFO)})"
        return f"({per_agent}) * on (agent) group_left ({', '.join(GROUP)}) ({info})"

    def _within(self, spec: MetricSpec, values: Mapping[str, str]) -> list[str]:
        """The matchers of the scope, and of these values in the place of the scope's."""
        _check_labels(spec, values)
        for label, value in values.items():
            if label in CLOSED_LABELS and value not in CLOSED_LABELS[label]:
                message = f"{label} is never {value!r}; it is one of {sorted(CLOSED_LABELS[label])}."
                raise MetricQueryError(message)
        matchers = {label: matcher for label, matcher in self.scope.items() if label in spec.labels}
        matchers |= {label: f'="{value}"' for label, value in values.items()}
        return [label + matcher for label, matcher in matchers.items()]

    def _rate(self, spec: MetricSpec, by: Iterable[str], values: Mapping[str, str]) -> str:
        self._check_rises(spec)
        return f"max by ({', '.join(by)}) (rate({self.series(spec, **values)}[{RATE_WINDOW}]))"

    def _risen(
        self, spec: MetricSpec, suffix: Suffix, window: str, by: Iterable[str], values: Mapping[str, str]
    ) -> str:
        """What came within a window, the first of its kind too.

        `increase` does not see the events that a series begins with, and where rebound windows are rare those are most
        of them. So a series that was not on the exporter's page from the window's start began at 0; any other at its
        smallest value, as an exporter that is new to Prometheus brings its whole past along.
        """
        self._check_rises(spec)
        series = self.series(spec, suffix, **values)
        on_the_page = f"count_over_time({series}[{window}])"
        scrapes = f"sum_over_time({CAUGHT_UP.name}[{window}])"
        from_the_start = f"{on_the_page} >= bool on (job, instance) group_left () {scrapes}"
        before = f"min_over_time({series}[{window}]) * ({from_the_start})"
        return f"max by ({', '.join(by)}) ({series} - {before})"

    def _check_rises(self, spec: MetricSpec) -> None:
        if spec.kind not in ("counter", "histogram"):
            message = f"{spec.name} is a {spec.kind}, and only counters and histograms rise."
            raise MetricQueryError(message)


def targets_up() -> str:
    """1 for each exporter and worker that Prometheus reaches, 0 for each that it does not: its own metric.

    The jobs are named as `deploy/prometheus/prometheus.yml` names them.
    """
    return 'up{job=~"springback-.+"}'


def highest(count: int, query: str) -> str:
    """So many of the series, the largest, at each instant."""
    return f"topk({count}, {query})"


def since(timestamps: str) -> str:
    """Seconds since the instants that the series hold."""
    return f"time() - ({timestamps})"


def _sum(spec: MetricSpec, by: Iterable[str], series: str) -> str:
    _check_labels(spec, by)
    labels = ", ".join(by)
    return f"sum by ({labels}) ({series})" if labels else f"sum({series}) or vector(0)"


def _check_labels(spec: MetricSpec, labels: Iterable[str]) -> None:
    unknown = sorted(set(labels) - set(spec.labels))
    if unknown:
        message = f"{spec.name} has no label {unknown[0]!r}; the catalogue gives it {spec.labels}."
        raise MetricQueryError(message)


def state_number(queries: MetricQueries) -> str:
    """The state of each agent as a number, which a time line shows by name and colour."""
    return _number_of("agent", ((queries.of_agents(AGENT_STATE, state=s), n) for s, n in STATE_NUMBERS.items()))


def live_state_number(queries: MetricQueries) -> str:
    """What the live stress of each family, method and version is against its levels, as a number."""
    found = ((queries.shown(STRESS_STATE, state=state), number) for state, number in LIVE_STATE_NUMBERS.items())
    return _number_of(", ".join(GROUP), found)


def capacity_flag_number(queries: MetricQueries) -> str:
    """What the stress capacity of each family, method and version rests on, as a number."""
    found = ((queries.shown(CAPACITY_FLAG, flag=flag), number) for flag, number in FLAG_NUMBERS.items())
    return _number_of(", ".join(GROUP), found)


def level_state_number(queries: MetricQueries) -> str:
    """What each stress level shows, as a number."""
    found = ((queries.shown(LEVEL_STATE, state=state), number) for state, number in LEVEL_STATE_NUMBERS.items())
    return _number_of(", ".join((*GROUP, "stress")), found)


def _number_of(labels: str, states: Iterable[tuple[str, int]]) -> str:
    """Of gauges that are 1 in one state and 0 in the others, the number of the state."""
    return f"max by ({labels}) ({' or '.join(f'{query} * {number}' for query, number in states)})"
