"""A server's certificate and key, in PEM files."""

import ssl
from pathlib import Path

from springback.sinks.errors import CertificateError


def tls_context(certificate: Path, key: Path | None) -> ssl.SSLContext:
    """What a server speaks TLS by.

    Args:
        certificate: the server's certificate and those between it and its root.
        key: its private key, without a password; None where the certificate's file holds it too.

    Raises:
        CertificateError: they cannot be used.
    """

    def no_password() -> str:
        message = "the key is encrypted"
        raise ValueError(message)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key, no_password)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        message = (
            f"The certificate {str(certificate)!r} with the key {str(key or certificate)!r} cannot be used ({reason}). "
            "Expected two PEM files that belong together, the key without a password."
        )
        raise CertificateError(message) from error
    return context
