"""Episodes step by step for many who look at once: what is kept, how many readings wait, and what is told of faults."""

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest
from aiokafka.errors import KafkaConnectionError  # type: ignore[import-untyped]
from nicegui import core

from springback.dashboards.live_page.episodes import episode_reader
from springback.dashboards.live_page.episodes.episode_reader import EpisodeReader, ReadEpisode
from springback.dashboards.live_page.episodes.steps_topic import EpisodeSteps, WantedEpisode
from springback.stream_processors.resilience.readings import EpisodeKey
from springback.stream_processors.settings import WorkerSettings

Read = Callable[[WantedEpisode], Awaitable[EpisodeSteps]]


def wanted(number: int) -> WantedEpisode:
    return WantedEpisode(EpisodeKey("robot-7", "boot", str(number)), "robot-7", "navigation", 0.0)


@pytest.fixture
def reads_by(monkeypatch: pytest.MonkeyPatch) -> Callable[[Read], None]:
    """Has episodes read by something else than a broker."""

    def use(read: Read) -> None:
        async def read_episode(settings: object, episode: WantedEpisode, progress: object) -> EpisodeSteps:
            return await read(episode)

        monkeypatch.setattr(episode_reader, "read_episode", read_episode)

    return use


def run(scenario: Callable[[EpisodeReader], Awaitable[None]], monkeypatch: pytest.MonkeyPatch) -> None:
    async def running() -> None:
        monkeypatch.setattr(core, "loop", asyncio.get_running_loop())
        await scenario(EpisodeReader(WorkerSettings(), lambda: 0.0))

    asyncio.run(running())


def test_many_who_look_at_as_many_episodes_have_each_read_once(
    reads_by: Callable[[Read], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episode_reader, "MOST_KEPT", 3)
    reads: Counter[str] = Counter()
    goes_on = threading.Event()

    async def slowly(episode: WantedEpisode) -> EpisodeSteps:
        reads[episode.key.episode] += 1
        await asyncio.to_thread(goes_on.wait)
        return EpisodeSteps()

    async def scenario(reader: EpisodeReader) -> None:
        asked: list[ReadEpisode] = []
        for _ in range(5):  # each page asks once a second
            asked = [reader.ask(wanted(number)) for number in range(8)]
            await asyncio.sleep(0)
        goes_on.set()
        while any(read.reading for read in asked):
            await asyncio.sleep(0.01)
        assert sorted(read.version for read in asked) == list(range(1, 9))

    reads_by(slowly)
    run(scenario, monkeypatch)
    assert reads == Counter({str(number): 1 for number in range(8)})


def test_what_was_asked_for_longest_ago_is_forgotten_by_its_steps(
    reads_by: Callable[[Read], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EpisodeSteps, "steps", property(lambda self: 30_000))

    async def at_once(episode: WantedEpisode) -> EpisodeSteps:
        return EpisodeSteps()

    async def scenario(reader: EpisodeReader) -> None:
        first = [await reader.finished(wanted(number)) for number in range(3)]
        assert reader.ask(wanted(2)) is first[2]  # with it there are 90,000
        assert reader.ask(wanted(1)) is first[1]
        assert await reader.finished(wanted(0)) is not first[0]

    reads_by(at_once)
    run(scenario, monkeypatch)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (TimeoutError(), "The broker did not give its steps: it does not answer in time."),
        (KafkaConnectionError("gone"), "The broker did not give its steps: KafkaConnectionError: gone"),
        (ValueError("odd"), "Its steps could not be worked out; the log of the live page says why."),
    ],
)
def test_why_an_episode_is_not_there_is_told(
    error: Exception, told: str, reads_by: Callable[[Read], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(episode: WantedEpisode) -> EpisodeSteps:
        raise error

    async def scenario(reader: EpisodeReader) -> None:
        read = await reader.finished(wanted(1))
        assert (read.told, read.trace, read.reading) == ([told], None, False)

    reads_by(fails)
    run(scenario, monkeypatch)
