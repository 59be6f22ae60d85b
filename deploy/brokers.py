"""Which broker to use, as `--broker embedded|kafka|HOST:PORT` names it."""

import socket
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from springback.deploy.apache_kafka import ApacheKafka
from springback.deploy.broker_process import split_address
from springback.deploy.embedded_broker import EmbeddedBroker
from springback.deploy.errors import BrokerUnavailableError, DeployError

_CONNECT_TIMEOUT_S = 5.0


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


def open_broker(choice: str, log_directory: Path | None = None) -> AbstractContextManager[Broker]:
    """The chosen broker, which runs as long as the block (or longer, if it is not ours).

    Args:
        choice: `embedded` (Tansu), `kafka` (a real Apache Kafka on this machine), or HOST:PORT of one that runs.
        log_directory: where a broker of ours writes its log; a temporary one when not given.

    Raises:
        DeployError: the choice is none of these, or something that it needs is missing.
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
