"""A real Apache Kafka on this machine: one KRaft node from Maven's artefacts, on free loopback ports.

It is up about four seconds after its jars are there, in 260 MB. Topics have one replica, and do not create themselves.
"""

import base64
import string
import uuid
from importlib.resources import files
from pathlib import Path

from springback.deploy.broker_process import BrokerProcess
from springback.deploy.child_process import ChildProcess
from springback.deploy.kafka_distribution import find_java, kafka_jars

_START_TIMEOUT_S = 60.0
_FORMAT_TIMEOUT_S = 60.0
_SERVER_HEAP = ("-Xms128m", "-Xmx384m")
_QUICK_START = ("-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class ApacheKafka(BrokerProcess):
    """A single-node Apache Kafka.

    Its data lives in a temporary directory that is removed at the end of the block; a restart inside it keeps the data.

    Args:
        log_directory: Where ``apache-kafka.log`` is written; a temporary one, removed at the end, when not given.

    Raises:
        MissingToolError: Java 17+ is missing, or Maven is while the jars are not in the cache yet.
        DeployError: The jars could not be fetched, or (on entering the block) the broker did not start.
    """

    def __init__(self, log_directory: Path | None = None) -> None:
        super().__init__(
            "Apache Kafka", "apache-kafka", ports=2, start_timeout_s=_START_TIMEOUT_S, log_directory=log_directory
        )
        self._java = find_java()
        self._jars = kafka_jars()

    @property
    def _settings_path(self) -> Path:
        return self._directory / "server.properties"

    def _make_ready(self) -> str:
        """Write the settings and format an empty data directory."""
        port, controller_port = self._ports
        data_directory = self._directory / f"data-{port}"
        templates = files("springback.deploy") / "kafka"
        settings = string.Template((templates / "server.properties").read_text()).substitute(
            PORT=port, CONTROLLER_PORT=controller_port, DATA_DIRECTORY=data_directory, NAMES="$NAMES"
        )
        self._settings_path.write_text(settings)
        (self._directory / "log4j2.properties").write_text((templates / "log4j2.properties").read_text())
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        format_tool = ("kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}")
        arguments = [*_QUICK_START, *self._classpath(), *format_tool, "--config", str(self._settings_path)]
        with ChildProcess("Apache Kafka's storage tool", [str(self._java), *arguments], self._log_path) as child:
            if child.wait(_FORMAT_TIMEOUT_S) != 0:
                child.check()
        return cluster_id

    def _command(self) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self._directory / 'log4j2.properties'}"
        arguments = [*_SERVER_HEAP, logging, *self._classpath(), "kafka.Kafka", str(self._settings_path)]
        return [str(self._java), *arguments]

    def _classpath(self) -> list[str]:
        return ["-cp", f"{self._jars}/*"]
