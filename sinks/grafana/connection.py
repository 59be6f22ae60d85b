"""The one way to a Grafana's HTTP API: its errors become ours, each with what to do about it.

The token is held by the client alone; it is in no message and no address.
"""

import urllib.parse
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import niquests
from grafana_client.api import GrafanaApi
from grafana_client.client import GrafanaException

from springback.sinks.errors import GrafanaAddressError, GrafanaRefusedError, GrafanaUnreachableError

T = TypeVar("T")

# grafana-client says that it is typed, and is not.
_API: Any = GrafanaApi

TOKEN_VARIABLE = "SPRINGBACK_GRAFANA_TOKEN"
_TIMEOUT_S = 10.0
_TOO_MANY_REQUESTS = 429
_WHAT_TO_DO = {
    401: (
        f"The token is missing, wrong or expired: make one for a service account (Administration > Users and access > "
        f"Service accounts) and put it into {TOKEN_VARIABLE}."
    ),
    403: "The token's service account may not do this: give it the role Editor (Admin for data sources).",
    404: "Is the address that of a Grafana, with its sub-path (http://host:3000/grafana) if it has one?",
    409: "Grafana holds something else under the same name or uid: rename or remove it there, then try again.",
    412: "Grafana holds something else under the same title or uid: rename or remove it there, then try again.",
}


class GrafanaConnection:
    """A Grafana at an address, asked with a service account's token. A `with` block lets go of it at its end.

    Args:
        url: where Grafana is, with the sub-path that it may be served under: `http://127.0.0.1:3000`.
        token: of a service account.
        ca_file: certificates to trust in place of the system's, for `https`.

    Raises:
        GrafanaAddressError: the address is none of http or https, or carries a user and password.
    """

    def __init__(self, url: str, token: str, *, ca_file: Path | None = None) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            message = f"{url!r} is not the address of a Grafana: expected http://HOST:PORT or https://HOST."
            raise GrafanaAddressError(message)
        if "@" in parts.netloc:
            message = f"The address of Grafana must carry no user and password: put a token into {TOKEN_VARIABLE}."
            raise GrafanaAddressError(message)
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._api = _API(
            auth=token,
            host=parts.netloc,
            protocol=parts.scheme,
            url_path_prefix=f"{parts.path.strip('/')}/".lstrip("/"),
            verify=True if ca_file is None else str(ca_file),
            timeout=_TIMEOUT_S,
        )

    def __enter__(self) -> Self:
        """The connection, until the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Lets go of it."""
        self.close()

    def close(self) -> None:
        """Lets go of it."""
        self._api.client.s.close()

    def address(self, path: str) -> str:
        """The address of a page that Grafana names by its path, which begins with the sub-path that it knows of."""
        return urllib.parse.urljoin(f"{self.url}/", path)

    def call(self, what: str, request: Callable[[Any], T]) -> T:
        """Makes one request.

        Args:
            what: what is asked for, in the words of an error: `to save a dashboard`.
            request: makes it, with the API of grafana-client.

        Raises:
            GrafanaUnreachableError: Grafana does not answer, or cannot just now.
            GrafanaRefusedError: Grafana does not do it, or what answers is no Grafana.
        """
        try:
            answer = request(self._api)
        except GrafanaException as error:
            raise self._of_status(what, error) from error
        except niquests.exceptions.SSLError as error:
            message = (
                f"The TLS certificate of {self.url} is not trusted ({_cause(error)}). If an authority of your own "
                "issued it, name its certificate with --ca-file."
            )
            raise GrafanaUnreachableError(message) from error
        except niquests.exceptions.JSONDecodeError as error:
            raise self._no_grafana() from error
        except (niquests.exceptions.RequestException, OSError) as error:
            message = f"Grafana does not answer at {self.url} ({_cause(error)}). Does it run, and is that its address?"
            raise GrafanaUnreachableError(message) from error
        if not isinstance(answer, dict | list):
            raise self._no_grafana()
        return answer

    def find(self, what: str, request: Callable[[Any], T]) -> T | None:
        """The same for what may not be there: None where Grafana says so.

        Raises:
            GrafanaUnreachableError: Grafana does not answer, or cannot just now.
            GrafanaRefusedError: Grafana does not do it, or what answers is no Grafana.
        """
        try:
            return self.call(what, request)
        except GrafanaRefusedError as error:
            if error.status == 404 and error.says_why:
                return None
            raise

    def _of_status(self, what: str, error: GrafanaException) -> GrafanaRefusedError | GrafanaUnreachableError:
        said = _said(error.response)
        detail = f" It says: {said}" if said else ""
        if not 400 <= error.status_code < 500 or error.status_code == _TOO_MANY_REQUESTS:
            status = f"HTTP {error.status_code}" if error.status_code else _cause(error)
            message = f"Grafana at {self.url} cannot answer now ({status}).{detail}"
            return GrafanaUnreachableError(message)
        hint = _WHAT_TO_DO.get(error.status_code, "")
        message = f"Grafana at {self.url} refuses {what} (HTTP {error.status_code}).{detail} {hint}".rstrip()
        return GrafanaRefusedError(message, error.status_code, says_why=bool(said))

    def _no_grafana(self) -> GrafanaRefusedError:
        message = f"What answers at {self.url} is no Grafana: its answer is not JSON. {_WHAT_TO_DO[404]}"
        return GrafanaRefusedError(message, 404)


def _said(response: Any) -> str:
    """What Grafana says of its refusal: it always does, in JSON. Whatever else answers for it need not."""
    return " ".join(str(response.get("message", "")).split())[:300] if isinstance(response, dict) else ""


def _cause(error: BaseException) -> str:
    """What was at the bottom of it: the client wraps errors several times over."""
    while (deeper := error.__cause__ or error.__context__) is not None:
        error = deeper
    return str(getattr(error, "verify_message", "") or getattr(error, "strerror", "") or error) or type(error).__name__
