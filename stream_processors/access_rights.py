"""What each part may do at the brokers: the least that it needs, as a table and as commands of Kafka's `kafka-acls`.

To write to or read from a topic implies to see it (`Describe`). No part but `topics` makes topics.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, NamedTuple

from springback.stream_processors import topics
from springback.stream_processors.settings import WorkerSettings
from springback.stream_processors.topics import TOPICS, changelog_name, topic_name, worker_topics

Operation = Literal["Create", "Describe", "DescribeConfigs", "Read", "Write"]

Resource = Literal["topic", "group"]

PARTS: Final[Mapping[str, str]] = {
    "topics": "`springback topics`",
    "producer": "agents, `bridge`, `replay`",
    "gateway": "`gateway`",
    "judge": "`judge`",
    "worker": "`worker`",
    "export": "`export`",
    "live": "`live`",
    "annotate": "`annotate`",
    "baseline": "`baseline export`, `baseline import`, `baseline unfreeze`",
    "dead-letters": "`dead-letters`",
}
"""The parts that have rights of their own, and the commands that each stands for."""

EVERY_PART: Final = "all"
"""One user for all of them, as `demo` and `up` need it."""

_READINGS = (topics.WINDOWS, topics.SUMMARIES, topics.STATUS, topics.FAMILIES, topics.DEAD_LETTER)
_WORKER_WRITES = (
    topics.DEAD_LETTER, topics.CONTRIBUTIONS, topics.BASELINES, topics.SWITCHES, topics.WINDOWS, topics.SUMMARIES,
    topics.FAMILIES, topics.STATUS, topics.GUIDANCE,
)  # fmt: skip


class Right(NamedTuple):
    """A right at one topic or consumer group.

    Attributes:
        resource: what it is a right at.
        name: its name, with its prefix.
        operation: what may be done there.
    """

    resource: Resource
    name: str
    operation: Operation


def rights_of(part: str, settings: WorkerSettings) -> tuple[Right, ...]:
    """The rights of a part, or of `all` of them in one.

    Args:
        part: one of `PARTS`, or `all`.
        settings: those of the installation: names carry its prefix, and whether the workers read judged steps counts.

    Raises:
        KeyError: there is no such part.
    """
    if part == EVERY_PART:
        return tuple(dict.fromkeys(right for one in PARTS for right in rights_of(one, settings)))
    group = settings.group
    source = topics.JUDGED_STEPS if settings.judged else topics.STEPS
    reading = [*_at(settings, "Read", _READINGS), *_at(settings, "Describe", [source])]
    lag = [Right("group", group, "Describe")]
    changelogs = [Right("topic", name, operation) for name in _changelogs(settings) for operation in _READ_WRITE]
    declared = [*(topic_name(spec.name, settings.prefix) for spec in TOPICS), *(s.name for s in worker_topics(group))]
    found: dict[str, list[Right]] = {
        "topics": [Right("topic", name, operation) for name in declared for operation in _DECLARE],
        "producer": _at(settings, "Write", [topics.STEPS]),
        "gateway": [*_at(settings, "Write", [topics.STEPS]), *_at(settings, "DescribeConfigs", [topics.STEPS])],
        "judge": [
            *_at(settings, "Read", [topics.STEPS]),
            *_at(settings, "Write", [topics.JUDGED_STEPS]),
            Right("group", topics.judge_group(group), "Read"),
        ],
        "worker": [
            *_at(settings, "Read", [source, topics.CONTRIBUTIONS, topics.BASELINES, topics.SUMMARIES]),
            *_at(settings, "Write", _WORKER_WRITES),
            *changelogs,
            Right("group", group, "Read"),
        ],
        "export": [*reading, *lag],
        "live": [*reading, *lag],
        "annotate": _at(settings, "Read", _READINGS),
        "baseline": [*_at(settings, "Read", [topics.BASELINES]), *_at(settings, "Write", [topics.CONTRIBUTIONS])],
        "dead-letters": [
            *_at(settings, "Read", [topics.DEAD_LETTER, source, topics.STATUS, topics.SUMMARIES]),
            *_at(settings, "Write", [topics.DEAD_LETTER, source]),
        ],
    }
    return tuple(found[part])


_READ_WRITE: tuple[Operation, ...] = ("Read", "Write")
_DECLARE: tuple[Operation, ...] = ("Create", "Describe")


def topics_of(part: str, settings: WorkerSettings) -> frozenset[str]:
    """The topics that a part uses, with their prefix."""
    return frozenset(right.name for right in rights_of(part, settings) if right.resource == "topic")


def acl_commands(principals: Mapping[str, Iterable[str]], settings: WorkerSettings) -> Iterator[str]:
    """The commands that grant the parts their rights, with a comment before those of each part.

    Args:
        principals: for each part who runs it, as Kafka names it: `User:robot-7`.
        settings: those of the installation.

    Raises:
        KeyError: there is no such part.
    """
    server = shlex.quote(settings.kafka.bootstrap)
    start = f"kafka-acls.sh --bootstrap-server {server} --command-config admin.properties --add"
    for part, users in principals.items():
        yield f"# {part}: {PARTS.get(part, 'all parts in one').replace('`', '')}"
        who = " ".join(f"--allow-principal {shlex.quote(user)}" for user in users)
        for (resource, names), operations in _grouped(rights_of(part, settings)).items():
            what = " ".join(f"--operation {operation}" for operation in operations)
            where = " ".join(f"--{resource} {shlex.quote(name)}" for name in names)
            yield f"{start} {who} {what} {where}"


def rights_table(settings: WorkerSettings | None = None) -> list[str]:
    """The rights of all parts as lines of a table in Markdown."""
    chosen = settings or WorkerSettings()
    lines = ["| Part | Commands | Rights |", "|---|---|---|"]
    for part, commands in PARTS.items():
        told = [
            f"{', '.join(operations)} at {'the topics' if resource == 'topic' else 'the group'} "
            f"{', '.join(f'`{name}`' for name in names)}"
            for (resource, names), operations in _grouped(rights_of(part, chosen)).items()
        ]
        lines.append(f"| {part} | {commands} | {'; '.join(told)} |")
    return lines


def _grouped(rights: Iterable[Right]) -> dict[tuple[Resource, tuple[str, ...]], tuple[Operation, ...]]:
    """The operations of resources that have the same ones."""
    by_resource: dict[tuple[Resource, str], list[Operation]] = {}
    for resource, name, operation in rights:
        by_resource.setdefault((resource, name), []).append(operation)
    by_operations: dict[tuple[Resource, tuple[Operation, ...]], list[str]] = {}
    for (resource, name), operations in by_resource.items():
        by_operations.setdefault((resource, tuple(sorted(set(operations)))), []).append(name)
    return {(resource, tuple(names)): operations for (resource, operations), names in by_operations.items()}


def _at(settings: WorkerSettings, operation: Operation, names: Iterable[str]) -> list[Right]:
    return [Right("topic", topic_name(name, settings.prefix), operation) for name in names]


def _changelogs(settings: WorkerSettings) -> list[str]:
    steps = topics.JUDGED_STEPS_TABLE if settings.judged else topics.STEPS_TABLE
    return [changelog_name(settings.group, table) for table in (steps, topics.BASELINES_TABLE, topics.FAMILIES_TABLE)]
