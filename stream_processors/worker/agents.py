"""The stages as Faust agents: one agent each, concurrency 1, batches acknowledged by hand."""

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import faust

from springback.stream_processors.exact.contexts import ContextSource
from springback.stream_processors.exact.port import Arrival, StageEvent, StageReducer
from springback.stream_processors.exact.stage import ExactStage
from springback.stream_processors.resilience.tracking.tracker_state import TrackerState
from springback.stream_processors.settings import WorkerSettings
from springback.stream_processors.stages.aggregate_families import AggregateFamilies, AggregateState
from springback.stream_processors.stages.learn_baselines import LearnBaselines, LearnerState
from springback.stream_processors.stages.scoring_baseline import ScoringBaseline
from springback.stream_processors.stages.track_steps import TrackSteps
from springback.stream_processors.topics import (
    BASELINES_TABLE,
    CONTRIBUTIONS,
    FAMILIES_TABLE,
    JUDGED_STEPS,
    JUDGED_STEPS_TABLE,
    STEPS,
    STEPS_TABLE,
    SUMMARIES,
    topic_name,
)
from springback.stream_processors.value_models import find_value_model
from springback.stream_processors.worker.baselines import BaselineSource
from springback.stream_processors.worker.port import FaustPort, PartitionedTable

S = TypeVar("S")


class Stages(NamedTuple):
    """The stages of a worker, and their reducers, which count what they take in or pass over."""

    track_steps: ExactStage[TrackerState]
    learn_baselines: ExactStage[LearnerState]
    aggregate_families: ExactStage[AggregateState]
    tracker: TrackSteps
    learner: LearnBaselines
    families: AggregateFamilies

    def all(self) -> tuple[ExactStage[Any], ExactStage[Any], ExactStage[Any]]:
        """The stages themselves."""
        return self.track_steps, self.learn_baselines, self.aggregate_families


def add_stages(
    app: faust.App, settings: WorkerSettings, baselines: BaselineSource, on_failure: Callable[[BaseException], None]
) -> Stages:
    """Gives the application its agents, tables and what they compute.

    Args:
        app: the Faust application.
        settings: of the worker.
        baselines: where the baseline to score by comes from; no batch is processed before it is ready.
        on_failure: called with the exception that ended an agent.

    Raises:
        SettingsError: the value model cannot be found or used.
    """
    config = settings.resilience
    model = find_value_model(settings.value_model)
    tracker = TrackSteps(config, model=model)
    scoring = ScoringBaseline(config, baselines, tracker, settings.baseline_refresh_s)
    learner, families = LearnBaselines(config.baseline), AggregateFamilies(config.aggregate)
    stages = Stages(
        add_stage(
            app, settings, "track_steps", *steps_source(settings), tracker, lambda key: hash_of(key) % settings.buckets,
            baselines, on_failure, scoring, tracker.settle,
        ),
        add_stage(
            app, settings, "learn_baselines", CONTRIBUTIONS, BASELINES_TABLE, learner, hash_of, baselines, on_failure
        ),
        add_stage(
            app, settings, "aggregate_families", SUMMARIES, FAMILIES_TABLE, families, hash_of, baselines, on_failure
        ),
        tracker,
        learner,
        families,
    )  # fmt: skip
    return stages


def steps_source(settings: WorkerSettings) -> tuple[str, str]:
    """The topic that steps are read from, and the table of their state: offsets of one mean nothing in the other."""
    return (JUDGED_STEPS, JUDGED_STEPS_TABLE) if settings.judged else (STEPS, STEPS_TABLE)


def add_stage(
    app: faust.App,
    settings: WorkerSettings,
    name: str,
    source: str,
    table_name: str,
    reducer: StageReducer[S],
    bucket_of: Callable[[bytes], int],
    baselines: BaselineSource,
    on_failure: Callable[[BaseException], None],
    contexts: ContextSource[S] | None = None,
    settled: Callable[[bool], None] = lambda written: None,
) -> ExactStage[S]:
    """One stage as an agent under the exact protocol.

    The arguments are those of `add_stages`, for a stage alone; `contexts` and `settled` as for `ExactStage`.
    """
    topic = app.topic(
        topic_name(source, settings.prefix),
        key_serializer="raw",
        value_serializer="raw",
        partitions=settings.partitions,
        allow_empty=True,
    )
    # No `schema=`: with one, plain bytes come back from the changelog as something else.
    table = PartitionedTable(app, name=table_name, partitions=settings.partitions, key_type=bytes, value_type=bytes)
    app.tables.add(table)
    port = FaustPort(app, table, topic_name(source, settings.prefix), settings.prefix, settings.kafka)
    stage = ExactStage(
        name,
        port,
        table,
        reducer,
        bucket_of,
        batch_max=settings.batch_max,
        input_partitions=settings.partitions,
        most_buckets=max(settings.families, settings.buckets),
        session_timeout_s=settings.session_timeout_s,
        stall_s=settings.stall_s,
        contexts=contexts,
        settled=settled,
    )

    async def revoked(*_: object, **__: object) -> None:
        stage.forget()

    app.on_partitions_revoked.connect(revoked, weak=False)

    async def run(stream: Any) -> None:
        try:
            async for events in stream.noack_take(settings.batch_max, within=settings.batch_within_s):
                await baselines.ready.wait()
                for index in await stage.process([arrival(event) for event in events]):
                    await stream.ack(events[index])
        except Exception as error:
            on_failure(error)
            raise

    app.agent(topic, name=name, concurrency=1)(run)
    return stage


def hash_of(key: bytes) -> int:
    """A number of 63 bits that depends on the key alone.

    >>> hash_of(b"robot-7") == hash_of(b"robot-7") != hash_of(b"robot-8")
    True
    """
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big") >> 1


def arrival(event: Any) -> Arrival:
    """A Faust event as the exact protocol takes it."""
    message = event.message
    place = message.topic, message.partition, message.offset
    return Arrival(message.generation_id, StageEvent(*place, event.key or b"", event.value or b"", message.timestamp))
