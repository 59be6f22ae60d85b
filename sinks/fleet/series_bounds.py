"""How many series the metrics page may have, and what that adds up to."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from springback.sinks.fleet.families import ATTACKS, STRESS_LEVELS
from springback.stream_processors.metrics import agents as agent_metrics
from springback.stream_processors.metrics.catalogue import METRIC_CATALOGUE
from springback.stream_processors.metrics.families import FAMILY_METRICS, NAVIGATION_METRICS
from springback.stream_processors.metrics.spec import CLOSED_LABELS, GROUP, MetricSpec

MOST_READING_TOPICS = 8
"""Topics of readings, and more than there are."""

MOST_SINKS = 8
"""Sinks of one runner, and more than there are."""

_LEFT_BY_LOST_AGENTS = (agent_metrics.AGENT_STATE, agent_metrics.AGENT_INFO, agent_metrics.AGENT_LAST_SEEN)


class SeriesBounds(NamedTuple):
    """What keeps the number of series, and the memory behind them, bounded.

    Attributes:
        agents: agents with series of their own, some twenty each.
        agent_ttl_s: silence after which an agent's series go away.
        lost_ttl_s: silence after which those go away too that an agent leaves behind which fell silent inside an
            episode: its state, what it was at and when it was last seen. As many agents may have them.
        groups: distinct (family, method, version); each has at most some 500 series, mostly fewer than 100,
            and in the metrics of families at most some 520 more, mostly some 150.
        reasons: distinct reasons of dead letters.
        partitions: partitions with series of their own.
        remembered: identities remembered of each kind of reading, about 300 bytes each.
        remembered_agents: agents whose last counts are remembered, some 1 kB each.
        remembered_families: families (by method and version) whose latest reading is kept, some 10 kB each.
    """

    agents: int = 500
    agent_ttl_s: float = 900.0
    lost_ttl_s: float = 86_400.0
    groups: int = 100
    reasons: int = 50
    partitions: int = 256
    remembered: int = 100_000
    remembered_agents: int = 50_000
    remembered_families: int = 2_000

    @property
    def series(self) -> int:
        """The most series that the page can have, each line of a histogram counted as one.

        >>> SeriesBounds().series < 150_000, SeriesBounds(agents=0, groups=10).series < 15_000
        (True, True)
        """
        return sum(_lines(spec) * self._label_sets(spec) for spec in METRIC_CATALOGUE)

    @property
    def agent_series(self) -> int:
        """How many of those are of single agents."""
        return sum(self._label_sets(spec) for spec in agent_metrics.AGENT_METRICS)

    def _label_sets(self, spec: MetricSpec) -> int:
        labels = list(spec.labels)
        sets = 1
        if labels[: len(GROUP)] == list(GROUP):
            # There is no series for the rest of the families together.
            sets = self.groups + (spec not in FAMILY_METRICS and spec not in NAVIGATION_METRICS)
            labels = labels[len(GROUP) :]
        elif "agent" in labels:
            sets = self.agents + (spec != agent_metrics.AGENT_INFO) + self.agents * (spec in _LEFT_BY_LOST_AGENTS)
            labels = [label for label in labels if label not in ("agent", *GROUP)]
        return sets * math.prod(self._values(spec, labels))

    def _values(self, spec: MetricSpec, labels: Iterable[str]) -> Iterable[int]:
        open_labels = {
            "reason": self.reasons + 1,
            "partition": self.partitions + 1,
            "stress": STRESS_LEVELS + 1,
            "attack": ATTACKS + 2,
            "topic": MOST_READING_TOPICS + 1,
            "sink": MOST_SINKS + 1,
            "metric": len(METRIC_CATALOGUE),
            "version": 1,
            "reading_schema": 1,
        }
        for label in labels:
            if label == "state":
                # An agent is never in a state that we do not know.
                yield len(spec.states) + (spec not in agent_metrics.AGENT_METRICS)
            elif label in CLOSED_LABELS:
                yield len(CLOSED_LABELS[label]) + 1
            else:
                yield open_labels[label]


def _lines(spec: MetricSpec) -> int:
    # A histogram has its buckets, that of infinity, the sum and the count.
    return len(spec.buckets) + 3 if spec.kind == "histogram" else 1
