"""The gate before the live page, by itself: hosts, cookies, and how fast can be guessed."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import httpx
import pytest
from starlette.responses import PlainTextResponse

from springback.dashboards.live_page import access as login_gate
from springback.dashboards.live_page.access import LoginGate

PASSWORD = "horse battery staple"


def through(gate: LoginGate, talk: Callable[[httpx.AsyncClient], Awaitable[None]], base: str = "http://robots") -> None:
    async def scenario() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(gate), base_url=base) as client:
            await talk(client)

    asyncio.run(scenario())


def gate(password: str | None = PASSWORD) -> LoginGate:
    return LoginGate(PlainTextResponse("the page"), password)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *((name, 200) for name in ("127.0.0.1:9460", "127.0.0.5:9460", "localhost:9460", "localhost", "[::1]:9460")),
        *((name, 403) for name in ("evil.example:9460", "localhost.evil.example", "127.0.0.1.evil.example", "", "[")),
        *((name, 403) for name in ("0.0.0.0:9460", "10.0.0.7:9460", "evil.example]:1", "[::1].evil.example")),
    ],
)
def test_without_a_password_only_names_of_this_machine_are_answered(host: str, status: int) -> None:
    async def talk(client: httpx.AsyncClient) -> None:
        answer = await client.get("/", headers={"Host": host})
        assert answer.status_code == status

    through(gate(None), talk)


def test_behind_a_proxy_that_passes_the_host_on_the_login_works() -> None:
    async def talk(client: httpx.AsyncClient) -> None:
        own = {"Origin": "https://robots.example.org"}
        answer = await client.post("/login", data={"password": PASSWORD}, headers=own)
        assert (answer.status_code, answer.headers["Location"]) == (303, "/")
        assert "Secure" in answer.headers["Set-Cookie"]
        assert (await client.get("/")).text == "the page"
        assert (await client.get("/", headers={"Origin": "https://other.example.org"})).status_code == 403
        rewritten = await client.get("/", headers=own | {"Host": "127.0.0.1:9460"})
        assert rewritten.status_code == 403
        assert "Host header" in rewritten.text

    through(gate(), talk, "https://robots.example.org")


def test_cookies_of_other_programs_on_the_host_do_not_hide_ours() -> None:
    async def talk(client: httpx.AsyncClient) -> None:
        answer = await client.post("/login", data={"password": PASSWORD})
        ours = answer.headers["Set-Cookie"].partition(";")[0]
        client.cookies.clear()
        for others in ('{"a": 1}', "a b=c d", "x=\\; y={z", "=,="):
            answer = await client.get("/", headers={"Cookie": f"{others}; {ours}"})
            assert answer.text == "the page", others

    through(gate(), talk)


def test_a_login_ends_and_cannot_be_made_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def talk(client: httpx.AsyncClient) -> None:
        answer = await client.post("/login", data={"password": PASSWORD})
        until, _, signature = client.cookies["springback_login"].partition(".")
        assert answer.status_code == 303
        client.cookies.clear()
        longer = await client.get("/", headers={"Cookie": f"springback_login={int(until) + 1}.{signature}"})
        assert longer.status_code == 303
        held = {"Cookie": f"springback_login={until}.{signature}"}
        assert (await client.get("/", headers=held)).text == "the page"
        monkeypatch.setattr(time, "time", lambda: float(until))
        assert (await client.get("/", headers=held)).status_code == 303

    through(gate(), talk)


def test_a_link_that_was_sent_is_reached_through_the_login() -> None:
    async def talk(client: httpx.AsyncClient) -> None:
        page = {"Accept": "text/html,application/xhtml+xml"}
        link = "/episode/80ba/8ec3?window=1&search=a%22%3E+b"
        asked = await client.get(link, headers=page)
        login = asked.headers["Location"]
        assert (asked.status_code, login) == (
            303,
            "/login?to=%2Fepisode%2F80ba%2F8ec3%3Fwindow%3D1%26search%3Da%2522%253E%2Bb",
        )
        assert f'action="{login}"' in (await client.get(login, headers=page)).text
        wrong = await client.post(login, data={"password": "wrong"})
        assert f'action="{login}"' in wrong.text
        right = await client.post(login, data={"password": PASSWORD})
        assert (right.status_code, right.headers["Location"]) == (303, link)

    through(gate(), talk)


@pytest.mark.parametrize(
    "elsewhere",
    [
        *("https://evil.example/", "//evil.example", "/\\evil.example", "/\t/evil.example", "\\\\evil.example"),
        *(
            "evil.example",
            "javascript:alert(1)",
            "/é",
            "/" + "x" * 3000,
            "",
            "/a\r\nSet-Cookie: a=b",
            " //evil.example",
        ),
    ],
)
def test_a_login_leads_to_no_other_site(elsewhere: str) -> None:
    async def talk(client: httpx.AsyncClient) -> None:
        answer = await client.post("/login", params={"to": elsewhere}, data={"password": PASSWORD})
        assert (answer.status_code, answer.headers["Location"]) == (303, "/")

    through(gate(), talk)


def test_who_sends_many_guesses_at_once_is_no_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_gate, "_WRONG_WAIT_S", 0.1)
    monkeypatch.setattr(login_gate, "_MOST_GUESSES_AT_ONCE", 3)

    async def talk(client: httpx.AsyncClient) -> None:
        begun_s = time.monotonic()
        guesses = ["wrong", "wrong", PASSWORD, "wrong", PASSWORD]
        answers = await asyncio.gather(*(client.post("/login", data={"password": guess}) for guess in guesses))
        assert [answer.status_code for answer in answers] == [401, 401, 303, 429, 429]
        assert time.monotonic() - begun_s >= 0.2  # the right one waited for those before it
        client.cookies.clear()
        assert (await client.post("/login", data={"password": PASSWORD})).status_code == 303

    through(gate(), talk)
