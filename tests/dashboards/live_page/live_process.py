"""`springback live` as a process."""

import json
from pathlib import Path
from types import TracebackType
from typing import Self

from springback.deploy.child_process import ChildProcess
from springback.deploy.local_stack import SPRINGBACK

DEADLINE_S = 240.0


class LiveProcess:
    """The command, from the beginning of a `with` block to its end, in a directory that it shall leave empty.

    Args:
        broker: where the readings are.
        prefix: of the topics.
        directory: for what it needs.
        options: further options of the command.
    """

    def __init__(self, broker: str, prefix: str, directory: Path, *options: str) -> None:
        self.broker, self.prefix = broker, prefix
        self._directory = directory
        self._options = options
        self._ready = directory / "live.ready"
        self.working_directory = directory / "work"
        self.working_directory.mkdir()
        self.log = directory / "live.log"

    def start(self, port: int = 0) -> None:
        """Start it, and wait until the page is served."""
        self._ready.unlink(missing_ok=True)
        arguments = ["live", "--broker", self.broker, "--prefix", self.prefix, "--ready-file", str(self._ready)]
        self.child = ChildProcess(
            "`springback live`",
            [*SPRINGBACK, *arguments, "--port", str(port), *self._options],
            self.log,
            directory=self.working_directory,
        )
        self.child.wait_until(self._ready.exists, DEADLINE_S, "the file that says that it is ready")
        self.address: str = json.loads(self._ready.read_text())["live"]

    def at(self, link: str) -> str:
        """Where a page of it is.

        Args:
            link: its path and query, from the slash on.
        """
        return self.address.rstrip("/") + link

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.address.rstrip("/").rpartition(":")[2])

    def stop(self) -> int:
        """End it; its exit code."""
        return self.child.terminate(DEADLINE_S)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.stop()
