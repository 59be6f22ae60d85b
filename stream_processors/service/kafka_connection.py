"""How to reach the Kafka brokers: addresses and security, for every client."""

import ssl
from typing import Any, Literal

import msgspec

from springback.producers.secret_files import read_secret, warn_of_readers
from springback.stream_processors.errors import SettingsError

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]


class KafkaConnection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Addresses and security of the brokers.

    Attributes:
        bootstrap: HOST:PORT, several with commas between.
        security_protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
        sasl_mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER.
        sasl_username: the user, for all but OAUTHBEARER.
        sasl_password_file: a file that holds the password alone; a trailing newline is not part of it.
        sasl_token_file: for OAUTHBEARER, a file that holds a token alone. Whoever issues tokens keeps it fresh: it is
            read again for every login.
        tls_ca_file: certificates that the broker's is checked by; the system's own where not given.
        tls_certificate_file: the client's certificate, where the broker asks for one.
        tls_key_file: its key, without a password; empty where the certificate's file holds it too.
    """

    bootstrap: str = "127.0.0.1:9092"
    security_protocol: SecurityProtocol = "PLAINTEXT"
    sasl_mechanism: SaslMechanism = "PLAIN"
    sasl_username: str = ""
    sasl_password_file: str = ""
    sasl_token_file: str = ""
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

    @property
    def uses_token(self) -> bool:
        """Whether the clients log in with a token, in place of a user and a password."""
        return self.uses_sasl and self.sasl_mechanism == "OAUTHBEARER"

    def password(self) -> str:
        """The password, read from its file.

        Raises:
            SettingsError: the file is not given or cannot be read.
        """
        return self._secret("sasl_password_file", "the password for Kafka")

    def token(self) -> str:
        """The token, read from its file.

        Raises:
            SettingsError: the file is not given or cannot be read.
        """
        return self._secret("sasl_token_file", "the token for Kafka")

    def _secret(self, key: str, what: str) -> str:
        file: str = getattr(self, key)
        if not file:
            message = (
                f"{key} is empty: {self.security_protocol} by {self.sasl_mechanism} needs a file with {what} in it."
            )
            raise SettingsError(message)
        try:
            return read_secret(file, what)
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8"
            message = f"{key}: cannot read {file!r} ({reason})."
            raise SettingsError(message) from error

    def tls_context(self) -> ssl.SSLContext | None:
        """The TLS context, or None without TLS.

        Raises:
            SettingsError: a certificate or key cannot be read, or the key has a password.
        """
        if not self.uses_tls:
            return None

        def no_password() -> str:
            message = "the key is encrypted"
            raise ValueError(message)

        try:
            context = ssl.create_default_context(cafile=self.tls_ca_file or None)
            if self.tls_certificate_file:
                context.load_cert_chain(self.tls_certificate_file, self.tls_key_file or None, no_password)
                warn_of_readers(self.tls_key_file or self.tls_certificate_file, "the key for Kafka")
        except (OSError, ValueError) as error:
            files = f"{self.tls_ca_file!r}, {self.tls_certificate_file!r}, {self.tls_key_file!r}"
            message = f"tls_ca_file, tls_certificate_file, tls_key_file: cannot use {files} ({error})."
            raise SettingsError(message) from error
        return context

    def client_options(self) -> dict[str, Any]:
        """The security options of aiokafka's clients (not the addresses).

        Raises:
            SettingsError: a file of them cannot be used.

        >>> KafkaConnection().client_options()
        {'security_protocol': 'PLAINTEXT'}
        """
        return self._options(token_provider=self.token_provider)

    def producer_options(self) -> dict[str, Any]:
        """The security options of kafka-python's clients, which producers use.

        Raises:
            SettingsError: a file of them cannot be used.
        """
        return self._options(token_provider=lambda: TokenFile(self))

    def _options(self, token_provider: Any) -> dict[str, Any]:
        options: dict[str, Any] = {"security_protocol": self.security_protocol}
        if self.uses_tls:
            options["ssl_context"] = self.tls_context()
        if self.uses_token:
            self.token()  # a file that is not there is a mistake at the start, and an outage later
            options |= {"sasl_mechanism": self.sasl_mechanism, "sasl_oauth_token_provider": token_provider()}
        elif self.uses_sasl:
            options |= {
                "sasl_mechanism": self.sasl_mechanism,
                "sasl_plain_username": self.sasl_username,
                "sasl_plain_password": self.password(),
            }
        return options

    def token_provider(self) -> Any:
        """For OAUTHBEARER, what gives aiokafka's clients the token: the file is read again for every login."""
        from aiokafka.abc import AbstractTokenProvider  # type: ignore[import-untyped]

        read = self.token

        class TokenFile(AbstractTokenProvider):  # type: ignore[misc]
            async def token(self) -> str:
                return read()

        return TokenFile()


class TokenFile:
    """The token of a connection, for clients that are no event loop's; the file is read again for every login.

    Args:
        kafka: the connection.
    """

    def __init__(self, kafka: KafkaConnection) -> None:
        self._kafka = kafka

    def token(self) -> str:
        """The token.

        Raises:
            SettingsError: its file cannot be read.
        """
        return self._kafka.token()

    def extensions(self) -> dict[str, str]:
        """There are none."""
        return {}
