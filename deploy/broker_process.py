"""A broker that this program starts: on free loopback ports, from the beginning of a `with` block to its end.

It has started once a Kafka client gets its own cluster id from it: another broker that holds the port has another.
"""

import asyncio
import contextlib
import logging
import random
import socket
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from springback.deploy.child_process import ChildProcess
from springback.deploy.errors import ChildFailedError, DeployError
from springback.deploy.run_directory import run_directory

_ANSWER_TIMEOUT_S = 2.0
_STOP_GRACE_S = 30.0
_START_TRIES = 5
# Below every system's range of ephemeral ports: in that range a client that tries again and again to reach a server
# that is down can be given the server's own port, connect to itself, and so keep the server from coming back.
_PORTS = range(15_000, 32_000)
_PORT_TRIES = 200


class BrokerProcess(ABC):
    """What all such brokers have in common; each kind says how it is made ready, and which command runs it.

    `stop`, `kill` and `start` inside the block keep the address, as a broker that restarts does.

    Args:
        name: what it is, for error messages.
        slug: what its log and its temporary directory are called.
        ports: how many ports it takes; the first is that for clients.
        start_timeout_s: how long it may take to answer, in seconds.
        log_directory: where `<slug>.log` is written; a temporary one, removed at the end, when not given.
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
        """Raises ChildFailedError if the broker has ended."""
        self._running().check()

    def __enter__(self) -> Self:
        """Starts it and waits until it answers."""
        with contextlib.ExitStack() as opening:
            self._directory = opening.enter_context(run_directory(self._slug))
            opening.callback(self.kill)
            for tries_left in reversed(range(_START_TRIES)):
                try:
                    self._ports = [free_port() for _ in self._ports]
                    self._cluster_id = self._make_ready()
                    self.start()
                    break
                except ChildFailedError:
                    if all(map(is_free, self._ports)) or not tries_left:
                        raise  # the ports were not the reason
            self._open = opening.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Kills it; its data is removed."""
        self._open.close()

    def start(self) -> None:
        """Starts it at its address, and waits until it answers.

        Raises:
            DeployError: it runs already.
            ChildFailedError: it did not start.
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
        """Stops it in good order, as an operator would; harmless when it does not run."""
        if self._child is not None:
            self._child.terminate(_STOP_GRACE_S)
            self._child = None

    def kill(self) -> None:
        """Kills it (SIGKILL), as a crash would; harmless when it does not run."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    @abstractmethod
    def _make_ready(self) -> str:
        """Prepares a start without data at the chosen ports, and returns the id that its cluster will have."""

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


def cluster_id(address: str) -> str | None:
    """The id of the cluster that is served at `address`; None while no Kafka broker serves there.

    Args:
        address: HOST:PORT of a listener without TLS and SASL.
    """
    from aiokafka.errors import KafkaError  # type: ignore[import-untyped]

    with _silenced("aiokafka"):
        try:
            # On a thread of its own: whoever asks may have an event loop that runs, such as a notebook's.
            with ThreadPoolExecutor(1) as threads:
                return threads.submit(lambda: asyncio.run(_told_cluster_id(address))).result()
        except (KafkaError, OSError, ValueError):
            return None  # nothing is there, or something other than a Kafka broker


async def _told_cluster_id(address: str) -> str | None:
    from aiokafka.admin import AIOKafkaAdminClient  # type: ignore[import-untyped]

    client = AIOKafkaAdminClient(bootstrap_servers=address)
    try:
        async with asyncio.timeout(_ANSWER_TIMEOUT_S):
            await client.start()
            told: str | None = (await client.describe_cluster())["cluster_id"]
            return told
    finally:
        await client.close()


@contextlib.contextmanager
def _silenced(name: str) -> Iterator[None]:
    """Keeps what a library logs to itself: a broker that does not answer yet is not an error while it starts."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


def split_address(address: str) -> tuple[str, int]:
    """The host and the port of HOST:PORT; an IPv6 host stands in brackets.

    Raises:
        ValueError: it is not of that form.

    >>> split_address("127.0.0.1:9092"), split_address("[::1]:9092")
    (('127.0.0.1', 9092), ('::1', 9092))
    """
    host, colon, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
        message = f"{address!r} is not an address of the form HOST:PORT, such as 127.0.0.1:9092"
        raise ValueError(message)
    return host, int(port)


def free_port() -> int:
    """A TCP port that nothing on 127.0.0.1 holds now; it may be taken before it is used.

    Raises:
        OSError: no free one was found.
    """
    choose = random.SystemRandom()
    for _ in range(_PORT_TRIES):
        port = choose.choice(_PORTS)
        if is_free(port):
            return port
    message = (
        f"none of {_PORT_TRIES} ports from {_PORTS.start} to {_PORTS.stop - 1} that were tried is free on 127.0.0.1"
    )
    raise OSError(message)


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of 127.0.0.1 now."""
    with socket.socket() as probe:
        # Without this option, connections of a server that has just ended would still hold its port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
