"""What was shown before a restart is shown after it: read back from the topics, as far as they reach."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete  # type: ignore[import-untyped]
from aiokafka.structs import TopicPartition  # type: ignore[import-untyped]
from msgspec.structs import replace

from springback.dashboards.live_page.fleet_rows import fleet_rows
from springback.dashboards.live_page.live_sink import LiveSink
from springback.sinks.sink import ReadingBack
from springback.sinks.sink_runner import ReadingTopics, SinkRunner
from springback.stream_processors.resilience.readings import AgentCounts, Reading, encode_reading
from springback.stream_processors.topics import declare_topics
from tests.dashboards.live_page.fake_fleet import family, status, summary, window

DEADLINE_S = 30.0
NOW_S = 1_790_000_100.0
"""The clock of the pages: both look at the same moment."""


def a_fleet_at_work() -> dict[str, list[tuple[str, Reading]]]:
    """What some agents did: by topic, with the keys that workers give."""
    topics = ReadingTopics.of_prefix("")
    agents = [f"robot-{number}" for number in range(6)]
    told: dict[str, list[tuple[str, Reading]]] = {name: [] for name in topics.read}
    for number, agent in enumerate(agents):
        for step in range(40):
            counts = AgentCounts(steps=step + 1)
            departed = 20 if step > 25 and number % 2 else None
            seen_s = NOW_S - 100 + step
            told[topics.statuses].append((agent, status(agent, step, seen_s=seen_s, departed=departed, counts=counts)))
        for episode in range(11):
            end = replace(summary(agent, str(episode)), ended_s=NOW_S - 200 + episode)
            if episode == 3:
                told[topics.summaries].append(("navigation", replace(end, outcome="aborted")))
                end = replace(end, revision=1)
            told[topics.summaries].append((f"family-{episode % 2}", end))
        for place in range(10):
            opened = window(agent, place, state="open", departure_time_s=NOW_S - 90 + place)
            told[topics.windows] += [(agent, opened), (agent, replace(opened, state="recovered"))]
    told[topics.families] = [(name, family(name, n)) for n in range(3) for name in ("navigation", "assembly")]
    return told


def shown(sink: LiveSink) -> Any:
    """All that pages tell."""
    with sink.look() as (view, now_s):
        agents = {
            agent.label: (
                *(agent.history.series(name) for name in ("total", "cost", "progress")),
                *(agent.window_spans(), agent.episodes, list(agent.windows.values())),
            )
            for agent in view.agents()
        }
        counts = view.episodes_ended, view.dead_letters, view.unreadable
        lists = view.windows(), view.episodes(), view.families()
        return sorted(fleet_rows(view, now_s)), agents, lists, counts


@asynccontextmanager
async def page(broker: str, prefix: str, most: int | None = None) -> AsyncIterator["Page"]:
    """A page that reads the topics, from its start to its end."""
    sink = Page()
    runner = SinkRunner(broker, ReadingTopics.of_prefix(prefix), [sink], sink, most=most)
    running = asyncio.ensure_future(runner.run())
    try:
        yield sink
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


class Page(LiveSink):
    """What a page is made from; it remembers how its reading went."""

    def __init__(self) -> None:
        super().__init__(clock=lambda: NOW_S)
        self.progress: list[ReadingBack] = []
        self.taken = 0
        self.show_frames_behind({0: 0})

    def reading_back(self, progress: ReadingBack) -> None:
        super().reading_back(progress)
        self.progress.append(progress)

    def write_at(self, reading: Reading, sent_s: float) -> None:
        super().write_at(reading, sent_s)
        self.taken += 1

    async def until(self, condition: Callable[["Page"], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not condition(self):
                await asyncio.sleep(0.02)

    def has_taken(self, number: int) -> bool:
        """Whether all that was sent has come, what could not be used too."""
        with self.look() as (view, _):
            return self.taken == number and view.unreadable == 1 and view.dead_letters.total() == 1

    def is_caught_up(self) -> bool:
        with self.look() as (view, _):
            return view.sight.caught_up


async def send(broker: str, prefix: str, told: dict[str, list[tuple[str, Reading]]]) -> None:
    """Send it, each topic's readings in their order, the topics beside each other."""
    async with AIOKafkaProducer(bootstrap_servers=broker, linger_ms=10) as producer:
        sent = [
            await producer.send(prefix + topic, encode_reading(reading), key=key.encode())
            for topic, readings in told.items()
            for key, reading in readings
        ]
        sent.append(await producer.send(prefix + "rebound-windows", b"no reading", key=b"robot-1"))
        headers = [("reason", b"not_a_frame"), ("offset", b"7")]
        sent.append(await producer.send(prefix + "steps-dead-letter", b"?", headers=headers))
        await asyncio.gather(*sent)


async def restart_shows_the_same(broker: str, prefix: str) -> None:
    """A page that was there all along, and one that starts afterwards."""
    told = a_fleet_at_work()
    number = sum(map(len, told.values()))
    await declare_topics(broker, prefix=prefix, partitions=3)
    async with page(broker, prefix) as before:
        await before.until(Page.is_caught_up)
        await send(broker, prefix, told)
        await before.until(lambda page: page.has_taken(number))
    async with page(broker, prefix) as after:
        await after.until(Page.is_caught_up)
        await after.until(lambda page: page.has_taken(number))  # Tansu says that logs end before their last batch
    assert shown(after) == shown(before)
    assert len(shown(after)[0]) == 6
    assert after.progress[0].read < after.progress[0].total
    assert after.progress[-1].share == 1.0
    assert [reach.earlier for reach in after.progress[-1].reaches] == ["none"] * 5


@pytest.fixture
def prefix() -> str:
    return f"past-{uuid.uuid4().hex[:8]}-"


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


@pytest.mark.broker
def test_a_restart_shows_what_was_shown_before(embedded_broker: str, prefix: str) -> None:
    run(restart_shows_the_same(embedded_broker, prefix))


@pytest.mark.kafka
def test_a_restart_shows_what_was_shown_before_on_kafka(apache_kafka: str, prefix: str) -> None:
    run(restart_shows_the_same(apache_kafka, prefix))


@pytest.mark.kafka
def test_what_is_no_longer_in_the_topics_is_named(apache_kafka: str, prefix: str) -> None:
    async def scenario() -> None:
        await declare_topics(apache_kafka, prefix=prefix, partitions=1)
        await send(apache_kafka, prefix, a_fleet_at_work())
        admin = AIOKafkaAdminClient(bootstrap_servers=apache_kafka)
        await admin.start()
        kept_from = {TopicPartition(prefix + "rebound-windows", 0): RecordsToDelete(before_offset=100)}
        await admin.delete_records(kept_from)
        await admin.close()
        async with page(apache_kafka, prefix) as after:
            await after.until(Page.is_caught_up)
        reaches = {reach.topic: reach for reach in after.progress[-1].reaches}
        assert reaches[prefix + "rebound-windows"].earlier == "gone"
        assert reaches[prefix + "rebound-windows"].since_s is not None
        assert {reach.earlier for topic, reach in reaches.items() if "windows" not in topic} == {"none"}
        assert 0 < len(shown(after)[2][0]) < 60

    run(scenario())


@pytest.mark.kafka
def test_no_more_is_read_back_than_there_is_room_for_and_that_is_named(apache_kafka: str, prefix: str) -> None:
    async def scenario() -> None:
        await declare_topics(apache_kafka, prefix=prefix, partitions=2)
        await send(apache_kafka, prefix, a_fleet_at_work())
        async with page(apache_kafka, prefix, most=20) as after:
            await after.until(Page.is_caught_up)
        reaches = {reach.topic.removeprefix(prefix): reach.earlier for reach in after.progress[-1].reaches}
        assert reaches["rebound-windows"] == reaches["episode-summaries"] == "left"
        assert reaches["agent-status"] == reaches["family-resilience"] == "none"
        rows, agents, (windows, episodes, _), _ = shown(after)
        assert len(rows) == 6  # of everybody the latest word is known
        assert all(len(series) == 40 for series, *_ in agents.values())
        assert 0 < len(windows) <= 20
        assert 0 < len(episodes) <= 20

    run(scenario())
