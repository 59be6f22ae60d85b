"""A real `springback live` on an embedded broker, and a headless Chromium to look at it."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page

from springback.stream_processors.topics import declare_topics
from tests.dashboards.live_page.fake_fleet import ReadingSender, run_apart
from tests.dashboards.live_page.live_process import LiveProcess


def watch(page: Page, complaints: list[str], address: str, faults_allowed: bool) -> None:
    """Note what the page asks of anybody but its own server, and what it complains of."""
    origin = "/".join(address.split("/")[:3]) + "/"
    own = (origin, origin.replace("http", "ws"), "data:", "blob:")

    def asked(url: str) -> None:
        if not url.startswith(own):
            complaints.append(f"asked {url}")

    def told(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not faults_allowed:
            complaints.append(message.text)

    def spoke(dialog: Dialog) -> None:
        complaints.append(f"dialog {dialog.message}")
        dialog.dismiss()

    page.on("request", lambda request: asked(request.url))
    page.on("websocket", lambda socket: asked(socket.url))
    page.on("console", told)
    page.on("dialog", spoke)
    page.on("pageerror", lambda error: complaints.append(str(error)))


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens an address in a fresh browser; what the page asks of others, and what it complains of, fails the test."""
    complaints: list[str] = []
    with ExitStack() as contexts:

        def open_address(
            address: str, *, faults_allowed: bool = False, width: int = 1280, zone: str | None = None
        ) -> Page:
            context = browser.new_context(viewport={"width": width, "height": 900}, timezone_id=zone)
            contexts.callback(context.close)
            page = context.new_page()
            watch(page, complaints, address, faults_allowed)
            page.goto(address)
            return page

        yield open_address
    assert complaints == []


@pytest.fixture
def prefix() -> str:
    """What this test's topics begin with."""
    return f"live-{uuid.uuid4().hex[:8]}-"


@pytest.fixture
def live(embedded_broker: str, prefix: str, tmp_path: Path) -> Iterator[LiveProcess]:
    """The page, over topics of its own."""
    run_apart(lambda: declare_topics(embedded_broker, prefix=prefix, partitions=2))
    with LiveProcess(embedded_broker, prefix, tmp_path) as process:
        yield process


@pytest.fixture(scope="module")
def shared(embedded_broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveProcess]:
    """A page that the tests of a module share: each has agents and families of its own, by names that it begins."""
    prefix = f"live-{uuid.uuid4().hex[:8]}-"
    run_apart(lambda: declare_topics(embedded_broker, prefix=prefix, partitions=2))
    with LiveProcess(embedded_broker, prefix, tmp_path_factory.mktemp("shared")) as process:
        yield process


@pytest.fixture(scope="module")
def shared_sender(shared: LiveProcess) -> Iterator[ReadingSender]:
    """Sends readings to the topics of the shared page."""
    with ReadingSender(shared.broker, shared.prefix) as sender:
        yield sender


@pytest.fixture
def sender(live: LiveProcess) -> Iterator[ReadingSender]:
    """Sends readings to the page's topics."""
    with ReadingSender(live.broker, live.prefix) as sender:
        yield sender
