"""A broker that this program starts: on free loopback ports, from the beginning of a ``with`` block to its end."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from springback.deploy.broker_probe import cluster_id
from springback.deploy.child_process import ChildProcess
from springback.deploy.errors import ChildFailedError, DeployError
from springback.deploy.free_port import free_port, is_free
from springback.deploy.run_directory import run_directory

_STOP_GRACE_S = 30.0
_PORT_TRIES = 5


class BrokerProcess(ABC):
    """What all such brokers have; each kind says how it is made ready, and by which command it runs.

    ``stop``, ``kill`` and ``start`` inside the block keep the address, as a broker that restarts does.

    Args:
        name: What it is, for error messages.
        slug: What its log and its temporary directory are called.
        ports: How many ports it takes; the first is that for clients.
        start_timeout_s: How long it may take to answer, in seconds.
        log_directory: Where ``<slug>.log`` is written; a temporary one, removed at the end, when not given.
    """

    def __init__(self, name: str, slug: str, *, ports: int, start_timeout_s: float, log_directory: Path | None) -> None:
        self._name = name
        self._slug = slug
        self._ports = [0] * ports
        self._start_timeout_s = start_timeout_s
        self._log_directory = log_directory
        self._directory = Path()
        self._open = contextlib.ExitStack()
        self._child: ChildProcess | None = None
        self._cluster_id = ""

    @property
    def address(self) -> str:
        """HOST:PORT for clients."""
        return f"127.0.0.1:{self._ports[0]}"

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
            self._directory = opening.enter_context(run_directory(self._slug))
            opening.callback(self.kill)
            for tries_left in reversed(range(_PORT_TRIES)):
                try:
                    self._ports = [free_port() for _ in self._ports]
                    self._cluster_id = self._make_ready()
                    self.start()
                    break
                except ChildFailedError:
                    if all(map(is_free, self._ports)) or not tries_left:
                        raise  # it was not for the ports that it failed
            self._open = opening.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Kill it; its data is removed."""
        self._open.close()

    def start(self) -> None:
        """Start it, at its address, and wait until it answers.

        Raises:
            DeployError: It runs already.
            ChildFailedError: It did not start.
        """
        if self._child is not None:
            message = f"{self._name} runs already, at {self.address}."
            raise DeployError(message)
        self._child = ChildProcess(self._name, self._command(), self._log_path, environment=self._environment())
        try:
            self._child.wait_until(
                # By its own id: another broker that holds the port must not be taken for it.
                lambda: cluster_id(self.address) == self._cluster_id,
                self._start_timeout_s,
                f"an answer at {self.address}",
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

    @abstractmethod
    def _make_ready(self) -> str:
        """Prepare a start with no data, at the ports chosen; the id that its cluster will tell."""

    @abstractmethod
    def _command(self) -> Sequence[str]:
        """The program and its arguments."""

    def _environment(self) -> Mapping[str, str] | None:
        """Its whole environment; None for ours."""
        return None

    @property
    def _log_path(self) -> Path:
        return (self._log_directory or self._directory) / f"{self._slug}.log"

    def _running(self) -> ChildProcess:
        if self._child is None:
            message = f"{self._name} does not run: use it inside its `with` block, and `start` it after a stop."
            raise ChildFailedError(message)
        return self._child
