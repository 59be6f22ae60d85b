"""What readings add up to as series: counters and histograms of what is new, gauges of what holds.

A restarted exporter folds the same topics to the same values, and so does a second one beside it: whether a reading is
new, and what of it, is decided by the fleet's state.
"""

from typing import Any

from springback.sinks.fleet.agent_state import DEFAULT_TIMES, StateTimes
from springback.sinks.fleet.agents import AgentRecord, AgentSeries
from springback.sinks.fleet.families import FamilySeries
from springback.sinks.fleet.fleet_state import (
    BegunNews,
    EndNews,
    EpisodeSteps,
    FamilyNews,
    FleetBounds,
    FleetState,
    RefusedStatus,
    StatusNews,
    WindowNews,
)
from springback.sinks.fleet.labels import OTHER_VALUE, LabelBound, clean_label_value, closed_label_value, label_value
from springback.sinks.fleet.series import Labels, MetricSeries, Origin, origin_of
from springback.sinks.fleet.series_bounds import SeriesBounds
from springback.sinks.sink import DeadLetter
from springback.stream_processors.metrics import catalogue as metrics
from springback.stream_processors.metrics import exporter as own_metrics
from springback.stream_processors.metrics.agents import AGENT_LAST_SEEN
from springback.stream_processors.metrics.spec import GROUP, ReadMetric
from springback.stream_processors.resilience.readings import EpisodeTraits, Reading

_KIND_OF_READING = {
    "WindowReading": "window",
    "EpisodeBegun": "begun",
    "EpisodeSummary": "episode",
    "AgentStatus": "status",
    "FamilyReading": "family",
}


class FleetSeries:
    """The series of a fleet.

    Args:
        series: where the values go.
        bounds: how many series there may be.
        times: after how long an agent is in which state.

    Attributes:
        fleet: what the readings add up to.
    """

    def __init__(self, series: MetricSeries, bounds: SeriesBounds, times: StateTimes = DEFAULT_TIMES) -> None:
        kept = FleetBounds(bounds.remembered_agents, bounds.remembered_families, bounds.reasons, bounds.remembered)
        self.fleet: FleetState[AgentRecord] = FleetState(AgentRecord, kept, times)
        self._series = series
        self._groups = LabelBound(bounds.groups)
        self._agents = AgentSeries(
            series,
            self.fleet,
            self._group_of,
            cap=bounds.agents,
            ttl_s=bounds.agent_ttl_s,
            lost_ttl_s=bounds.lost_ttl_s,
        )
        self._families = FamilySeries(series, cap=bounds.groups, remembered=bounds.remembered_families)

    def take(self, reading: Reading, now_s: float) -> None:
        """Takes one reading in. `now_s` only guards against times that lie in the future."""
        news = self.fleet.take(reading, now_s)
        self._note(_KIND_OF_READING[type(reading).__name__], repeated=news is None)
        match news:
            case WindowNews():
                self._count_window(news, now_s)
            case BegunNews():
                self._count_begun(news.traits, self._counted_group(news.traits), goes_on=news.goes_on)
            case EndNews():
                self._count_end(news, now_s)
            case StatusNews():
                self._agents.take_status(news, now_s)
                for steps in news.steps:
                    self._count_steps(steps, self._counted_group(steps.traits))
            case RefusedStatus():
                self._series.refuse(AGENT_LAST_SEEN)
            case FamilyNews():
                self._families.take(news)

    def take_dead_letter(self, letter: DeadLetter) -> None:
        """Takes in that something could not be used."""
        reason = self.fleet.take_dead_letter(letter)
        self._note("dead_letter", repeated=reason is None)
        if reason is not None:
            self._series.add(metrics.DEAD_LETTERS, 1, reason)
        if reason == OTHER_VALUE:
            self._overflow("reason")

    def publish(self, now_s: float) -> None:
        """Brings the gauges to what holds now."""
        self._agents.publish(now_s)
        self._families.publish()
        unscored = self._series.values(metrics.UNSCORED_STEPS)
        shares = {
            group: unscored.get(group, 0.0) / steps
            for group, steps in self._series.values(metrics.STEPS).items()
            if steps > 0
        }
        self._series.replace(metrics.UNSCORED_SHARE, shares)

    def _count_window(self, news: WindowNews[AgentRecord], now_s: float) -> None:
        window = news.window
        self._agents.take_window(news)
        group = self._counted_group(window.traits)
        perturbation = closed_label_value("perturbation", window.traits.perturbation)
        if news.opens:
            self._series.add(metrics.WINDOWS_OPENED, 1, *group, perturbation)
        if window.state == "open":
            return
        cause, state = closed_label_value("cause", window.cause), closed_label_value("state", window.state)
        self._series.add(metrics.WINDOWS, 1, *group, perturbation, cause, state)
        self._series.add(metrics.PROVISIONAL_WINDOWS, int(window.provisional), *group)
        if window.state != "censored" and not window.provisional:
            origin = origin_of(window.key, window.reentry_time_s - news.agent.skew_s, now_s)
            for spec in metrics.METRICS_OF_WINDOWS:
                self._count_read(spec, window, group, origin)

    def _count_begun(self, traits: EpisodeTraits, group: Labels, *, goes_on: bool = False) -> None:
        perturbation = closed_label_value("perturbation", traits.perturbation)
        self._series.add(metrics.EPISODES_BEGUN, int(not goes_on), *group, perturbation)
        self._series.add(metrics.EPISODES_REOPENED, int(goes_on), *group, perturbation)

    def _count_end(self, news: EndNews[AgentRecord], now_s: float) -> None:
        summary = news.summary
        group = self._counted_group(summary.traits)
        if news.begins:
            self._count_begun(summary.traits, group)
        if news.corrects:
            self._count_begun(summary.traits, group, goes_on=True)
        self._count_steps(news.steps, group)
        self._agents.take_end(news, group)
        perturbation = closed_label_value("perturbation", summary.traits.perturbation)
        outcome = closed_label_value("outcome", summary.outcome)
        self._series.add(metrics.EPISODES, 1, *group, perturbation, outcome)
        self._series.add(metrics.INTERRUPTIONS, summary.interruptions, *group)
        self._series.add(metrics.EPISODES_WITH_GAP, int(summary.gap), *group)
        self._series.add(metrics.EPISODES_OFF_RATE, int(summary.off_rate), *group)
        self._series.add(metrics.EPISODES_JOINED, int(summary.joined), *group)
        self._series.add(metrics.EPISODES_UNMOVED, int(summary.unmoved and summary.outcome == "success"), *group)
        if not summary.censored and not summary.provisional:
            origin = origin_of(summary.key, summary.ended_s - news.agent.skew_s, now_s)
            for spec in metrics.METRICS_OF_EPISODES:
                self._count_read(spec, summary, group, origin)

    def _count_read(self, spec: ReadMetric[Any], reading: Any, group: Labels, origin: Origin | None) -> None:
        """Adds what a metric reads from a reading to its counter or histogram."""
        for value, *labels in spec.rows(reading):
            if value is None:
                continue
            names = spec.labels[len(GROUP) :]
            if names[:1] == ("perturbation",):
                labels = [reading.traits.perturbation, *labels]
            cleaned = map(label_value, names, labels)
            if spec.kind == "histogram":
                self._series.observe(spec, value, *group, *cleaned, origin=origin)
            else:
                self._series.add(spec, value, *group, *cleaned)

    def _count_steps(self, counted: EpisodeSteps, group: Labels) -> None:
        self._series.add(metrics.STEPS, counted.steps, *group)
        self._series.add(metrics.UNSCORED_STEPS, counted.unscored, *group)

    def _group_of(self, traits: EpisodeTraits) -> Labels:
        values = tuple(clean_label_value(value) for value in (traits.family, traits.method, traits.version))
        return self._groups.admit(values)

    def _counted_group(self, traits: EpisodeTraits) -> Labels:
        """The group of a reading, which is counted where the bound has been reached."""
        group = self._group_of(traits)
        if group[0] == OTHER_VALUE:
            self._overflow("group")
        return group

    def _overflow(self, bound: str) -> None:
        self._series.add(own_metrics.OVERFLOW_READINGS, 1, closed_label_value("bound", bound))

    def _note(self, kind: str, *, repeated: bool) -> None:
        label = closed_label_value("kind", kind)
        self._series.add(own_metrics.READINGS, 1, label)
        if repeated:
            self._series.add(own_metrics.REPEATED_READINGS, 1, label)
