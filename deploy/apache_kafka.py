"""A real Apache Kafka on this machine: one KRaft node from Maven's artefacts, on free loopback ports.

It is up about four seconds after its jars are there, in 260 MB. Topics have one replica, and do not create themselves.
"""

import base64
import contextlib
import string
import uuid
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Self

from deploy.broker_probe import cluster_id
from deploy.child_process import ChildProcess
from deploy.errors import ChildFailedError, DeployError
from deploy.free_port import free_port, is_free
from deploy.kafka_distribution import find_java, kafka_jars
from deploy.run_directory import run_directory

_START_TIMEOUT_S = 60.0
_FORMAT_TIMEOUT_S = 60.0
_STOP_GRACE_S = 30.0
_PORT_TRIES = 5
_SERVER_HEAP = ("-Xms128m", "-Xmx384m")
_QUICK_START = ("-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class ApacheKafka:
    """A single-node Apache Kafka, from the beginning of a ``with`` block to its end.

    Its data lives in a temporary directory that is removed at the end; ``stop``, ``kill`` and ``start`` in between
    keep the data and the address, as a broker that restarts does.

    Args:
        log_directory: Where ``apache-kafka.log`` is written; a temporary one, removed at the end, when not given.

    Raises:
        MissingToolError: Java 17+ is missing, or Maven is while the jars are not in the cache yet.
        DeployError: The jars could not be fetched, or (on entering the block) the broker did not start.
    """

    def __init__(self, log_directory: Path | None = None) -> None:
        self._java = find_java()
        self._jars = kafka_jars()
        self._log_directory = log_directory
        self._directory = Path()
        self._open = contextlib.ExitStack()
        self._child: ChildProcess | None = None
        self._port = self._controller_port = 0
        self._cluster_id = ""

    @property
    def address(self) -> str:
        """HOST:PORT for clients."""
        return f"127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """The broker's process id."""
        return self._running().pid

    def check(self) -> None:
        """Raise ChildFailedError if the broker has ended."""
        self._running().check()

    def __enter__(self) -> Self:
        """Make its data directory, start it and wait until it answers."""
        with contextlib.ExitStack() as opening:
            self._directory = opening.enter_context(run_directory("apache-kafka"))
            opening.callback(self.kill)
            for tries_left in reversed(range(_PORT_TRIES)):
                try:
                    self._configure()
                    self.start()
                    break
                except ChildFailedError:
                    if (is_free(self._port) and is_free(self._controller_port)) or not tries_left:
                        raise  # it was not for the ports that it failed
            self._open = opening.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Kill it and remove its data."""
        self._open.close()

    def start(self) -> None:
        """Start it on its data and its port, and wait until it answers.

        Raises:
            DeployError: It runs already.
            ChildFailedError: It did not start.
        """
        if self._child is not None:
            message = f"Apache Kafka runs already, at {self.address}."
            raise DeployError(message)
        logging = f"-Dlog4j2.configurationFile={self._directory / 'log4j2.properties'}"
        arguments = [*_SERVER_HEAP, logging, *self._classpath(), "kafka.Kafka", str(self._settings_path)]
        self._child = ChildProcess("Apache Kafka", [str(self._java), *arguments], self._log_path)
        try:
            self._child.wait_until(
                lambda: cluster_id(self.address) == self._cluster_id, _START_TIMEOUT_S, f"an answer at {self.address}"
            )
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Stop it in good order, as an operator would; harmless when it does not run."""
        if self._child is not None:
            self._child.terminate(_STOP_GRACE_S)
            self._child = None

    def kill(self) -> None:
        """Kill it (SIGKILL), as a crash would; harmless when it does not run."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    @property
    def _settings_path(self) -> Path:
        return self._directory / "server.properties"

    @property
    def _log_path(self) -> Path:
        return (self._log_directory or self._directory) / "apache-kafka.log"

    def _classpath(self) -> list[str]:
        return ["-cp", f"{self._jars}/*"]

    def _configure(self) -> None:
        """Choose ports, write the settings and format an empty data directory."""
        self._port, self._controller_port = free_port(), free_port()
        data_directory = self._directory / f"data-{self._port}"
        templates = files("deploy") / "kafka"
        settings = string.Template((templates / "server.properties").read_text()).substitute(
            PORT=self._port, CONTROLLER_PORT=self._controller_port, DATA_DIRECTORY=data_directory, NAMES="$NAMES"
        )
        self._settings_path.write_text(settings)
        (self._directory / "log4j2.properties").write_text((templates / "log4j2.properties").read_text())
        self._cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        format_tool = ("kafka.tools.StorageTool", "format", f"--cluster-id={self._cluster_id}")
        arguments = [*_QUICK_START, *self._classpath(), *format_tool, "--config", str(self._settings_path)]
        with ChildProcess("Apache Kafka's storage tool", [str(self._java), *arguments], self._log_path) as child:
            if child.wait(_FORMAT_TIMEOUT_S) != 0:
                child.check()

    def _running(self) -> ChildProcess:
        if self._child is None:
            message = "Apache Kafka does not run: use it inside its `with` block, and `start` it after a stop."
            raise ChildFailedError(message)
        return self._child
