"""A real Apache Kafka on this machine: one KRaft node from Maven's artefacts, on free loopback ports.

It needs Java and Kafka's jars, which Maven fetches once per user. With these it is up in about four seconds, in 260 MB.
Topics have one replica, and are not created by being used.
"""

import base64
import fcntl
import os
import re
import shutil
import string
import subprocess
import tempfile
import uuid
from importlib.resources import as_file, files
from pathlib import Path

from springback.deploy.broker_process import BrokerProcess
from springback.deploy.child_process import ChildProcess
from springback.deploy.errors import ChildFailedError, DeployError, MissingToolError

KAFKA_VERSION = "4.1.0"  # as in deploy/kafka/pom.xml
OLDEST_JAVA = 17
_DOWNLOAD_TIMEOUT_S = 600.0
_START_TIMEOUT_S = 150.0  # a machine that compiles something else meanwhile takes a minute
_FORMAT_TIMEOUT_S = 150.0
_SERVER_HEAP = ("-Xms128m", "-Xmx384m")
_QUICK_START = ("-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_INSTALL_JAVA = "Install it with `apt install openjdk-17-jre-headless` (Debian, Ubuntu) or `brew install openjdk@17`."
_INSTALL_MAVEN = "Install it with `apt install maven` (Debian, Ubuntu) or `brew install maven`."
_ELSE = "Or do without: --broker embedded."


class ApacheKafka(BrokerProcess):
    """A single-node Apache Kafka.

    Its data lives in a temporary directory that is removed at the end of the block; a restart inside it keeps the data.

    Args:
        log_directory: where `apache-kafka.log` is written; a temporary one, removed at the end, when not given.

    Raises:
        MissingToolError: Java 17+ is missing, or Maven is while the jars are not in the cache yet.
        DeployError: the jars could not be fetched, or (on entering the block) the broker did not start.
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
        """Writes the settings and formats an empty data directory."""
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


def find_java() -> Path:
    """The Java program: that of JAVA_HOME where it is set, else the one on the PATH.

    Raises:
        MissingToolError: there is none, it does not run, or it is older than Java 17.
    """
    needed = f"A real Apache Kafka needs Java {OLDEST_JAVA} or newer"
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if found is None:
        place = f"JAVA_HOME ({home}) has no bin/java" if home else "there is no `java` on the PATH"
        message = f"{needed}, but {place}. {_INSTALL_JAVA} {_ELSE}"
        raise MissingToolError(message)
    answer = subprocess.run([found, "-version"], capture_output=True, text=True, check=False)
    said = (answer.stderr + answer.stdout).strip()
    version = re.search(r'version "(\d+)', said)
    if answer.returncode != 0 or version is None:
        message = f"{needed}, but `{found} -version` said: {said!r}. {_INSTALL_JAVA} {_ELSE}"
        raise MissingToolError(message)
    if int(version[1]) < OLDEST_JAVA:
        message = f"{needed}, but {found} is: {said.splitlines()[0]}. {_INSTALL_JAVA} {_ELSE}"
        raise MissingToolError(message)
    return Path(found)


def kafka_jars() -> Path:
    """The directory of Kafka's jars, in the user's cache; fetched by Maven when it is not there yet (43 MB).

    Two processes that want it at once fetch it once; one that is interrupted leaves nothing behind that looks whole.

    Raises:
        MissingToolError: it must be fetched, and there is no Maven.
        DeployError: Maven could not fetch it.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "springback"
    jars = cache / f"kafka-{KAFKA_VERSION}"
    if jars.is_dir():
        return jars
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = (
            f"Kafka's jars cannot be kept in {cache} ({error.strerror}). "
            f"Set XDG_CACHE_HOME to a directory that can be written to. {_ELSE}"
        )
        raise DeployError(message) from error
    with (cache / "kafka.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not jars.is_dir():
            _fetch(jars)
    return jars


def _fetch(jars: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        message = (
            f"Apache Kafka's jars must be fetched once, to {jars}, and that needs Maven, but there is no `mvn` "
            f"on the PATH. {_INSTALL_MAVEN} {_ELSE}"
        )
        raise MissingToolError(message)
    with (
        tempfile.TemporaryDirectory(prefix="fetching-kafka-", dir=jars.parent) as name,
        as_file(files("springback.deploy") / "kafka" / "pom.xml") as pom,
    ):
        work = Path(name)
        command = [
            *(maven, "--quiet", "--batch-mode", "--file", str(pom)),
            *("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={work / 'jars'}"),
        ]
        try:
            with ChildProcess("Maven", command, work / "maven.log") as child:
                exit_code = child.wait(_DOWNLOAD_TIMEOUT_S)
                said = "\n".join(f"  | {line}" for line in child.log_tail())
        except ChildFailedError as error:
            message = f"Apache Kafka {KAFKA_VERSION} could not be fetched: {error} {_ELSE}"
            raise DeployError(message) from error
        if exit_code != 0 or not any((work / "jars").glob("kafka_2.13-*.jar")):
            message = (
                f"Maven could not fetch Apache Kafka {KAFKA_VERSION} (exit code {exit_code}). Is there a network, "
                f"and does Maven reach its repository (~/.m2/settings.xml)? It said:\n{said}\n{_ELSE}"
            )
            raise DeployError(message)
        (work / "jars").rename(jars)
