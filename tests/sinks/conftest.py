"""Makers of readings (what a test does not name is the same everywhere), and how to send them."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]

from springback.stream_processors.resilience.readings import (
    AgentStatus,
    EpisodeBegun,
    EpisodeStatus,
    EpisodeSummary,
    FamilyReading,
    WindowReading,
    encode_reading,
)
from tests.reading_builders import (
    agent_status,
    episode_begun,
    episode_status,
    episode_summary,
    family_reading,
    window_reading,
)

DEADLINE_S = 30.0


@pytest.fixture(scope="session")
def window() -> Callable[..., WindowReading]:
    """A closed, recovered window of episode 1 of robot-7."""
    return window_reading


@pytest.fixture(scope="session")
def summary() -> Callable[..., EpisodeSummary]:
    """A successful, scored episode 1 of robot-7 with 20 steps, 2 of them unscored."""
    return episode_summary


@pytest.fixture(scope="session")
def running() -> Callable[..., EpisodeStatus]:
    """An open episode 1 of robot-7 that has taken `steps` steps; `cost` is that of an open window, if any."""
    return episode_status


@pytest.fixture(scope="session")
def status() -> Callable[..., AgentStatus]:
    """The status of robot-7, last seen at 1000 s."""
    return agent_status


@pytest.fixture(scope="session")
def begun() -> Callable[..., EpisodeBegun]:
    """The beginning of episode 1 of robot-7."""
    return episode_begun


@pytest.fixture(scope="session")
def family() -> Callable[..., FamilyReading]:
    """What is known of navigation after 42 episodes: it holds at stress 0 and breaks at 0.2; 0.4 was never seen."""
    return family_reading


@pytest.fixture
def prefix() -> str:
    """What this test's topics begin with."""
    return f"sinks-{uuid.uuid4().hex[:8]}-"


@pytest.fixture(scope="session")
def until() -> Callable[[Callable[[], Awaitable[bool]]], Awaitable[None]]:
    """Wait for a condition, with a deadline."""

    async def wait(condition: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not await condition():
                await asyncio.sleep(0.05)

    return wait


@pytest.fixture(scope="session")
def send() -> Callable[..., Awaitable[None]]:
    """Send readings, or the bytes given, to a topic."""

    async def to_topic(
        broker: str, topic: str, values: Iterable[Any], headers: Sequence[tuple[str, bytes]] = ()
    ) -> None:
        producer = AIOKafkaProducer(bootstrap_servers=broker)
        await producer.start()
        try:
            for value in values:
                data = value if isinstance(value, bytes) else encode_reading(value)
                await producer.send_and_wait(topic, data, key=b"robot-7", headers=list(headers))
        finally:
            await producer.stop()

    return to_topic
