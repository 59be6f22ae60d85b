"""The servers that tests share: started when first asked for, stopped after the last test."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.examples import register_profiles
from tests.oldest_python import runs_here

if TYPE_CHECKING:
    from springback.deploy.apache_kafka import ApacheKafka
    from tests.deploy.monitoring.monitoring_stack import MonitoringStack
    from tests.secure_kafka import SecureKafka

register_profiles()

# A shell makes what it starts in the background ignore Ctrl-C, and nohup a hang-up; so would every program that a test
# starts. What is handled here is not handed on.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)

# A Kafka of a test lives for seconds: the optimising compiler and threads for collecting garbage would not pay off.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def pytest_collection_finish() -> None:
    """Leaves what collection has made, which lives to the end, out of every later search for garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def embedded_broker() -> Iterator[str]:
    """HOST:PORT of an embedded broker (Tansu); use topic and group names of your own."""
    from springback.deploy.brokers import EmbeddedBroker

    with EmbeddedBroker() as broker:
        yield broker.address


@pytest.fixture(scope="session")
def apache_kafka(kafka_process: ApacheKafka) -> str:
    """HOST:PORT of a real Apache Kafka; use topic and group names of your own."""
    return kafka_process.address


@pytest.fixture(scope="session")
def kafka_process() -> Iterator[ApacheKafka]:
    """The same Kafka, for tests that kill it: whoever does so starts it again."""
    from springback.deploy.apache_kafka import ApacheKafka
    from springback.deploy.errors import MissingToolError

    try:
        kafka = ApacheKafka()
    except MissingToolError as error:
        if os.environ.get("CI"):
            raise  # CI may not skip the tests on a real Kafka
        pytest.skip(str(error))
    with kafka:
        yield kafka


@pytest.fixture(scope="session")
def secure_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    """A Kafka with logins, TLS and access rules; use a prefix of your own."""
    from springback.deploy.errors import MissingToolError
    from tests.secure_kafka import SecureKafka

    try:
        kafka = SecureKafka(tmp_path_factory.mktemp("secure-kafka"))
    except MissingToolError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    with kafka:
        yield kafka


@pytest.fixture(scope="session")
def monitoring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MonitoringStack]:
    """Pipeline and fleet, with a Prometheus and an Alertmanager that watch them."""
    from tests.deploy.monitoring.monitoring_stack import monitoring_stack
    from tests.deploy.monitoring.monitoring_tools import needed_tool

    for program in ("prometheus", "prometheus-alertmanager"):
        needed_tool(program)
    with monitoring_stack(tmp_path_factory.mktemp("monitoring")) as running:
        yield running


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leaves out what an older Python cannot import; see `tests.oldest_python`."""
    return True if collection_path.suffix == ".py" and not runs_here(collection_path) else None


def pytest_xdist_auto_num_workers() -> int:
    """One more process than there are cores: tests wait for each other's servers, and for programs of their own."""
    return (os.cpu_count() or 1) + 1


# Marks of tests that start something, and take long.
_SERVERS = ("kafka", "broker", "browser", "ros", "mqtt")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Lets tests run side by side: the long ones begin first, and whoever shares a server or a file stays together.

    A group is run by one process (pytest-xdist, `--dist loadgroup`): the tests on the real Kafka, those under one
    Prometheus, and for the rest those of a file, for the sake of its fixtures. Within a file the order stays.
    """
    long = {item.path for item in items if any(item.get_closest_marker(name) for name in _SERVERS)}
    items.sort(key=lambda item: item.path not in long)
    for item in items:
        shared = next((name for name in ("kafka", "monitoring") if _uses(item, name)), None)
        item.add_marker(pytest.mark.xdist_group(shared or item.nodeid.partition("::")[0]))


def _uses(item: pytest.Item, name: str) -> bool:
    return item.get_closest_marker(name) is not None or name in getattr(item, "fixturenames", ())
