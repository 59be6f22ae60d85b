"""Every command that takes a broker says within 10 s that it does not answer, and says before that nothing is done."""

import contextlib
import inspect
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from springback.deploy.broker_process import free_port
from springback.deploy.cli import SERVICES
from springback.stream_processors.resilience.anchor import AnchorGrid
from springback.stream_processors.resilience.baseline.codec import dump_baseline
from springback.stream_processors.resilience.baseline.stage_baseline import StageBaseline
from tests.deploy.commands.test_option_words import commands
from tests.house import DATA

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]

TOLD_WITHIN_S = 10.0
DEADLINE_S = 240.0
"""For the start of a process, whose imports take long on a busy machine; it is not the point."""
DONE = re.compile(r"\b(Sent|Imported|Wrote|Recorded|Marks go|No dead letters|partitions?$)", re.MULTILINE)
FAULT = re.compile(r"\b(address|unanswered): |kind=(address|unanswered) |No Kafka broker|does not answer")

# What each command needs besides the broker. {name} is a path or a port of the test.
ARGUMENTS: dict[tuple[str, ...], list[str]] = {
    ("demo",): [],
    ("up",): [],
    ("bridge",): ["mqtt", "--mapping", "vda5050", "--option", "port={port}", "--option", "host=127.0.0.1"],
    ("gateway",): ["--port", "0"],
    ("worker",): [],
    ("judge",): ["--endpoint", "http://127.0.0.1:{port}/v1", "--model", "none"],
    ("export",): ["--port", "0"],
    ("live",): ["--port", "0"],
    ("annotate",): ["--url", "http://127.0.0.1:{port}"],
    ("topics",): [],
    ("replay",): ["--speed", "max", str(DATA / "habitat_lab_pointnav.frames.jsonl.gz")],
    ("baseline", "export"): ["{folder}/none.baseline"],
    ("baseline", "import"): ["{baseline}"],
    ("baseline", "unfreeze"): [],
    ("check",): ["--seconds", "1"],
    ("dead-letters", "list"): [],
    ("dead-letters", "show"): ["0:0"],
    ("dead-letters", "resend"): ["--reason", "wrong_key", "--yes"],
}


def with_broker() -> list[tuple[str, ...]]:
    return [path for path, callback in commands() if "broker" in inspect.signature(callback).parameters]


class SilentServer:
    """Takes every connection, and never says a word. `first_s` is when the first one came, by the monotonic clock."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self.first_s: float | None = None
        self._taken: list[socket.socket] = []
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()

    def _take(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                connection, _ = self._listening.accept()
                self.first_s = self.first_s or time.monotonic()
                self._taken.append(connection)

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(DEADLINE_S)
        for connection in self._taken:
            connection.close()


@pytest.fixture
def silent_server() -> Iterator[SilentServer]:
    server = SilentServer()
    yield server
    server.close()


def started(path: tuple[str, ...], broker: str, folder: Path) -> "tuple[subprocess.Popen[bytes], Path]":
    (folder / "clean.baseline").write_bytes(dump_baseline(StageBaseline(grid=AnchorGrid())))
    given = {
        "folder": folder,
        "port": free_port(),
        "baseline": folder / "clean.baseline",
    }
    arguments = [each.format(**given) for each in ARGUMENTS[path]]
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "springback", *path, *arguments, "--broker", broker],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "SPRINGBACK_GRAFANA_TOKEN": "a-token", "XDG_STATE_HOME": str(folder), "COLUMNS": "400"},
        )
    return process, log


def wait_until_told(process: "subprocess.Popen[bytes]", log: Path) -> float:
    """Waits for the word of the fault, and gives the instant at which it was there."""
    deadline_s = time.monotonic() + DEADLINE_S
    while True:
        ended = process.poll() is not None
        told = log.read_text()
        if FAULT.search(told):
            return time.monotonic()
        assert not ended, f"it ended with {process.returncode}, and said:\n{told}"
        assert time.monotonic() < deadline_s, f"nothing is told:\n{told}"
        time.sleep(0.05)


def check(path: tuple[str, ...], broker: str, folder: Path, server: SilentServer | None = None) -> None:
    process, log = started(path, broker, folder)
    try:
        told_s = wait_until_told(process, log)
        if server is not None:
            assert server.first_s is not None
            assert told_s - server.first_s < TOLD_WITHIN_S, log.read_text()
        if path[0] in SERVICES - {"up"}:  # they go on trying
            process.terminate()
            process.wait(DEADLINE_S)
        else:
            assert process.wait(DEADLINE_S) == 1
            assert log.read_text().strip().splitlines()[-1].startswith("springback: "), log.read_text()
    finally:
        process.kill()
        process.wait(DEADLINE_S)
    told = log.read_text()
    assert not DONE.search(told), told
    assert "Traceback" not in told, told


def test_every_command_that_takes_a_broker_is_tried() -> None:
    assert set(ARGUMENTS) == set(with_broker())


@pytest.mark.parametrize("path", ARGUMENTS, ids=" ".join)
def test_nobody_listens(path: tuple[str, ...], tmp_path: Path) -> None:
    check(path, f"127.0.0.1:{free_port()}", tmp_path)


@pytest.mark.parametrize("path", ARGUMENTS, ids=" ".join)
def test_a_connection_is_taken_and_nothing_comes(
    path: tuple[str, ...], tmp_path: Path, silent_server: SilentServer
) -> None:
    check(path, silent_server.address, tmp_path, silent_server)
