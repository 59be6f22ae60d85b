"""The page of alerts in a browser: what is told, since when, where it leads, and what was looked at if nothing is."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from springback.stream_processors.topics import declare_topics
from tests.dashboards.live_page.axe import assert_no_violations
from tests.dashboards.live_page.fake_fleet import ReadingSender, family, run_apart, status
from tests.dashboards.live_page.live_process import LiveProcess

pytestmark = [pytest.mark.broker, pytest.mark.browser]
BREACH: dict[str, Any] = {"stress_state": "breach", "contract_violated": False, "margins": ()}
EVIL = '<img src=x onerror="alert(1)">'


class FakeAlertmanager:
    """Says what it is told to say, to those who log in."""

    def __init__(self) -> None:
        self.alerts: list[dict[str, Any]] = []
        self.silences: list[dict[str, Any]] = []
        self.up = True
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                known = {"/api/v2/alerts": fake.alerts, "/api/v2/silences": fake.silences}.get(self.path)
                logged_in = self.headers.get("Authorization") == "Basic b3BzOnMzY3JldA=="  # ops:s3cret
                body = json.dumps(known).encode()
                self.send_response(200 if fake.up and known is not None and logged_in else 503)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]


@pytest.fixture
def alertmanager() -> Iterator[FakeAlertmanager]:
    fake = FakeAlertmanager()
    thread = threading.Thread(target=fake.server.serve_forever)
    thread.start()
    yield fake
    fake.server.shutdown()
    thread.join()
    fake.server.server_close()


@pytest.fixture
def watching(
    embedded_broker: str,
    prefix: str,
    tmp_path: Path,
    alertmanager: FakeAlertmanager,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[LiveProcess]:
    """The page with an Alertmanager, whose login stands in the environment."""
    monkeypatch.setenv("SPRINGBACK_ALERTMANAGER", f"http://ops:s3cret@127.0.0.1:{alertmanager.port}")
    run_apart(lambda: declare_topics(embedded_broker, prefix=prefix, partitions=2))
    with LiveProcess(embedded_broker, prefix, tmp_path) as process:
        yield process
    assert "s3cret" not in process.log.read_text()


def test_what_springback_and_an_alertmanager_tell(
    watching: LiveProcess, alertmanager: FakeAlertmanager, open_page: Callable[..., Page]
) -> None:
    now_s = time.time()
    alertmanager.alerts = [
        {
            "labels": {"alertname": "SpringbackAgentStalled", "severity": "warning"},
            "annotations": {"summary": EVIL},
            "startsAt": "2026-01-01T00:00:00Z",
            "status": {"state": "suppressed", "silencedBy": ["x"]},
        },
        {"labels": {"alertname": EVIL, "severity": EVIL}, "status": {"state": "active"}},
    ]
    alertmanager.silences = [
        {
            "matchers": [{"name": "agent", "value": "robot-9", "isRegex": False, "isEqual": True}],
            "createdBy": "ops",
            "comment": "it is being repaired",
            "endsAt": "2099-01-01T00:00:00Z",
            "status": {"state": "active"},
        }
    ]
    with ReadingSender(watching.broker, watching.prefix) as sender:
        sender.send(status("robot-1", seen_s=now_s - 300), family(updated_s=now_s, **BREACH))
        sender.send(status("robot-2", seen_s=now_s - 300, ended=True))
        sender.send_dead_letter("unreadable", 1)
    page = open_page(f"{watching.address}alerts")
    ours = page.get_by_label("Alerts of springback")
    silent = ours.get_by_role("listitem").filter(has_text="fell silent in the middle")
    expect(silent).to_contain_text("robot-1", timeout=60_000)
    expect(silent).to_contain_text("5 min ago")
    letters = ours.get_by_role("listitem").filter(has_text="could not be used")
    expect(letters).to_contain_text("unreadable")
    expect(ours).to_contain_text("2 agents seen, 1 family")
    expect(ours).to_contain_text("broker answered")
    breach = ours.get_by_role("listitem").filter(has_text="known to break its contract")
    expect(breach).to_contain_text("navigation", timeout=90_000)
    expect(page.locator(".sb-alert-count")).to_have_text("3", timeout=60_000)
    manager = page.get_by_label("Alertmanager")
    expect(manager).to_contain_text("2 alerts, 1 of them active, 1 silence", timeout=60_000)
    expect(manager).to_contain_text(EVIL)
    expect(manager).to_contain_text('agent="robot-9"')
    assert_no_violations(page)
    alertmanager.up = False
    expect(manager).to_contain_text("status 503", timeout=60_000)
    expect(manager).to_contain_text("What is shown is from then")
    expect(silent).to_be_visible()
    silent.get_by_role("link", name="Runbook: SpringbackAgentSilent").click()
    section = page.locator("#springbackagentsilent")
    expect(section).to_be_in_viewport(timeout=30_000)
    expect(section.get_by_role("heading")).to_have_text("SpringbackAgentSilent")
    assert_no_violations(page)


def test_nothing_to_tell_is_told_with_what_was_looked_at(
    live: LiveProcess, sender: ReadingSender, open_page: Callable[..., Page]
) -> None:
    sender.send(status("robot-1"))
    page = open_page(f"{live.address}alerts")
    ours = page.get_by_label("Alerts of springback")
    expect(ours).to_contain_text("No alert; 1 agent seen, 0 families", timeout=60_000)
    expect(page.locator(".sb-alert-count")).to_be_hidden()
    expect(page.get_by_label("Alertmanager")).to_have_count(0)
