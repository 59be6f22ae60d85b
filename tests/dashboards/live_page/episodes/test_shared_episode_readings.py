"""Episodes read for all who look: once, one after the other, kept for a while, and read again where there is more."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from nicegui import core

from springback.dashboards.live_page.episodes import episode_reader, steps_topic
from springback.dashboards.live_page.episodes.episode_reader import (
    AGAIN_AFTER_S,
    FORGOTTEN_AFTER_S,
    MOST_KEPT,
    EpisodeReader,
    ReadEpisode,
)
from springback.dashboards.live_page.episodes.steps_topic import WantedEpisode
from springback.producers.contract.frame import Outcome, StepFrame
from springback.stream_processors.resilience.readings import EpisodeKey
from springback.stream_processors.settings import WorkerSettings
from tests.dashboards.live_page.episodes.fake_steps_broker import FakeStepsBroker
from tests.stream_processors.frame_builders import frame_of, nominal_rows

BEGAN_S = 1_790_000_000.0
DEADLINE_S = 20.0


def episode_of(number: int, steps: int = 20, outcome: Outcome | None = "success") -> tuple[float, StepFrame]:
    return BEGAN_S, frame_of(nominal_rows(0, steps), outcome, episode=str(number))


def wanted(number: int, *, over: bool = False) -> WantedEpisode:
    return WantedEpisode(EpisodeKey("robot-7", "boot", str(number)), "robot-7", "navigation", BEGAN_S, over)


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


Scenario = Callable[[EpisodeReader, FakeStepsBroker, Clock], Coroutine[Any, Any, None]]


def play(scenario: Scenario, *frames: tuple[float, StepFrame]) -> None:
    broker, clock = FakeStepsBroker(frames, at_once=100), Clock()

    async def run() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(steps_topic, "AIOKafkaConsumer", broker.consumer)
            patch.setattr(core, "loop", asyncio.get_running_loop())
            async with asyncio.timeout(DEADLINE_S):
                await scenario(EpisodeReader(WorkerSettings(), clock), broker, clock)

    asyncio.run(run())


async def ended(*reads: ReadEpisode) -> None:
    while any(read.reading for read in reads):
        await asyncio.sleep(0.001)


def test_twenty_viewers_of_one_episode_cost_the_broker_one_reading() -> None:
    async def scenario(reader: EpisodeReader, broker: FakeStepsBroker, clock: Clock) -> None:
        reads = await asyncio.gather(*(reader.finished(wanted(1)) for _ in range(20)))
        assert {id(read) for read in reads} == {id(reads[0])}
        assert reads[0].trace is not None
        assert len(reads[0].trace.steps) == 20
        assert broker.readings == 1

    play(scenario, episode_of(1))


def test_twenty_viewers_of_as_many_episodes_are_served_one_after_the_other_once_each() -> None:
    async def scenario(reader: EpisodeReader, broker: FakeStepsBroker, clock: Clock) -> None:
        reads = [reader.ask(wanted(number)) for number in range(20)]
        while any(read.reading for read in reads):
            # Each looks again every second, as pages do, while the others wait.
            clock.now_s += 1.0
            assert [reader.ask(wanted(number)) for number in range(20)] == reads
            await asyncio.sleep(0.001)
        assert (broker.readings, broker.most_open) == (20, 1)
        assert all(read.trace is not None and len(read.trace.steps) == 20 for read in reads)
        assert len({read.version for read in reads}) == 20

    play(scenario, *(episode_of(number) for number in range(20)))


def test_an_open_episode_is_read_again_while_somebody_looks_and_one_that_is_over_is_not() -> None:
    async def scenario(reader: EpisodeReader, broker: FakeStepsBroker, clock: Clock) -> None:
        going_on, over = await reader.finished(wanted(1)), await reader.finished(wanted(2))
        version = going_on.version
        assert broker.readings == 2
        more = frame_of(nominal_rows(12, 18), None, episode="1")
        broker.records += FakeStepsBroker([(BEGAN_S + 1.0, more)]).records
        broker.records[-1].offset = len(broker.records) - 1
        clock.now_s += AGAIN_AFTER_S - 1.0
        await ended(reader.ask(wanted(1)), reader.ask(wanted(2)))
        assert broker.readings == 2
        clock.now_s += 1.0
        await ended(reader.ask(wanted(1)), reader.ask(wanted(2)))
        assert broker.readings == 3
        assert going_on.trace is not None
        assert len(going_on.trace.steps) == 18
        assert going_on.version != version
        assert over.trace is not None
        assert over.trace.summary is not None

    play(scenario, episode_of(1, 12, None), episode_of(2))


def test_an_episode_that_is_over_without_an_end_is_read_once_more_and_then_let_be() -> None:
    """It was closed by silence: its steps have no end, and no more of them come."""

    async def scenario(reader: EpisodeReader, broker: FakeStepsBroker, clock: Clock) -> None:
        await reader.finished(wanted(1))
        for readings in (2, 2, 2):
            clock.now_s += AGAIN_AFTER_S
            await reader.finished(wanted(1, over=True))
            assert broker.readings == readings
        clock.now_s += AGAIN_AFTER_S  # it has gone on after all
        await reader.finished(wanted(1))
        assert broker.readings == 3
        clock.now_s += AGAIN_AFTER_S
        await reader.finished(wanted(1, over=True))
        assert broker.readings == 4

    play(scenario, episode_of(1, 12, None))


def test_a_reading_that_takes_long_is_not_done_again_soon() -> None:
    async def scenario(reader: EpisodeReader, broker: FakeStepsBroker, clock: Clock) -> None:
        def take_long() -> None:
            clock.now_s += 30.0

        broker.on_start = take_long
        await reader.finished(wanted(1))
        broker.on_start = lambda: None
        clock.now_s += 299.0
        await reader.finished(wanted(1))
        assert broker.readings == 1
        clock.now_s += 1.0
        await reader.finished(wanted(1))
        assert broker.readings == 2

    play(scenario, episode_of(1, 12, None))


def test_what_nobody_waits_for_any_more_is_not_read_and_is_when_somebody_asks_again() -> None:
    async def scenario(reader: EpisodeReader, broker: FakeStepsBroker, clock: Clock) -> None:
        left = reader.ask(wanted(1))
        clock.now_s += FORGOTTEN_AFTER_S + 1.0
        await ended(left)
        assert (broker.readings, left.trace, left.version) == (0, None, 0)
        assert (await reader.finished(wanted(1))).trace is not None

    play(scenario, episode_of(1))


@pytest.mark.parametrize(
    ("most_episodes", "most_steps", "kept"),
    [(MOST_KEPT, 59, 2), (MOST_KEPT, 60, 3), (2, 10_000, 2), (MOST_KEPT, 5, 1)],
    ids=["steps", "as many steps as may be", "episodes", "one that alone is too long"],
)
def test_the_longest_unasked_are_let_go(
    most_episodes: int, most_steps: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episode_reader, "MOST_KEPT", most_episodes)
    monkeypatch.setattr(episode_reader, "MOST_STEPS_KEPT", most_steps)

    async def scenario(reader: EpisodeReader, broker: FakeStepsBroker, clock: Clock) -> None:
        first = [await reader.finished(wanted(number)) for number in range(3)]
        for number in reversed(range(3)):
            again = reader.ask(wanted(number))
            assert (again is first[number]) == (number >= 3 - kept), number
            await ended(again)
            if number == 3 - kept:
                return

    play(scenario, *(episode_of(number) for number in range(3)))


def test_a_broker_that_gave_nothing_is_asked_again_and_what_was_known_is_shown_meanwhile() -> None:
    async def scenario(reader: EpisodeReader, broker: FakeStepsBroker, clock: Clock) -> None:
        found = await reader.finished(wanted(1))
        version = found.version

        async def fails(*_: object) -> None:
            raise TimeoutError

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(episode_reader, "read_episode", fails)
            clock.now_s += AGAIN_AFTER_S
            await reader.finished(wanted(1))
        assert found.told == ["The broker did not give its steps: it does not answer in time."]
        assert found.version != version
        assert found.trace is not None
        clock.now_s += AGAIN_AFTER_S
        await reader.finished(wanted(1))
        assert found.told == []

    play(scenario, episode_of(1, 12, None))
