"""A real worker is scraped while frames flow through it: what it says of itself is what was sent."""

import asyncio
import math
import urllib.request
from typing import TYPE_CHECKING, NamedTuple

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics

from springback.deploy.broker_process import free_port
from springback.stream_processors.metrics import services as metrics
from springback.stream_processors.metrics.services import WORKER_METRICS
from springback.stream_processors.metrics.spec import MetricSpec
from tests.stream_processors.conftest import DEADLINE_S, until

if TYPE_CHECKING:
    from tests.stream_processors.conftest import Recorded, Stream

pytestmark = pytest.mark.broker
ACCEPT = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"


class Scrape(NamedTuple):
    """The values of one page, by name and label values."""

    values: dict[tuple[str, ...], float]

    def of(self, metric: MetricSpec, *labels: str) -> float:
        return self.values.get((metric.name, *labels), math.nan)


def scrape(health: str) -> Scrape:
    request = urllib.request.Request(health + "metrics", headers={"Accept": ACCEPT})
    with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
        families = parse_openmetrics(answer.read().decode())  # type: ignore[no-untyped-call]
        return Scrape({(s.name, *s.labels.values()): s.value for family in families for s in family.samples})


def test_the_page_follows_the_frames(embedded_stream: "Stream", recorded: "Recorded") -> None:
    embedded_stream.freeze(recorded)
    port = free_port()
    worker = embedded_stream.start(health_port=str(port))
    health = worker.wait_until_ready()
    assert health == f"http://127.0.0.1:{port}/"
    before = scrape(health)
    assert before.of(metrics.WORKER_READY) == 1
    assert before.of(metrics.WORKER_FRAMES) == 0
    assert math.isnan(before.of(metrics.WORKER_LAST_OFFSET_AGE, "track_steps"))
    frames = recorded.frames[: len(recorded.frames) // 2]
    seen: list[float] = []

    async def all_counted() -> bool:
        seen.append((await asyncio.to_thread(scrape, health)).of(metrics.WORKER_FRAMES))
        return seen[-1] >= len(frames)

    async def scenario() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(embedded_stream.send_frames(frames, pause_s=0.005))
            await until(all_counted, "every frame is counted")

        async def settled() -> bool:
            now = await asyncio.to_thread(scrape, health)
            return {now.of(metrics.WORKER_OFFSETS_BEHIND, stage) for stage in stages} == {0}

        stages = ("track_steps", "learn_baselines", "aggregate_families")
        await until(settled, "nothing is behind")

    asyncio.run(scenario())
    assert seen == sorted(seen)
    assert seen[-1] == len(frames)
    assert len(set(seen)) > 2, "it was scraped while frames flowed"
    check(scrape(health), frames_sent=len(frames), steps_sent=sum(frame.n_steps for frame in frames))
    assert worker.end() == 0, worker.log()


def check(after: Scrape, frames_sent: int, steps_sent: int) -> None:
    shown = {name for name, *_ in after.values}
    assert {spec.name for spec in WORKER_METRICS} - shown == set()
    assert after.of(metrics.WORKER_FRAMES) == frames_sent
    assert after.of(metrics.WORKER_MESSAGES, "track_steps") == frames_sent
    assert after.of(metrics.WORKER_STEPS) == steps_sent
    assert 0 <= after.of(metrics.WORKER_LAST_OFFSET_AGE, "track_steps") < 60
    assert after.of(metrics.WORKER_MESSAGES, "aggregate_families") > 0
    assert after.of(metrics.WORKER_OPEN_EPISODES) >= 0
    assert after.of(metrics.WORKER_BASELINE_CELLS) > 0
    assert after.of(metrics.WORKER_REBALANCES) >= 1
    assert after.of(metrics.WORKER_REJECTED_MESSAGES, "track_steps") == 0
    assert after.values["process_resident_memory_bytes",] > 1e6
