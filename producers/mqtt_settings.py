"""How an MQTT broker is reached: told by options, or by `[source.mqtt]` of a mapping; the password is in a file."""

from pathlib import Path

import msgspec


class MqttSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the broker is, and who asks.

    Attributes:
        host, port: the broker.
        client_id: must stay the same over restarts and be no other client's, for the session is kept under it.
        username: for a broker that wants one.
        password_file: a file that holds the password alone.
        tls: whether to use TLS; implied by a CA or certificate file.
        ca_file, cert_file, key_file: PEM files: whom to trust (the system's CAs by default), and who this is.
        keepalive_s: how soon a connection that has died silently is noticed.
        qos: quality of service of the subscriptions; 0 takes what is lost as lost.
        queue: messages that wait here at most.
    """

    host: str = "127.0.0.1"
    port: int = 1883
    client_id: str
    username: str | None = None
    password_file: str | None = None
    tls: bool = False
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    keepalive_s: int = 30
    qos: int = 1
    queue: int = 1000

    @property
    def place(self) -> str:
        """The broker's HOST:PORT, for messages."""
        return f"{self.host}:{self.port}"

    @property
    def password(self) -> str | None:
        """What the password file holds.

        Raises:
            OSError: it cannot be read.
        """
        if self.password_file is None:
            return None
        return Path(self.password_file).read_text(encoding="utf-8").rstrip("\r\n")
