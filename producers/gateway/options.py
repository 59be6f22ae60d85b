"""The options of a gateway, and which of them do not go together."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path
from typing import Any

import msgspec

from springback.producers.gateway.errors import GatewayOptionsError
from springback.producers.secret_files import read_secret
from springback.producers.serving import is_loopback

log = logging.getLogger(__name__)

SHORTEST_TOKEN = 16


class GatewayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a gateway is started with.

    Attributes:
        bootstrap: HOST:PORT of a broker, several with commas between.
        topic: where the frames go.
        client_options: further options of aiokafka's clients (security).
        spool: a folder where frames are kept that Kafka does not take soon; None for none.
        spool_client_options: the same for kafka-python's, which sends what goes by way of the spool.
        host: where it listens.
        port: its port; 0 takes a free one.
        token: what requests must carry; None where everyone who can reach it may send.
        tls: the TLS context; None for plain HTTP.
        most_body_bytes: the largest body, unpacked.
        most_frames: frames in one request at most.
        most_pending_bytes: what is read and not yet answered, over all requests; beyond it they are answered with 429.
        most_connections: connections at a time.
        header_timeout_s: how long a connection may take to send a request's head, or be silent between two.
        body_timeout_s: how long a request's body may take.
        ack_timeout_s: how long Kafka may take to acknowledge.
        drain_timeout_s: how long a shutdown waits for requests under way.
    """

    bootstrap: str
    topic: str = "steps"
    client_options: dict[str, Any] = {}
    spool: Path | None = None
    spool_client_options: dict[str, Any] = {}
    host: str = "127.0.0.1"
    port: int = 8090
    token: str | None = None
    tls: ssl.SSLContext | None = None
    most_body_bytes: int = 8 * 1024 * 1024
    most_frames: int = 1000
    most_pending_bytes: int = 64 * 1024 * 1024
    most_connections: int = 500
    header_timeout_s: float = 15.0
    body_timeout_s: float = 15.0
    ack_timeout_s: float = 10.0
    drain_timeout_s: float = 20.0

    def check(self) -> None:
        """Checks what must go together.

        Raises:
            GatewayOptionsError: it would listen beyond this machine without a token.
        """
        if is_loopback(self.host):
            return
        if self.token is None:
            message = (
                f"--host {self.host} can be reached from other machines, so a token is needed: write a random one to a "
                "file (openssl rand -hex 32 > gateway.token) and give it with --token-file gateway.token"
            )
            raise GatewayOptionsError(message)
        if self.tls is None:
            log.warning("the token and the frames travel as plain text to %s; use --tls-certificate", self.host)


def read_token(file: Path) -> str:
    """The token in a file, without the blanks around it.

    Raises:
        GatewayOptionsError: it cannot be read, or is too short or not plain ASCII.
    """
    try:
        token = read_secret(file, "the gateway's token").strip()
        token.encode("ascii")
    except (OSError, UnicodeError) as error:
        message = f"the token file {str(file)!r} cannot be read: {error}"
        raise GatewayOptionsError(message) from error
    if len(token) < SHORTEST_TOKEN or not token.isprintable() or " " in token:
        message = (
            f"the token in {str(file)!r} must be one line of at least {SHORTEST_TOKEN} characters without blanks; "
            "make one with: openssl rand -hex 32"
        )
        raise GatewayOptionsError(message)
    return token
