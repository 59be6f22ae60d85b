"""What readings add up to: a pure fold of the topics into series.

A restarted exporter folds the same topics to the same values, and so does a second one beside it. Repetitions are
dropped by the reading's identity, and the order between topics does not matter: an agent's status may come before or
after the summary of the episode that it tells of. The memory of what was seen is bounded; beyond the bound a
repetition would count again, but workers repeat only what they sent within the last moments.
"""

from springback.sinks.fleet.agents import AgentBoard
from springback.sinks.fleet.families import FamilyBoard
from springback.sinks.fleet.labels import LabelBound, LabelValue, clean_label_value, closed_label_value
from springback.sinks.fleet.memory import BoundedMemory, fingerprint
from springback.sinks.fleet.series import Labels, MetricSeries, origin_of
from springback.sinks.sink import DeadLetter
from springback.stream_processors.metrics import catalogue as metrics
from springback.stream_processors.metrics import exporter as own_metrics
from springback.stream_processors.resilience.readings import (
    AgentStatus,
    EpisodeBegun,
    EpisodeKey,
    EpisodeSummary,
    EpisodeTraits,
    FamilyReading,
    Reading,
    WindowReading,
)


class ReadingFold:
    """The fold.

    Args:
        series: where the values go.
        agents: the per-agent part.
        families: the part of whole families.
        group_cap: distinct (family, method, version) with series of their own; the rest are filed under "other".
        reason_cap: distinct reasons of dead letters with series of their own.
        remembered: identities kept of each kind: window readings; begun, running and ended episodes; dead letters.
    """

    def __init__(
        self,
        series: MetricSeries,
        agents: AgentBoard,
        families: FamilyBoard,
        *,
        group_cap: int,
        reason_cap: int,
        remembered: int,
    ) -> None:
        self._series = series
        self._agents = agents
        self._families = families
        self._groups = LabelBound(group_cap)
        self._reasons = LabelBound(reason_cap)
        self._windows: BoundedMemory[None] = BoundedMemory(remembered)
        self._begun: BoundedMemory[None] = BoundedMemory(remembered)
        self._ended: BoundedMemory[None] = BoundedMemory(remembered)
        self._dead_letters: BoundedMemory[None] = BoundedMemory(remembered)
        self._counted: BoundedMemory[tuple[int, int]] = BoundedMemory(remembered)

    def fold(self, reading: Reading, now_s: float) -> None:
        """Take one reading in. `now_s` only guards against times that lie in the future."""
        match reading:
            case WindowReading():
                self._note("window", repeated=not self._fold_window(reading, now_s))
            case EpisodeBegun():
                self._note("begun", repeated=not self._fold_begun(reading))
            case EpisodeSummary():
                self._note("episode", repeated=not self._fold_summary(reading, now_s))
            case AgentStatus():
                groups = [self._group(episode.traits) for episode in reading.episodes]
                taken = self._agents.take_status(reading, groups[-1] if groups else None, now_s)
                self._note("status", repeated=not taken)
                for episode, group in zip(reading.episodes, groups, strict=True):
                    if fingerprint(episode.key) not in self._ended:
                        self._count_steps(episode.key, group, episode.steps, episode.unscored_steps)
            case FamilyReading():
                self._note("family", repeated=not self._families.take(reading))

    def fold_dead_letter(self, letter: DeadLetter) -> None:
        """Take in that something could not be used."""
        new = self._dead_letters.add(letter.identity, None)
        self._note("dead_letter", repeated=not new)
        if new:
            reason = self._bounded(self._reasons, "reason", (clean_label_value(letter.reason),))
            self._series.add(metrics.DEAD_LETTERS, 1, *reason)

    def publish(self, now_s: float) -> None:
        """Bring the gauges to what holds now."""
        self._agents.publish(now_s)
        self._families.publish()
        unscored = self._series.values(metrics.UNSCORED_STEPS)
        shares = {
            group: unscored.get(group, 0.0) / steps
            for group, steps in self._series.values(metrics.STEPS).items()
            if steps > 0
        }
        self._series.replace(metrics.UNSCORED_SHARE, shares)

    def _fold_window(self, window: WindowReading, now_s: float) -> bool:
        if not self._windows.add(fingerprint(window.identity), None):
            return False
        group = self._group(window.traits)
        if window.state == "open":
            self._count_opened(window, group)
            if fingerprint(window.key) not in self._ended:
                self._agents.open_window(window, group)
            return True
        # The reading of its opening may have been lost to retention, or come later: then it is a repetition.
        if self._windows.add(fingerprint((window.key, window.number, True)), None):
            self._count_opened(window, group)
        self._agents.close_window(window)
        self._count_closed(window, group, now_s)
        return True

    def _count_opened(self, window: WindowReading, group: Labels) -> None:
        self._series.add(metrics.WINDOWS_OPENED, 1, *group, _perturbation(window.traits))

    def _count_closed(self, window: WindowReading, group: Labels, now_s: float) -> None:
        by = (*group, _perturbation(window.traits))
        cause = closed_label_value("cause", window.cause)
        self._series.add(metrics.WINDOWS, 1, *by, cause, closed_label_value("state", window.state))
        if window.state == "censored":
            return
        origin = origin_of(window.key, window.reentry_time_s, now_s)
        self._series.observe(metrics.WINDOW_COST, window.recovery_cost, *by, origin=origin)
        self._series.observe(metrics.WINDOW_STEPS, window.length_steps, *by, origin=origin)
        self._series.observe(metrics.WINDOW_SECONDS, window.length_s, *by, origin=origin)
        self._series.add(metrics.LOST_CYCLES, max(window.lost_cycles, 0.0), *group)
        for channel in ("cognitive", "physical", "debt"):
            cost = getattr(window.costs, channel)
            self._series.add(metrics.CHANNEL_COST, cost, *group, closed_label_value("channel", channel))

    def _fold_begun(self, begun: EpisodeBegun) -> bool:
        if not self._begun.add(fingerprint(begun.key), None):
            return False
        self._count_begun(begun.traits, self._group(begun.traits))
        return True

    def _count_begun(self, traits: EpisodeTraits, group: Labels) -> None:
        self._series.add(metrics.EPISODES_BEGUN, 1, *group, _perturbation(traits))

    def _fold_summary(self, summary: EpisodeSummary, now_s: float) -> bool:
        if not self._ended.add(fingerprint(summary.identity), None):
            return False
        group = self._group(summary.traits)
        by = (*group, _perturbation(summary.traits))
        if self._begun.add(fingerprint(summary.key), None):  # the reading of its beginning was lost to retention
            self._count_begun(summary.traits, group)
        self._count_steps(summary.key, group, summary.steps, summary.unscored_steps)
        self._counted.pop(fingerprint(summary.key))
        self._agents.end_episode(summary, group)
        self._series.add(metrics.EPISODES, 1, *by, closed_label_value("outcome", summary.outcome))
        origin = origin_of(summary.key, summary.ended_s, now_s)
        if summary.recovery_cost is not None and not summary.censored:
            self._series.observe(metrics.EPISODE_COST, summary.recovery_cost, *by, origin=origin)
        if summary.stability_loss is not None and not summary.censored:
            self._series.observe(metrics.STABILITY_LOSS, summary.stability_loss, *by, origin=origin)
        return True

    def _count_steps(self, key: EpisodeKey, group: Labels, steps: int, unscored: int) -> None:
        """Raise the counters by what is new since the episode was last heard of: its counts run from its start."""
        episode = fingerprint(key)
        steps_before, unscored_before = self._counted.get(episode) or (0, 0)
        steps, unscored = max(steps, steps_before), max(unscored, unscored_before)
        self._series.add(metrics.STEPS, steps - steps_before, *group)
        self._series.add(metrics.UNSCORED_STEPS, unscored - unscored_before, *group)
        self._counted.put(episode, (steps, unscored))

    def _group(self, traits: EpisodeTraits) -> Labels:
        values = tuple(clean_label_value(value) for value in (traits.family, traits.method, traits.version))
        return self._bounded(self._groups, "group", values)

    def _bounded(self, bound: LabelBound, name: str, values: Labels) -> Labels:
        admitted = bound.admit(values)
        if admitted is not values:
            self._series.add(own_metrics.OVERFLOW_READINGS, 1, closed_label_value("bound", name))
        return admitted

    def _note(self, kind: str, *, repeated: bool) -> None:
        label = closed_label_value("kind", kind)
        self._series.add(own_metrics.READINGS, 1, label)
        if repeated:
            self._series.add(own_metrics.REPEATED_READINGS, 1, label)


def _perturbation(traits: EpisodeTraits) -> LabelValue:
    return closed_label_value("perturbation", traits.perturbation)
