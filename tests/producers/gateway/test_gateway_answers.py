import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import msgspec
import pytest

from springback.producers.contract.schema import frame_schema
from springback.producers.gateway.app import GatewayApp
from springback.producers.gateway.kafka_delivery import NOT_ACKNOWLEDGED
from tests.producers.gateway.gateway_checks import JSON, FakeDelivery, frame_of, gateway_without_kafka

TOKEN = "0123456789abcdef"


def talk(said: Callable[[aiohttp.ClientSession, FakeDelivery, GatewayApp], Awaitable[None]], **options: Any) -> None:
    async def run() -> None:
        delivery = FakeDelivery()
        async with asyncio.timeout(60), gateway_without_kafka(delivery, **options) as (client, app, _):
            await said(client, delivery, app)

    asyncio.run(run())


async def post(client: aiohttp.ClientSession, body: Any, headers: dict[str, str] = JSON) -> tuple[int, Any, Any]:
    async with client.post("/v1/frames", data=body, headers=headers) as answer:
        return answer.status, await answer.json(), answer.headers


def test_every_kind_of_body_arrives_as_it_was() -> None:
    async def said(client: aiohttp.ClientSession, delivery: FakeDelivery, app: GatewayApp) -> None:
        frames = [frame_of(f"robot-{i}", i) for i in range(4)]
        packed = msgspec.msgpack.encode(json.loads(frames[0]))
        bodies = [
            (frames[0], JSON, [frames[0]]),
            (b"[" + b",".join(frames) + b"]", JSON, frames),
            (b"\n".join(frames), {"Content-Type": "application/x-ndjson"}, frames),
            (gzip.compress(frames[1]), {**JSON, "Content-Encoding": "gzip"}, [frames[1]]),
            (packed, {"Content-Type": "application/msgpack"}, [packed]),
            (b"\x92" + packed + packed, {"Content-Type": "application/x-msgpack"}, [packed, packed]),
        ]
        for body, headers, wanted in bodies:
            delivery.taken.clear()
            status, answer, _ = await post(client, body, headers)
            assert (status, answer["accepted"], answer["refused"]) == (200, len(wanted), [])
            assert [frame.value for frame in delivery.taken] == wanted

    talk(said)


def test_refused_frames_are_told_one_by_one() -> None:
    async def said(client: aiohttp.ClientSession, delivery: FakeDelivery, app: GatewayApp) -> None:
        good = frame_of("robot-1", 0)
        delivery.say[b"robot-9"] = ("refused_by_kafka", "too large")
        lines = b"\n".join([good, b"{nonsense", frame_of("robot-9", 0), b"{}"])
        status, answer, _ = await post(client, lines, {"Content-Type": "application/x-ndjson"})
        assert (status, answer["accepted"]) == (207, 1)
        assert [(note["index"], note["reason"]) for note in answer["refused"]] == [
            (1, "not_json"), (3, answer["refused"][1]["reason"]), (2, "refused_by_kafka"),
        ]  # fmt: skip
        assert (await post(client, b"{}"))[0] == 422
        delivery.largest_record = 100
        status, answer, _ = await post(client, good)
        assert (status, answer["refused"][0]["reason"]) == (413, "frame_too_large")

    talk(said)


def test_what_kafka_did_not_acknowledge_is_told_and_may_be_sent_again() -> None:
    async def said(client: aiohttp.ClientSession, delivery: FakeDelivery, app: GatewayApp) -> None:
        delivery.say[b"robot-1"] = (NOT_ACKNOWLEDGED, "broker gone")
        body = b"[" + b",".join([frame_of("robot-0", 0), frame_of("robot-1", 0), b"{}"]) + b"]"
        status, answer, headers = await post(client, body)
        assert (status, answer["accepted"]) == (503, 1)
        assert int(headers["Retry-After"]) >= 1
        assert [note["index"] for note in answer["failed"]] == [1]
        assert [note["index"] for note in answer["refused"]] == [2]
        faulty = json.loads(frame_of("robot-1", 0)) | {"ends": [{"episode": 9}]}
        body = b"[" + json.dumps(faulty).encode() + b"," + json.dumps(faulty | {"producer": "robot-2"}).encode() + b"]"
        status, answer, _ = await post(client, body)
        assert ([note["index"] for note in answer["failed"]], [n["index"] for n in answer["faulty"]]) == ([0], [1])
        delivery.problem = "Kafka does not answer"
        status, answer, headers = await post(client, body)
        assert (status, answer["accepted"], answer["reason"]) == (503, 0, "unavailable")
        assert "Retry-After" in headers
        assert len(delivery.taken) == 2
        async with client.get("/readyz") as ready, client.get("/healthz") as alive:
            assert (ready.status, alive.status) == (503, 200)

    talk(said)


def test_a_full_queue_says_so_and_takes_nothing() -> None:
    async def said(client: aiohttp.ClientSession, delivery: FakeDelivery, app: GatewayApp) -> None:
        delivery.free.clear()
        body = frame_of("robot-1", 0)
        waiting = [asyncio.create_task(post(client, body)) for _ in range(3)]
        while app._budget.held < 3 * len(body):
            await asyncio.sleep(0.01)
        status, answer, headers = await post(client, body)
        assert (status, answer["accepted"], answer["reason"]) == (429, 0, "queue_full")
        assert headers["Retry-After"] == "1"
        delivery.free.set()
        assert [(await answer)[0] for answer in waiting] == [200] * 3
        assert app._budget.held == 0
        assert (await post(client, body))[0] == 200
        assert len(delivery.taken) == 4

    talk(said, most_pending_bytes=4 * len(frame_of("robot-1", 0)) - 1)


@pytest.mark.parametrize(
    ("body", "headers", "status", "reason"),
    [
        (b"{}", {"Content-Type": "text/plain"}, 415, "content_type"),
        (b"{}", {"Content-Type": "application/x-www-form-urlencoded"}, 415, "content_type"),
        (b"{}", {**JSON, "Content-Encoding": "br"}, 415, "content_encoding"),
        (b"x", {**JSON, "Content-Encoding": "gzip"}, 400, "not_gzip"),
        (b"[{]", JSON, 400, "not_an_array"),
        (b"", JSON, 400, "empty"),
        (b" " * 3000, JSON, 413, "body_too_large"),
        (gzip.compress(b" " * 3000), {**JSON, "Content-Encoding": "gzip"}, 413, "body_too_large"),
        (b"[1,2,3,4]", JSON, 413, "too_many_frames"),
    ],
    ids=["text", "form", "brotli", "no gzip", "no array", "nothing", "large", "large unpacked", "many"],
)
def test_a_request_that_cannot_be_taken_is_refused_whole(
    body: bytes, headers: dict[str, str], status: int, reason: str
) -> None:
    async def said(client: aiohttp.ClientSession, delivery: FakeDelivery, app: GatewayApp) -> None:
        found, answer, _ = await post(client, body, headers)
        assert (found, answer["reason"], answer["accepted"]) == (status, reason, 0)
        assert answer["detail"]
        assert not delivery.taken
        assert app._budget.held == 0

    talk(said, most_body_bytes=2000, most_frames=3)


def test_a_body_without_a_length_is_bounded_too() -> None:
    async def pieces() -> Any:
        for _ in range(30):
            yield b" " * 100

    async def said(client: aiohttp.ClientSession, delivery: FakeDelivery, app: GatewayApp) -> None:
        assert (await post(client, pieces()))[0] == 413

    talk(said, most_body_bytes=2000)


def test_without_the_token_only_health_is_told() -> None:
    async def said(client: aiohttp.ClientSession, delivery: FakeDelivery, app: GatewayApp) -> None:
        body = frame_of("robot-1", 0)
        wrong = [
            {},
            {"Authorization": f"Bearer {TOKEN}x"},
            {"Authorization": TOKEN},
            {"Authorization": "Bearer \udcff"},
        ]
        for headers in wrong[:3]:
            status, answer, more = await post(client, body, {**JSON, **headers})
            assert (status, answer["reason"], more["WWW-Authenticate"]) == (401, "unauthorized", "Bearer")
            assert TOKEN not in str(answer)
        for path, status in {"/metrics": 401, "/v1/schema": 401, "/healthz": 200, "/readyz": 200, "/x": 401}.items():
            async with client.get(path) as found:
                assert found.status == status, path
        assert not delivery.taken
        right = {**JSON, "Authorization": f"bearer {TOKEN}"}
        assert (await post(client, body, right))[0] == 200
        delivery.problem = "authentication: the broker at kafka-1:9092 does not admit the user 'gate'"
        for headers, told in (({}, False), (wrong[1], False), (right, True)):
            async with client.get("/readyz", headers=headers) as found:
                assert (found.status, "kafka-1" in await found.text()) == (503, told)

    talk(said, token=TOKEN)


def test_schema_metrics_and_wrong_paths() -> None:
    async def said(client: aiohttp.ClientSession, delivery: FakeDelivery, app: GatewayApp) -> None:
        await post(client, b"\n".join([frame_of("robot-1", 0), b"{"]), {"Content-Type": "application/jsonl"})
        async with client.get("/v1/schema") as answer:
            assert await answer.json(content_type=None) == frame_schema()
        async with client.get("/v1/frames") as answer:
            assert (answer.status, answer.headers["Allow"]) == (405, "POST")
            assert (await answer.json())["detail"] == "Method Not Allowed; this path takes POST"
        for _ in range(3):
            async with client.get("/secret/path") as answer:
                assert answer.status == 404
        async with client.get("/metrics") as answer:
            page = await answer.text()
        assert 'springback_gateway_frames_total{reason="",result="accepted"} 1.0' in page
        assert 'springback_gateway_frames_total{reason="not_json",result="refused"} 1.0' in page
        assert 'springback_gateway_requests_total{path="other",status="404"} 3.0' in page
        assert "springback_gateway_steps_total 1.0" in page
        assert "springback_gateway_kafka_up 1.0" in page
        assert "springback_gateway_spool" not in page  # a gauge of what is not there would be an alarm
        assert "secret" not in page

    talk(said)


def test_a_drain_answers_what_is_under_way() -> None:
    async def said(client: aiohttp.ClientSession, delivery: FakeDelivery, app: GatewayApp) -> None:
        delivery.free.clear()
        waiting = asyncio.create_task(post(client, frame_of("robot-1", 0)))
        while not app._budget.held:
            await asyncio.sleep(0.01)
        app.draining = True
        status, answer, headers = await post(client, frame_of("robot-1", 1))
        assert (status, answer["detail"]) == (503, "nothing was taken: the gateway is shutting down")
        assert headers["Connection"] == "close"
        delivery.free.set()
        assert (await waiting)[0] == 200

    talk(said)
