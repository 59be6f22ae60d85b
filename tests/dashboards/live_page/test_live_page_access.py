"""Who may see the live page, and what keeps it from being served."""

import contextlib
import http.client
import ssl
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.dashboards.live_page.live_process import LiveProcess
from tests.sinks.certificates import self_signed

OpenPage = Callable[..., Page]

PASSWORD = "horse battery <staple> \N{LATIN SMALL LETTER E WITH ACUTE}"
DEADLINE_S = 60.0
SOCKET_PATH = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
UPGRADE = {
    **{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"},
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[LiveProcess]:
    """A page with a password."""
    file = tmp_path / "password"
    file.write_text(PASSWORD + "\n", encoding="utf-8")
    file.chmod(stat.S_IRUSR | stat.S_IWUSR)
    with LiveProcess("127.0.0.1:1", "", tmp_path, "--password-file", str(file)) as live:
        yield live


@pytest.fixture
def unguarded(tmp_path: Path) -> Iterator[LiveProcess]:
    """A page without one."""
    with LiveProcess("127.0.0.1:1", "", tmp_path) as live:
        yield live


def ask(
    live: LiveProcess, path: str = "/", body: dict[str, str] | None = None, headers: dict[str, str] | None = None
) -> tuple[int, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", live.port, timeout=DEADLINE_S)
    try:
        if body is None:
            connection.request("GET", path, headers=headers or {})
        else:
            form = {"Content-Type": "application/x-www-form-urlencoded"}
            connection.request("POST", path, urlencode(body), headers=form | (headers or {}))
        answer = connection.getresponse()
        answer.read() if answer.status != 101 else None
        return answer.status, answer.headers
    finally:
        connection.close()


@pytest.mark.browser
def test_whoever_has_no_password_sees_nothing(guarded: LiveProcess, open_page: OpenPage) -> None:
    for path in ("/", "/pipeline", "/agent/00", "/live_style.css", "/_nicegui/auto/anything", "//login"):
        status, headers = ask(guarded, path)
        assert (status, headers["Location"]) == (303, "/login"), path
    assert ask(guarded, SOCKET_PATH, headers=UPGRADE)[0] == 403
    assert ask(guarded, "/", headers={"Cookie": "springback_login=99999999999.00; springback_theme=dark"})[0] == 303
    assert ask(guarded, "/", headers={"Cookie": "springback_login=\u00ff; ;;=,"})[0] == 303
    assert ask(guarded, "/login", {"password": "x" * 100_000})[0] == 401
    assert ask(guarded, "/login", {"user": "me"})[0] == 401

    page = open_page(guarded.address, faults_allowed=True)  # a refused password is a fault to the browser
    page.get_by_label("Password").fill("horse")
    page.get_by_role("button", name="Look").click()
    expect(page.get_by_text("That is not the password.")).to_be_visible()
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Look").click()
    expect(page.get_by_text("No agent has reported yet")).to_be_visible()
    expect(page.get_by_role("alert").filter(visible=True)).to_contain_text("No broker answers")
    (cookie,) = [cookie for cookie in page.context.cookies() if cookie["name"] == "springback_login"]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    page.close()
    assert guarded.stop() == 0
    log = guarded.log.read_text()
    assert PASSWORD not in log
    assert cookie["value"] not in log

    guarded.start(guarded.port)  # with another secret
    assert ask(guarded, "/", headers={"Cookie": f"springback_login={cookie['value']}"})[0] == 303


@pytest.mark.browser
def test_no_other_site_reads_the_page_through_a_browser(unguarded: LiveProcess) -> None:
    host = f"127.0.0.1:{unguarded.port}"
    status, headers = ask(unguarded)
    assert status == 200
    assert "default-src 'self'" in headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert ask(unguarded, SOCKET_PATH, headers=UPGRADE | {"Origin": f"http://{host}"})[0] == 101
    for foreign in ({"Origin": "http://evil.example"}, {"Host": f"evil.example:{unguarded.port}"}, {"Origin": "null"}):
        assert ask(unguarded, headers=foreign)[0] == 403
        assert ask(unguarded, SOCKET_PATH, headers=UPGRADE | foreign)[0] == 403
    assert ask(unguarded, headers={"Host": f"localhost:{unguarded.port}"})[0] == 200


@pytest.mark.browser
def test_with_a_certificate_the_page_is_served_over_tls(tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)
    options = ("--tls-cert", str(certificate), "--tls-key", str(key))
    with LiveProcess("127.0.0.1:1", "", tmp_path, *options) as live:
        assert live.address == f"https://127.0.0.1:{live.port}/"
        trusting = ssl.create_default_context(cafile=certificate)
        for path, headers, expected in (("/", {}, 200), (SOCKET_PATH, UPGRADE, 101)):
            connection = http.client.HTTPSConnection("127.0.0.1", live.port, timeout=DEADLINE_S, context=trusting)
            with contextlib.closing(connection):
                connection.request("GET", path, headers=headers)
                assert connection.getresponse().status == expected
