"""A broker's topic of steps, as the reader of episodes sees it: one partition, offsets, times, and a beginning."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from aiokafka import TopicPartition  # type: ignore[import-untyped]

from springback.producers.contract.codec import encode_msgpack
from springback.producers.contract.frame import StepFrame

STEPS_TOPIC = "steps"


class FakeStepsBroker:
    """Has the frames from one offset on, and gives so many at a time.

    Args:
        frames: by their offsets, with the seconds at which the broker had them.
        gone: how many of the first it no longer has.
        at_once: how many one poll gives.
    """

    def __init__(self, frames: Sequence[tuple[float, StepFrame]], gone: int = 0, at_once: int = 5) -> None:
        self.records = [
            SimpleNamespace(
                offset=offset, key=frame.producer.encode(), value=encode_msgpack(frame), timestamp=int(at_s * 1000)
            )
            for offset, (at_s, frame) in enumerate(frames)
        ]
        self.gone, self.at_once = gone, at_once
        self.given: list[int] = []
        self.readings = self.open = self.most_open = 0
        self.on_start: Callable[[], object] = lambda: None

    def consumer(self, **_: Any) -> "FakeConsumer":
        """In place of aiokafka's."""
        return FakeConsumer(self)


class FakeConsumer:
    """What the reader asks of aiokafka's consumer."""

    def __init__(self, broker: FakeStepsBroker) -> None:
        self._broker, self._at = broker, 0

    async def start(self) -> None:
        self._broker.readings += 1
        self._broker.on_start()
        self._broker.open += 1
        self._broker.most_open = max(self._broker.most_open, self._broker.open)

    async def stop(self) -> None:
        self._broker.open -= 1

    async def topics(self) -> set[str]:
        return {STEPS_TOPIC}

    def partitions_for_topic(self, name: str) -> set[int]:
        return {0}

    def assign(self, places: list[TopicPartition]) -> None:
        assert [place.topic for place in places] == [STEPS_TOPIC]

    def pause(self, place: TopicPartition) -> None:
        """Nothing to do: it gives what it is asked for."""

    def seek(self, place: TopicPartition, offset: int) -> None:
        assert offset >= self._broker.gone
        self._at = offset

    async def position(self, place: TopicPartition) -> int:
        return self._at

    async def beginning_offsets(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(places, self._broker.gone)

    async def end_offsets(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(places, len(self._broker.records))

    async def offsets_for_times(self, times: dict[TopicPartition, int]) -> dict[TopicPartition, Any]:
        [(place, at_ms)] = times.items()
        there = self._broker.records[self._broker.gone :]
        return {place: next((SimpleNamespace(offset=r.offset) for r in there if r.timestamp >= at_ms), None)}

    async def getmany(self, timeout_ms: int, max_records: int) -> dict[TopicPartition, list[Any]]:
        found = self._broker.records[self._at : self._at + self._broker.at_once]
        self._at += len(found)
        self._broker.given += [record.offset for record in found]
        return {TopicPartition(STEPS_TOPIC, 0): found}
