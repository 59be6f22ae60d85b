"""Looking at a topic apart from the stream, against a consumer that is made up."""

import asyncio
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from springback.stream_processors.service import topic_look
from springback.stream_processors.service.kafka_connection import KafkaConnection


class OneByOne:
    """A consumer of one partition that brings a record whenever it is asked, as long as there are any."""

    def __init__(self, records: Iterator[int], told_end: int) -> None:
        self._records, self._told_end = records, told_end
        self._position = 0
        self.stopped = False

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        self.stopped = True

    def assignment(self) -> set[str]:
        return {"steps-0"}

    async def end_offsets(self, places: set[str]) -> dict[str, int]:
        return dict.fromkeys(places, self._told_end)

    async def position(self, _: str) -> int:
        return self._position

    async def getmany(self, *, timeout_ms: int) -> dict[str, list[int]]:
        assert timeout_ms > 0
        record = next(self._records, None)
        if record is None:
            return {}
        self._position = record + 1
        return {"steps-0": [record]}


def read(consumer: OneByOne, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    monkeypatch.setattr(topic_look, "plain_consumer", lambda *_: consumer)
    monkeypatch.setattr(topic_look, "_SETTLING_S", 0.001)

    async def run() -> list[Any]:
        return [record async for record in topic_look.records_until_now(KafkaConnection(), "steps")]

    found = asyncio.run(run())
    assert consumer.stopped
    return found


def test_a_topic_that_is_written_to_all_the_time_is_read_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(OneByOne(count(), told_end=5), monkeypatch)[:5] == [0, 1, 2, 3, 4]


def test_a_record_at_the_end_that_was_told_is_read_too(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(OneByOne(iter(range(3)), told_end=2), monkeypatch) == [0, 1, 2]


def test_an_empty_topic_has_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(OneByOne(iter(()), told_end=0), monkeypatch) == []
