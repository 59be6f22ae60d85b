"""`springback dead-letters` on a broker, with a worker behind it: listed, shown, mended, sent once and counted once."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from springback.deploy import cli
from springback.producers.contract.codec import encode_json, encode_msgpack
from springback.sinks.background_reader import BackgroundReader
from springback.sinks.memory_sink import MemorySink
from springback.stream_processors.topics import DEAD_LETTER
from tests.stream_processors.conftest import until
from tests.stream_processors.frame_builders import frame_of_parts, header_of, nominal_rows

if TYPE_CHECKING:
    from tests.stream_processors.conftest import Stream


class Commands:
    """The commands as a user types them, in this process."""

    def __init__(self, stream: "Stream", capsys: pytest.CaptureFixture[str]) -> None:
        self._stream, self._capsys = stream, capsys

    def __call__(self, *arguments: str, code: int = 0) -> str:
        self._capsys.readouterr()
        options = ["--broker", self._stream.address, "--prefix", self._stream.prefix]
        ended = cli.main(["dead-letters", *arguments, *options])
        captured = self._capsys.readouterr()
        assert ended == code, captured.err
        return captured.out + captured.err

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json"))


def tasks(*episodes: tuple[str, float]) -> list[tuple[bytes, bytes]]:
    """A frame for each episode that is named with the progress of its second step."""
    messages = []
    for episode, progress in episodes:
        rows = nominal_rows(0, 3)
        rows[1]["progress"] = progress
        messages.append((b"robot-7", encode_msgpack(frame_of_parts([(header_of(episode=episode), rows, "success")]))))
    return messages


async def wait_for_letters(stream: "Stream", count: int) -> None:
    async def there() -> bool:
        return len(await stream.read(DEAD_LETTER)) >= count

    await until(there, f"{count} dead letters")


async def wait_for_episodes(stream: "Stream", *episodes: str) -> None:
    async def there() -> bool:
        readings = await stream.readings("episode-summaries")
        return {reading.key.episode for reading in readings.values()} >= set(episodes)  # type: ignore[union-attr]

    await until(there, f"episodes {episodes} have ended")


def try_all(stream: "Stream", capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    worker = stream.start()
    worker.wait_until_ready()
    springback = Commands(stream, capsys)
    assert springback("list") == "No dead letters.\n"
    keyless = [(b"", data) for _, data in tasks(("key-1", 0.1), ("key-2", 0.1))]
    broken = encode_json(frame_of_parts([(header_of(episode="broken"), nominal_rows(0, 3), "success")]))
    messages = [*keyless, (b"robot-\x1b[2J7", broken.replace(b'"schema_version":1', b'"schema_version":9'))]
    messages += tasks(("row", 10.0))
    asyncio.run(stream.send(messages))
    asyncio.run(wait_for_letters(stream, 4))

    # Listed and shown.
    groups = {group["reason"]: group for group in springback.json("list")}
    assert {reason: group["letters"] for reason, group in groups.items()} == {
        "wrong_key": 2,
        "unsupported_schema_version": 1,
        "out_of_range": 1,
    }
    assert groups["wrong_key"]["producers"] == {"robot-7": 2}
    listed = springback("list", "--reason", "out_of_range")
    assert "out_of_range: 1; producers robot-7 (1)" in listed
    assert "a percentage is to be divided by 100" in listed
    row, broken_at = (groups[reason]["newest"]["position"] for reason in ("out_of_range", "unsupported_schema_version"))
    shown = springback.json("show", row)
    assert (shown["holds"], shown["sent_again"], shown["value"]["progress"]) == ("part", False, 10.0)
    assert "producer    robot-\\u001b[2J7\n" in springback(
        "show", broken_at
    )  # no text from outside steers the terminal
    assert "no dead letter at 0:9999" in springback("show", "0:9999", code=2)

    # A dry run sends nothing; a run sends once.
    plan = springback("resend", "--reason", "wrong_key")
    assert plan.count("to be sent, 3 of 3 steps would count") == 2
    assert "Nothing was sent: 2 messages would be" in plan
    assert len(asyncio.run(stream.read("steps"))) == 4
    assert "Sent 2 messages again; left out 0." in springback("resend", "--reason", "wrong_key", "--yes")
    again = springback("resend", "--reason", "wrong_key", "--yes")
    assert again.count("left out, was sent again before") == 2
    assert "Sent 0 messages again; left out 2." in again
    sent = [record for record in asyncio.run(stream.read("steps")) if "sent-again-of" in record.headers]
    assert [record.key for record in sent] == [b"robot-7", b"robot-7"]
    asyncio.run(wait_for_episodes(stream, "key-1", "key-2"))

    # What would be refused again is not sent; mended it is.
    assert "it would be refused again (unsupported_schema_version" in springback("resend", broken_at, "--yes")
    file = folder / "frame.json"
    springback("show", broken_at, "--out", str(file))
    file.write_bytes(file.read_bytes().replace(b'"schema_version":9', b'"schema_version":1'))
    assert "Sent 1 messages again" in springback("resend", broken_at, "--edit", str(file), "--yes")
    asyncio.run(wait_for_episodes(stream, "broken"))

    # A row that comes too late is told, and left out.
    springback("show", row, "--out", str(folder / "row.json"))
    late = springback("resend", row, "--edit", str(folder / "row.json"), "--yes")
    assert "left out, 0 of 3 steps would count" in late
    assert "after the end of their episode" in late
    assert springback.json("list", "--reason", "wrong_key")[0]["sent_again"] == 2
    assert counted(stream) == 4
    assert worker.end() == 0, worker.log()


def counted(stream: "Stream") -> int:
    """How many dead letters a sink is told of: notes of what was sent again are none."""
    sink = MemorySink()
    with BackgroundReader(stream.address, [sink], prefix=stream.prefix):
        return len(sink.dead_letters)


@pytest.mark.broker
def test_on_the_embedded_broker(embedded_stream: "Stream", capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    try_all(embedded_stream, capsys, tmp_path)


@pytest.mark.kafka
def test_on_kafka(kafka_stream: "Stream", capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    try_all(kafka_stream, capsys, tmp_path)
