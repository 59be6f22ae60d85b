"""Every topic that springback uses: name, key, partitions, retention and cleanup policy, declared in one place."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from aiokafka.admin import AIOKafkaAdminClient, NewTopic  # type: ignore[import-untyped]
from aiokafka.errors import (  # type: ignore[import-untyped]
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    for_code,
)

from springback.producers.broker_fault import find_fault_soon
from springback.stream_processors.errors import BrokerFaultError, TopicDeclarationError, TopicMismatchError
from springback.stream_processors.settings import WorkerSettings

_DAY_MS = 86_400_000
_HOUR_MS = 3_600_000
LARGEST_RECORD_BYTES = 16 * 1024 * 1024
LARGEST_JUDGED_BYTES = LARGEST_RECORD_BYTES // 4
_DECLARE_TIMEOUT_S = 30.0
# Recovery must not read a day of old versions of the state.
_STATE = (("min.cleanable.dirty.ratio", "0.1"), ("segment.ms", str(_HOUR_MS)))
_MINUTE_MS = 60_000
# Whoever starts anew reads all of a topic of latest values, and no segment that is still written is compacted: by
# itself, one of 1 GB or of seven days. What is younger than ten minutes stays: charts are drawn from it again.
_LATEST = (
    ("segment.ms", str(10 * _MINUTE_MS)),
    ("min.compaction.lag.ms", str(10 * _MINUTE_MS)),
    ("max.compaction.lag.ms", str(30 * _MINUTE_MS)),
)

STEPS = "steps"
JUDGED_STEPS = "judged-steps"
DEAD_LETTER = "steps-dead-letter"
CONTRIBUTIONS = "baseline-contributions"
BASELINES = "stage-baselines"
WINDOWS = "rebound-windows"
SUMMARIES = "episode-summaries"
FAMILIES = "family-resilience"
STATUS = "agent-status"
GUIDANCE = "guidance"
SWITCHES = "baseline-switches"

STEPS_TABLE = "steps-state"
JUDGED_STEPS_TABLE = "judged-steps-state"
BASELINES_TABLE = "baselines-state"
FAMILIES_TABLE = "families-state"


class TopicSpec(NamedTuple):
    """One topic.

    Attributes:
        name: its name, without the prefix.
        key: what its messages are keyed by.
        cleanup: `delete` after the retention time, or `compact` to the latest record of each key.
        retention_ms: how long records are kept; None where the topic is compacted.
        single_partition: one partition whatever the others have, where the order of all records matters.
        largest_bytes: the largest record that the topic takes.
        time_of_sender: whether records keep the time that their sender gave them, in place of the broker's.
        extra: further settings of the topic, by their Kafka names.
    """

    name: str
    key: str
    cleanup: Literal["delete", "compact"]
    retention_ms: int | None = None
    single_partition: bool = False
    largest_bytes: int = LARGEST_RECORD_BYTES
    time_of_sender: bool = False
    extra: tuple[tuple[str, str], ...] = ()

    def config(self) -> dict[str, str]:
        """The settings of the topic, by their Kafka names."""
        retention = {} if self.retention_ms is None else {"retention.ms": str(self.retention_ms)}
        largest = {"max.message.bytes": str(self.largest_bytes)}
        # By the broker's clock alone: of one whose own clock is behind the records would be removed as too old, and the
        # next stage would take its time for that of the others.
        time = {"message.timestamp.type": "CreateTime" if self.time_of_sender else "LogAppendTime"}
        return {"cleanup.policy": self.cleanup, **largest, **retention, **time, **dict(self.extra)}


TOPICS: tuple[TopicSpec, ...] = (
    # The broker's time stands in for the clock of an agent that has none. Whatever is refused goes whole to the dead
    # letters, so it must be smaller than what those take.
    TopicSpec(STEPS, "producer", "delete", 7 * _DAY_MS, largest_bytes=LARGEST_RECORD_BYTES // 16),
    # Larger, as the scores are added. Its records keep the time at which they came into `steps`.
    TopicSpec(JUDGED_STEPS, "producer", "delete", 7 * _DAY_MS, largest_bytes=LARGEST_JUDGED_BYTES, time_of_sender=True),
    TopicSpec(DEAD_LETTER, "producer", "delete", 30 * _DAY_MS),
    TopicSpec(CONTRIBUTIONS, "family", "delete", 7 * _DAY_MS),
    # A family's own record follows its cells, so whoever reads it has read them.
    TopicSpec(BASELINES, "cell", "compact", single_partition=True),
    # What scored where: as long as there are windows and episodes to ask it of.
    TopicSpec(SWITCHES, "partition/switch or content", "delete", 30 * _DAY_MS),
    TopicSpec(WINDOWS, "agent", "delete", 30 * _DAY_MS),
    TopicSpec(SUMMARIES, "family", "delete", 30 * _DAY_MS),
    TopicSpec(FAMILIES, "family|method|version", "compact", extra=_LATEST),
    TopicSpec(STATUS, "agent", "compact", extra=_LATEST),
    TopicSpec(GUIDANCE, "agent", "delete", _DAY_MS),
)


def topic_name(name: str, prefix: str = "") -> str:
    """The topic's name on the broker.

    >>> topic_name("steps", "site-a.")
    'site-a.steps'
    """
    return prefix + name


def judge_group(group: str) -> str:
    """The judges' consumer group, for the workers' group."""
    return f"{group}-judge"


def changelog_name(app_id: str, table: str) -> str:
    """The name that Faust gives to a table's changelog."""
    return f"{app_id}-{table}-changelog"


def worker_topics(app_id: str) -> tuple[TopicSpec, ...]:
    """The changelogs that hold the worker's state. Their names carry the application's id instead of the prefix."""
    return tuple(
        TopicSpec(changelog_name(app_id, table), "partition/bucket", "compact", extra=_STATE)
        for table in (STEPS_TABLE, JUDGED_STEPS_TABLE, BASELINES_TABLE, FAMILIES_TABLE)
    )


async def declare_topics(
    bootstrap: str,
    *,
    prefix: str = "",
    app_id: str | None = None,
    partitions: int = 4,
    replication: int = 1,
    client_options: Mapping[str, Any] | None = None,
    only: Collection[str] | None = None,
) -> dict[str, int]:
    """Creates the topics that are missing, and checks the partitions of those that exist.

    Args:
        bootstrap: HOST:PORT of the broker, several with commas between.
        prefix: what the topics' names begin with.
        app_id: the worker's application id, whose changelogs are declared too; none if None.
        partitions: partitions of each topic (one for `stage-baselines`).
        replication: copies of each partition.
        client_options: further options of aiokafka's clients (security).
        only: the names of those that matter to whoever asks, with their prefix; all where not given.

    Returns:
        The topics and their partitions.

    Raises:
        BrokerFaultError: no broker can be used, and why.
        TopicMismatchError: a topic exists with other partitions.
        TopicDeclarationError: the broker refused a topic.
    """
    wanted = {topic_name(spec.name, prefix): (spec, 1 if spec.single_partition else partitions) for spec in TOPICS}
    if app_id is not None:
        wanted |= {spec.name: (spec, partitions) for spec in worker_topics(app_id)}
    if only is not None:
        wanted = {name: found for name, found in wanted.items() if name in only}
    fault = await find_fault_soon(bootstrap, client_options or {})
    if fault is not None:
        raise BrokerFaultError(*fault)
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap, **(client_options or {}))
    try:
        await admin.start()
        existing = await partitions_of_all(admin)
        missing = [
            NewTopic(name, count, replication, topic_configs=spec.config())
            for name, (spec, count) in wanted.items()
            if name not in existing
        ]
        if missing:
            _check_created(await admin.create_topics(missing))
        expected = {name: count for name, (_, count) in wanted.items()}
        found = await _wait_until_known(admin, list(expected))
    finally:
        await admin.close()
    check_partitions(found, expected)
    return found


async def declare_topics_for(settings: WorkerSettings, only: Collection[str] | None = None) -> dict[str, int]:
    """Declares the topics of an installation and its workers' changelogs, as `declare_topics` does.

    Args:
        settings: those of the installation.
        only: the names of those that matter to whoever asks; all where not given.
    """
    return await declare_topics(
        settings.kafka.bootstrap,
        prefix=settings.prefix,
        app_id=settings.group,
        partitions=settings.partitions,
        replication=settings.replication,
        client_options=settings.kafka.client_options(),
        only=only,
    )


def check_partitions(found: Mapping[str, int], expected: Mapping[str, int]) -> None:
    """Checks how many partitions each topic has.

    Raises:
        TopicMismatchError: a topic has another number than expected.
    """
    wrong = [f"{name} has {found[name]}, expected {count}" for name, count in expected.items() if found[name] != count]
    if wrong:
        message = (
            f"Topics exist with another number of partitions: {'; '.join(wrong)}. If they were declared so, ask for "
            "the partitions that they have (partitions, SPRINGBACK_PARTITIONS). If partitions were added to them, "
            "producers' keys have moved away from the state that belongs to them, and Kafka takes no partition away "
            "again: go on under another prefix with as many partitions as you want (`springback topics`), or delete "
            "these topics (their messages are then lost)."
        )
        raise TopicMismatchError(message)


async def partitions_of_all(admin: AIOKafkaAdminClient) -> dict[str, int]:
    """How many partitions each topic has that this user may see. Asked for by name, a broker might make a topic."""
    return {
        str(topic["topic"]): len(topic["partitions"])
        for topic in await admin.describe_topics()
        if topic["error_code"] == 0
    }


def _check_created(response: Any) -> None:
    refused, unauthorised = [], False
    for topic, code, *detail in response.topic_errors:
        unauthorised |= code == TopicAuthorizationFailedError.errno
        if code not in (0, TopicAlreadyExistsError.errno):
            why = detail[0] if detail and detail[0] else for_code(code).__name__
            refused.append(f"{topic}: {why}")
    if refused:
        message = f"The broker refused to create topics: {'; '.join(refused)}."
        if unauthorised:
            message += " This user may not: let `springback topics` declare them as one who may."
        raise TopicDeclarationError(message)


async def _wait_until_known(admin: AIOKafkaAdminClient, names: Sequence[str]) -> dict[str, int]:
    deadline = asyncio.get_running_loop().time() + _DECLARE_TIMEOUT_S
    while True:
        known = await partitions_of_all(admin)
        unknown = [name for name in names if not known.get(name)]
        if not unknown:
            return {name: known[name] for name in names}
        if asyncio.get_running_loop().time() > deadline:
            message = f"The broker created topics, but does not list them after {_DECLARE_TIMEOUT_S:.0f} s: {unknown}."
            raise TopicDeclarationError(message)
        await asyncio.sleep(0.05)
