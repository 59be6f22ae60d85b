"""A whole worker on a broker: the stream's results are the offline run's, and nothing that arrives stops it."""

import asyncio
import json
import math
import urllib.request
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from springback.stream_processors.resilience.readings import AgentStatus, EpisodeSummary, decode_reading
from springback.stream_processors.topics import DEAD_LETTER, STATUS, SUMMARIES
from tests.stream_processors.conftest import DEADLINE_S, until

if TYPE_CHECKING:
    from tests.stream_processors.conftest import Recorded, Stream


@pytest.mark.broker
def test_streamed_is_offline_on_the_embedded_broker(embedded_stream: "Stream", recorded: "Recorded") -> None:
    assert streamed_differences(embedded_stream, recorded) == []


@pytest.mark.kafka
def test_streamed_is_offline_on_a_real_kafka(kafka_stream: "Stream", recorded: "Recorded") -> None:
    assert streamed_differences(kafka_stream, recorded) == []


def streamed_differences(stream: "Stream", recorded: "Recorded") -> list[str]:
    stream.freeze(recorded)
    worker = stream.start()
    health = worker.wait_until_ready()

    async def scenario() -> list[str]:
        await stream.send_frames(recorded.frames)
        await stream.wait_for_episodes(recorded)
        return await stream.differences(recorded)

    differences = asyncio.run(scenario())
    report = ask(health + "ready")
    assert report["ready"]
    assert report["stages"]["track_steps"]["events"] == len(recorded.frames)
    assert worker.end() == 0, worker.log()
    assert "level=error logger=stream_processors" not in worker.log()
    return differences


def ask(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url, timeout=DEADLINE_S) as answer:
        return dict(json.load(answer))


def frame(agent: str, steps: range, session: str = "s1", outcome: str | None = None, **columns: list[Any]) -> Any:
    """A frame as a plain script would make it."""
    return {
        "schema_version": 1,
        "producer": agent,
        "session": session,
        "episodes": [{"agent": agent, "episode": "1", "family": "navigation"}],
        "steps": {
            "episode": [0] * len(steps),
            "step": list(steps),
            "progress": [step / 100 for step in steps],
            **columns,
        },
        "ends": [] if outcome is None else [{"episode": 0, "outcome": outcome}],
    }


def messages_of_every_kind() -> list[tuple[bytes, bytes]]:
    plain, packed = json.dumps, msgspec.msgpack.encode
    not_a_number = frame("nan", range(3), progress=[0.0, math.nan, 0.02])
    return [
        (b"garbage", b"\x00\xff nothing that anyone can read"),
        (b"garbage", b""),
        (b"plain", plain(frame("plain", range(5))).encode()),
        (b"nan", packed(not_a_number)),
        *[(b"twice", packed(frame("twice", range(5))))] * 2,
        (b"late", packed(frame("late", range(5, 10)))),
        (b"late", packed(frame("late", range(5)))),
        (b"reboot", packed(frame("reboot", range(5), session="before"))),
        (b"reboot", packed(frame("reboot", range(3), session="after"))),
        (b"keyless", packed(frame("whose", range(5)))),
        (b"good", packed(frame("good", range(5), outcome="success"))),
    ]


@pytest.mark.broker
def test_whatever_arrives_the_worker_goes_on(embedded_stream: "Stream") -> None:
    worker = embedded_stream.start()
    worker.wait_until_ready()

    async def scenario() -> tuple[dict[str, AgentStatus], list[Any], dict[Any, Any]]:
        await embedded_stream.send(messages_of_every_kind())
        await embedded_stream.send([(b"last", json.dumps(frame("last", range(2), outcome="failure")).encode())])

        async def latest() -> dict[str, AgentStatus]:
            found = [decode_reading(record.value) for record in await embedded_stream.read(STATUS)]
            return {status.agent: status for status in found if isinstance(status, AgentStatus)}

        async def done() -> bool:
            counts = {agent: status.counts for agent, status in (await latest()).items()}
            return {"plain", "nan", "twice", "late", "reboot", "good", "last"} <= counts.keys() and (
                counts["twice"].duplicate_steps == counts["late"].overtaken_steps == counts["reboot"].steps - 3 == 5
            )

        await until(done, "every agent's status")
        return await latest(), await embedded_stream.read(DEAD_LETTER), await embedded_stream.readings(SUMMARIES)

    statuses, dead, summaries = asyncio.run(scenario())
    assert {agent: status.counts.steps for agent, status in statuses.items()} == {
        "plain": 5, "nan": 2, "twice": 5, "late": 5, "reboot": 8, "good": 5, "last": 2,
    }  # fmt: skip
    ends = [summary for summary in summaries.values() if isinstance(summary, EpisodeSummary)]
    assert {(summary.key.agent, summary.key.session): summary.outcome for summary in ends} == {
        ("reboot", "before"): "aborted", ("good", "s1"): "success", ("last", "s1"): "failure",
    }  # fmt: skip
    assert len(dead) == 5
    reasons = {record.key: record.headers["reason"] for record in dead if record.key != b"garbage"}
    assert reasons == {b"nan": b"not_finite", b"late": b"overtaken", b"keyless": b"wrong_key"}
    whole = [record for record in dead if record.key == b"garbage"]
    assert {record.value for record in whole} == {b"\x00\xff nothing that anyone can read", b""}
    assert {name for record in dead for name in record.headers} == {"reason", "topic", "partition", "offset", "detail"}
    (row,) = [record for record in dead if record.key == b"nan"]
    assert json.loads(row.value)["step"] == 1
    assert row.headers["topic"] == (embedded_stream.prefix + "steps").encode()
    assert worker.end() == 0, worker.log()
