"""Who may see the live page: no other site through a browser, and other machines only with a password.

The cookie of whoever has logged in is signed with a secret that is made anew at every start: a restart asks again.
"""

import asyncio
import hashlib
import hmac
import html
import ipaddress
import secrets
import socket
import time
from pathlib import Path
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from springback.dashboards.errors import DashboardError
from springback.dashboards.live_page.links import with_query
from springback.producers.http_server import HostTurns
from springback.producers.secret_files import read_secret
from springback.producers.serving import is_loopback, server_url

_COOKIE = "springback_login"
_LOGIN_PATH = "/login"
_WANTED = "to"
_LONGEST_WANTED = 2000
_LOGIN_S = 7 * 86_400
_LARGEST_FORM_BYTES = 4096
_WRONG_WAIT_S = 1.0
_FORM_S = 10.0
_MOST_GUESSES_AT_ONCE = 8
_NOT_ITSELF = (
    "This page answers only to itself. Open it by its own address; a proxy in front of it must pass the Host header "
    "on, and by another name than this machine's own it needs a --password-file.\n"
)
_PAGE_HEADERS = {
    # The page's own files and nothing else: whatever an id or a library may try, nothing goes to another machine.
    "Content-Security-Policy": "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}


class PasswordFileError(DashboardError, ValueError):
    """The page is to be seen from other machines, and there is no usable password."""


def page_url(listening: socket.socket, scheme: str) -> str:
    """The page's address, as a browser on this machine takes it."""
    host, port = listening.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = "::1" if ":" in host else "127.0.0.1"
    return f"{server_url(scheme, host, port)}/"


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
        password = read_secret(file, "the live page's password")
    except (OSError, UnicodeDecodeError) as error:
        message = f"--password-file: cannot read {str(file)!r} ({getattr(error, 'strerror', None) or error})."
        raise PasswordFileError(message) from error
    if not password:
        message = f"--password-file: {str(file)!r} is empty; write the password into it."
        raise PasswordFileError(message)
    return password


class LoginGate:
    """An ASGI application around another one.

    Args:
        app: what is behind the gate.
        password: what opens it; None if everybody on this machine may see the page.
    """

    def __init__(self, app: ASGIApp, password: str | None) -> None:
        self._app = app
        self._password = password
        self._secret = secrets.token_bytes(32)
        self._turns = HostTurns(_MOST_GUESSES_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets a request through, or answers it."""
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        answer: Response | None = None
        if not self._same_site(headers):
            answer = PlainTextResponse(_NOT_ITSELF, 403)
        elif self._password is not None and not self._has_login(HTTPConnection(scope)):
            answer = await self._ask(Request(scope, receive)) if scope["type"] == "http" else Response(status_code=401)
        if answer is None:
            return await self._app(scope, receive, _with_headers(send))
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return None
        await answer(scope, receive, _with_headers(send))
        return None

    def _same_site(self, headers: Headers) -> bool:
        """Whether our own page asks; without a password, by a name of this machine, since DNS can be made to lie."""
        host = headers.get("host", "")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return False
        return self._password is not None or is_loopback(_name_of(host))

    def _has_login(self, asked: HTTPConnection) -> bool:
        until, _, signature = asked.cookies.get(_COOKIE, "").partition(".")
        if not hmac.compare_digest(signature.encode(), self._sign(until).encode()):
            return False
        return int(until) > time.time()

    def _sign(self, until: str) -> str:
        return hmac.new(self._secret, until.encode(), hashlib.sha256).hexdigest()

    async def _ask(self, request: Request) -> Response:
        if request.url.path != _LOGIN_PATH:
            return RedirectResponse(_login_address(_asked_for(request)), 303)
        wanted = _own_address(request.query_params.get(_WANTED, ""))
        if request.method != "POST":
            return HTMLResponse(_form(wanted))
        try:
            async with asyncio.timeout(_FORM_S):
                given = await _password_of(request)  # before its turn: who sends slowly keeps nobody waiting
        except TimeoutError:
            return HTMLResponse(_form(wanted, "The password did not come in time."), 408, {"Connection": "close"})
        # One after the other, a right one too: else many sent at once would show which of them is right.
        async with self._turns.turn(request.client.host if request.client else None) as has_turn:
            if not has_turn:
                return HTMLResponse(_form(wanted, "Too many try to log in just now. Try again in a moment."), 429)
            right = hmac.compare_digest(_digest(given), _digest(self._password or ""))
            if not right:
                await asyncio.sleep(_WRONG_WAIT_S)
        if not right:
            return HTMLResponse(_form(wanted, "That is not the password."), 401)
        until = str(int(time.time()) + _LOGIN_S)
        answer = RedirectResponse(wanted, 303)
        answer.set_cookie(
            _COOKIE,
            f"{until}.{self._sign(until)}",
            max_age=_LOGIN_S,
            httponly=True,
            samesite="strict",
            secure="https" in (request.url.scheme, request.headers.get("x-forwarded-proto")),
        )
        return answer


def _name_of(host: str) -> str:
    """A Host header without the port."""
    name = host if host.endswith("]") or ":" not in host else host.rpartition(":")[0]
    return name.strip("[]")


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


async def _password_of(request: Request) -> str:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_FORM_BYTES:
            return ""
    fields = parse_qs(body.decode("utf-8", "replace"))
    return fields.get("password", [""])[0]


def _with_headers(send: Send) -> Send:
    async def sending(message: "dict[str, object]") -> None:
        if message["type"] == "http.response.start":
            own = [(name.lower().encode(), value.encode()) for name, value in _PAGE_HEADERS.items()]
            message["headers"] = [*message.get("headers", ()), *own]  # type: ignore[misc]
        await send(message)

    return sending  # type: ignore[return-value]


def _asked_for(request: Request) -> str:
    """Where whoever has logged in is to go: what a link led to, and not one of the files of a page."""
    if request.method != "GET" or "text/html" not in request.headers.get("accept", ""):
        return "/"
    query = request.url.query
    return _own_address(f"{request.url.path}?{query}" if query else request.url.path)


def _own_address(address: str) -> str:
    r"""An address of this server; the first page where it is none, or none that is worth keeping.

    >>> _own_address("/windows?search=a&page=2"), _own_address("https://evil.example/"), _own_address("//evil.example")
    ('/windows?search=a&page=2', '/', '/')
    """
    # A browser takes a backslash for a slash, and leaves out white space.
    is_own = address.startswith("/") and not address.startswith("//") and len(address) <= _LONGEST_WANTED
    return address if is_own and address.isascii() and address.isprintable() and not {"\\", " "} & set(address) else "/"


def _login_address(wanted: str) -> str:
    return with_query(_LOGIN_PATH, {_WANTED: None if wanted == "/" else wanted})


def _form(wanted: str, told: str = "") -> str:
    """The page that asks for the password.

    Args:
        wanted: where it leads then.
        told: what is told besides.
    """
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>springback</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; display: grid; place-items: center; min-height: 90vh; margin: 0 }}
form {{ display: grid; gap: 12px; width: min(320px, 86vw) }}
input, button {{ font: inherit; padding: 10px 12px; border-radius: 8px; border: 1px solid #8a94a3 }}
button {{ background: #0072b2; border-color: #0072b2; color: #fff; cursor: pointer }}
p {{ margin: 0; min-height: 1.5em }}
</style></head>
<body><form method="post" action="{html.escape(_login_address(wanted))}">
<strong>springback</strong>
<label for="password">Password of this live page</label>
<input id="password" name="password" type="password" autocomplete="current-password" autofocus required>
<button>Look</button><p role="alert">{html.escape(told)}</p>
</form></body></html>
"""
