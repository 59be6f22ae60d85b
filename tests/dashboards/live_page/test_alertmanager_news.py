"""What the page knows of an Alertmanager: of a real one, and of whatever else may answer at its address."""

import asyncio
import base64
import json
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from springback.dashboards.live_page.alerts.alertmanager import (
    AlertmanagerAddress,
    AlertmanagerAddressError,
    AlertmanagerWatch,
    ManagerNews,
)
from springback.deploy.alert_files import AlertFiles
from tests.deploy.monitoring.monitoring_servers import AlertmanagerServer

NOW_S = 5000.0
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def asked(answer: Answer, times: int = 1, login: str = "") -> tuple[ManagerNews, AlertmanagerWatch]:
    """What is known after so many questions."""

    async def scenario() -> tuple[ManagerNews, AlertmanagerWatch]:
        app = web.Application()
        app.router.add_get("/am/api/v2/{what}", answer)
        async with TestServer(app) as server, aiohttp.ClientSession() as session:
            given = f"http://{login}127.0.0.1:{server.port}/am"
            watch = AlertmanagerWatch(AlertmanagerAddress.of(given), clock=lambda: NOW_S)
            for _ in range(times):
                await watch.ask(session)
            return watch.news, watch

    return asyncio.run(scenario())


def answering(alerts: Any, silences: Any = ()) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response(alerts if request.match_info["what"] == "alerts" else list(silences))

    return answer


def test_alerts_come_by_age_with_their_state_and_silences_that_hold() -> None:
    alerts = [
        {"labels": {"alertname": "B"}, "startsAt": "2026-01-02T00:00:00Z", "status": {"state": "active"}, "new": 1},
        {"labels": {"alertname": "A"}, "startsAt": "2026-01-01T00:00:00.5Z", "status": {"silencedBy": ["x"]}},
        {"labels": {"alertname": "C"}, "status": {"inhibitedBy": ["y"], "state": "suppressed"}},
    ]
    matchers = [
        {"name": "agent", "value": "robot-7", "isRegex": False, "isEqual": True},
        {"name": "family", "value": "nav.*", "isRegex": True, "isEqual": False},
    ]
    silences = [
        {"matchers": matchers, "createdBy": "ops", "comment": "off", "status": {"state": "active"}},
        {"matchers": matchers[:1], "status": {"state": "expired"}},
    ]
    news, _ = asked(answering(alerts, silences))
    assert [(a.labels["alertname"], a.state) for a in news.alerts] == [
        *(("A", "silenced"), ("B", "active"), ("C", "inhibited")),
    ]
    assert [(s.what, s.created_by) for s in news.silences] == [('agent="robot-7", family!~"nav.*"', "ops")]
    assert (news.more, news.answered_s, news.fault) == (0, NOW_S, None)


def test_of_very_many_some_are_shown_and_the_rest_counted() -> None:
    news, _ = asked(answering([{"labels": {"alertname": str(n)}} for n in range(1234)]))
    assert (len(news.alerts), news.more) == (200, 1034)


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (answering({"not": "a list"}), "no Alertmanager"),
        (answering([{"labels": ["no", "labels"]}]), "no Alertmanager"),
        (answering([{"startsAt": "yesterday"}]), "no Alertmanager"),
    ],
)
def test_whatever_answers_is_told_and_what_was_known_stays(answer: Answer, fault: str) -> None:
    news, _ = asked(answer)
    assert fault in str(news.fault)
    assert (news.alerts, news.answered_s) == ((), None)


@pytest.mark.parametrize(
    ("status", "fault"),
    [(401, "wants a login"), (403, "wants a login"), (404, "status 404"), (302, "status 302"), (503, "status 503")],
)
def test_a_status_is_told(status: int, fault: str) -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, headers={"Location": "/elsewhere"} if status == 302 else {})

    assert fault in str(asked(answer)[0].fault)


def test_an_answer_that_does_not_end_is_cut() -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(200):
            await response.write(b" " * 65536)
        return response

    assert "too large" in str(asked(endless)[0].fault)


def test_once_it_is_away_what_it_said_is_known_and_that_it_is_away() -> None:
    replies = [200, 200, 500]

    async def answer(request: web.Request) -> web.StreamResponse:
        status = replies.pop(0)
        known = [{"labels": {"alertname": "A"}}] if request.match_info["what"] == "alerts" else []
        return web.json_response(known, status=status)

    news, _ = asked(answer, times=2)
    assert ([a.labels["alertname"] for a in news.alerts], news.answered_s) == (["A"], NOW_S)
    assert "status 500" in str(news.fault)


def test_nobody_at_the_address_is_told_without_the_login(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def scenario() -> AlertmanagerWatch:
        watch = AlertmanagerWatch(AlertmanagerAddress.of("http://ops:s3cret@127.0.0.1:1"))
        running = asyncio.ensure_future(watch.run())
        while watch.news.fault is None and not running.done():
            await asyncio.sleep(0.01)
        running.cancel()
        return watch

    watch = asyncio.run(scenario())
    assert "cannot be reached" in str(watch.news.fault)
    assert watch.url == "http://127.0.0.1:1"
    told = f"{watch.news} {watch.url} {AlertmanagerAddress.of('http://ops:s3cret@127.0.0.1:1')} {caplog.text}"
    assert "alertmanager_unreachable" in told
    assert "s3cret" not in told


def test_the_login_is_sent() -> None:
    seen: list[str | None] = []

    async def scenario() -> None:
        async def answer(request: web.Request) -> web.StreamResponse:
            seen.append(request.headers.get("Authorization"))
            return web.json_response([])

        app = web.Application()
        app.router.add_get("/api/v2/{what}", answer)
        async with TestServer(app) as server:
            watch = AlertmanagerWatch(AlertmanagerAddress.of(f"http://ops:s%40c@127.0.0.1:{server.port}/"))
            running = asyncio.ensure_future(watch.run())
            while watch.news.answered_s is None and not running.done():
                await asyncio.sleep(0.01)
            running.cancel()

    asyncio.run(scenario())
    assert set(seen) == {"Basic " + base64.b64encode(b"ops:s@c").decode()}


@pytest.mark.parametrize(
    "given", ["127.0.0.1:9093", "ftp://s3cret@host", "http://", "http://host:s3cret", "https://h/?s3cret=1"]
)
def test_what_is_no_address_is_told_without_what_was_given(given: str) -> None:
    with pytest.raises(AlertmanagerAddressError, match="expected http://HOST:9093") as error:
        AlertmanagerAddress.of(given)
    assert "s3cret" not in str(error.value)


@pytest.mark.broker
def test_a_real_one(tmp_path: Path) -> None:
    def post(server: AlertmanagerServer, what: str, content: Any) -> None:
        request = Request(
            f"http://{server.address}/api/v2/{what}",
            data=json.dumps(content).encode(),
            headers={"Content-Type": "application/json"},
        )
        urlopen(request, timeout=60).close()

    AlertFiles(hasten=100.0).write(tmp_path)
    with AlertmanagerServer(tmp_path / "alertmanager.yml") as server:
        server.wait_until_ready()
        now = datetime.now(UTC)
        labels = {"alertname": "SpringbackAgentSilent", "severity": "critical", "about": "agent"}
        alerts = [{"labels": labels | {"agent": agent}, "annotations": {"summary": "fell silent"}} for agent in "ab"]
        matcher = {"name": "agent", "value": "a", "isRegex": False, "isEqual": True}
        until = {"startsAt": now.isoformat(), "endsAt": (now + timedelta(hours=1)).isoformat()}
        post(server, "silences", {"matchers": [matcher], "createdBy": "ops", "comment": "is off", **until})
        post(server, "alerts", alerts)

        async def scenario() -> ManagerNews:
            watch = AlertmanagerWatch(AlertmanagerAddress.of(f"http://{server.address}"))
            async with aiohttp.ClientSession() as session:
                while {a.labels["agent"]: a.state for a in watch.news.alerts} != {"a": "silenced", "b": "active"}:
                    await watch.ask(session)
            return watch.news

        news = asyncio.run(asyncio.wait_for(scenario(), 120))
    assert [(s.what, s.comment) for s in news.silences] == [('agent="a"', "is off")]
    assert all(alert.starts_at is not None for alert in news.alerts)
