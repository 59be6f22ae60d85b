"""The episode tracker: step events in; windows, summaries, statuses and baseline contributions out.

One call takes a whole batch. The rows are admitted, scored together, and only the detectors' walk goes row by row.
Time comes with the rows or as an argument; nothing here reads a clock.

The tracker's state put into readings.

When each agent last got on: what tells one that is busy without getting anywhere (ours).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from springback.producers.contract.frame import NavigationOutcome
from springback.stream_processors.intake.step_table import StepTable
from springback.stream_processors.resilience.baseline.estimates import MaterialisedBaseline
from springback.stream_processors.resilience.baseline.stage_baseline import EpisodeContribution
from springback.stream_processors.resilience.columns import run_begins
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import (
    AgentStatus,
    EpisodeBegun,
    EpisodeStatus,
    EpisodeSummary,
    NavigationReading,
    Outcome,
    WindowCause,
    WindowReading,
    WindowState,
)
from springback.stream_processors.resilience.rebound.rebound_window import WalkRows, WindowEvent, walk
from springback.stream_processors.resilience.rebound.recovery_cost import Tally
from springback.stream_processors.resilience.stability.policy_stability import advance_stability
from springback.stream_processors.resilience.stability.value_function import AnchorValues, ValueModel
from springback.stream_processors.resilience.tracking.admission import Admission, Slot, admit, forget_episode
from springback.stream_processors.resilience.tracking.episode_learning import contribution, learn
from springback.stream_processors.resilience.tracking.scoring import BatchRows, ScoredRows, batch_rows, score, walk_rows
from springback.stream_processors.resilience.tracking.tracker_state import (
    AgentState,
    OpenEpisode,
    ScoredStep,
    TrackerState,
)


def window_state_at_end(outcome: Outcome) -> WindowState:
    """How an episode's end closes the window that it falls into (ours)."""
    if outcome == "success":
        return "recovered"
    return "censored" if outcome == "aborted" else "unrecovered"


def window_reading(
    episode: OpenEpisode, number: int, state: WindowState, cause: WindowCause, alarm_step: int, tally: Tally
) -> WindowReading:
    """A window of the episode as its tally has it."""
    return WindowReading(
        key=episode.key,
        traits=episode.traits,
        number=number,
        state=state,
        cause=cause,
        departure_step=tally.departure_step,
        alarm_step=alarm_step,
        reentry_step=tally.last_step,
        departure_time_s=tally.departure_time_s,
        reentry_time_s=tally.last_time_s,
        departure_mode=tally.departure_mode,
        departure_progress_bin=tally.departure_progress_bin,
        departure_residual_bin=tally.departure_residual_bin,
        length_steps=tally.length_steps,
        length_s=tally.seconds,
        lost_cycles=tally.lost,
        peak=tally.peak,
        recovery_cost=tally.cost(),
        costs=tally.channel_costs(),
    )


def episode_summary(
    episode: OpenEpisode, outcome: Outcome, ended_s: float, navigation: NavigationOutcome | None = None
) -> EpisodeSummary:
    """The whole episode; its cost is unknown where no step of it could be scored."""
    costs = episode.costs
    return EpisodeSummary(
        key=episode.key,
        traits=episode.traits,
        outcome=outcome,
        steps=episode.steps,
        unscored_steps=episode.unscored,
        windows=costs.windows,
        recovery_cost=costs.total if episode.steps > episode.unscored else None,
        costs=costs.by_channel(),
        lost_cycles=costs.lost,
        window_steps=costs.steps,
        final_progress=episode.progress,
        final_propositions=episode.propositions,
        violation=episode.violation,
        started_s=episode.started_s,
        ended_s=ended_s,
        missing_steps=episode.missing,
        stability_loss=None if outcome == "aborted" else episode.stability.loss(),
        beta_step=None if outcome == "aborted" else episode.stability.beta_step(),
        navigation=None if navigation is None else NavigationReading(**msgspec.structs.asdict(navigation)),
    )


def episode_begun(episode: OpenEpisode) -> EpisodeBegun:
    """That the episode has begun, at the broker's time of its first frame."""
    return EpisodeBegun(key=episode.key, traits=episode.traits, time_s=episode.seen_s)


def agent_status(agent: AgentState) -> AgentStatus:
    """The agent and its open episodes, as of the last event."""
    return AgentStatus(
        agent=agent.agent,
        session=agent.session,
        producer=agent.producer,
        seen_s=agent.seen_s,
        time_s=agent.time_s,
        clock_skew_s=agent.clock_skew_s or 0.0,
        counts=agent.counts,
        episodes=tuple(_episode_status(episode) for episode in agent.open.values()),
        step_s=agent.step_s,
        progress_s=agent.progress_s,
        abandoned=agent.abandoned,
    )


def _episode_status(episode: OpenEpisode) -> EpisodeStatus:
    return EpisodeStatus(
        key=episode.key,
        traits=episode.traits,
        step=episode.last_step,
        steps=episode.steps,
        unscored_steps=episode.unscored,
        progress=episode.progress,
        propositions=episode.propositions,
        mode=episode.mode,
        intensity=episode.intensity[0] if episode.intensity else None,
        intensity_by_channel=episode.intensity[1:] if episode.intensity else None,
        window=episode.open_window(),
        beta_step=episode.stability.beta_step(),
    )


def watch_progress(table: StepTable, admission: Admission) -> None:
    """Note the broker's time of each agent's last new step, and of the last rise above an episode's highest progress.

    Args:
        table: the batch.
        admission: which of its rows count; its agents and episodes are mutated.
    """
    order = admission.order
    if not len(order):
        return
    arrived_s = np.array([table.frames[entry.frame].broker_time_s for entry in table.episodes])[table.episode[order]]
    progress = table.progress[order]
    starts = np.flatnonzero(run_begins(admission.slot))
    highest = np.maximum.reduceat(progress, starts).tolist()
    latest_s = np.maximum.reduceat(arrived_s, starts).tolist()
    stops = [*starts[1:].tolist(), len(order)]
    for start, stop, top, last_s in zip(starts.tolist(), stops, highest, latest_s, strict=True):
        slot = admission.slots[admission.slot[start]]
        agent, episode = slot.agent, slot.episode
        agent.step_s = max(agent.step_s, last_s)
        if top > episode.highest_progress:
            episode.highest_progress = top
            risen = start + int(progress[start:stop].argmax())
            agent.progress_s = max(agent.progress_s, float(arrived_s[risen]))


@dataclass(slots=True)
class TrackerOutputs:
    """What a call of the tracker found, in an order that is a function of the input."""

    begun: list[EpisodeBegun] = field(default_factory=list)
    windows: list[WindowReading] = field(default_factory=list)
    summaries: list[EpisodeSummary] = field(default_factory=list)
    statuses: list[AgentStatus] = field(default_factory=list)
    contributions: list[EpisodeContribution] = field(default_factory=list)


class EpisodeTracker:
    """The reducer of step events. It holds settings only; all state is in the `TrackerState`s that it is given.

    Args:
        config: settings of the core.
        model: values states; None for the mean returns by anchor that the baseline holds.
    """

    def __init__(self, config: ResilienceConfig, model: ValueModel | None = None) -> None:
        self.config = config
        self._model = model

    def track(self, table: StepTable, states: Sequence[TrackerState], baseline: MaterialisedBaseline) -> TrackerOutputs:
        """Take in a batch of frames.

        Args:
            table: the batch's rows, checked.
            states: the bucket state of each of the table's frames (one object where frames share a bucket); mutated.
            baseline: what to score by.
        """
        outputs = TrackerOutputs()
        admission = admit(table, list(states), self.config)
        watch_progress(table, admission)
        rows = batch_rows(table, admission, baseline)
        scored = score(rows, table.mode_names, admission, baseline)
        outputs.begun += [episode_begun(slot.episode) for slot in admission.slots if slot.opened]
        plain = walk_rows(rows, scored, table.mode_names, self.config.window)
        events = [
            self._walk_episode(slot, plain, int(start), int(stop), baseline)
            for slot, start, stop in zip(admission.slots, scored.starts, scored.stops, strict=True)
        ]
        outside_windows = self.config.learn_from == "success"
        learn(rows, table.mode_names, admission, events, baseline.grid, outside_windows)
        for slot in admission.slots:
            learning = slot.episode.learning
            if learning is not None and len(learning.cells) > self.config.baseline.largest_family:
                slot.episode.learning = None
        model = self._model or AnchorValues(baseline)
        advance_stability(rows, scored, table.mode_names, admission, baseline, model, self.config.stability)
        _advance(rows, table.mode_names, admission, scored)
        for slot, happened in zip(admission.slots, events, strict=True):
            _report_windows(slot.episode, happened, outputs)
            if slot.outcome is not None:
                self._finish(slot, outputs)
        for agent in admission.agents:
            self._report_agent(agent, agent.seen_s, outputs)
        return outputs

    def close_idle(self, state: TrackerState, now_s: float) -> TrackerOutputs:
        """Close the episodes that have been silent for longer than the idle timeout, and report what has changed.

        Agents that have been silent for much longer are forgotten, so that the state stays as large as the fleet.

        Args:
            state: one bucket; mutated.
            now_s: the present by the broker's clock, in seconds since the epoch.
        """
        outputs = TrackerOutputs()
        for agent in list(state.agents.values()):
            for episode in list(agent.open.values()):
                if now_s - episode.seen_s > self.config.idle_timeout_s:
                    forget_episode(agent, episode, self.config)
                    agent.changed, agent.abandoned = True, not agent.open
                    self._finish(Slot(agent, episode, "aborted"), outputs)
            if agent.changed:
                self._report_agent(agent, now_s, outputs)
            elif not agent.open and now_s - agent.seen_s > self.config.forget_agent_s:
                del state.agents[agent.agent]
        return outputs

    def _walk_episode(
        self, slot: Slot, rows: WalkRows, start: int, stop: int, baseline: MaterialisedBaseline
    ) -> list[WindowEvent]:
        if start == stop:
            return []
        episode, config = slot.episode, self.config.window
        family = baseline.families[episode.traits.family]
        learning = episode.learning
        if learning is not None:
            learning.sums.run(rows, start, stop)
        return walk(episode.detectors, rows, start, stop, config.alarm_bounds(family.bounds), config)

    def _finish(self, slot: Slot, outputs: TrackerOutputs) -> None:
        """Close what the end of an episode leaves open, and say how it went."""
        episode, outcome = slot.episode, slot.outcome or "aborted"
        window = episode.detectors.window
        if window is not None:
            number = episode.costs.windows
            episode.costs.add(window.tally)
            state = window_state_at_end(outcome)
            outputs.windows.append(
                window_reading(episode, number, state, window.cause, window.alarm_step, window.tally)
            )
            episode.detectors.window = None
        if outcome == "aborted":
            slot.agent.count(aborted_episodes=1)
        ended_s = episode.last_time_s if slot.ended_s is None else slot.ended_s
        outputs.summaries.append(episode_summary(episode, outcome, ended_s, slot.navigation))
        if outcome == "success":
            last_window = None if window is None else window.tally
            learned = contribution(episode, last_window, calibrates=self.config.window.detector == "cusum")
            if learned is not None:
                outputs.contributions.append(learned)

    def _report_agent(self, agent: AgentState, now_s: float, outputs: TrackerOutputs) -> None:
        if now_s - agent.reported_s >= self.config.status_interval_s:
            agent.reported_s, agent.changed = now_s, False
            outputs.statuses.append(agent_status(agent))


def _advance(rows: BatchRows, mode_names: list[str], admission: Admission, scored: ScoredRows) -> None:
    """Bring the open episodes up to the last row that they had in this batch."""
    if not len(rows.starts):
        return
    sums = {
        name: np.add.reduceat(column, rows.starts).tolist()
        for name, column in (
            ("missing", rows.missing),
            ("violation", rows.violation),
            ("clock_resets", rows.clock_reset.astype(np.int64)),
        )
    }
    lasts, counts = (rows.stops - 1).tolist(), (rows.stops - rows.starts).tolist()
    for i, (last, count) in enumerate(zip(lasts, counts, strict=True)):
        slot = admission.slots[rows.slot[last]]
        episode = slot.episode
        if episode.steps == 0:
            episode.started_s = float(rows.time_s[last - count + 1])
        episode.last_step = int(rows.step[last])
        episode.last_time_s = float(rows.time_s[last])
        episode.last_clocked = bool(rows.clocked[last])
        episode.progress = float(rows.progress[last])
        episode.propositions = float(rows.propositions[last])
        episode.mode = mode_names[rows.mode[last]]
        episode.steps += count
        episode.missing += sums["missing"][i]
        episode.violation += sums["violation"][i]
        number = int(rows.slot[last])
        start, stop = int(scored.starts[number]), int(scored.stops[number])
        episode.unscored += count - (stop - start)
        if start < stop:
            level, at = scored.intensity, stop - 1
            row = scored.at[at]
            episode.scored = ScoredStep(
                int(rows.step[row]),
                mode_names[rows.mode[row]],
                float(rows.progress_before[row]),
                float(rows.propositions_before[row]),
            )
            episode.intensity = (
                float(level.total[at]),
                float(level.cognitive[at]),
                float(level.physical[at]),
                float(level.debt[at]),
            )
        slot.agent.count(steps=count, missing_steps=sums["missing"][i], clock_resets=sums["clock_resets"][i])


def _report_windows(episode: OpenEpisode, events: list[WindowEvent], outputs: TrackerOutputs) -> None:
    for event in events:
        number = episode.costs.windows
        state: WindowState = "recovered" if event.closed else "open"
        outputs.windows.append(window_reading(episode, number, state, event.cause, event.alarm_step, event.tally))
        if event.closed:
            episode.costs.add(event.tally)
