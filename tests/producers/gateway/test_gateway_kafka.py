import asyncio
import contextlib
import gzip
import random
import uuid
from collections import Counter
from collections.abc import Callable

import aiohttp
import aiokafka  # type: ignore[import-untyped]
import pytest

from springback.deploy.apache_kafka import ApacheKafka
from springback.producers.gateway.request_bodies import RECORD_OVERHEAD
from springback.stream_processors.topics import declare_topics
from tests.producers.gateway.gateway_checks import JSON, frame_of, gateway_on, stop_gateway, until_ready

LINES = {"Content-Type": "application/x-ndjson"}


async def topic_on(address: str) -> str:
    prefix = f"t{uuid.uuid4().hex[:8]}."
    await declare_topics(address, prefix=prefix)
    return f"{prefix}steps"


async def all_in(address: str, topic: str) -> Counter[tuple[bytes, bytes]]:
    """Every record of the topic: its key and its value."""
    consumer = aiokafka.AIOKafkaConsumer(
        topic, bootstrap_servers=address, auto_offset_reset="earliest", enable_auto_commit=False
    )
    found: Counter[tuple[bytes, bytes]] = Counter()
    async with consumer:
        ends = await consumer.end_offsets(consumer.assignment())
        while [place for place, end in ends.items() if await consumer.position(place) < end]:
            for records in (await consumer.getmany(timeout_ms=500)).values():
                found.update((record.key, record.value) for record in records)
    return found


class Client:
    """Sends requests one after the other, and keeps what was said of each frame."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.random = random.Random(number)
        self.accepted: Counter[tuple[bytes, bytes]] = Counter()
        self.failed: Counter[tuple[bytes, bytes]] = Counter()
        self.refused = 0
        self.expected_refusals = 0
        self.statuses: Counter[int] = Counter()
        self.step = 0

    async def send_until(self, http: aiohttp.ClientSession, done: Callable[[], bool]) -> None:
        while not done():
            await self.send_one(http)

    async def send_one(self, http: aiohttp.ClientSession) -> None:
        frames: list[tuple[bytes, bytes] | None] = []
        lines = []
        for _ in range(self.random.randint(1, 8)):
            self.step += 1
            if self.random.random() < 0.15:
                lines.append(self.random.choice([b"{}", b"nonsense", b'{"schema_version": 1}', b"[1]", b"\xff\xfe"]))
                frames.append(None)
                continue
            producer = f"robot-{self.number}-{self.random.randint(0, 3)}"
            lines.append(frame_of(producer, self.step))
            frames.append((producer.encode(), lines[-1]))
        body, headers = b"\n".join(lines), LINES
        if self.random.random() < 0.3:
            body, headers = gzip.compress(body), {**LINES, "Content-Encoding": "gzip"}
        async with http.post("/v1/frames", data=body, headers=headers) as answer:
            self.statuses[answer.status] += 1
            said = await answer.json()
            if answer.status in (503, 429):
                assert "Retry-After" in answer.headers
        if "reason" in said:  # nothing was taken
            assert said["accepted"] == 0
            return
        refused = {note["index"] for note in said["refused"]}
        failed = {note["index"] for note in said["failed"]}
        self.expected_refusals += sum(frame is None for frame in frames)
        self.refused += len(refused)
        assert refused == {place for place, frame in enumerate(frames) if frame is None}
        for place, frame in enumerate(frames):
            if frame is not None:
                (self.failed if place in failed else self.accepted)[frame] += 1
        assert said["accepted"] == len(frames) - len(refused) - len(failed)


async def load(address: str, requests: int) -> None:
    topic = await topic_on(address)
    async with gateway_on(address, topic) as http:
        await until_ready(http)
        clients = [Client(number) for number in range(24)]
        for client in clients:
            client.statuses[0] = 0
        await asyncio.gather(
            *[client.send_until(http, lambda c=client: sum(c.statuses.values()) >= requests) for client in clients]  # type: ignore[misc]
        )
        async with http.get("/metrics") as page:
            metrics = await page.text()
    accepted: Counter[tuple[bytes, bytes]] = sum((client.accepted for client in clients), Counter())
    statuses: Counter[int] = sum((client.statuses for client in clients), Counter())
    assert set(statuses) - {0} <= {200, 207, 422}
    assert accepted.total() > requests * len(clients)
    assert await all_in(address, topic) == accepted
    assert f'{{reason="",result="accepted"}} {accepted.total()}.0' in metrics


@pytest.mark.broker
def test_accepted_is_in_the_embedded_broker_exactly(embedded_broker: str) -> None:
    asyncio.run(load(embedded_broker, requests=15))


@pytest.mark.kafka
def test_accepted_is_in_kafka_exactly(apache_kafka: str) -> None:
    asyncio.run(load(apache_kafka, requests=15))


async def largest(address: str) -> None:
    topic = await topic_on(address)
    async with gateway_on(address, topic) as http:
        await until_ready(http)
        async with http.get("/readyz") as ready:
            most = (await ready.json())["largest_record_bytes"]
        assert most == 1024 * 1024
        # Unknown fields are ignored, so one makes the frame of any size.
        bare = frame_of("robot-1", 0)[:-1] + b',"more":"'
        fill = most - RECORD_OVERHEAD - len("robot-1") - len(bare) - 2
        statuses = []
        for size in (fill, fill + 1):
            async with http.post("/v1/frames", data=bare + b"x" * size + b'"}', headers=JSON) as answer:
                statuses.append((answer.status, (await answer.json())["accepted"]))
        assert statuses == [(200, 1), (413, 0)]
    assert [len(value) for _, value in await all_in(address, topic)] == [len(bare) + fill + 2]


@pytest.mark.broker
def test_the_largest_frame_is_what_the_embedded_brokers_topic_says(embedded_broker: str) -> None:
    asyncio.run(largest(embedded_broker))


@pytest.mark.kafka
def test_the_largest_frame_is_what_the_topic_takes(apache_kafka: str) -> None:
    asyncio.run(largest(apache_kafka))


@pytest.mark.broker
def test_a_stop_in_the_midst_answers_what_was_taken(embedded_broker: str) -> None:
    async def run() -> None:
        topic = await topic_on(embedded_broker)
        clients = [Client(number) for number in range(16)]

        async def send_to_the_end(client: Client, http: aiohttp.ClientSession) -> None:
            with contextlib.suppress(aiohttp.ClientConnectionError):  # it listens no more
                await client.send_until(http, lambda: client.statuses[503] > 0)

        async with gateway_on(embedded_broker, topic) as http:
            await until_ready(http)
            sending = [asyncio.create_task(send_to_the_end(client, http)) for client in clients]
            while sum(client.statuses[200] for client in clients) < 50:
                await asyncio.sleep(0.01)
            stop_gateway(http)
            await asyncio.gather(*sending)
        accepted: Counter[tuple[bytes, bytes]] = sum((client.accepted for client in clients), Counter())
        assert await all_in(embedded_broker, topic) == accepted

    asyncio.run(run())


def test_without_kafka_it_starts_and_says_503() -> None:
    async def run() -> None:
        async with gateway_on("127.0.0.1:1", "steps", ack_timeout_s=1.0) as http:
            async with http.post("/v1/frames", data=frame_of("robot-1", 0), headers=JSON) as answer:
                assert answer.status == 503
                assert (await answer.json())["reason"] == "unavailable"
                assert "Retry-After" in answer.headers
            async with http.get("/healthz") as alive:
                assert alive.status == 200

    asyncio.run(run())


@pytest.mark.kafka
def test_a_broker_that_is_killed_costs_503s_and_no_accepted_frame(kafka_process: ApacheKafka) -> None:
    async def run() -> None:
        topic = await topic_on(kafka_process.address)
        async with gateway_on(kafka_process.address, topic, ack_timeout_s=3.0) as http:
            await until_ready(http)
            clients = [Client(number) for number in range(8)]
            over = False
            sending = [asyncio.create_task(client.send_until(http, lambda: over)) for client in clients]

            async def seen(status: int, more: int) -> None:
                before = sum(client.statuses[status] for client in clients)
                async with asyncio.timeout(90):
                    while sum(client.statuses[status] for client in clients) < before + more:
                        for task in sending:
                            assert not task.done(), task.exception()
                        await asyncio.sleep(0.05)

            await seen(200, 40)
            await asyncio.to_thread(kafka_process.kill)
            try:
                await seen(503, 20)
            finally:
                await asyncio.to_thread(kafka_process.start)
            await until_ready(http)
            await seen(200, 40)
            over = True
            await asyncio.gather(*sending)
        accepted: Counter[tuple[bytes, bytes]] = sum((client.accepted for client in clients), Counter())
        failed: Counter[tuple[bytes, bytes]] = sum((client.failed for client in clients), Counter())
        found = await all_in(kafka_process.address, topic)
        assert not accepted - found  # all that was accepted is there
        # What else is there was told as not acknowledged: it may have arrived, once.
        assert not (found - accepted) - failed

    asyncio.run(run())
