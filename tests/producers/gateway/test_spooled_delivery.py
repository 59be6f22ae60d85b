"""A gateway with a spool takes frames while Kafka is away, and says of none that it has it where it has not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.errors import FrameRefusedError, PublishError, SpoolInUseError
from springback.producers.gateway.kafka_delivery import NOT_ACKNOWLEDGED
from springback.producers.gateway.request_bodies import AdmittedFrame
from springback.producers.gateway.spooled_delivery import SpooledDelivery
from tests.producers.gateway.gateway_checks import JSON, frame_of, gateway_without_kafka


async def ended(running: asyncio.Task[None]) -> None:
    running.cancel()
    await asyncio.wait([running])


def test_a_request_is_answered_from_the_disk_while_kafka_is_away(tmp_path: Path) -> None:
    publisher = MemoryPublisher()
    publisher.failure = PublishError("Kafka is away")

    async def run() -> None:
        delivery = SpooledDelivery(publisher, tmp_path, ack_timeout_s=60.0)
        running = asyncio.create_task(delivery.run())
        async with gateway_without_kafka(delivery) as (client, _, _):
            async with client.post("/v1/frames", data=frame_of("r7", 0), headers=JSON) as answer:
                assert (answer.status, (await answer.json())["accepted"]) == (200, 1)
            assert delivery.spool_report is not None
            assert (delivery.spool_report.frames, delivery.kafka_up) == (1, False)
            async with client.get("/metrics") as page:
                shown = await page.text()
            assert "springback_gateway_spool_frames 1.0" in shown
            assert "springback_gateway_spool_writable 1.0" in shown
            assert "springback_gateway_kafka_up 0.0" in shown
            with pytest.raises(SpoolInUseError):
                SpooledDelivery(publisher, tmp_path, ack_timeout_s=1.0)
        await ended(running)

    asyncio.run(run())
    assert publisher.published == []
    later = MemoryPublisher()

    async def run_again() -> None:
        delivery = SpooledDelivery(later, tmp_path, ack_timeout_s=60.0)
        running = asyncio.create_task(delivery.run())
        assert await delivery.deliver([AdmittedFrame(0, b"r7", frame_of("r7", 1), 1)]) == [None]
        assert delivery.kafka_up
        await ended(running)

    asyncio.run(run_again())
    assert later.published == [(b"r7", frame_of("r7", 0)), (b"r7", frame_of("r7", 1))]


def test_what_neither_takes_is_said_of_each_and_nothing_passes_it(tmp_path: Path) -> None:
    publisher = MemoryPublisher()
    publisher.failure = PublishError("Kafka is away")
    (tmp_path / "file").write_text("")

    async def run() -> list[str | None]:
        delivery = SpooledDelivery(publisher, tmp_path / "file", ack_timeout_s=0.2)
        running = asyncio.create_task(delivery.run())
        frames = [AdmittedFrame(place, b"r7", b"x", 0) for place in range(400)]
        results = await delivery.deliver(frames)
        await ended(running)
        return [None if result is None else result[0] for result in results]

    assert asyncio.run(run()) == [NOT_ACKNOWLEDGED] * 400


def test_what_kafka_refuses_at_once_is_refused(tmp_path: Path) -> None:
    publisher = MemoryPublisher()
    publisher.failure = FrameRefusedError("too large")

    async def run() -> list[tuple[str, str] | None]:
        delivery = SpooledDelivery(publisher, tmp_path, ack_timeout_s=60.0)
        running = asyncio.create_task(delivery.run())
        results = await delivery.deliver([AdmittedFrame(0, b"r7", b"x", 0)])
        await ended(running)
        return results

    assert asyncio.run(run()) == [("refused_by_kafka", "too large")]
