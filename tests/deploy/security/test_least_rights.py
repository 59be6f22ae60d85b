"""Every part under access rules: it works with what the documented commands grant, and with nothing more."""

import asyncio
import contextlib
import json
import shlex
import urllib.request
import uuid
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition  # type: ignore[import-untyped]
from aiokafka.admin import AIOKafkaAdminClient, NewTopic  # type: ignore[import-untyped]
from aiokafka.errors import (  # type: ignore[import-untyped]
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
)
from kafka.admin import KafkaAdminClient  # type: ignore[import-untyped]

from springback.deploy.cli import main
from springback.deploy.demo.pipeline import EXTERNAL_PREFIX
from springback.stream_processors import topics
from springback.stream_processors.access_rights import PARTS, acl_commands, rights_of, rights_table
from springback.stream_processors.service.kafka_connection import KafkaConnection
from springback.stream_processors.settings import WorkerSettings
from springback.stream_processors.topics import TOPICS, topic_name, worker_topics
from tests.deploy.security.secured_parts import Parts
from tests.house import DATA, ROOT
from tests.secure_kafka import SecureKafka, grant

RECORDING = DATA / "habitat_lab_pointnav.frames.jsonl.gz"


@pytest.fixture(scope="module")
def prefix(secure_kafka: SecureKafka) -> str:
    """A prefix whose topics are declared and granted by the printed commands, each part to the user of its name."""
    prefix = f"r{uuid.uuid4().hex[:8]}."
    grant(secure_kafka, printed(prefix, *(f"{part}=User:{part}" for part in PARTS)))
    return prefix


def printed(prefix: str, *principals: str) -> list[str]:
    with contextlib.redirect_stdout(Lines()) as lines:
        options = [word for principal in principals for word in ("--principal", principal)]
        assert main(["topics", "--acls", "--prefix", prefix, *options]) == 0
    return lines.text.splitlines()


def test_whatever_a_user_or_a_broker_is_called_the_commands_are_what_they_are() -> None:
    hostile = "User:x'; rm -rf / #\nrm -rf /"
    settings = WorkerSettings(kafka=KafkaConnection(bootstrap="kafka:9092; rm -rf /"))
    comment, *commands = acl_commands({"producer": [hostile]}, settings)
    assert comment.startswith("# producer")
    [words] = map(shlex.split, commands)
    assert words[words.index("--bootstrap-server") + 1] == "kafka:9092; rm -rf /"
    assert words[words.index("--allow-principal") + 1] == hostile
    assert words.count("rm") == 0


class Lines:
    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass


@pytest.mark.kafka
def test_the_whole_pipeline_works_with_a_user_for_each_part(
    secure_kafka: SecureKafka, prefix: str, tmp_path: Path
) -> None:
    with Parts(tmp_path, prefix) as parts:
        declaring = parts.start("topics", secure_kafka.by_login("topics"), "topics")
        assert declaring.wait_for_end() == 0, declaring.log
        ready = {name: tmp_path / f"{name}.ready" for name in ("worker", "export", "gateway", "live", "judge")}
        started = {
            name: parts.start(
                name,
                # Every mechanism is used by one of them.
                {
                    "worker": secure_kafka.by_login("worker", "SCRAM-SHA-512"),
                    "export": secure_kafka.by_login("export", "OAUTHBEARER"),
                    "gateway": secure_kafka.by_login("gateway", "PLAIN"),
                    "live": secure_kafka.by_certificate("live"),
                    "judge": secure_kafka.by_login("judge", "SCRAM-SHA-256"),
                }[name],
                name,
                *(() if name in ("worker", "judge") else ("--port", "0")),
                *("--ready-file", str(ready[name])),
            )
            for name in ready
        }
        for name, part in started.items():
            part.wait_for(ready[name].exists, f"{name} is ready")
        replaying = parts.start(
            "replay", secure_kafka.by_login("producer", "OAUTHBEARER"), "replay", "--speed", "max", str(RECORDING)
        )
        assert replaying.wait_for_end() == 0, replaying.log
        address = json.loads(ready["gateway"].read_bytes())["gateway"]
        posted = frame()
        started["gateway"].wait_for(lambda: "200" in answered(f"{address}/readyz"), "the gateway takes frames")
        assert json.loads(answered(f"{address}/v1/frames", posted).partition(" ")[2])["accepted"] == 1
        metrics = json.loads(ready["export"].read_bytes())["metrics"]
        started["export"].wait_for(
            lambda: (
                "springback_exporter_broker_reachable 1" in answered(metrics)
                and "springback_episodes_total" in answered(metrics)
            ),
            "the readings are exported",
        )
        exporting = parts.start(
            "baseline", secure_kafka.by_login("baseline"), "baseline", "export", str(tmp_path / "clean.baseline")
        )
        assert exporting.wait_for_end() == 0, exporting.log
        importing = parts.start(
            "baseline", secure_kafka.by_login("baseline"), "baseline", "import", str(tmp_path / "clean.baseline")
        )
        assert importing.wait_for_end() == 0, importing.log
        for name, part in started.items():
            assert part.process.poll() is None, (name, part.log)
            assert "broker_fault" not in part.log, (name, part.log)
            assert "AuthorizationFailed" not in part.log, (name, part.log)


@pytest.mark.kafka
def test_the_demo_works_with_the_documented_grants(secure_kafka: SecureKafka, tmp_path: Path) -> None:
    grant(secure_kafka, printed(EXTERNAL_PREFIX, "all=User:all"))
    kafka = secure_kafka.by_login("all")
    with Parts(tmp_path, EXTERNAL_PREFIX) as parts:
        options = ["--broker", kafka.bootstrap, "--episodes", "1", "--pace", "960"]
        demo = parts.start("demo", kafka, "demo", *options)
        assert demo.wait_for_end() == 0, demo.log
        assert "BabyAI agents: the same tasks at every stress" in demo.log


def answered(address: str, body: bytes | None = None) -> str:
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return f"{answer.status} {answer.read().decode()}"
    except OSError as error:
        return str(error)


def frame() -> bytes:
    return json.dumps(
        {
            "schema_version": 1,
            "producer": "robot",
            "session": "s",
            "episodes": [{"agent": "robot", "episode": "1", "family": "f"}],
            "steps": {"episode": [0], "step": [0], "progress": [0.5]},
        }
    ).encode()


@pytest.mark.kafka
def test_each_part_has_the_rights_of_the_table_and_no_other(secure_kafka: SecureKafka, prefix: str) -> None:
    settings = WorkerSettings(prefix=prefix)
    asyncio.run(declared(secure_kafka.address, settings))
    names = [topic_name(spec.name, prefix) for spec in TOPICS] + [spec.name for spec in worker_topics(settings.group)]
    for part in (*PARTS, "nobody"):
        wanted = {right for right in rights_of(part, settings)} if part in PARTS else set()
        with contextlib.closing(kafka_admin(secure_kafka.by_login(part))) as admin:
            found = {
                topic["name"]: set(topic.get("authorized_operations") or ()) for topic in admin.describe_topics(names)
            }
        for name in names:
            expected = {snake(right.operation) for right in wanted if right.name == name}
            if expected & {"READ", "WRITE"}:
                expected.add("DESCRIBE")
            assert found.get(name, set()) == expected, (part, name)


@pytest.mark.kafka
@pytest.mark.parametrize("part", [*PARTS, "nobody"])
def test_a_part_is_refused_what_it_was_not_granted(secure_kafka: SecureKafka, prefix: str, part: str) -> None:
    settings = WorkerSettings(prefix=prefix)
    rights = {(right.name, right.operation) for right in rights_of(part, settings)} if part in PARTS else set()
    kafka = secure_kafka.by_login(part)

    async def scenario() -> None:
        await declared(secure_kafka.address, settings)
        for topic in (topics.STEPS, topics.SUMMARIES, topics.BASELINES):
            name = topic_name(topic, prefix)
            assert await refused(read(kafka, name)) != ((name, "Read") in rights), f"{part} reads {name}"
            assert await refused(write(kafka, name)) != ((name, "Write") in rights), f"{part} writes {name}"
        group = (settings.group, "Read") in rights
        assert await refused(join(kafka, settings.group, topic_name(topics.STEPS, prefix))) != group
        assert await refused(create(kafka, f"{prefix}another"))

    asyncio.run(scenario())


def test_every_topic_is_written_and_somebody_may_look_at_it() -> None:
    for judged in (False, True):
        settings = WorkerSettings(judged=judged)
        rights = [right for part in PARTS for right in rights_of(part, settings)]
        written = {right.name for right in rights if right.operation == "Write"}
        assert {spec.name for spec in TOPICS} <= written


def test_wrong_principals_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in ("worker", "worker=w1", "wroker=User:w1"):
        assert main(["topics", "--acls", "--principal", wrong]) == 2
        assert "is not PART=PRINCIPAL" in capsys.readouterr().err.replace("\n", " ").replace("│", "")
    assert main(["topics", "--principal", "worker=User:w1"]) == 2


def test_the_readme_has_the_table() -> None:
    told = (ROOT / "deploy" / "README.md").read_text()
    for line in rights_table():
        assert line in told


def snake(name: str) -> str:
    return {"DescribeConfigs": "DESCRIBE_CONFIGS"}.get(name, name.upper())


def kafka_admin(kafka: KafkaConnection) -> KafkaAdminClient:
    return KafkaAdminClient(bootstrap_servers=kafka.bootstrap, **kafka.producer_options())


async def declared(address: str, settings: WorkerSettings) -> None:
    await topics.declare_topics(address, prefix=settings.prefix, app_id=settings.group)


async def refused(trial: Coroutine[Any, Any, None]) -> bool:
    try:
        async with asyncio.timeout(60):
            await trial
    except (TopicAuthorizationFailedError, GroupAuthorizationFailedError, Refused):
        return True
    return False


class Refused(Exception):
    """The broker has not shown it, or not made it."""


async def check_seen(kafka: KafkaConnection, name: str) -> None:
    """Clients wait for ever for a topic that they may not see."""
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap, **kafka.client_options())
    await admin.start()
    try:
        if name not in await admin.list_topics():
            raise Refused
    finally:
        await admin.close()


async def read(kafka: KafkaConnection, name: str) -> None:
    await check_seen(kafka, name)
    consumer = AIOKafkaConsumer(bootstrap_servers=kafka.bootstrap, **kafka.client_options())
    await consumer.start()
    try:
        consumer.assign([TopicPartition(name, 0)])
        await consumer.seek_to_beginning()
        await consumer.getmany(timeout_ms=1000)
    finally:
        await consumer.stop()


async def write(kafka: KafkaConnection, name: str) -> None:
    await check_seen(kafka, name)
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap, **kafka.client_options())
    await producer.start()
    try:
        await producer.send_and_wait(name, b"{}", key=b"robot")
    finally:
        await producer.stop()


async def join(kafka: KafkaConnection, group: str, name: str) -> None:
    await check_seen(kafka, name)
    consumer = AIOKafkaConsumer(name, bootstrap_servers=kafka.bootstrap, group_id=group, **kafka.client_options())
    try:
        await consumer.start()
    finally:
        await consumer.stop()


async def create(kafka: KafkaConnection, name: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap, **kafka.client_options())
    await admin.start()
    try:
        answer = await admin.create_topics([NewTopic(name, 1, 1)])
        if answer.topic_errors[0][1]:
            raise Refused
    finally:
        await admin.close()
