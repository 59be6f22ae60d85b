"""A real mosquitto of a test's own: on a free port of the loopback interface, with its state in a given folder."""

import os
import shutil
import socket
from pathlib import Path

import pytest

from springback.deploy.broker_process import free_port
from springback.deploy.child_process import ChildProcess
from springback.producers.backoff import Backoff
from tests.deploy.process_checks import becomes_true

STARTED_S = 10.0
QUICKLY = Backoff(0.02, 0.5)
"""Pauses before a reconnection that no test has to wait for."""


def mosquitto_program() -> str:
    """Where mosquitto is; without it the test is skipped, which CI does not accept."""
    program = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if program is None:
        reason = "mosquitto is not installed; deploy/ensure_tools.sh sources, as root, installs it on Debian"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return program


class Mosquitto:
    """A broker that can go away and come back with all that it keeps."""

    def __init__(self, folder: Path, *extra_lines: str) -> None:
        self._program = mosquitto_program()
        self.port = free_port()
        self._folder = folder
        self._config = folder / "mosquitto.conf"
        lines = (
            f"listener {self.port} 127.0.0.1",
            "persistence true",
            f"persistence_location {folder}/",
            "autosave_on_changes true",
            "autosave_interval 1",
            f"user {os.environ.get('USER', 'root')}" if os.geteuid() == 0 else "",
            *(extra_lines or ("allow_anonymous true",)),
        )
        self._config.write_text("\n".join(lines) + "\n")
        self._process: ChildProcess | None = None

    def start(self) -> None:
        """Starts it, and waits until it listens."""
        command = [self._program, "-c", str(self._config)]
        self._process = ChildProcess("mosquitto", command, self._folder / "mosquitto.log")
        assert becomes_true(self._listens, STARTED_S), self._process.log_tail()

    def stop(self) -> None:
        """Ends it; it saves what it keeps."""
        if self._process is not None:
            self._process.terminate()
            self._process = None

    def __enter__(self) -> "Mosquitto":
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0
