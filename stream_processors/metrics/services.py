"""The metrics that a worker or judge serves of itself, at `/metrics` of its health endpoint.

Each process has its own, told apart by Prometheus' `instance`, and the exporter does not serve them. Counters begin at
0 with the process. The label `stage` is `track_steps`, `learn_baselines` or `aggregate_families`.
"""

from springback.stream_processors.metrics.spec import MetricSpec

STAGE = ("stage",)

WORKER_READY = MetricSpec(
    name="springback_worker_ready",
    kind="gauge",
    unit="1",
    help="1 while the worker has its partitions, its recovered state and the baselines, else 0: as /ready answers.",
    source="ours",
)
WORKER_READY_CHANGED = MetricSpec(
    name="springback_worker_ready_changed_timestamp_seconds",
    kind="gauge",
    unit="seconds",
    help="Since when the worker has been ready, or has not, as springback_worker_ready says; seconds since 1970.",
    source="ours",
)
WORKER_FRAMES = MetricSpec(
    name="springback_worker_frames_total",
    kind="counter",
    unit="messages",
    help="Frames processed, their outputs and state written. One that is read again after that is not counted again.",
    source="ours",
)
WORKER_STEPS = MetricSpec(
    name="springback_worker_steps_total",
    kind="counter",
    unit="steps",
    help="Valid steps in the frames taken in, duplicates included. Those of an abandoned batch count each time.",
    source="ours",
)
WORKER_MESSAGES = MetricSpec(
    name="springback_worker_messages_total",
    kind="counter",
    unit="messages",
    help="Messages of its input that the stage has processed; those of track_steps are the frames.",
    source="ours",
    labels=STAGE,
)
WORKER_LAST_OFFSET_AGE = MetricSpec(
    name="springback_worker_last_offset_age_seconds",
    kind="gauge",
    unit="seconds",
    help=(
        "Time since the stage last processed an offset, whether or not there was one to process: no series before the "
        "first. The watchdog is this above a bound while springback_worker_offsets_behind of the stage, or for "
        "track_steps the sum of springback_frames_behind (asked of the broker by the exporter), is above 0."
    ),
    source="ours",
    labels=STAGE,
)
WORKER_OFFSETS_BEHIND = MetricSpec(
    name="springback_worker_offsets_behind",
    kind="gauge",
    unit="messages",
    help=(
        "Messages after the stage's state in its partitions, as of when the worker last asked (each second, unless it "
        "hangs or the broker does not answer). No series before it has asked, or while it holds no partition."
    ),
    source="ours",
    labels=STAGE,
)
WORKER_COVERED_MESSAGES = MetricSpec(
    name="springback_worker_covered_messages_total",
    kind="counter",
    unit="messages",
    help="Messages passed over because the state held them already, as after a restart.",
    source="ours",
    labels=STAGE,
)
WORKER_LEFT_OVER_MESSAGES = MetricSpec(
    name="springback_worker_left_over_messages_total",
    kind="counter",
    unit="messages",
    help="Messages read before a rebalance and dropped after it; whoever holds the partition reads them again.",
    source="ours",
    labels=STAGE,
)
WORKER_ABANDONED_BATCHES = MetricSpec(
    name="springback_worker_abandoned_batches_total",
    kind="counter",
    unit="batches",
    help="Batches given up before their state was written: too slow, overtaken by a rebalance, or outputs not taken.",
    source="ours",
    labels=STAGE,
)
WORKER_READ_AGAIN = MetricSpec(
    name="springback_worker_read_again_total",
    kind="counter",
    unit="times",
    help="Times that a partition was read again from where the state is, as messages were missing or a batch failed.",
    source="ours",
    labels=STAGE,
)
WORKER_HOLES = MetricSpec(
    name="springback_worker_holes_total",
    kind="counter",
    unit="holes",
    help="Holes in the input that the broker confirmed (retention, or markers of transactions) and that were passed.",
    source="ours",
    labels=STAGE,
)
WORKER_LOST_OFFSETS = MetricSpec(
    name="springback_worker_lost_offsets_total",
    kind="counter",
    unit="messages",
    help="Offsets in those holes. A worker that was away for longer than the topic is kept has lost so many messages.",
    source="ours",
    labels=STAGE,
)
WORKER_REJECTED_MESSAGES = MetricSpec(
    name="springback_worker_rejected_messages_total",
    kind="counter",
    unit="messages",
    help="Messages that the stage failed on, by a fault of springback: they went to the dead letters. The log has it.",
    source="ours",
    labels=STAGE,
)
WORKER_COSTLY_MESSAGES = MetricSpec(
    name="springback_worker_too_costly_messages_total",
    kind="counter",
    unit="messages",
    help="Messages that alone took longer than the session allows, three times: they went whole to the dead letters.",
    source="ours",
    labels=STAGE,
)
WORKER_LARGE_STATES = MetricSpec(
    name="springback_worker_state_full_messages_total",
    kind="counter",
    unit="messages",
    help="Messages that would have made a record of the state too large: they went whole to the dead letters.",
    source="ours",
    labels=STAGE,
)
WORKER_STEP_FATES = MetricSpec(
    name="springback_worker_step_fates_total",
    kind="counter",
    unit="steps",
    help=(
        "Steps of the frames processed, by what became of each: taken, rejected, duplicate, overtaken, after_end, "
        "old_session, session_again, over_bounds. Their sum is what those frames held. Frames that cannot be read "
        "whole are not among them."
    ),
    source="ours",
    labels=("fate",),
)
WORKER_SUSPICIONS = MetricSpec(
    name="springback_suspicions_total",
    kind="counter",
    unit="signs",
    help=(
        "Signs that what is sent was not meant so, by kind, of the frames processed: a message, a part, a step or an "
        "episode each. `springback check --broker` shows them with an example and what to do."
    ),
    source="ours",
    labels=("kind",),
)
WORKER_TOLD_LOSSES = MetricSpec(
    name="springback_worker_producer_lost_steps_total",
    kind="counter",
    unit="steps",
    help="Steps that producers say they lost, as buffer and spool were full or Kafka refused them. Each counts once.",
    source="ours",
)
WORKER_SHEDDINGS = MetricSpec(
    name="springback_worker_state_shed_total",
    kind="counter",
    unit="times",
    help="Times that a part of the state was made smaller: idle agents, copies to know, lessons of open episodes went.",
    source="ours",
)
WORKER_TICK_FAILURES = MetricSpec(
    name="springback_worker_tick_failures_total",
    kind="counter",
    unit="times",
    help="Times that closing silent episodes failed on a part of the state, by a fault of springback. The log has it.",
    source="ours",
    labels=STAGE,
)
WORKER_SWITCHES = MetricSpec(
    name="springback_worker_baseline_switches_total",
    kind="counter",
    unit="times",
    help="Times that a partition went over to another baseline to score by; the topic baseline-switches shows them.",
    source="ours",
)
WORKER_REBALANCES = MetricSpec(
    name="springback_worker_rebalances_total",
    kind="counter",
    unit="times",
    help="Rebalances of the consumer group that the worker took part in; its own joining is the first.",
    source="ours",
)
WORKER_OPEN_EPISODES = MetricSpec(
    name="springback_worker_open_episodes",
    kind="gauge",
    unit="episodes",
    help="Episodes begun and not ended, in the worker's partitions. No series while it holds none, or loads its state.",
    source="ours",
)
WORKER_BASELINE_CELLS = MetricSpec(
    name="springback_worker_baseline_cells",
    kind="gauge",
    unit="cells",
    help="Cells of the stage baselines that the worker has read, of all families; every worker reads them all.",
    source="ours",
)
WORKER_IGNORED_CONTRIBUTIONS = MetricSpec(
    name="springback_worker_ignored_contributions_total",
    kind="counter",
    unit="messages",
    help="Reference episodes that taught nothing because their family's baseline is frozen.",
    source="ours",
)
WORKER_GROUPS_LET_GO = MetricSpec(
    name="springback_worker_groups_let_go_total",
    kind="counter",
    unit="groups",
    help="Methods and versions of a family dropped, the least recent first, as the bound on their number was reached.",
    source="ours",
)

WORKER_METRICS: tuple[MetricSpec, ...] = (
    WORKER_READY,
    WORKER_READY_CHANGED,
    WORKER_FRAMES,
    WORKER_STEPS,
    WORKER_MESSAGES,
    WORKER_LAST_OFFSET_AGE,
    WORKER_OFFSETS_BEHIND,
    WORKER_COVERED_MESSAGES,
    WORKER_LEFT_OVER_MESSAGES,
    WORKER_ABANDONED_BATCHES,
    WORKER_READ_AGAIN,
    WORKER_HOLES,
    WORKER_LOST_OFFSETS,
    WORKER_REJECTED_MESSAGES,
    WORKER_COSTLY_MESSAGES,
    WORKER_LARGE_STATES,
    WORKER_STEP_FATES,
    WORKER_SUSPICIONS,
    WORKER_TOLD_LOSSES,
    WORKER_SHEDDINGS,
    WORKER_TICK_FAILURES,
    WORKER_SWITCHES,
    WORKER_REBALANCES,
    WORKER_OPEN_EPISODES,
    WORKER_BASELINE_CELLS,
    WORKER_IGNORED_CONTRIBUTIONS,
    WORKER_GROUPS_LET_GO,
)
"""Every metric above, in the order of the page."""


JUDGE_READY = MetricSpec(
    name="springback_judge_ready",
    kind="gauge",
    unit="1",
    help=(
        "1 while the judge has joined its consumer group, and not all of its latest calls (judge.breaker_failures of "
        "them) were useless, else 0: as /ready answers."
    ),
    source="ours",
)
JUDGE_ENDPOINT_DOWN = MetricSpec(
    name="springback_judge_endpoint_down",
    kind="gauge",
    unit="1",
    help="1 while the language model's endpoint counts as down and is only probed, else 0. Frames go on unjudged.",
    source="ours",
)
JUDGE_USELESS_CALLS = MetricSpec(
    name="springback_judge_useless_calls",
    kind="gauge",
    unit="calls",
    help=(
        "Calls in a row, up to the latest, that brought no scores: no answer, a refusal, or an answer that could not "
        "be read. 0 once one brings some."
    ),
    source="ours",
)
JUDGE_FRAMES = MetricSpec(
    name="springback_judge_frames_total",
    kind="counter",
    unit="messages",
    help="Frames taken in. All of them are passed on, with scores or without.",
    source="ours",
)
JUDGE_JUDGED_FRAMES = MetricSpec(
    name="springback_judge_judged_frames_total",
    kind="counter",
    unit="messages",
    help="Frames passed on with scores of this judge.",
    source="ours",
)
JUDGE_UNJUDGEABLE_FRAMES = MetricSpec(
    name="springback_judge_unjudgeable_frames_total",
    kind="counter",
    unit="messages",
    help="Frames passed on as they came: unreadable, with columns that the judge cannot use, or too large with scores.",
    source="ours",
    labels=("reason",),
)
JUDGE_STEPS = MetricSpec(
    name="springback_judge_steps_total",
    kind="counter",
    unit="steps",
    help="Steps by what became of them: judged, cached and given ones have scores, the rubric scores all others.",
    source="ours",
    labels=("fate",),
)
JUDGE_CALLS = MetricSpec(
    name="springback_judge_calls_total",
    kind="counter",
    unit="calls",
    help="Calls of the language model's endpoint, retries included.",
    source="ours",
)
JUDGE_RETRIES = MetricSpec(
    name="springback_judge_retries_total",
    kind="counter",
    unit="times",
    help="Times that a request was tried again after a failure; without a call where the budget had none left.",
    source="ours",
)
JUDGE_WAITING_FRAMES = MetricSpec(
    name="springback_judge_waiting_frames",
    kind="gauge",
    unit="messages",
    help="Frames that the judge holds: they wait for scores, for those before them, or for the broker.",
    source="ours",
)

JUDGE_METRICS: tuple[MetricSpec, ...] = (
    JUDGE_READY,
    JUDGE_ENDPOINT_DOWN,
    JUDGE_USELESS_CALLS,
    JUDGE_FRAMES,
    JUDGE_JUDGED_FRAMES,
    JUDGE_UNJUDGEABLE_FRAMES,
    JUDGE_STEPS,
    JUDGE_CALLS,
    JUDGE_RETRIES,
    JUDGE_WAITING_FRAMES,
)
"""Every metric above, in the order of the page."""
