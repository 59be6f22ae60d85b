import asyncio
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient  # type: ignore[import-untyped]

from springback.deploy.broker_process import cluster_id
from springback.deploy.brokers import EmbeddedBroker
from springback.deploy.errors import ChildFailedError, DeployError
from springback.deploy.local_stack import LocalStack, live_page_installed, live_page_line
from springback.producers.emitter.kafka_publisher import KafkaPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.stream_processors.settings import WorkerSettings
from tests.deploy.process_checks import becomes_true, exists

pytestmark = pytest.mark.broker

DEADLINE_S = 150.0
SETTINGS = WorkerSettings(prefix="here.", partitions=2)

# Stands in for `springback`: says in its ready file how it was called, and waits to be ended.
STAND_IN = """
import json, os, sys, time
from pathlib import Path
name, arguments = sys.argv[1], sys.argv[2:]
options = dict(zip(arguments[::2], arguments[1::2]))
print(name, "starts", flush=True)
if os.environ.get("STAND_IN_FAILS") == name:
    sys.exit(f"{name} has no wish to start")
settings = Path(options["--settings"]).read_text()
environment = json.dumps({key: value for key, value in os.environ.items() if key.startswith("SPRINGBACK_")})
ready = {"worker": {"health": f"health of {os.getpid()}", "settings": settings, "environment": environment},
         "export": {"metrics": "metrics at port " + options.get("--port", "")},
         "live": {"live": "page at port " + options.get("--port", "")}}[name]
part = Path(options["--ready-file"] + ".part")
part.write_text(json.dumps(ready))
part.rename(options["--ready-file"])
time.sleep(600)
"""

# A parent that says what it has started and then waits.
PARENT = """
import json, sys, time
from pathlib import Path
from springback.deploy.local_stack import LocalStack, live_page_installed, live_page_line
with LocalStack(program=json.loads(sys.argv[1]), logs=Path(sys.argv[2])) as stack:
    pids = [stack.worker_pid, stack._child("export").pid, stack._broker.pid]
    print(json.dumps([*pids, stack.broker_address]), flush=True)
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    path = tmp_path_factory.mktemp("program") / "stand_in.py"
    path.write_text(STAND_IN)
    return [sys.executable, str(path)]


@pytest.fixture(autouse=True)
def temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where temporary directories and logs go."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


@pytest.fixture
def stack(program: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalStack]:
    monkeypatch.setenv("SPRINGBACK_PREFIX", "elsewhere.")
    monkeypatch.setenv("SPRINGBACK_KAFKA__SASL_USERNAME", "somebody")
    monkeypatch.setenv("SPRINGBACK_DEBUG", "1")
    with LocalStack("embedded", SETTINGS, metrics_port=4711, live_port=4712, program=program) as stack:
        yield stack


def check_for(time_s: float, stack: LocalStack) -> None:
    deadline_s = time.monotonic() + time_s
    while time.monotonic() < deadline_s:
        stack.check()


def test_the_topics_are_declared(stack: LocalStack) -> None:
    async def partitions() -> dict[str, int]:
        admin = AIOKafkaAdminClient(bootstrap_servers=stack.broker_address)
        await admin.start()
        try:
            return {topic["topic"]: len(topic["partitions"]) for topic in await admin.describe_topics()}
        finally:
            await admin.close()

    found = asyncio.run(partitions())
    assert found["here.steps"] == 2
    assert any(name.endswith("-changelog") for name in found)


def test_the_children_are_told_everything_by_their_settings_file(stack: LocalStack) -> None:
    told = stack._ready["worker"]
    settings = json.loads(told["settings"])
    assert settings["kafka"]["bootstrap"] == stack.broker_address
    assert (settings["prefix"], settings["partitions"]) == ("here.", 2)
    assert json.loads(told["environment"]) == {"SPRINGBACK_DEBUG": "1"}
    assert (stack.metrics_url, stack.live_url) == ("metrics at port 4711", "page at port 4712")
    assert stack.health_url == f"health of {stack.worker_pid}"
    stack.check()


def test_the_worker_can_be_started_again(stack: LocalStack) -> None:
    first = stack.worker_pid
    stack.restart_worker()
    assert stack.worker_pid != first
    assert not exists(first)
    assert stack.health_url == f"health of {stack.worker_pid}"
    os.kill(stack.worker_pid, signal.SIGKILL)
    with pytest.raises(ChildFailedError, match=r"(?s)`springback worker` was ended by SIGKILL.*\| worker starts"):
        check_for(DEADLINE_S, stack)
    stack.restart_worker()
    stack.check()


@pytest.mark.parametrize("name", ["worker", "export", "live"])
def test_a_child_that_does_not_start_is_told_and_all_the_rest_is_stopped(
    name: str, program: list[str], monkeypatch: pytest.MonkeyPatch, temporary: Path
) -> None:
    monkeypatch.setenv("STAND_IN_FAILS", name)
    stack = LocalStack("embedded", live_port=0, program=program)
    expected = rf"(?s)`springback {name}` ended with exit code 1\..*/{name}\.log:.*\| {name} has no wish to start"
    with pytest.raises(ChildFailedError, match=expected) as caught, stack:
        pass
    assert str(stack.log_directory / f"{name}.log") in str(caught.value)
    assert "no wish" in (stack.log_directory / f"{name}.log").read_text()
    assert cluster_id(stack.broker_address) is None
    assert list(temporary.glob("springback-*/*/")) == []


def test_nothing_but_the_logs_is_left_after_the_block(stack: LocalStack, program: list[str], temporary: Path) -> None:
    with LocalStack(program=program) as other:
        pids = [other.worker_pid, other._child("export").pid]
        assert other.live_url is None
    assert not any(map(exists, pids))
    assert {path.name for path in other.log_directory.iterdir()} == {
        *("embedded-broker.log", "worker.log", "export.log", "owner.lock")
    }
    with pytest.raises(ChildFailedError, match="does not run"):
        other.check()
    stack.check()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_is_left_running_when_the_parent_ends(
    number: signal.Signals, program: list[str], temporary: Path
) -> None:
    command = [sys.executable, "-c", PARENT, json.dumps(program), str(temporary / "logs")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as parent:
        try:
            assert parent.stdout is not None
            *pids, address = json.loads(parent.stdout.readline())
            assert all(map(exists, pids))
            parent.send_signal(number)
            parent.wait(DEADLINE_S)
        finally:
            parent.kill()
    assert becomes_true(lambda: not any(map(exists, pids)), DEADLINE_S)
    assert cluster_id(address) is None
    left = list(temporary.glob("springback-*/*/"))
    assert bool(left) == (number == signal.SIGKILL)  # the next start removes those: see test_run_directory.py


@pytest.fixture
def default_signals() -> Iterator[tuple[signal.Signals, ...]]:
    """SIGTERM and SIGHUP as a fresh process has them, whatever else this one has started."""
    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, signal.SIG_DFL) for number in numbers]
    yield numbers
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def test_the_signals_are_handled_as_before_after_the_block(
    program: list[str], default_signals: tuple[signal.Signals, ...]
) -> None:
    with LocalStack(program=program):
        assert all(callable(signal.getsignal(number)) for number in default_signals)
    assert [signal.getsignal(number) for number in default_signals] == [signal.SIG_DFL] * 2


def test_a_broker_of_somebody_else_is_used_and_left_alone(embedded_broker: str, program: list[str]) -> None:
    with LocalStack(embedded_broker, WorkerSettings(prefix="test-local-stack."), program=program) as stack:
        assert stack.broker_address == embedded_broker
        assert stack.no_steps_yet()
        publisher = KafkaPublisher(embedded_broker, "test-local-stack.steps")
        with StepEmitter(publisher, producer="robot-7") as emitter:
            emitter.begin_episode(episode="1", family="tried").step(progress=0.5)
        assert not stack.no_steps_yet()
    assert cluster_id(embedded_broker) is not None


def test_the_end_of_the_broker_is_told_in_place_of_what_failed_because_of_it(
    program: list[str], tmp_path: Path
) -> None:
    stack = LocalStack(program=program, logs=tmp_path / "logs")

    def lose_the_broker() -> None:
        with (tmp_path / "logs" / "embedded-broker.log").open("a") as log:
            log.write("no room for more\n")
        broker = stack._broker
        assert isinstance(broker, EmbeddedBroker)
        os.kill(broker.pid, signal.SIGKILL)
        assert becomes_true(lambda: broker._running().exit_code is not None, DEADLINE_S)
        raise ConnectionResetError

    told = r"(?s)embedded broker.* was ended by SIGKILL \(.*want of memory\).*\| no room for more"
    with pytest.raises(ChildFailedError, match=told) as raised, stack:
        lose_the_broker()
    assert isinstance(raised.value.__cause__, ConnectionResetError)


def test_what_fails_while_the_broker_runs_stays_what_it_is(program: list[str], tmp_path: Path) -> None:
    with pytest.raises(ConnectionResetError), LocalStack(program=program, logs=tmp_path / "logs"):
        raise ConnectionResetError


def test_an_unknown_choice_of_broker_is_told() -> None:
    with pytest.raises(DeployError, match=r"'rabbit': expected `embedded`, `kafka` or HOST:PORT"):
        LocalStack("rabbit").__enter__()


def test_without_its_extra_the_stack_goes_on_without_the_page_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert live_page_installed()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not live_page_installed()
    assert re.search(r"^Live: .* not installed .*pip install .*\[live\]'", live_page_line(LocalStack()))


def test_the_address_of_the_page_is_told() -> None:
    stack = LocalStack(live_port=0)
    stack._ready["live"] = {"live": "http://127.0.0.1:4712/"}
    assert live_page_line(stack) == "Live:    http://127.0.0.1:4712/"
