"""Makers of readings (what a test does not name is the same everywhere), and how to send them."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]
from msgspec.structs import replace

from springback.stream_processors.resilience.readings import (
    AgentCounts,
    AgentStatus,
    ChannelCosts,
    ContractThresholds,
    EpisodeBegun,
    EpisodeKey,
    EpisodeStatus,
    EpisodeSummary,
    EpisodeTraits,
    ExtensibilityRatios,
    FamilyReading,
    NavigationScores,
    OpenWindow,
    StressMargin,
    WindowReading,
    encode_reading,
)

DEADLINE_S = 30.0


@pytest.fixture(scope="session")
def window() -> Callable[..., WindowReading]:
    """A closed, recovered window of episode 1 of robot-7."""

    def make(agent: str = "robot-7", session: str = "boot", episode: str = "1", **fields: Any) -> WindowReading:
        base = WindowReading(
            key=EpisodeKey(agent, session, episode),
            traits=EpisodeTraits(family="navigation", task="kitchen"),
            number=0,
            state="recovered",
            cause="effort",
            departure_step=4,
            alarm_step=6,
            reentry_step=11,
            departure_time_s=100.0,
            reentry_time_s=103.5,
            departure_mode="run",
            departure_progress_bin=1,
            departure_residual_bin=2,
            length_steps=8,
            length_s=3.5,
            lost_cycles=2.5,
            peak=4.0,
            recovery_cost=1.5,
            costs=ChannelCosts(cognitive=0.25, physical=1.0, debt=0.5),
        )
        return replace(base, **fields)

    return make


@pytest.fixture(scope="session")
def summary() -> Callable[..., EpisodeSummary]:
    """A successful, scored episode 1 of robot-7 with 20 steps, 2 of them unscored."""

    def make(agent: str = "robot-7", session: str = "boot", episode: str = "1", **fields: Any) -> EpisodeSummary:
        base = EpisodeSummary(
            key=EpisodeKey(agent, session, episode),
            traits=EpisodeTraits(family="navigation", task="kitchen"),
            outcome="success",
            steps=20,
            unscored_steps=2,
            windows=1,
            recovery_cost=1.5,
            costs=ChannelCosts(),
            lost_cycles=2.5,
            window_steps=8,
            final_progress=1.0,
            final_propositions=1.0,
            violation=0.0,
            started_s=90.0,
            ended_s=110.0,
        )
        return replace(base, **fields)

    return make


@pytest.fixture(scope="session")
def running() -> Callable[..., EpisodeStatus]:
    """An open episode 1 of robot-7 that has taken `steps` steps; `cost` is that of an open window, if any."""

    def make(
        agent: str = "robot-7",
        session: str = "boot",
        episode: str = "1",
        steps: int = 5,
        cost: float | None = None,
        **fields: Any,
    ) -> EpisodeStatus:
        base = EpisodeStatus(
            key=EpisodeKey(agent, session, episode),
            traits=EpisodeTraits(family="navigation", task="kitchen"),
            step=steps - 1,
            steps=steps,
            unscored_steps=0,
            progress=0.5,
            propositions=0.5,
            mode="run",
            intensity=0.75,
            intensity_by_channel=(0.75, 0.0, 0.0),
            window=None
            if cost is None
            else OpenWindow(number=0, cause="effort", departure_step=2, departure_time_s=100.0, recovery_cost=cost),
        )
        return replace(base, **fields)

    return make


@pytest.fixture(scope="session")
def status() -> Callable[..., AgentStatus]:
    """The status of robot-7, last seen at 1000 s."""

    def make(agent: str = "robot-7", **fields: Any) -> AgentStatus:
        base = AgentStatus(
            agent=agent,
            session="boot",
            producer=agent,
            seen_s=1000.0,
            time_s=1000.0,
            clock_skew_s=0.0,
            counts=AgentCounts(),
        )
        return replace(base, **fields)

    return make


@pytest.fixture(scope="session")
def begun() -> Callable[..., EpisodeBegun]:
    """The beginning of episode 1 of robot-7."""

    def make(agent: str = "robot-7", session: str = "boot", episode: str = "1", **fields: Any) -> EpisodeBegun:
        base = EpisodeBegun(
            key=EpisodeKey(agent, session, episode),
            traits=EpisodeTraits(family="navigation", task="kitchen"),
            time_s=90.0,
        )
        return replace(base, **fields)

    return make


@pytest.fixture(scope="session")
def family() -> Callable[..., FamilyReading]:
    """What is known of navigation after 42 episodes: it holds at stress 0 and breaks at 0.2; 0.4 was never seen."""

    def make(family: str = "navigation", sequence: int = 42, **fields: Any) -> FamilyReading:
        held = ExtensibilityRatios(progress=2.0, propositions=2.0, recovery=1.5, stability=1.25, safety=10.0)
        broken = ExtensibilityRatios(progress=0.5, propositions=0.5, recovery=0.75, stability=None, safety=10.0)
        base = FamilyReading(
            family=family,
            method="default",
            version="0",
            sequence=sequence,
            updated_s=1000.0,
            episodes=42,
            censored=1,
            violations=9,
            success_rate=0.75,
            completion=0.875,
            mean_steps=31.5,
            recovery_cost_mean=1.25,
            stability_loss_mean=2.5,
            beta=3.5,
            beta_p95=3.0,
            beta_by_kind={"physical": 3.5, "semantic": 2.0},
            beta_unpaired=4.0,
            pairs=17,
            tasks_let_go=2,
            capacity=0.0,
            capacity_flag="ok",
            first_breach=0.2,
            margins=(
                StressMargin(stress=0.0, episodes=30, margin=0.5, sufficient=True, ratios=held),
                StressMargin(stress=0.2, episodes=12, margin=-0.25, sufficient=True, ratios=broken),
                StressMargin(stress=0.4, episodes=0, margin=None, sufficient=False, ratios=ExtensibilityRatios()),
            ),
            thresholds=ContractThresholds(progress=0.5, propositions=0.5, recovery=10.0, stability=None, safety=5.0),
            live_stress=0.2,
            in_breach=True,
            breaches=3,
            navigation={
                "all": NavigationScores(episodes=42, success_rate=0.75, spl=0.5, sel=0.25, goal_completion=0.625),
                "model": NavigationScores(episodes=7, success_rate=0.5),
            },
        )
        return replace(base, **fields)

    return make


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
