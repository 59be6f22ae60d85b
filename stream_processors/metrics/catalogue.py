"""Every metric that springback exports: its name, kind, unit, help, labels, buckets and where its formula comes from.

It is read by the sinks that fill the series and by the dashboards that ask for them; no other module spells a metric's
name or a label's. Names carry base units (`_seconds`, `_steps`) and counters end in `_total`.
"""

from springback.stream_processors.metrics.agents import AGENT_METRICS
from springback.stream_processors.metrics.exporter import EXPORTER_METRICS
from springback.stream_processors.metrics.families import FAMILY_METRICS, NAVIGATION_METRICS
from springback.stream_processors.metrics.spec import (
    CHANNELS,
    COST_BUCKETS,
    GROUP,
    LOSS_BUCKETS,
    SECOND_BUCKETS,
    STEP_BUCKETS,
    WINDOW_STATES,
    MetricSpec,
    ReadMetric,
)
from springback.stream_processors.resilience.readings import EpisodeSummary, WindowReading

STEPS = MetricSpec(
    name="springback_steps_total",
    kind="counter",
    unit="steps",
    help="Steps taken in, counted while their episode runs and completed by its summary.",
    source="ours",
    labels=GROUP,
)
UNSCORED_STEPS = MetricSpec(
    name="springback_unscored_steps_total",
    kind="counter",
    unit="steps",
    help="Steps that no stage baseline existed for yet. Unscored is not calm.",
    source="ours (baseline back-off)",
    labels=GROUP,
)
UNSCORED_SHARE = MetricSpec(
    name="springback_unscored_steps_ratio",
    kind="gauge",
    unit="1",
    help="Share of all steps so far that no stage baseline existed for, from 0 to 1.",
    source="ours (baseline back-off)",
    labels=GROUP,
)
EPISODES_BEGUN = MetricSpec(
    name="springback_episodes_begun_total",
    kind="counter",
    unit="episodes",
    help="Episodes begun.",
    source="ours",
    labels=(*GROUP, "perturbation"),
)
EPISODES = MetricSpec(
    name="springback_episodes_total",
    kind="counter",
    unit="episodes",
    help="Episodes ended, by outcome. Aborted ones (their end was not seen) are left out of cost figures.",
    source="ours",
    labels=(*GROUP, "perturbation", "outcome"),
)
EPISODES_REOPENED = MetricSpec(
    name="springback_episodes_reopened_total",
    kind="counter",
    unit="episodes",
    help="Episodes counted as aborted, since they had fallen silent, that went on: take them off the aborted ones.",
    source="ours",
    labels=(*GROUP, "perturbation"),
)
INTERRUPTIONS = MetricSpec(
    name="springback_interruptions_total",
    kind="counter",
    unit="cycles",
    help="Cycles that lasted so long, against what is normal, that a cost counts them only up to the cap on time.",
    source="ours (caps of equation 3)",
    labels=GROUP,
)
EPISODES_WITH_GAP = MetricSpec(
    name="springback_episodes_with_gap_total",
    kind="counter",
    unit="episodes",
    help="Ended episodes of which so many steps are missing in one place that their course could not be judged there.",
    source="ours (window detection)",
    labels=GROUP,
)
EPISODES_OFF_RATE = MetricSpec(
    name="springback_episodes_off_rate_total",
    kind="counter",
    unit="episodes",
    help="Ended episodes that decided far more, or less, often than those behind the baseline, so were not scored.",
    source="ours",
    labels=GROUP,
)
EPISODES_JOINED = MetricSpec(
    name="springback_episodes_joined_total",
    kind="counter",
    unit="episodes",
    help="Ended episodes whose beginning was not seen: they are scored, but are never references.",
    source="ours",
    labels=GROUP,
)
EPISODES_UNMOVED = MetricSpec(
    name="springback_episodes_unmoved_total",
    kind="counter",
    unit="episodes",
    help="Successful episodes whose progress never moved, as where it is read from what is never set.",
    source="ours",
    labels=GROUP,
)
EPISODE_COST = ReadMetric[EpisodeSummary](
    name="springback_episode_recovery_cost",
    kind="histogram",
    unit="1",
    help="Recovery cost C_rec of episodes that ended and could be scored, provisional ones left out; 0 with no window.",
    source="equation 3, summed over the episode's windows",
    labels=(*GROUP, "perturbation"),
    buckets=COST_BUCKETS,
    rows=lambda summary: [(summary.recovery_cost,)],
)
STABILITY_LOSS = ReadMetric[EpisodeSummary](
    name="springback_episode_stability_loss",
    kind="histogram",
    unit="1",
    help="Stability loss of episodes that ended and had a value to be measured by, provisional ones left out.",
    source="equation 5",
    labels=(*GROUP, "perturbation"),
    buckets=LOSS_BUCKETS,
    rows=lambda summary: [(summary.stability_loss,)],
)
WINDOWS_OPENED = MetricSpec(
    name="springback_rebound_windows_opened_total",
    kind="counter",
    unit="windows",
    help="Rebound windows opened: a disruption was detected.",
    source="ours (window detection)",
    labels=(*GROUP, "perturbation"),
)
WINDOWS = MetricSpec(
    name="springback_rebound_windows_total",
    kind="counter",
    unit="windows",
    help="Rebound windows closed, by cause and end; one that silence had censored and that went on, by both ends.",
    source="ours (window detection)",
    labels=(*GROUP, "perturbation", "cause", "state"),
    states=WINDOW_STATES,
)
PROVISIONAL_WINDOWS = MetricSpec(
    name="springback_provisional_rebound_windows_total",
    kind="counter",
    unit="windows",
    help="Those of the rebound windows closed whose family was still learning: no cost, alert or capacity counts them.",
    source="ours (window detection)",
    labels=GROUP,
)
OPEN_WINDOWS = MetricSpec(
    name="springback_open_rebound_windows",
    kind="gauge",
    unit="windows",
    help="Rebound windows open just now, of agents that are not silent.",
    source="ours (window detection)",
    labels=GROUP,
)
WINDOW_COST = ReadMetric[WindowReading](
    name="springback_rebound_window_recovery_cost",
    kind="histogram",
    unit="1",
    help="Recovery cost C_rec of closed rebound windows, censored and provisional ones left out.",
    source="equation 3",
    labels=(*GROUP, "perturbation"),
    buckets=COST_BUCKETS,
    rows=lambda window: [(window.recovery_cost,)],
)
WINDOW_STEPS = ReadMetric[WindowReading](
    name="springback_rebound_window_steps",
    kind="histogram",
    unit="steps",
    help="Length of closed rebound windows in steps, both ends included; censored and provisional ones left out.",
    source="ours (window detection)",
    labels=(*GROUP, "perturbation"),
    buckets=STEP_BUCKETS,
    rows=lambda window: [(window.length_steps,)],
)
WINDOW_SECONDS = ReadMetric[WindowReading](
    name="springback_rebound_window_seconds",
    kind="histogram",
    unit="seconds",
    help="Length of closed rebound windows in the agent's time, censored and provisional ones left out.",
    source="ours (window detection)",
    labels=(*GROUP, "perturbation"),
    buckets=SECOND_BUCKETS,
    rows=lambda window: [(window.length_s,)],
)
CHANNEL_COST = ReadMetric[WindowReading](
    name="springback_channel_recovery_cost_total",
    kind="counter",
    unit="1",
    help="Recovery cost of closed windows computed with one channel alone, censored and provisional ones left out.",
    source="equation 3 with g^u/sqrt(3) in place of g^rec (ours)",
    labels=(*GROUP, "channel"),
    rows=lambda window: [(getattr(window.costs, channel), channel) for channel in CHANNELS],
)
LOST_CYCLES = ReadMetric[WindowReading](
    name="springback_lost_cycles_total",
    kind="counter",
    unit="cycles",
    help="Decision cycles lost in closed windows, not censored or provisional ones; one that gained some counts 0.",
    source="ours (delay detector)",
    labels=GROUP,
    rows=lambda window: [(max(window.lost_cycles, 0.0),)],
)
DUPLICATE_STEPS = MetricSpec(
    name="springback_duplicate_steps_total",
    kind="counter",
    unit="steps",
    help="Steps dropped because they had come before.",
    source="ours",
)
LATE_STEPS = MetricSpec(
    name="springback_late_steps_total",
    kind="counter",
    unit="steps",
    help=(
        "Steps that are no copies and were not taken in: overtaken by a later step, after the end, of an old session, "
        "of ids that were used before, or of an episode beyond the bounds on what a producer may have."
    ),
    source="ours",
    labels=("why",),
)
MISSING_STEPS = MetricSpec(
    name="springback_missing_steps_total",
    kind="counter",
    unit="steps",
    help="Step numbers that were passed over, so never seen.",
    source="ours",
)
REPLACED_TIMES = MetricSpec(
    name="springback_replaced_times_total",
    kind="counter",
    unit="steps",
    help="Steps whose own time was implausible, so that the broker's was used.",
    source="ours",
)
CLOCK_RESETS = MetricSpec(
    name="springback_clock_resets_total",
    kind="counter",
    unit="resets",
    help="Jumps of agents' clocks that were detected within an episode.",
    source="ours",
)
DEAD_LETTERS = MetricSpec(
    name="springback_dead_letters_total",
    kind="counter",
    unit="messages",
    help="Frames, rows, headers and ends that could not be used, by reason.",
    source="ours",
    labels=("reason",),
)
LAST_EVENT_AGE = MetricSpec(
    name="springback_last_event_age_seconds",
    kind="gauge",
    unit="seconds",
    help="Time since the newest event that a worker has processed reached the broker. Rises while nothing comes.",
    source="ours",
)
FRAMES_BEHIND = MetricSpec(
    name="springback_frames_behind",
    kind="gauge",
    unit="messages",
    help=(
        "Frames in the partition after the workers' committed offset. Commits trail the state, so this is a hint, "
        "mostly a little too high."
    ),
    source="ours",
    labels=("partition",),
)
METRICS_OF_EPISODES: tuple[ReadMetric[EpisodeSummary], ...] = (EPISODE_COST, STABILITY_LOSS)
"""Those that take in each episode at its end; censored and provisional ones are left out."""

METRICS_OF_WINDOWS: tuple[ReadMetric[WindowReading], ...] = (
    WINDOW_COST,
    WINDOW_STEPS,
    WINDOW_SECONDS,
    CHANNEL_COST,
    LOST_CYCLES,
)
"""Those that take in each window at its close; censored and provisional ones are left out."""

METRIC_CATALOGUE: tuple[MetricSpec, ...] = (
    STEPS,
    UNSCORED_STEPS,
    UNSCORED_SHARE,
    EPISODES_BEGUN,
    EPISODES,
    EPISODES_REOPENED,
    INTERRUPTIONS,
    EPISODES_WITH_GAP,
    EPISODES_OFF_RATE,
    EPISODES_JOINED,
    EPISODES_UNMOVED,
    EPISODE_COST,
    STABILITY_LOSS,
    WINDOWS_OPENED,
    WINDOWS,
    PROVISIONAL_WINDOWS,
    OPEN_WINDOWS,
    WINDOW_COST,
    WINDOW_STEPS,
    WINDOW_SECONDS,
    CHANNEL_COST,
    LOST_CYCLES,
    DUPLICATE_STEPS,
    LATE_STEPS,
    MISSING_STEPS,
    REPLACED_TIMES,
    CLOCK_RESETS,
    DEAD_LETTERS,
    *AGENT_METRICS,
    LAST_EVENT_AGE,
    FRAMES_BEHIND,
    *FAMILY_METRICS,
    *NAVIGATION_METRICS,
    *EXPORTER_METRICS,
)
"""Every exported metric, in the order of the page."""
