"""The live page at the end of the whole pipeline: real steps in, and an exporter that is started again meanwhile."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from springback.deploy.local_stack import LocalStack
from springback.producers.emitter.kafka_publisher import KafkaPublisher
from springback.producers.emitter.step_emitter import EpisodeHandle, StepEmitter

pytestmark = [pytest.mark.broker, pytest.mark.browser]

PATIENCE_MS = 40_000
STEPS = 30
REFERENCES = 12


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Everything, on free ports. Listed before the browser: it starts only where no event loop runs."""
    with LocalStack(live_port=0, logs=Path(tmp_path_factory.mktemp("logs"))) as stack:
        yield stack


def take_steps(episode: EpisodeHandle, steps: range, planning_s: float) -> None:
    for step in steps:
        episode.step(progress=(step + 1) / STEPS, mode="navigate", planning_s=planning_s, cycle_time_s=0.5)


def test_real_steps_reach_the_page_and_a_disturbance_is_seen_to_come_and_go(
    stack: LocalStack, open_page: Callable[..., Page]
) -> None:
    assert stack.live_url is not None
    page = open_page(stack.live_url)
    expect(page.get_by_text("No agent has reported yet")).to_be_visible()
    row = page.locator(".sb-fleet tbody tr").filter(has_text="robot-7")
    with StepEmitter(KafkaPublisher(stack.broker_address), producer="robot-7") as emitter:
        for number in range(REFERENCES):
            episode = emitter.begin_episode(episode=f"clean-{number}", family="transportation", reference=True)
            take_steps(episode, range(STEPS), 0.02 + 0.001 * (number % 2))
            episode.end("success")
            emitter.flush(10.0)
        # Scored, and so calm, as soon as what is normal has been learned.
        episode = emitter.begin_episode(episode="first", family="transportation")
        paced(emitter, episode, range(STEPS), lambda step: 0.02, until=lambda: "calm" in row.inner_text())
        episode.end("success")
        episode = emitter.begin_episode(episode="disturbed", family="transportation", stress=0.4)
        paced(emitter, episode, range(12), lambda step: 0.02 if step < 5 else 2.0)
        expect(row).to_contain_text("in rebound", timeout=PATIENCE_MS)
        expect(row).to_contain_text("provisional")  # twelve references are too few for it to count
        restart_exporter(stack)
        take_steps(episode, range(12, STEPS), 0.02)
        emitter.flush(10.0)
        expect(row).to_contain_text("calm", timeout=PATIENCE_MS)
        episode.end("success")
    expect(row).to_contain_text("ended", timeout=PATIENCE_MS)
    expect(page.locator(".sb-windows").get_by_text("robot-7 departed from its baseline at step 5")).to_be_visible()
    page.goto(f"{stack.live_url}families")
    family = page.locator("[aria-label='Families'] .sb-table tbody tr")
    expect(family).to_contain_text(re.compile("transportation.*learning: [0-9]+ of 20", re.DOTALL), timeout=PATIENCE_MS)
    expect(family).to_contain_text("not known")
    page.close()
    stack.check()


def paced(
    emitter: StepEmitter,
    episode: EpisodeHandle,
    steps: range,
    planning_s: Callable[[int], float],
    until: Callable[[], bool] = lambda: False,
) -> None:
    """Take the steps as a robot does, some a second, or until a condition holds."""
    for step in steps:
        take_steps(episode, range(step, step + 1), planning_s(step))
        emitter.flush(10.0)
        if until():
            return
        time.sleep(0.25)


def restart_exporter(stack: LocalStack) -> None:
    stack._child("export").kill()
    stack._start("export", "--port", "0")
    stack._wait_until_ready("export")
