"""The live page while what it stands on falls and comes back: the broker, and its own server."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from springback.deploy.apache_kafka import ApacheKafka
from springback.deploy.brokers import EmbeddedBroker
from springback.stream_processors.topics import declare_topics
from tests.dashboards.live_page.fake_fleet import ReadingSender, run_apart, status
from tests.dashboards.live_page.live_process import LiveProcess

pytestmark = pytest.mark.browser
OpenPage = Callable[..., Page]

AWAY_MS = 40_000


def row(page: Page, agent: str) -> Locator:
    return page.locator(".sb-fleet tbody tr", has=page.get_by_role("link", name=agent, exact=True))


@pytest.mark.broker
def test_a_broker_that_does_not_answer_makes_agents_unknown_and_not_silent(open_page: OpenPage, tmp_path: Path) -> None:
    with EmbeddedBroker() as broker:
        run_apart(lambda: declare_topics(broker.address, prefix="out-", partitions=1))
        with (
            LiveProcess(broker.address, "out-", tmp_path, "--silent-after", "1") as live,
            ReadingSender(broker.address, "out-") as sender,
        ):
            page = open_page(live.address)
            sender.send(status("robot-7"))
            expect(row(page, "robot-7")).to_contain_text("silent", timeout=AWAY_MS)
            os.kill(broker.pid, signal.SIGSTOP)
            try:
                expect(row(page, "robot-7")).to_contain_text("unknown", timeout=AWAY_MS)
                expect(page.get_by_role("alert")).to_contain_text(f"No broker answers at {broker.address}.")
                expect(page.get_by_role("status")).to_contain_text("no broker")
            finally:
                os.kill(broker.pid, signal.SIGCONT)
            expect(row(page, "robot-7")).to_contain_text("silent", timeout=AWAY_MS)
            expect(page.get_by_role("alert")).to_be_hidden()
            sender.send(status("robot-8", 40, departed=20, cost=2.0))
            expect(row(page, "robot-8")).to_be_visible()
            page.close()


@pytest.mark.kafka
def test_a_broker_that_is_started_again_is_read_on(apache_kafka: str, open_page: OpenPage, tmp_path: Path) -> None:
    del apache_kafka  # only for its skip where there is no Kafka; this one is killed
    with ApacheKafka() as kafka:
        run_apart(lambda: declare_topics(kafka.address, prefix="out-", partitions=1))
        with LiveProcess(kafka.address, "out-", tmp_path) as live, ReadingSender(kafka.address, "out-") as sender:
            page = open_page(live.address)
            sender.send(status("robot-7"))
            expect(row(page, "robot-7")).to_contain_text("calm", timeout=AWAY_MS)
            kafka.kill()
            expect(row(page, "robot-7")).to_contain_text("unknown", timeout=AWAY_MS)
            kafka.start()
            expect(page.get_by_role("alert")).to_be_hidden(timeout=AWAY_MS)
            sender.send(status("robot-7", 40, departed=20, cost=2.0), status("robot-8"))
            expect(row(page, "robot-7")).to_contain_text("in rebound", timeout=AWAY_MS)
            expect(row(page, "robot-8")).to_contain_text("calm")
            page.close()


@pytest.mark.broker
def test_a_page_whose_server_is_started_again_goes_on_by_itself(
    live: LiveProcess, sender: ReadingSender, open_page: OpenPage
) -> None:
    page = open_page(live.address, faults_allowed=True)
    sender.send(status("robot-7"))
    expect(row(page, "robot-7")).to_contain_text("calm", timeout=AWAY_MS)
    port = live.port
    assert live.stop() == 0
    expect(page.get_by_text("Connection lost")).to_be_visible(timeout=AWAY_MS)
    sender.send(status("robot-7", 40, departed=20, cost=2.0))
    live.start(port)
    expect(row(page, "robot-7")).to_contain_text("in rebound", timeout=AWAY_MS)
    sender.send(status("robot-7", 50))
    expect(row(page, "robot-7")).to_contain_text("calm")
    assert list(live.working_directory.iterdir()) == []
    assert "Traceback" not in live.log.read_text()


def test_without_any_broker_the_page_says_so(open_page: OpenPage, tmp_path: Path) -> None:
    with LiveProcess("127.0.0.1:1", "", tmp_path) as live:
        page = open_page(live.address)
        expect(page.get_by_role("alert")).to_contain_text("No broker answers at 127.0.0.1:1.")
        expect(page.get_by_text("No agent has reported yet")).to_be_visible()
        page.close()
        assert live.stop() == 0
