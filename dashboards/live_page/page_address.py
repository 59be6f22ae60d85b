"""Where the page is served: a socket of our own, and a password where other machines can see it."""

import ipaddress
import socket
from pathlib import Path

from springback.dashboards.live_page.errors import LiveAddressError, PasswordFileError


def open_socket(host: str, port: int) -> socket.socket:
    """A listening socket.

    Args:
        host: a name or address of this machine.
        port: 0 takes a free one.

    Raises:
        LiveAddressError: it cannot be listened at.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = str(error.strerror or error).partition(" (while ")[0]  # the standard library adds the address
        message = (
            f"The live page cannot be served at {host}:{port} ({reason}). "
            "Choose another port with --port, or 0 for any free one."
        )
        raise LiveAddressError(message) from error


def page_url(listening: socket.socket, scheme: str) -> str:
    """The page's address, as a browser on this machine takes it."""
    host, port = listening.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = "::1" if ":" in host else "127.0.0.1"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}/"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server there.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_password(host: str, file: Path | None) -> str | None:
    """The password in the file, without the newline at its end; None where there is none and none is needed.

    Raises:
        PasswordFileError: other machines can reach the host and no file is given, or the file holds no password.
    """
    if file is None:
        if is_loopback(host):
            return None
        message = (
            f"Other machines could see the live page at {host}: give a file with a password in it (--password-file), "
            "or leave --host at 127.0.0.1."
        )
        raise PasswordFileError(message)
    try:
        password = file.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        message = f"--password-file: cannot read {str(file)!r} ({getattr(error, 'strerror', None) or error})."
        raise PasswordFileError(message) from error
    if not password:
        message = f"--password-file: {str(file)!r} is empty; write the password into it."
        raise PasswordFileError(message)
    return password
