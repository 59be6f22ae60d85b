"""What an Alertmanager says: its alerts, and its silences. It is asked beside the page, which never waits for it.

Version 2 of its API, as of Alertmanager 0.16 and later. The login is held by the client alone; it is in no message, no
log and on no page.
"""

import asyncio
import base64
import logging
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

import aiohttp
import msgspec

from springback.dashboards.errors import DashboardError

_log = logging.getLogger(__name__)
_INTERVAL_S = 10.0
_TIMEOUT_S = 5.0
_LARGEST_ANSWER_BYTES = 8 * 1024 * 1024
_MOST = 200
T = TypeVar("T")


class AlertmanagerAddressError(DashboardError, ValueError):
    """What was given is not the address of an Alertmanager."""


class AlertmanagerAddress(NamedTuple):
    """Where an Alertmanager is.

    Attributes:
        url: its address with the path that it is served under, without a login; it may be shown.
        user: for basic authentication; None sends none.
        password: of that user.
    """

    url: str
    user: str | None = None
    password: str = ""

    def __repr__(self) -> str:
        """The address alone: the password is to stand in no log."""
        return f"AlertmanagerAddress({self.url!r})"

    @property
    def headers(self) -> dict[str, str]:
        """What logs a request in."""
        if self.user is None:
            return {}
        return {"Authorization": "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()}

    @classmethod
    def of(cls, given: str) -> "AlertmanagerAddress":
        """Takes an address apart: `http://HOST:9093`, `https://USER:PASSWORD@HOST/path`.

        Raises:
            AlertmanagerAddressError: it is none.

        >>> address = AlertmanagerAddress.of("https://ops:s%40cret@alerts.example/am/")
        >>> address, address.user, address.password
        (AlertmanagerAddress('https://alerts.example/am'), 'ops', 's@cret')
        """
        try:
            parts = urlsplit(given)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
            host = parts.netloc.rpartition("@")[2]
            _ = parts.port  # raises where it is no number
        except ValueError:
            usable, host = False, ""
        if not usable:
            # What was given is not repeated: a password may be in it.
            message = (
                "The address of the Alertmanager is none: expected http://HOST:9093 or https://HOST/PATH, with a login "
                "as https://USER:PASSWORD@HOST where it wants one."
            )
            raise AlertmanagerAddressError(message)
        user = None if parts.username is None else unquote(parts.username)
        return cls(f"{parts.scheme}://{host}{parts.path.rstrip('/')}", user, unquote(parts.password or ""))


class _Status(msgspec.Struct):
    state: str = ""
    silenced_by: list[str] = msgspec.field(name="silencedBy", default_factory=list)
    inhibited_by: list[str] = msgspec.field(name="inhibitedBy", default_factory=list)


class ManagedAlert(msgspec.Struct):
    """An alert as the Alertmanager has it; all texts are somebody else's."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    starts_at: datetime | None = msgspec.field(name="startsAt", default=None)
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def state(self) -> str:
        """Whether somebody is told of it: active, silenced or inhibited by another alert."""
        if self.status.silenced_by:
            return "silenced"
        return "inhibited" if self.status.inhibited_by else "active"


class _Matcher(msgspec.Struct):
    name: str = ""
    value: str = ""
    is_regex: bool = msgspec.field(name="isRegex", default=False)
    is_equal: bool = msgspec.field(name="isEqual", default=True)

    def __str__(self) -> str:
        sign = {(True, False): "=", (True, True): "=~", (False, False): "!=", (False, True): "!~"}
        return f'{self.name}{sign[self.is_equal, self.is_regex]}"{self.value}"'


class _SilenceStatus(msgspec.Struct):
    state: str = ""


class Silence(msgspec.Struct):
    """A silence as the Alertmanager has it; all texts are somebody else's."""

    matchers: list[_Matcher] = []
    created_by: str = msgspec.field(name="createdBy", default="")
    comment: str = ""
    ends_at: datetime | None = msgspec.field(name="endsAt", default=None)
    status: _SilenceStatus = msgspec.field(default_factory=_SilenceStatus)

    @property
    def what(self) -> str:
        """What it silences."""
        return ", ".join(map(str, self.matchers))


class ManagerNews(NamedTuple):
    """What is known of an Alertmanager.

    Attributes:
        alerts: those that fire, the oldest first.
        silences: those that hold.
        more: how many alerts there are beyond those.
        answered_s: when it last answered, in seconds since 1970; None where it never has.
        fault: why it did not answer the last time; None where it did, or was not asked yet.
    """

    alerts: Sequence[ManagedAlert] = ()
    silences: Sequence[Silence] = ()
    more: int = 0
    answered_s: float | None = None
    fault: str | None = None


class AlertmanagerWatch:
    """Asks an Alertmanager every ten seconds, and knows what it last said.

    Args:
        address: where it is.
        clock: seconds since 1970.

    Attributes:
        news: what is known.
    """

    def __init__(self, address: AlertmanagerAddress, clock: Callable[[], float] = time.time) -> None:
        self.news = ManagerNews()
        self._address = address
        self._clock = clock

    @property
    def url(self) -> str:
        """Its address, without a login."""
        return self._address.url

    async def run(self) -> None:
        """Asks until it is cancelled."""
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
        async with aiohttp.ClientSession(headers=self._address.headers, timeout=timeout) as session:
            while True:
                await self.ask(session)
                await asyncio.sleep(_INTERVAL_S)

    async def ask(self, session: aiohttp.ClientSession) -> None:
        """Asks once. That it does not answer, or not as it should, is known then, and nothing is raised."""
        try:
            alerts = await self._get(session, "alerts", list[ManagedAlert])
            silences = await self._get(session, "silences", list[Silence])
        except (aiohttp.ClientError, TimeoutError, OSError, msgspec.MsgspecError, _RefusedError) as error:
            fault = _words_of(error)
            if fault != self.news.fault:
                _log.warning("alertmanager_unreachable address=%s reason=%r", self.url, fault)
            self.news = self.news._replace(fault=fault)
            return
        if self.news.fault is not None:
            _log.info("alertmanager_answers address=%s", self.url)
        alerts.sort(key=lambda alert: alert.starts_at or datetime.max.replace(tzinfo=UTC))
        held = [silence for silence in silences if silence.status.state == "active"]
        self.news = ManagerNews(alerts[:_MOST], held[:_MOST], max(0, len(alerts) - _MOST), self._clock())

    async def _get(self, session: aiohttp.ClientSession, what: str, shape: type[T]) -> T:
        async with session.get(f"{self.url}/api/v2/{what}", allow_redirects=False) as answer:
            if answer.status != 200:
                raise _RefusedError(answer.status)
            body = bytearray()
            async for piece in answer.content.iter_chunked(65536):
                body += piece
                if len(body) > _LARGEST_ANSWER_BYTES:
                    raise _RefusedError(None)
        return msgspec.json.decode(body, type=shape)


class _RefusedError(DashboardError):
    def __init__(self, status: int | None) -> None:
        super().__init__(f"status {status}")
        self.status = status


def _words_of(error: Exception) -> str:
    """Why it did not answer, in words of ours: an error of a library may hold the address with its login."""
    match error:
        case _RefusedError(status=None):
            return "its answer is too large"
        case _RefusedError(status=401 | 403):
            return f"it wants a login, or another one (status {error.status})"
        case _RefusedError():
            return (
                f"it answers with status {error.status}; is it an Alertmanager, with the path that it is served under?"
            )
        case msgspec.MsgspecError():
            return "what answers there is no Alertmanager of version 0.16 or later"
        case TimeoutError():
            return f"no answer within {_TIMEOUT_S:g} s"
        case _:
            return f"it cannot be reached ({type(error).__name__})"


def as_seconds(moment: datetime | None) -> float | None:
    """A time in seconds since 1970; None where there is none.

    >>> as_seconds(datetime(1970, 1, 1, 0, 1, tzinfo=UTC))
    60.0
    """
    return None if moment is None else moment.timestamp()
