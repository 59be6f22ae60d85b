"""How to reach the Kafka brokers: addresses and security, for every client of the stream side."""

import ssl
from pathlib import Path
from typing import Any, Literal

import msgspec

from springback.stream_processors.errors import SettingsError

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


class KafkaConnection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Addresses and security of the brokers.

    Attributes:
        bootstrap: HOST:PORT, several with commas between.
        security_protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
        sasl_mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
        sasl_username: the user.
        sasl_password_file: a file that holds the password alone; a trailing newline is not part of it.
        tls_ca_file: certificates that the broker's is checked by; the system's own where not given.
        tls_certificate_file: the client's certificate, where the broker asks for one.
        tls_key_file: its key.
    """

    bootstrap: str = "127.0.0.1:9092"
    security_protocol: SecurityProtocol = "PLAINTEXT"
    sasl_mechanism: SaslMechanism = "PLAIN"
    sasl_username: str = ""
    sasl_password_file: str = ""
    tls_ca_file: str = ""
    tls_certificate_file: str = ""
    tls_key_file: str = ""

    @property
    def uses_sasl(self) -> bool:
        """Whether the clients log in."""
        return self.security_protocol.startswith("SASL_")

    @property
    def uses_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.security_protocol.endswith("SSL")

    def password(self) -> str:
        """The password, read from its file.

        Raises:
            SettingsError: the file is not given or cannot be read.
        """
        if not self.sasl_password_file:
            message = f"sasl_password_file is empty: {self.security_protocol} needs a file with the password in it."
            raise SettingsError(message)
        try:
            return Path(self.sasl_password_file).read_text(encoding="utf-8").rstrip("\r\n")
        except OSError as error:
            message = f"sasl_password_file: cannot read {self.sasl_password_file!r} ({error.strerror})."
            raise SettingsError(message) from error

    def tls_context(self) -> ssl.SSLContext | None:
        """The TLS context, or None without TLS.

        Raises:
            SettingsError: a certificate or key cannot be read.
        """
        if not self.uses_tls:
            return None
        try:
            context = ssl.create_default_context(cafile=self.tls_ca_file or None)
            if self.tls_certificate_file:
                context.load_cert_chain(self.tls_certificate_file, self.tls_key_file or None)
        except OSError as error:
            files = f"{self.tls_ca_file!r}, {self.tls_certificate_file!r}, {self.tls_key_file!r}"
            message = f"tls_ca_file, tls_certificate_file, tls_key_file: cannot use {files} ({error})."
            raise SettingsError(message) from error
        return context

    def client_options(self) -> dict[str, Any]:
        """The security options of aiokafka's clients (not the addresses).

        >>> KafkaConnection().client_options()
        {'security_protocol': 'PLAINTEXT'}
        """
        options: dict[str, Any] = {"security_protocol": self.security_protocol}
        if self.uses_tls:
            options["ssl_context"] = self.tls_context()
        if self.uses_sasl:
            options |= {
                "sasl_mechanism": self.sasl_mechanism,
                "sasl_plain_username": self.sasl_username,
                "sasl_plain_password": self.password(),
            }
        return options
