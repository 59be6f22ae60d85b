"""The metrics that a judge serves of itself, at `/metrics` of its health endpoint. Part of the metric catalogue.

As with those of a worker, each judge has its own, told apart by Prometheus' `instance`. Counters begin at 0 with it.
"""

from springback.stream_processors.resilience.metric_spec import MetricSpec

JUDGE_READY = MetricSpec(
    name="springback_judge_ready",
    kind="gauge",
    unit="1",
    help="1 while the judge has joined its consumer group, else 0: as /ready answers.",
    source="ours",
)
JUDGE_ENDPOINT_DOWN = MetricSpec(
    name="springback_judge_endpoint_down",
    kind="gauge",
    unit="1",
    help="1 while the language model's endpoint counts as down and is only probed, else 0. Frames go on unjudged.",
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
    JUDGE_FRAMES,
    JUDGE_JUDGED_FRAMES,
    JUDGE_UNJUDGEABLE_FRAMES,
    JUDGE_STEPS,
    JUDGE_CALLS,
    JUDGE_RETRIES,
    JUDGE_WAITING_FRAMES,
)
"""Every metric above, in the order of the page."""
