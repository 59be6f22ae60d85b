"""The page of an episode at the end of the whole pipeline: charts, evidence, and the steps as a recording."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from springback.dashboards.live_page.episodes.steps_topic import EpisodeSteps, WantedEpisode, read_episode
from springback.dashboards.live_page.links import episode_link
from springback.deploy.local_stack import LocalStack
from springback.producers.emitter.kafka_publisher import KafkaPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.stream_processors.offline.evaluation import evaluate
from springback.stream_processors.resilience.readings import EpisodeKey

pytestmark = [pytest.mark.broker, pytest.mark.browser]

PATIENCE_MS = 60_000
STEPS = 30
REFERENCES = 12
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Everything, on free ports. Listed before the browser: it starts only where no event loop runs."""
    with LocalStack(live_port=0, logs=Path(tmp_path_factory.mktemp("logs"))) as stack:
        yield stack


def steps_of(stack: LocalStack, wanted: WantedEpisode) -> EpisodeSteps:
    with ThreadPoolExecutor(1) as apart:  # the browser has this thread's event loop
        return apart.submit(lambda: asyncio.run(read_episode(stack.settings, wanted))).result()


@pytest.fixture(scope="module")
def key(stack: LocalStack) -> EpisodeKey:
    """An episode that has been scored, was in trouble from step 8 to 13, and is over."""
    with StepEmitter(KafkaPublisher(stack.broker_address), producer="robot-7") as emitter:
        for number in range(REFERENCES):
            episode = emitter.begin_episode(episode=f"clean-{number}", family="transportation", reference=True)
            for step in range(STEPS):
                episode.step(progress=(step + 1) / STEPS, planning_s=0.02 + 0.001 * (number % 2), cycle_time_s=0.5)
            episode.end("success")
            emitter.flush(10.0)
        for number in range(200):
            # Until one has been scored: what is normal has to be learned first.
            episode = emitter.begin_episode(episode=f"hard-{number}", family="transportation", stress=0.4)
            for step in range(STEPS):
                hard = 8 <= step < 14
                episode.step(
                    progress=(step + 1) / STEPS,
                    planning_s=2.0 if hard else 0.02,
                    cycle_time_s=0.5,
                    mode="navigate" if step < 15 else "manipulate",
                    action=HOSTILE if hard else "forward",
                    feedback="slipped" if hard else "",
                )
            episode.end("success")
            emitter.flush(10.0)
            found = EpisodeKey("robot-7", emitter.session, f"hard-{number}")
            steps = steps_of(stack, WantedEpisode(found, "robot-7", "transportation", 0.0))
            if any("transportation" in switch.baseline.families for switch in steps.switches[:1]):
                return found
    pytest.fail("no episode has been scored")


def test_an_episode_that_is_over_is_shown_and_its_steps_are_a_recording(
    stack: LocalStack, key: EpisodeKey, open_page: Callable[..., Page], tmp_path: Path
) -> None:
    assert stack.live_url is not None
    address = stack.live_url.rstrip("/") + episode_link(key, window=0)
    page = open_page(address)
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Episode {key.episode} of robot-7", timeout=PATIENCE_MS)
    chosen = page.locator(".sb-chosen")
    expect(chosen).to_contain_text("departed from its baseline at step 8", timeout=PATIENCE_MS)
    rows = chosen.locator("tbody tr")
    expect(rows.first).to_contain_text("forward")
    expect(rows.nth(5)).to_contain_text("departure")
    expect(rows.nth(5)).to_contain_text(HOSTILE)
    expect(rows.nth(5)).to_contain_text("slipped")
    charts = page.locator(".sb-charts svg")
    expect(charts).to_have_count(4, timeout=PATIENCE_MS)
    expect(charts.first).to_contain_text("effort", timeout=PATIENCE_MS)
    expect(charts.nth(1)).to_contain_text("manipulate")
    expect(chosen.locator(".sb-sentence")).to_be_in_viewport()  # also when the charts have come above it
    with page.expect_download() as downloading:
        page.get_by_role("link", name="Its steps as a recording").click()
    recording = tmp_path / "steps.jsonl.gz"
    downloading.value.save_as(recording)
    found = steps_of(stack, WantedEpisode(key, "robot-7", "transportation", 0.0))
    [switch, *_] = found.switches
    evaluation = evaluate(recording, baseline=switch.baseline, config=stack.settings.resilience)
    [window] = evaluation.windows
    assert (window.departure_step, window.state) == (8, "recovered")
    assert f"re-entered at step {window.reentry_step}, after" in chosen.inner_text()
    assert window.evidence is not None
    assert len(window.evidence.steps) == rows.count()


def test_an_episode_that_nobody_knows_is_said_to_be_none(
    stack: LocalStack, key: EpisodeKey, open_page: Callable[..., Page]
) -> None:
    assert stack.live_url is not None
    unknown = episode_link(EpisodeKey(key.agent, key.session, "never ran"))
    page = open_page(stack.live_url.rstrip("/") + unknown)
    expect(page.get_by_text("Nothing is remembered of this episode")).to_be_visible(timeout=PATIENCE_MS)
    answer = page.request.get(stack.live_url.rstrip("/") + unknown + "/steps.jsonl.gz")
    assert (answer.status, "Nothing of this episode's steps" in answer.text()) == (404, True)
