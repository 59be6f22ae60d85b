"""Where a server of ours listens: whether other machines reach it, its certificate, its socket and its address.

It is shared by the gateway, the metrics page, the health endpoint and the live page, and needs the standard library
alone.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import ssl
from pathlib import Path

from springback.producers.errors import CertificateError, ServerAddressError
from springback.producers.secret_files import warn_of_readers

_BACKLOG = 512
ANOTHER_PORT = "Choose another port with --port, or 0 for any free one."


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server at this host.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "robots.example")]
    [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def tls_context(certificate: Path, key: Path | None) -> ssl.SSLContext:
    """The TLS context of a server.

    Args:
        certificate: a PEM file with the server's certificate and those between it and its root.
        key: its private key, without a password; None where the certificate's file holds it too.

    Raises:
        CertificateError: they cannot be used.
    """

    def no_password() -> str:
        message = "the key is encrypted"
        raise ValueError(message)

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key, no_password)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        message = (
            f"The certificate {str(certificate)!r} with the key {str(key or certificate)!r} cannot be used ({reason}). "
            "Expected two PEM files that belong together, the key without a password."
        )
        raise CertificateError(message) from error
    warn_of_readers(key or certificate, "the key of the server's certificate")
    return context


def open_socket(host: str, port: int, *, what: str, remedy: str = ANOTHER_PORT) -> socket.socket:
    """A listening socket. `::` takes IPv4 too, and a name with addresses of both kinds is served at its IPv4 one.

    Args:
        host: a name or address of this machine.
        port: 0 takes a free one.
        what: is served there, for the message of an error.
        remedy: what to do if it cannot be.

    Raises:
        ServerAddressError: the address cannot be listened at.
    """
    try:
        families = {found[0] for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
        family = socket.AF_INET if socket.AF_INET in families else socket.AF_INET6
        both = host == "::" and socket.has_dualstack_ipv6()
        return socket.create_server((host, port), family=family, backlog=_BACKLOG, dualstack_ipv6=both)
    except (OSError, UnicodeError) as error:
        message = f"The {what} cannot be served at {host}:{port} ({_reason(error)}). {remedy}"
        raise ServerAddressError(message) from error


def _reason(error: OSError | UnicodeError) -> str:
    code = getattr(error, "errno", None) or 0
    # The standard library adds the address to the system's own words.
    return os.strerror(code) if code in errno.errorcode else getattr(error, "strerror", None) or str(error)


def server_url(scheme: str, host: str, port: int) -> str:
    """The address of a server, without a path.

    >>> server_url("https", "::1", 9464)
    'https://[::1]:9464'
    """
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
