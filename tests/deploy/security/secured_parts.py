"""The parts of springback as processes, each with a user and secrets of its own."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from springback.stream_processors.service.kafka_connection import KafkaConnection
from springback.stream_processors.settings import WorkerSettings
from tests.house import ROOT

DEADLINE_S = 240.0
"""For what must come in the end; how long it takes on a busy machine is not the point."""


class Parts:
    """Starts commands of springback with settings files; ends what runs at the end of a `with` block."""

    def __init__(self, directory: Path, prefix: str) -> None:
        self._directory = directory
        self._prefix = prefix
        self._running: list[subprocess.Popen[bytes]] = []

    def settings(self, kafka: KafkaConnection) -> WorkerSettings:
        return WorkerSettings(kafka=kafka, prefix=self._prefix)

    def start(
        self, name: str, kafka: KafkaConnection, *command: str, environment: Mapping[str, str] | None = None
    ) -> "Part":
        file = self._directory / f"{name}-{len(self._running)}.json"
        judge = {"base_url": "http://127.0.0.1:1/v1", "model": "none"}
        given = {"kafka": msgspec.to_builtins(kafka), "prefix": self._prefix, "judge": judge}
        file.write_bytes(msgspec.json.encode(given))
        log = file.with_suffix(".log")
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "springback", *command, "--settings", str(file)],
                cwd=ROOT,
                env={**os.environ, **(environment or {})},
                stdout=output,
                stderr=output,
            )
        self._running.append(process)
        return Part(process, log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for process in self._running:
            if process.poll() is None:
                process.terminate()
        for process in self._running:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(DEADLINE_S)


class Part:
    """One that was started."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.process = process
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text()

    def wait_for(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not holds():
            assert self.process.poll() is None, f"ended before {what}:\n{self.log}"
            assert time.monotonic() < deadline, f"not in {DEADLINE_S} s: {what}:\n{self.log}"
            time.sleep(0.1)

    def wait_for_end(self) -> int:
        return self.process.wait(DEADLINE_S)
