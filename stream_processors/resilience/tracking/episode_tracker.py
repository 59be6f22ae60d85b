"""The episode tracker: step events in; windows, summaries, statuses and baseline contributions out.

One call takes a whole batch. Its rows are admitted and scored together, and only the detectors' walk and the watch of
progress go row by row; then learning, stability and the episodes' states are brought up to its end. Time comes with the
rows or as an argument; nothing here reads a clock.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from springback.producers.contract.frame import NavigationOutcome
from springback.stream_processors.intake.step_table import StepTable
from springback.stream_processors.resilience.baseline.estimates import MaterialisedBaseline
from springback.stream_processors.resilience.baseline.stage_baseline import EpisodeContribution
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
from springback.stream_processors.resilience.rebound.rebound_window import WindowEvent, break_off, walk
from springback.stream_processors.resilience.rebound.recovery_cost import Tally
from springback.stream_processors.resilience.stability.policy_stability import advance_stability
from springback.stream_processors.resilience.stability.value_function import AnchorValues, ValueModel
from springback.stream_processors.resilience.tracking.admission import admit_rows, forget_episode, keep_silent
from springback.stream_processors.resilience.tracking.batch import Batch, TouchedEpisode, UnusedSteps
from springback.stream_processors.resilience.tracking.decision_rate import follow_rates
from springback.stream_processors.resilience.tracking.episode_learning import contribution, learn
from springback.stream_processors.resilience.tracking.evidence_rows import evidence_at_end, gather_evidence
from springback.stream_processors.resilience.tracking.scoring import ScoredBatch, score
from springback.stream_processors.resilience.tracking.step_trace import StepTrace
from springback.stream_processors.resilience.tracking.tracker_state import (
    OpenEpisode,
    ScoredStep,
    TrackedAgent,
    TrackerState,
)
from springback.stream_processors.resilience.window_evidence import WindowEvidence


@dataclass(slots=True)
class TrackerOutputs:
    """What a call of the tracker found, in an order that is a function of the input."""

    begun: list[EpisodeBegun] = field(default_factory=list)
    windows: list[WindowReading] = field(default_factory=list)
    summaries: list[EpisodeSummary] = field(default_factory=list)
    statuses: list[AgentStatus] = field(default_factory=list)
    contributions: list[EpisodeContribution] = field(default_factory=list)
    unused: list[UnusedSteps] = field(default_factory=list)


class EpisodeTracker:
    """The reducer of step events. It holds settings only; all state is in the `TrackerState`s that it is given.

    Args:
        config: settings of the core.
        model: values states; None for the mean returns by anchor that the baseline holds.
        bounded: whether agents and episodes beyond `config.bounds` are refused, as on the stream.
    """

    def __init__(self, config: ResilienceConfig, model: ValueModel | None = None, *, bounded: bool = False) -> None:
        self.config = config
        self._model = model
        self._bounded = bounded

    def track(
        self,
        table: StepTable,
        states: Sequence[TrackerState],
        baseline: MaterialisedBaseline,
        trace: StepTrace | None = None,
    ) -> TrackerOutputs:
        """Takes in a batch of frames.

        Args:
            table: the batch's rows, checked.
            states: the bucket state of each of the table's frames (one object where frames share a bucket); mutated.
            baseline: what to score by.
            trace: filled with the steps of its episode; changes nothing else.
        """
        batch = admit_rows(table, list(states), self.config, baseline.grid, bounded=self._bounded)
        scored = score(batch, baseline, self.config, follow_rates(batch, baseline, self.config))
        outputs = TrackerOutputs(
            [episode_begun(e.state, e.begun_s) for e in batch.episodes if e.begun_s is not None],
            unused=batch.unused,
        )
        events = self._walk(scored, baseline, trace)
        if trace is not None:
            trace.take(batch, scored)
        evidence = gather_evidence(scored, events)
        learn(batch, events, self.config)
        advance_stability(scored, baseline, self._model or AnchorValues(baseline), self.config.stability)
        _advance(batch, scored)
        for episode, happened, gathered in zip(batch.episodes, events, evidence, strict=True):
            _report_windows(episode.state, happened, gathered, outputs)
            if episode.outcome is not None:
                index = baseline.families.get(episode.state.traits.family)
                self._finish(episode, outputs, 0 if index is None else index.references)
        for agent in batch.forgotten:  # the last that is said of it
            if agent.changed:
                agent.reported_s, agent.changed = agent.seen_s, False
                outputs.statuses.append(agent_status(agent))
        for agent in batch.agents:
            if agent.changed:
                self._report_agent(agent, agent.seen_s, outputs)
        return outputs

    def close_idle(self, state: TrackerState, now_s: float) -> TrackerOutputs:
        """Closes the episodes that have been silent for longer than the idle timeout, and reports what has changed.

        They are kept as they are, and go on if steps or an end of them come later: what was delivered late is not lost.
        Agents that have been silent for much longer are forgotten, so that the state stays as large as the fleet.

        Args:
            state: one bucket; mutated.
            now_s: the present by the broker's clock, in seconds since the epoch.
        """
        outputs = TrackerOutputs()
        for agent in list(state.agents.values()):
            for episode in list(agent.open.values()):
                if now_s - episode.seen_s > self.config.idle_timeout_s:
                    keep_silent(agent, episode, self.config)
                    forget_episode(agent, episode, self.config)
                    agent.changed, agent.abandoned = True, not agent.open
                    self._finish(TouchedEpisode(agent, episode, "aborted"), outputs)
            if agent.changed:
                self._report_agent(agent, now_s, outputs)
            elif not agent.open and now_s - agent.seen_s > self.config.forget_agent_s:
                del state.agents[agent.agent]
        return outputs

    def _walk(
        self, scored: ScoredBatch, baseline: MaterialisedBaseline, trace: StepTrace | None
    ) -> list[list[WindowEvent]]:
        """Advances the detectors of every episode; the windows that opened and closed, episode by episode."""
        rows, config = scored.rows, self.config.window
        plain = scored.walk_rows(config)
        gaps = np.flatnonzero(scored.gap)
        events: list[list[WindowEvent]] = [[] for _ in rows.episodes]
        for place, episode in enumerate(rows.episodes):
            state, start, stop = episode.state, int(rows.starts[place]), int(rows.stops[place])
            index = baseline.families.get(state.traits.family)
            state.bound_references = 0 if index is None else config.bound_references(index)
            if index is None or start == stop:
                continue
            bounds, provisional = config.alarm_bounds(index.bounds), is_learning(state, self.config)
            edges = [start, stop]
            if len(gaps):
                edges = sorted(
                    {start, stop, *gaps[np.searchsorted(gaps, start) : np.searchsorted(gaps, stop)].tolist()}
                )
            traced = trace if trace is not None and trace.key == state.key else None
            if traced is not None:
                edges = [*range(start, stop + 1)]
            for begin, end in itertools.pairwise(edges):
                if scored.gap[begin]:
                    events[place] += break_off(state.detectors, begin)
                    if state.learning is not None:
                        state.learning.sums.restart()
                if state.learning is not None:
                    state.learning.sums.run(plain, begin, end)
                events[place] += walk(state.detectors, plain, begin, end, bounds, config, provisional=provisional)
                if traced is not None:
                    traced.note(plain.step[begin], state.detectors, bounds)
        for place, episode in enumerate(rows.episodes):
            if episode.state.off_rate:
                # What its first steps were judged by is no measure of them.
                events[place] += break_off(episode.state.detectors, int(rows.stops[place]))
        return events

    def _finish(self, episode: TouchedEpisode, outputs: TrackerOutputs, references: int = 0) -> None:
        """Closes what the end of an episode leaves open, and says how it went.

        Args:
            episode: the episode.
            outputs: where what is found is added.
            references: how many the baseline holds that its end was scored by.
        """
        state, outcome = episode.state, episode.outcome or "aborted"
        window = state.detectors.window
        if window is not None:
            number = state.costs.windows
            state.costs.add(window.tally)
            ending = window_state_at_end(outcome)
            figures = (window.cause, window.alarm_step, window.tally, window.provisional)
            gathered = evidence_at_end(state, window.tally)
            outputs.windows.append(window_reading(state, number, ending, *figures, gathered))
            state.detectors.window = None
        if outcome == "aborted":
            episode.agent.count(aborted_episodes=1)
        ended_s = state.last_time_s if episode.ended_s is None else episode.ended_s
        outputs.summaries.append(
            episode_summary(state, outcome, ended_s, self.config, episode.navigation, episode.realised_magnitude)
        )
        if outcome == "success":
            last_window = None if window is None else window.tally
            learned = contribution(state, last_window, references if self.config.window.detector == "cusum" else None)
            if learned is not None:
                outputs.contributions.append(learned)

    def _report_agent(self, agent: TrackedAgent, now_s: float, outputs: TrackerOutputs) -> None:
        if now_s - agent.reported_s >= self.config.status_interval_s:
            agent.reported_s, agent.changed = now_s, False
            outputs.statuses.append(agent_status(agent))


def _advance(batch: Batch, scored: ScoredBatch) -> None:
    """Brings the open episodes, and their agents, up to the last row that they had in this batch."""
    present = batch.present
    if not len(present):
        return
    starts, stops = batch.starts[present], batch.stops[present]
    missing = np.add.reduceat(batch.missing, starts).tolist()
    violation = np.add.reduceat(batch.violation, starts).tolist()
    clock_resets = np.add.reduceat(batch.clock_reset.astype(np.int64), starts).tolist()
    highest = np.maximum.reduceat(batch.progress, starts).tolist()
    lowest = np.minimum.reduceat(batch.progress, starts).tolist()
    arrived_s = np.maximum.reduceat(batch.arrived_s, starts).tolist()
    for i, (place, start, stop) in enumerate(zip(present.tolist(), starts.tolist(), stops.tolist(), strict=True)):
        agent, state = batch.episodes[place].agent, batch.episodes[place].state
        count, last = stop - start, stop - 1
        if state.steps == 0:
            state.started_s = float(batch.time_s[start])
            state.progress_span = lowest[i], highest[i]
        elif state.progress_span is not None:
            state.progress_span = min(state.progress_span[0], lowest[i]), max(state.progress_span[1], highest[i])
        state.last_step = int(batch.step[last])
        state.last_time_s = float(batch.time_s[last])
        state.last_clocked = bool(batch.clocked[last])
        state.progress = float(batch.progress[last])
        state.propositions = float(batch.propositions[last])
        state.mode = batch.mode_names[batch.mode[last]]
        state.steps += count
        state.missing += missing[i]
        state.violation += violation[i]
        n_scored = int(scored.rows.stops[place] - scored.rows.starts[place])
        state.unscored += count - n_scored
        state.gap = state.gap or bool(scored.with_gap[place])
        state.interruptions += int(scored.interruptions[place])
        if n_scored:
            _note_last_scored(state, scored, int(scored.rows.stops[place]) - 1)
        agent.count(steps=count, missing_steps=missing[i], clock_resets=clock_resets[i])
        agent.step_s = max(agent.step_s, arrived_s[i])
        state.rise.follow(batch.progress[start:stop].tolist(), batch.arrived_s[start:stop].tolist())


def _note_last_scored(state: OpenEpisode, scored: ScoredBatch, at: int) -> None:
    rows, level = scored.rows, scored.intensity
    state.scored = ScoredStep(
        int(rows.step[at]),
        rows.mode_names[rows.mode[at]],
        float(rows.progress_before[at]),
        float(rows.propositions_before[at]),
    )
    state.intensity = (
        float(level.total[at]),
        float(level.cognitive[at]),
        float(level.physical[at]),
        float(level.debt[at]),
    )


def _report_windows(
    episode: OpenEpisode, events: list[WindowEvent], evidence: list[WindowEvidence | None], outputs: TrackerOutputs
) -> None:
    for event, gathered in zip(events, evidence, strict=True):
        number = episode.costs.windows
        state: WindowState = "censored" if event.censored else "recovered" if event.closed else "open"
        figures = (event.cause, event.alarm_step, event.tally, event.provisional)
        outputs.windows.append(window_reading(episode, number, state, *figures, gathered))
        if event.closed:
            episode.costs.add(event.tally)
        else:
            episode.provisional = episode.provisional or event.provisional


def is_learning(episode: OpenEpisode, config: ResilienceConfig) -> bool:
    """Whether too few references stand behind the bounds of the episode's family, as of its last batch (ours)."""
    return (episode.bound_references or 0) < config.baseline.learning_references


def window_state_at_end(outcome: Outcome) -> WindowState:
    """How an episode's end closes the window that it falls into (ours)."""
    if outcome == "success":
        return "recovered"
    return "censored" if outcome == "aborted" else "unrecovered"


def window_reading(
    episode: OpenEpisode,
    number: int,
    state: WindowState,
    cause: WindowCause,
    alarm_step: int,
    tally: Tally,
    provisional: bool,
    evidence: WindowEvidence | None,
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
        provisional=provisional,
        revision=episode.revision,
        evidence=evidence,
    )


def episode_summary(
    episode: OpenEpisode,
    outcome: Outcome,
    ended_s: float,
    config: ResilienceConfig,
    navigation: NavigationOutcome | None = None,
    realised_magnitude: float | None = None,
) -> EpisodeSummary:
    """The whole episode; its cost is unknown where no step of it could be scored.

    It is provisional if its family is learning at its end, or was when the alarm of one of its windows was raised.
    """
    costs = episode.costs
    return EpisodeSummary(
        key=episode.key,
        traits=episode.traits,
        outcome=outcome,
        steps=episode.steps,
        unscored_steps=episode.unscored,
        windows=costs.windows,
        recovery_cost=costs.total if episode.steps > episode.unscored and not episode.off_rate else None,
        costs=costs.by_channel(),
        lost_cycles=costs.lost,
        window_steps=costs.steps,
        final_progress=episode.progress,
        final_propositions=episode.propositions,
        violation=episode.violation,
        started_s=episode.started_s,
        ended_s=ended_s,
        missing_steps=episode.missing,
        interruptions=episode.interruptions,
        cycle_s=episode.cycle_s(),
        off_rate=bool(episode.off_rate),
        gap=episode.gap,
        joined=episode.joined,
        extended=episode.extended,
        unmoved=episode.unmoved,
        provisional=episode.provisional or is_learning(episode, config),
        bound_references=episode.bound_references,
        bound_references_needed=config.baseline.learning_references,
        stability_loss=None if outcome == "aborted" or episode.off_rate else episode.stability.loss(),
        beta_step=None if outcome == "aborted" or episode.off_rate else episode.stability.beta_step(),
        navigation=None if navigation is None else NavigationReading.of(navigation),
        realised_magnitude=realised_magnitude,
        revision=episode.revision,
    )


def episode_begun(episode: OpenEpisode, time_s: float) -> EpisodeBegun:
    """That the episode has begun, or goes on after silence had closed it, at the broker's time of that frame."""
    return EpisodeBegun(key=episode.key, traits=episode.traits, time_s=time_s, revision=episode.revision)


def agent_status(agent: TrackedAgent) -> AgentStatus:
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
        progress_s=max([agent.progress_s, *(episode.rise.risen_s for episode in agent.open.values())]),
        abandoned=agent.abandoned,
        contested_s=agent.contested_s,
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
        revision=episode.revision,
    )
