r"""Who may read the metrics page: users and passwords from a file, so that no secret stands on a command line.

One `user:password` a line; `#` begins a comment line. In place of the password may stand a hash of it, as
`python -m springback.sinks.basic_auth USER` prints it after it has asked for the password:
`pbkdf2_sha256$ROUNDS$SALT$HASH`.
"""

import base64
import binascii
import getpass
import hashlib
import hmac
import secrets
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Self

from springback.producers.secret_files import read_secret
from springback.sinks.errors import AuthFileError

ROUNDS = 600_000
_MOST_ROUNDS = 5_000_000
_SCHEME = "pbkdf2_sha256"


class _Hash(NamedTuple):
    rounds: int
    salt: str
    digest: bytes


class BasicAuth:
    """The users of an auth file. Passwords are compared in constant time; a user that is not there takes as long.

    Args:
        users: what each user's line says after the colon.
    """

    def __init__(self, users: Mapping[str, str]) -> None:
        self._hashes = {user: _parsed(secret) for user, secret in users.items()}
        # What was found right once is recognised by a digest with a key of this process, since hashes take long.
        self._key = secrets.token_bytes(32)
        self._right: dict[str, bytes] = {}
        # One at a time: guessing must not take up the whole machine.
        self._lock = threading.Lock()

    @classmethod
    def of_file(cls, file: Path) -> Self:
        """The users of a file.

        Raises:
            AuthFileError: the file cannot be read, or a line of it is not `user:password`. No line is quoted.
        """
        try:
            lines = read_secret(file, "the metrics page's users").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            message = f"The auth file {str(file)!r} cannot be read ({reason})."
            raise AuthFileError(message) from None
        users: dict[str, str] = {}
        for number, line in enumerate(lines, start=1):
            if not line.strip() or line.startswith("#"):
                continue
            user, colon, secret = line.partition(":")
            if not user or not colon or not secret or user in users:
                message = (
                    f"Line {number} of the auth file {str(file)!r} is not `user:password` or `user:hash` with a user "
                    "of its own; neither part may be empty."
                )
                raise AuthFileError(message)
            users[user] = secret
        if not users:
            message = f"The auth file {str(file)!r} names no user; write at least one line, `user:password`."
            raise AuthFileError(message)
        try:
            return cls(users)
        except ValueError:
            message = (
                f"The auth file {str(file)!r} holds a hash that is not {_SCHEME}$ROUNDS$SALT$HASH with at most "
                f"{_MOST_ROUNDS} rounds; `python -m springback.sinks.basic_auth USER` makes one."
            )
            raise AuthFileError(message) from None

    def remembers(self, header: str | None) -> bool:
        """Whether the value of an Authorization header was found right before. Takes no time."""
        user, password = _credentials(header)
        known = self._right.get(user)
        return known is not None and hmac.compare_digest(known, self._mark(user, password))

    def admits(self, header: str | None) -> bool:
        """Whether the value of an Authorization header is that of a user. Takes long the first time that it is."""
        if self.remembers(header):
            return True  # and waits behind nobody who guesses
        user, password = _credentials(header)
        if not user:
            return False
        with self._lock:
            secret = self._hashes.get(user) or next(iter(self._hashes.values()))
            right = hmac.compare_digest(_digest(password, secret), secret.digest) and user in self._hashes
            if right:
                self._right[user] = self._mark(user, password)
            return right

    def _mark(self, user: str, password: str) -> bytes:
        return hmac.digest(self._key, f"{user}:{password}".encode(), "sha256")


def hashed(password: str, rounds: int = ROUNDS) -> str:
    """A password's hash, as it may stand in an auth file.

    >>> BasicAuth({"ops": hashed("secret", 1000)}).admits("Basic " + base64.b64encode(b"ops:secret").decode())
    True
    """
    blank = _Hash(rounds, secrets.token_urlsafe(16), b"")
    return f"{_SCHEME}${rounds}${blank.salt}${base64.b64encode(_digest(password, blank)).decode()}"


def _credentials(header: str | None) -> tuple[str, str]:
    """The user and password in the value of an Authorization header; an empty user, which nobody is, without any."""
    scheme, _, encoded = (header or "").partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        decoded = base64.b64decode(encoded.strip(), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return "", ""
    user, colon, password = decoded.partition(":")
    return (user, password) if colon else ("", "")


def _parsed(secret: str) -> _Hash:
    if not secret.startswith(f"{_SCHEME}$"):
        plain = _Hash(1, secrets.token_urlsafe(16), b"")
        return plain._replace(digest=_digest(secret, plain))
    _, rounds, salt, digest = secret.split("$")
    found = _Hash(int(rounds), salt, base64.b64decode(digest, validate=True))
    if not 1 <= found.rounds <= _MOST_ROUNDS or len(found.digest) != hashlib.sha256().digest_size:
        raise ValueError
    return found


def _digest(password: str, secret: _Hash) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", password.encode(), secret.salt.encode(), secret.rounds)


def main() -> int:
    """Asks for a password and prints the line for an auth file."""
    if len(sys.argv) != 2 or not sys.argv[1] or ":" in sys.argv[1]:
        print("usage: python -m springback.sinks.basic_auth USER", file=sys.stderr)
        return 2
    print(f"{sys.argv[1]}:{hashed(getpass.getpass())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
