"""The Pipeline dashboard: whether what the other dashboards show is fresh and whole."""

from collections.abc import Iterable

from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.stat import Panel as Stat
from grafana_foundation_sdk.builders.timeseries import Panel as TimeSeries
from grafana_foundation_sdk.models.common import BigValueTextMode

from springback.dashboards.grafana_parts.board_layout import OF_GROUPS, Board, Section, group_variables
from springback.dashboards.grafana_parts.colour_scheme import BAD, GOOD, WARNING, thresholds, yes_no
from springback.dashboards.grafana_parts.metric_query import BY_INSTANCE, WHOLE_RANGE, MetricQueries, targets_up
from springback.dashboards.grafana_parts.panel_kinds import (
    NUMBER,
    PER_SECOND,
    PERCENT,
    SECONDS,
    SERIES_OF_GROUP,
    ask,
    ask_now,
    describe,
    stat,
    time_line,
    time_series,
)
from springback.stream_processors.metrics import catalogue as metrics
from springback.stream_processors.metrics import exporter
from springback.stream_processors.metrics import services as workers
from springback.stream_processors.metrics.spec import MetricSpec

_WHOLE = MetricQueries({})
# Of two exporters the one that has read more knows better.
_NEWEST_EVENT = f"min({_WHOLE.series(metrics.LAST_EVENT_AGE)})"


def pipeline_board() -> Board:
    """The whole dashboard."""
    return Board(
        uid="springback-pipeline",
        title="Springback / Pipeline",
        description=(
            "Whether what the other dashboards show is fresh and whole: lag, throughput, dead letters, coverage by "
            "baselines, the health of workers and exporter."
        ),
        refresh="10s",
        span="1h",
        variables=group_variables(),
        annotations=[],
        sections=[_health(), _flow(), _coverage(), _workers(), _exporter()],
    )


def _health() -> Section:
    up = time_line(
        "Processes that Prometheus reaches",
        "Each exporter and worker that Prometheus has as a target (`up` of the jobs springback-exporter and "
        "springback-worker).",
        ask(targets_up(), "{{job}} {{instance}}"),
    )
    return Section(
        "Health",
        [
            _flag("Broker", exporter.BROKER_REACHABLE, _WHOLE.shown(exporter.BROKER_REACHABLE), "reachable", "away"),
            _flag("Exporter", exporter.CAUGHT_UP, _WHOLE.shown(exporter.CAUGHT_UP), "caught up", "reading"),
            _flag(
                "Workers", workers.WORKER_READY, f"min({_WHOLE.of_each(workers.WORKER_READY)})", "ready", "not ready"
            ),
            _late("Newest event", metrics.LAST_EVENT_AGE, _NEWEST_EVENT),
            _count("Frames behind", metrics.FRAMES_BEHIND, _WHOLE.total(metrics.FRAMES_BEHIND)),
            _count(
                "Unreadable in range",
                exporter.UNREADABLE_MESSAGES,
                _WHOLE.rise(exporter.UNREADABLE_MESSAGES, window=WHOLE_RANGE),
            ),
            up.mappings(yes_no("up", "down", bad=False)).height(6),
        ],
    )


def _flag(title: str, spec: MetricSpec, query: str, yes: str, no: str) -> Stat:
    return stat(title, describe(spec), ask_now(query, title.lower())).mappings(yes_no(yes, no, bad=False)).span(4)


def _late(title: str, spec: MetricSpec, query: str) -> Stat:
    panel = stat(title, describe(spec), ask_now(query, "age"), unit=SECONDS).span(4)
    return panel.thresholds(thresholds(GOOD, (30, WARNING), (120, BAD)))


def _count(title: str, spec: MetricSpec, query: str) -> Stat:
    panel = stat(title, describe(spec), ask_now(query, spec.unit)).span(4)
    return panel.thresholds(thresholds(GOOD, (1, WARNING)))


def _flow() -> Section:
    steps = _lines(
        "Steps taken in",
        [metrics.STEPS],
        ask(OF_GROUPS.rate(metrics.STEPS, ("family",)), "{{family}}"),
        unit=PER_SECOND,
    )
    behind = _lines(
        "Frames behind, by partition",
        [metrics.FRAMES_BEHIND],
        ask(_WHOLE.shown(metrics.FRAMES_BEHIND), "partition {{partition}}"),
    )
    age = _lines(
        "Age of the newest event",
        [metrics.LAST_EVENT_AGE],
        ask(_NEWEST_EVENT, "age"),
        unit=SECONDS,
    )
    letters = _lines(
        "Dead letters, by reason",
        [metrics.DEAD_LETTERS],
        ask(f"{_WHOLE.rise(metrics.DEAD_LETTERS, ('reason',))} or vector(0)", "{{reason}}"),
    )
    left_out = _lines(
        "Steps that count for less",
        [metrics.DUPLICATE_STEPS, metrics.MISSING_STEPS, metrics.REPLACED_TIMES, metrics.CLOCK_RESETS],
        ask(_WHOLE.rise(metrics.DUPLICATE_STEPS), "duplicate"),
        ask(_WHOLE.rise(metrics.MISSING_STEPS), "missing"),
        ask(_WHOLE.rise(metrics.REPLACED_TIMES), "time replaced"),
        ask(_WHOLE.rise(metrics.CLOCK_RESETS), "clock reset"),
    )
    episodes = _lines(
        "Episodes begun and ended",
        [metrics.EPISODES_BEGUN, metrics.EPISODES],
        ask(OF_GROUPS.rise(metrics.EPISODES_BEGUN), "begun"),
        ask(OF_GROUPS.rise(metrics.EPISODES, ("outcome",)), "{{outcome}}"),
    )
    return Section(
        "Lag, throughput, dead letters",
        [panel.span(8).min(0) for panel in (steps, behind, age, letters, left_out, episodes)],
    )


def _coverage() -> Section:
    share = _lines(
        "Steps without a baseline",
        [metrics.UNSCORED_SHARE],
        ask(OF_GROUPS.shown(metrics.UNSCORED_SHARE), SERIES_OF_GROUP),
        unit=PERCENT,
    )
    steps = _lines(
        "Unscored steps",
        [metrics.UNSCORED_STEPS],
        ask(OF_GROUPS.rate(metrics.UNSCORED_STEPS, ("family",)), "{{family}}"),
        unit=PER_SECOND,
    )
    cells = _lines(
        "Baseline cells, by worker",
        [workers.WORKER_BASELINE_CELLS],
        ask(_WHOLE.of_each(workers.WORKER_BASELINE_CELLS), "{{instance}}"),
    )
    return Section("Coverage by baselines", [share.span(8).min(0).max(1), steps.span(8).min(0), cells.span(8).min(0)])


def _workers() -> Section:
    ready = time_line(
        "Workers ready",
        describe(workers.WORKER_READY),
        ask(_WHOLE.of_each(workers.WORKER_READY), "{{instance}}"),
    )
    frames = _lines(
        "Frames and steps, by worker",
        [workers.WORKER_FRAMES, workers.WORKER_STEPS],
        ask(_WHOLE.rate_of_each(workers.WORKER_FRAMES, BY_INSTANCE), "frames {{instance}}"),
        ask(_WHOLE.rate_of_each(workers.WORKER_STEPS, BY_INSTANCE), "steps {{instance}}"),
        unit=PER_SECOND,
    )
    age = _lines(
        "Since a stage last processed anything",
        [workers.WORKER_LAST_OFFSET_AGE],
        ask(_WHOLE.of_each(workers.WORKER_LAST_OFFSET_AGE), "{{stage}} {{instance}}"),
        unit=SECONDS,
    )
    behind = _lines(
        "Messages behind, by stage",
        [workers.WORKER_OFFSETS_BEHIND],
        ask(f"sum by (stage) ({_WHOLE.of_each(workers.WORKER_OFFSETS_BEHIND)})", "{{stage}}"),
    )
    open_episodes = _lines(
        "Open episodes, by worker",
        [workers.WORKER_OPEN_EPISODES],
        ask(_WHOLE.of_each(workers.WORKER_OPEN_EPISODES), "{{instance}}"),
    )
    trouble = (
        workers.WORKER_REBALANCES,
        workers.WORKER_ABANDONED_BATCHES,
        workers.WORKER_READ_AGAIN,
        workers.WORKER_HOLES,
        workers.WORKER_REJECTED_MESSAGES,
        workers.WORKER_TICK_FAILURES,
    )
    troubles = _lines(
        "Rebalances and other trouble",
        trouble,
        *(ask(_WHOLE.rate_of_each(spec), _words(spec)) for spec in trouble),
        unit=PER_SECOND,
    )
    return Section(
        "Workers",
        [
            ready.mappings(yes_no("ready", "not ready", bad=False)).height(5),
            *(panel.span(8).min(0) for panel in (frames, age, behind)),
            *(panel.span(12).min(0) for panel in (open_episodes, troubles)),
        ],
    )


def _exporter() -> Section:
    readings = _lines(
        "Readings taken in",
        [exporter.READINGS, exporter.REPEATED_READINGS],
        ask(_WHOLE.rate(exporter.READINGS, ("kind",)), "{{kind}}"),
        ask(_WHOLE.rate(exporter.REPEATED_READINGS), "repeated"),
        unit=PER_SECOND,
    )
    bounds = _lines(
        "Left out by bounds",
        [
            exporter.REFUSED_VALUES,
            exporter.OVERFLOW_AGENTS,
            exporter.OVERFLOW_READINGS,
            exporter.UNSHOWN_FAMILIES,
            exporter.SINK_RETRIES,
        ],
        ask(_WHOLE.rise(exporter.REFUSED_VALUES), "values refused"),
        ask(_WHOLE.rise(exporter.OVERFLOW_AGENTS), "agents beyond the bound"),
        ask(_WHOLE.rise(exporter.OVERFLOW_READINGS), "readings under other"),
        ask(_WHOLE.total(exporter.UNSHOWN_FAMILIES), "families not shown"),
        ask(_WHOLE.rise(exporter.SINK_RETRIES), "writes tried again"),
    )
    versions = stat(
        "Exporter's version",
        describe(exporter.EXPORTER),
        ask_now(_WHOLE.shown(exporter.EXPORTER), "{{version}}, readings {{reading_schema}}"),
    )
    return Section(
        "Exporter",
        [
            readings.span(10).min(0),
            bounds.span(10).min(0),
            versions.text_mode(BigValueTextMode.NAME).span(4).height(8),
        ],
    )


def _lines(title: str, specs: Iterable[MetricSpec], *queries: Dataquery, unit: str = NUMBER) -> TimeSeries:
    return time_series(title, describe(*specs), *queries, unit=unit)


def _words(spec: MetricSpec) -> str:
    return spec.name.removeprefix("springback_worker_").removesuffix("_total").replace("_", " ")
