"""The order of frames, with a producer in the place of aiokafka's, so that what Kafka does can be said exactly."""

from __future__ import annotations

import asyncio
import gc
import socket
from typing import Any

import pytest
from aiokafka.errors import KafkaTimeoutError, MessageSizeTooLargeError, TopicAuthorizationFailedError  # type: ignore[import-untyped]

from springback.producers.gateway.kafka_delivery import NOT_ACKNOWLEDGED, KafkaDelivery
from springback.producers.gateway.request_bodies import AdmittedFrame
from tests.producers.jumping_loop import run_jumping


class FakeTask:
    """In the place of the task that sends batches."""

    cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeSender:
    def __init__(self) -> None:
        self.sender_task = FakeTask()


class FakeProducer:
    """Answers the sending of a value, and later its acknowledgement, as it is told."""

    def __init__(self, on_send: dict[bytes, Exception], on_acknowledge: dict[bytes, Exception]) -> None:
        self.on_send, self.on_acknowledge = on_send, on_acknowledge
        self.asked: list[bytes] = []
        self._sender = FakeSender()

    async def send(self, topic: str, value: bytes, key: bytes) -> asyncio.Future[None]:
        self.asked.append(value)
        if value in self.on_send:
            raise self.on_send[value]
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if value in self.on_acknowledge:
            future.set_exception(self.on_acknowledge[value])
        elif value != b"never":
            future.set_result(None)
        return future


def delivered(values: list[bytes], producer: FakeProducer) -> tuple[list[str | None], bool]:
    async def run() -> tuple[list[str | None], bool]:
        delivery = KafkaDelivery("", "steps", ack_timeout_s=10.0, client_options={})
        there: Any = delivery
        there._producer, there.problem = producer, None
        frames = [AdmittedFrame(place, b"robot", value, 1) for place, value in enumerate(values)]
        results = await delivery.deliver(frames)
        return [None if result is None else result[0] for result in results], there._spoiled.is_set()

    outcome: tuple[list[str | None], bool] = run_jumping(run())
    return outcome


def test_behind_a_frame_that_could_not_be_sent_none_is_sent() -> None:
    producer = FakeProducer({b"2": KafkaTimeoutError()}, {})
    assert delivered([b"1", b"2", b"3", b"4"], producer) == ([None, *[NOT_ACKNOWLEDGED] * 3], True)
    assert producer.asked == [b"1", b"2"]


def test_a_frame_that_will_never_be_taken_holds_nothing_up() -> None:
    producer = FakeProducer({b"2": MessageSizeTooLargeError()}, {})
    assert delivered([b"1", b"2", b"3"], producer) == ([None, "refused_by_kafka", None], False)
    assert producer.asked == [b"1", b"2", b"3"]


def test_what_fails_or_stays_away_later_is_not_acknowledged() -> None:
    producer = FakeProducer({}, {b"2": KafkaTimeoutError(), b"4": MessageSizeTooLargeError()})
    values = [b"1", b"2", b"never", b"4"]
    assert delivered(values, producer) == ([None, NOT_ACKNOWLEDGED, NOT_ACKNOWLEDGED, "refused_by_kafka"], True)


def test_once_a_frame_has_failed_nothing_younger_is_sent_over_that_connection() -> None:
    producer = FakeProducer({}, {b"1": KafkaTimeoutError()})
    delivered([b"1", b"2"], producer)
    assert producer._sender.sender_task.cancelled
    for harmless in (FakeProducer({}, {}), FakeProducer({}, {b"1": MessageSizeTooLargeError()})):
        delivered([b"1", b"2"], harmless)
        assert not harmless._sender.sender_task.cancelled


def test_what_fails_after_its_answer_is_nobodys_business(caplog: pytest.LogCaptureFixture) -> None:
    late: list[asyncio.Future[None]] = []

    class LateProducer(FakeProducer):
        async def send(self, topic: str, value: bytes, key: bytes) -> asyncio.Future[None]:
            late.append(asyncio.get_running_loop().create_future())
            return late[0]

    async def run() -> None:
        delivery: Any = KafkaDelivery("", "steps", ack_timeout_s=0.01, client_options={})
        delivery._producer, delivery.problem = LateProducer({}, {}), None
        assert (await delivery.deliver([AdmittedFrame(0, b"robot", b"1", 1)]))[0][0] == NOT_ACKNOWLEDGED
        late.pop().set_exception(KafkaTimeoutError())
        await asyncio.sleep(0)
        gc.collect()

    asyncio.run(run())
    assert not caplog.records


def test_a_right_that_is_refused_is_told_as_every_part_tells_it(caplog: pytest.LogCaptureFixture) -> None:
    delivered([b"1"], FakeProducer({}, {b"1": TopicAuthorizationFailedError()}))
    assert "broker_fault kind=authorization waits=what comes to the gateway reason=" in caplog.text


def test_a_broker_that_is_not_there_is_told_as_every_part_tells_it(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))  # and nobody listens
            address = f"127.0.0.1:{closed.getsockname()[1]}"
            delivery = KafkaDelivery(address, "steps", ack_timeout_s=10.0, client_options={})
            running = asyncio.create_task(delivery.run())
            async with asyncio.timeout(60):
                while "broker_fault kind=address" not in caplog.text:
                    await asyncio.sleep(0.01)
            running.cancel()
            await asyncio.wait([running])

    asyncio.run(run())
    assert "waits=what comes to the gateway" in caplog.text


def test_without_a_connection_nothing_is_acknowledged() -> None:
    async def run() -> None:
        delivery = KafkaDelivery("", "steps", ack_timeout_s=0.1, client_options={})
        ((reason, detail),) = await delivery.deliver([AdmittedFrame(0, b"robot", b"1", 1)])  # type: ignore[misc]
        assert (reason, detail) == (NOT_ACKNOWLEDGED, "not yet connected to Kafka")

    asyncio.run(run())
