"""The loop between topics and sinks, on a broker; and what it takes for unreadable."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.deploy.brokers import EmbeddedBroker
from springback.sinks import sink_runner
from springback.sinks.broker_lag import BrokerLag
from springback.sinks.errors import SinkUnavailableError
from springback.sinks.memory_sink import MemorySink
from springback.sinks.sink import DeadLetter, ReadingBack
from springback.sinks.sink_runner import UNREADABLE_ERRORS, ReadingTopics, SinkRunner
from springback.stream_processors.resilience.readings import Reading, decode_reading, encode_reading
from springback.stream_processors.topics import declare_topics

Make = Callable[..., Any]
Send = Callable[..., Awaitable[None]]
Until = Callable[[Callable[[], Awaitable[bool]]], Awaitable[None]]

DEADLINE_S = 30.0


@pytest.mark.broker
def test_topics_are_waited_for_and_never_made(
    embedded_broker: str, prefix: str, send: Send, until: Until, window: Make
) -> None:
    topics = ReadingTopics.of_prefix(prefix)
    sink, observer = MemorySink(), Observer()

    async def scenario() -> None:
        running = asyncio.ensure_future(SinkRunner(embedded_broker, topics, [sink], observer).run())
        async with BrokerLag(embedded_broker, topics.steps, f"{prefix}springback") as lag:
            assert await lag.read() == {}
            # Declared with as many partitions as wanted: nobody has made them before.
            await declare_topics(embedded_broker, prefix=prefix, partitions=3)
            assert await lag.read() == {0: 0, 1: 0, 2: 0}
        await send(embedded_broker, topics.windows, [window()])

        async def written() -> bool:
            return len(sink.windows) == 1

        await until(written)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(scenario())
    assert observer.told == ["caught up"]


class FlakySink(MemorySink):
    """Unavailable at every second call."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.closed = False

    def write(self, reading: Reading) -> None:
        self.calls += 1
        if self.calls % 2:
            message = "the disk is away"
            raise SinkUnavailableError(message)
        super().write(reading)

    def close(self) -> None:
        self.closed = True


class Observer:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.progress: list[ReadingBack] = []

    def reading_back(self, progress: ReadingBack) -> None:
        self.progress.append(progress)

    def unreadable(self, topic: str) -> None:
        self.told.append(topic)

    def retried(self, sink: str) -> None:
        self.told.append(sink)

    def caught_up(self) -> None:
        self.told.append("caught up")


@pytest.mark.broker
def test_an_unavailable_sink_is_written_to_again_and_nothing_is_left_out(
    embedded_broker: str, prefix: str, send: Send, until: Until, window: Make
) -> None:
    topics = ReadingTopics.of_prefix(prefix)
    sink, beside, observer = FlakySink(), MemorySink(), Observer()

    async def scenario() -> None:
        await declare_topics(embedded_broker, prefix=prefix, partitions=1)
        await send(embedded_broker, topics.windows, [window(number=number) for number in range(3)])
        await send(embedded_broker, topics.dead_letters, [b"{}"], [("reason", b"late")])
        running = asyncio.ensure_future(SinkRunner(embedded_broker, topics, [sink, beside], observer).run())

        async def done() -> bool:
            return "caught up" in observer.told

        await until(done)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(scenario())
    assert [reading.number for reading in sink.closed_windows] == [0, 1, 2]
    assert beside.closed_windows == sink.closed_windows
    assert [letter.reason for letter in beside.dead_letters] == ["late"]
    assert observer.told.count("memory") == 3
    assert sink.closed


@pytest.mark.broker
def test_a_sink_that_fails_for_good_ends_the_runner(embedded_broker: str, prefix: str, send: Send) -> None:
    topics = ReadingTopics.of_prefix(prefix)

    class BrokenSink(MemorySink):
        def write_dead_letter(self, letter: DeadLetter) -> None:
            raise ZeroDivisionError

    async def scenario() -> None:
        await declare_topics(embedded_broker, prefix=prefix, partitions=1)
        await send(embedded_broker, topics.dead_letters, [b"{}"])
        async with asyncio.timeout(DEADLINE_S):
            await SinkRunner(embedded_broker, topics, [BrokenSink()], Observer()).run()

    with pytest.raises(ZeroDivisionError):
        asyncio.run(scenario())


@given(st.one_of(st.binary(max_size=200), st.integers(1, 20_000).map(lambda depth: b"\x91" * depth)))
def test_bytes_that_are_no_reading_are_told_apart(data: bytes) -> None:
    with pytest.raises(UNREADABLE_ERRORS):
        decode_reading(data)


@given(place=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_a_damaged_reading_decodes_or_is_told_apart(window: Make, place: int, byte: int) -> None:
    data = bytearray(encode_reading(window()))
    data[place % len(data)] = byte
    try:
        decode_reading(bytes(data))
    except UNREADABLE_ERRORS:
        pass


@pytest.mark.broker
@pytest.mark.parametrize("readings", [3, 20], ids=["fewer than before", "more than before"])
def test_a_broker_that_lost_what_it_had_is_read_from_its_new_beginning(
    prefix: str, send: Send, until: Until, window: Make, readings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink_runner, "_LOOK_INTERVAL_S", 0.2)
    monkeypatch.setattr(sink_runner, "_LOOK_TIMEOUT_S", 0.2)
    topics = ReadingTopics.of_prefix(prefix)
    sink, observer = MemorySink(), Observer()

    async def scenario(broker: EmbeddedBroker) -> None:
        await declare_topics(broker.address, prefix=prefix, partitions=1)
        running = asyncio.ensure_future(SinkRunner(broker.address, topics, [sink], observer).run())
        await send(broker.address, topics.windows, [window(number=number) for number in range(10)])

        async def has(number: int) -> bool:
            return len(sink.closed_windows) == number

        await until(lambda: has(10))
        await asyncio.to_thread(broker.kill)
        await asyncio.sleep(1.0)  # how long it is away: long enough to be missed
        await asyncio.to_thread(broker.start)
        await declare_topics(broker.address, prefix=prefix, partitions=1)
        again = [window(episode="2", number=number) for number in range(readings)]
        await send(broker.address, topics.windows, again)
        await until(lambda: has(10 + readings))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    with EmbeddedBroker() as broker:
        asyncio.run(scenario(broker))
    assert [reading.number for reading in sink.closed_windows] == [*range(10), *range(readings)]
