import asyncio
import time
import uuid

import pytest
from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]

from springback.deploy.broker_process import free_port
from springback.producers.contract.codec import decode_frame
from springback.producers.contract.frame import StepFrame
from springback.producers.emitter.kafka_publisher import KafkaPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.errors import FrameRefusedError, PublishError
from tests.producers.emitter.emitter_waiting import until


async def _read(address: str, topic: str, steps: int) -> list[tuple[bytes, StepFrame]]:
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=address, auto_offset_reset="earliest")
    await consumer.start()
    try:
        read: list[tuple[bytes, StepFrame]] = []
        while sum(frame.n_steps for _, frame in read) < steps:
            message = await asyncio.wait_for(consumer.getone(), 60.0)
            read.append((message.key, decode_frame(message.value)))
        return read
    finally:
        await consumer.stop()


@pytest.mark.broker
def test_what_is_emitted_is_read_back_in_order(embedded_broker: str) -> None:
    topic = f"steps-{uuid.uuid4()}"
    with StepEmitter(KafkaPublisher(embedded_broker, topic), producer="robot") as emitter:
        for number in range(3):
            episode = emitter.begin_episode(episode=str(number), family="f")
            for _ in range(100):
                episode.step(progress=0.5, mode="navigate")
            episode.end("success")
        assert emitter.flush(60.0)
    assert emitter.report.steps_sent == 300
    read = asyncio.run(_read(embedded_broker, topic, 300))
    assert {key for key, _ in read} == {b"robot"}
    seen = [
        (frame.episodes[place].episode, step)
        for _, frame in read
        if frame.n_steps  # the others hold an end alone
        for place, step in zip(frame.steps["episode"], frame.steps["step"])  # type: ignore[arg-type]
    ]
    assert seen == [(str(number), step) for number in range(3) for step in range(100)]
    assert sum(len(frame.ends) for _, frame in read) == 3


@pytest.mark.broker
def test_frame_that_is_too_large_is_refused(embedded_broker: str) -> None:
    publisher = KafkaPublisher(embedded_broker, f"steps-{uuid.uuid4()}", max_request_size=1000)
    answers: list[Exception | None] = []
    publisher.publish(b"robot", b"x" * 2000, answers.append)
    publisher.publish(b"robot", b"x", answers.append)
    publisher.flush(60.0)
    publisher.close()
    assert [type(answer) for answer in answers] == [FrameRefusedError, type(None)]


@pytest.mark.broker
def test_buffer_is_bounded(embedded_broker: str) -> None:
    publisher = KafkaPublisher(embedded_broker, f"steps-{uuid.uuid4()}", buffer_bytes=100)
    answers: list[Exception | None] = []
    publisher.publish(b"robot", b"x" * 101, answers.append)
    assert isinstance(answers[0], PublishError)
    publisher.publish(b"robot", b"x" * 100, answers.append)
    publisher.flush(60.0)
    publisher.publish(b"robot", b"x" * 100, answers.append)
    publisher.flush(60.0)
    publisher.close()
    assert answers[1:] == [None, None]


@pytest.mark.broker
def test_whatever_the_client_fails_on_is_told_and_takes_no_room(
    embedded_broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(options: object) -> None:
        message = "no certificate there"
        raise FileNotFoundError(message)

    monkeypatch.setattr("springback.producers.emitter.kafka_publisher._connect", connect)
    publisher = KafkaPublisher(embedded_broker, buffer_bytes=100)
    answers: list[Exception | None] = []
    for _ in range(2):
        publisher.publish(b"robot", b"x" * 100, answers.append)
    publisher.close()
    assert [type(answer) for answer in answers] == [PublishError, PublishError]
    assert all("no certificate there" in str(answer) for answer in answers)


def test_absent_broker_keeps_nobody_waiting() -> None:
    began = time.monotonic()
    publisher = KafkaPublisher(f"127.0.0.1:{free_port()}", connect_timeout_s=0.2)
    with StepEmitter(publisher, producer="robot", linger_s=0.0) as emitter:
        episode = emitter.begin_episode(episode="1", family="f")
        episode.step(progress=0.5)
        assert time.monotonic() - began < 30.0
        until(lambda: emitter.report.last_error is not None)
        assert not emitter.flush(0.1)
        assert "address: no broker can be reached" in str(emitter.report.last_error)
        emitter.close(timeout_s=0.1)
    assert emitter.report.steps_dropped == 1


def test_option_that_does_not_exist_is_named_and_no_secret_is_shown() -> None:
    with pytest.raises(ValueError, match="sasl_plain_pasword") as caught:
        KafkaPublisher("127.0.0.1:1", sasl_plain_pasword="hunter2")
    assert "hunter2" not in str(caught.value)
