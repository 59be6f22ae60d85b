"""The metrics that the exporter has of itself: what it took in, dropped and refused. Part of the metric catalogue."""

from springback.stream_processors.metrics.spec import MetricSpec

EXPORTER = MetricSpec(
    name="springback_exporter_info",
    kind="info",
    unit="1",
    help="The exporter itself: its version and the schema of the readings that it knows.",
    source="ours",
    labels=("version", "reading_schema"),
)
CAUGHT_UP = MetricSpec(
    name="springback_exporter_caught_up",
    kind="gauge",
    unit="1",
    help="1 once the readings kept by the broker were read to their end. Before that, only exporter metrics are shown.",
    source="ours",
)
UNREAD_READINGS = MetricSpec(
    name="springback_exporter_unread_readings",
    kind="gauge",
    unit="messages",
    help="Of what the topics held when the exporter began to read, at its start and after the broker was away: "
    "messages still to be read.",
    source="ours",
)
REACH = MetricSpec(
    name="springback_exporter_reach_timestamp_seconds",
    kind="gauge",
    unit="seconds",
    help="From when on all readings of a topic were read: what was before is no longer in it, and in no counter. "
    "No series where the topic had none.",
    source="ours",
    labels=("topic",),
)
BROKER_REACHABLE = MetricSpec(
    name="springback_exporter_broker_reachable",
    kind="gauge",
    unit="1",
    help="1 if the broker answered the exporter's last question, else 0.",
    source="ours",
)
READINGS = MetricSpec(
    name="springback_exporter_readings_total",
    kind="counter",
    unit="messages",
    help="Readings taken in, repetitions included.",
    source="ours",
    labels=("kind",),
)
REPEATED_READINGS = MetricSpec(
    name="springback_exporter_repeated_readings_total",
    kind="counter",
    unit="messages",
    help="Readings dropped as repetitions: a worker sends some again after a crash.",
    source="ours",
    labels=("kind",),
)
UNREADABLE_MESSAGES = MetricSpec(
    name="springback_exporter_unreadable_messages_total",
    kind="counter",
    unit="messages",
    help="Messages in the topics of readings that are no reading of a known kind.",
    source="ours",
    labels=("topic",),
)
REFUSED_VALUES = MetricSpec(
    name="springback_exporter_refused_values_total",
    kind="counter",
    unit="values",
    help="Values kept out of a series because they were not finite, ran backwards or lay in the future.",
    source="ours",
    labels=("metric",),
)
OVERFLOW_AGENTS = MetricSpec(
    name="springback_exporter_overflow_agents_total",
    kind="counter",
    unit="agents",
    help="Agents that appeared when the bound on agents with series of their own was reached; see agent=other.",
    source="ours",
)
OVERFLOW_READINGS = MetricSpec(
    name="springback_exporter_overflow_readings_total",
    kind="counter",
    unit="messages",
    help="Readings filed under `other`, or shown in part, because a bound on label values was reached.",
    source="ours",
    labels=("bound",),
)
UNSHOWN_FAMILIES = MetricSpec(
    name="springback_exporter_unshown_families",
    kind="gauge",
    unit="families",
    help="Families (by method and version) without family series, as others beyond the bound have newer readings.",
    source="ours",
)
SINK_RETRIES = MetricSpec(
    name="springback_exporter_sink_retries_total",
    kind="counter",
    unit="writes",
    help="Writes that a sink could not do at once and that were tried again.",
    source="ours",
    labels=("sink",),
)

EXPORTER_METRICS: tuple[MetricSpec, ...] = (
    EXPORTER,
    CAUGHT_UP,
    UNREAD_READINGS,
    REACH,
    BROKER_REACHABLE,
    READINGS,
    REPEATED_READINGS,
    UNREADABLE_MESSAGES,
    REFUSED_VALUES,
    OVERFLOW_AGENTS,
    OVERFLOW_READINGS,
    UNSHOWN_FAMILIES,
    SINK_RETRIES,
)
"""Every metric above, in the order of the page."""
