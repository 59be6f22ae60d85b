"""The page of an episode in a browser, from steps and a baseline in the topics: over, open, cut off, and for all."""

import re
import time
from collections.abc import Callable
from typing import NamedTuple

import pytest
from kafka import KafkaProducer  # type: ignore[import-untyped]
from msgspec.structs import replace
from playwright.sync_api import Page, expect

from springback.dashboards.live_page.links import episode_link
from springback.producers.contract.codec import encode_msgpack
from springback.producers.contract.frame import StepFrame
from springback.stream_processors.exact.context_log import (
    CONTEXT_SCHEMA_VERSION,
    Switch,
    content_key,
    digest_of,
    encode_content,
    encode_switch,
    switch_key,
)
from springback.stream_processors.resilience.baseline.codec import encode_scoring_family
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import EpisodeKey
from tests.dashboards.live_page.axe import SCHEMES, WIDTHS, assert_no_violations
from tests.dashboards.live_page.fake_fleet import ReadingSender, status, summary
from tests.dashboards.live_page.live_process import LiveProcess
from tests.stream_processors.frame_builders import Row, frame_of, nominal_baseline, nominal_rows

pytestmark = [pytest.mark.broker, pytest.mark.browser]

expect.set_options(timeout=60_000)
CONFIG = ResilienceConfig()
HOSTILE = "<img src=x onerror=alert(1)>"


class Steps(NamedTuple):
    """Sends frames, and what scores them, to the topics of a page."""

    live: LiveProcess

    def send(self, *frames: StepFrame) -> None:
        """Send them, in their order."""
        producer = KafkaProducer(bootstrap_servers=self.live.broker)
        for frame in frames:
            producer.send(self.live.prefix + "steps", encode_msgpack(frame), key=frame.producer.encode())
        producer.close()

    def send_baseline(self) -> None:
        """Have everything scored by what evenly run episodes teach, from the first step on."""
        learned = nominal_baseline(CONFIG, references=12)
        content = encode_scoring_family(learned.families["navigation"], learned.grid)
        producer = KafkaProducer(bootstrap_servers=self.live.broker)
        for partition in (0, 1):
            switch = Switch(CONTEXT_SCHEMA_VERSION, partition, 1, 1, 0, {"navigation": digest_of(content)})
            for key, value in {
                content_key(partition, digest_of(content)): encode_content(content),
                switch_key(switch): encode_switch(switch),
            }.items():
                producer.send(self.live.prefix + "baseline-switches", value, key=key, partition=0)
        producer.close()


@pytest.fixture(scope="module")
def steps(shared: LiveProcess) -> Steps:
    """Sends steps to the page that the module shares; they are scored."""
    sender = Steps(shared)
    sender.send_baseline()
    return sender


def troubled_rows(first: int, stop: int, total: int = 20) -> list[Row]:
    """Steps of an episode that is in trouble from step 6 to 9."""
    return [
        row
        | ({"planning_s": 9.0, "action": HOSTILE, "feedback": "slipped"} if 6 <= row["step"] < 10 else {})
        | {"mode": "navigate" if row["step"] < 12 else "manipulate"}
        for row in nominal_rows(first, stop, total)
    ]


def key_of(agent: str) -> EpisodeKey:
    return EpisodeKey(agent, "boot", "1")


def send_ended(steps: Steps, sender: ReadingSender, agent: str, first: int = 0) -> str:
    """An episode that is over; the address of its page."""
    frame = frame_of(troubled_rows(first, 20), "success", agent=agent)
    steps.send(replace(frame, producer=agent))
    now_s = time.time()
    sender.send(
        status(agent, ended=True, producer=agent),
        replace(summary(agent, windows=1), key=key_of(agent), started_s=now_s, ended_s=now_s),
    )
    return steps.live.at(episode_link(key_of(agent), window=0))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_it_can_be_used_by_all(
    steps: Steps, shared_sender: ReadingSender, open_page: Callable[..., Page], width: int, scheme: str
) -> None:
    page = open_page(send_ended(steps, shared_sender, f"used-{scheme}-{width}"), width=width)
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    chosen = page.locator(".sb-chosen")
    expect(chosen).to_contain_text("departed from its baseline at step 6")
    expect(chosen.locator("tbody tr").nth(5)).to_contain_text(re.compile(r"6.*departure.*navigate", re.DOTALL))
    charts = page.locator(".sb-charts svg")
    expect(charts).to_have_count(4)
    expect(charts.first).to_contain_text("effort")
    expect(charts.nth(2)).to_contain_text("re-entry")
    expect(page.get_by_role("button", name="What q means").first).to_be_attached()
    assert_no_violations(page, f"{width}, {scheme}")
    assert page.locator("h1, [role=heading][aria-level='1']").filter(visible=True).count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_an_open_episode_moves_on_until_it_is_over(
    steps: Steps, shared_sender: ReadingSender, open_page: Callable[..., Page]
) -> None:
    def shows_step(step: int, rows: list[Row]) -> None:
        steps.send(replace(frame_of(rows, agent="open-1"), producer="open-1"))
        reading = status("open-1", step, producer="open-1")
        opened = replace(reading.episodes[0], key=key_of("open-1"))
        shared_sender.send(replace(reading, episodes=(opened,)))

    shows_step(4, troubled_rows(0, 5))
    page = open_page(steps.live.at(episode_link(key_of("open-1"))))
    stats, charts = page.locator(".sb-stats"), page.locator(".sb-charts")
    expect(stats).to_contain_text(re.compile(r"open\s*Steps\s*5", re.DOTALL))
    expect(charts.locator("svg")).to_have_count(4)
    expect(page.get_by_text("It has none.")).to_be_visible()
    expect(charts).not_to_contain_text("manipulate")
    shows_step(15, troubled_rows(5, 16))
    expect(stats).to_contain_text(re.compile(r"open\s*Steps\s*16", re.DOTALL))
    expect(charts).to_contain_text("manipulate")
    expect(page.locator(".sb-window")).to_contain_text("departed from its baseline at step 6")
    send_ended(steps, shared_sender, "open-1", first=16)
    expect(stats).to_contain_text("success")


def test_that_the_beginning_is_not_there_is_told_and_the_rest_is_drawn(
    steps: Steps, shared_sender: ReadingSender, open_page: Callable[..., Page]
) -> None:
    page = open_page(send_ended(steps, shared_sender, "cut-1", first=13))
    expect(page.locator(".sb-charts svg")).to_have_count(4)
    expect(page.get_by_role("status").filter(has_text="The steps before 13 are not in the topic")).to_be_visible()
