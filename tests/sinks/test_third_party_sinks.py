"""Sinks of third parties: found by entry points, made of options, and blamed by name when they fail."""

import asyncio
from collections.abc import Awaitable, Callable
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from springback.sinks.errors import SinkError, SinkOptionError, SinkUnavailableError
from springback.sinks.exporter import export_readings
from springback.sinks.memory_sink import MemorySink
from springback.sinks.sink import DeadLetter
from springback.sinks.sink_runner import ReadingTopics
from springback.sinks.third_party import SINK_GROUP, ThirdPartySink, make_sinks, named_sinks
from springback.stream_processors.topics import declare_topics

Make = Callable[..., Any]


class FolderSink(MemorySink):
    def __init__(self, path: str = ".") -> None:
        super().__init__()
        self.path = path


NOT_CALLABLE = "a text"


def no_sink() -> str:
    return "nothing"


class Nameless(FolderSink):
    name = None  # type: ignore[assignment]


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, f"{__name__}:{value}", SINK_GROUP)


def test_ours_is_listed_and_third_parties_beside_it_and_why_one_is_left_out() -> None:
    found = named_sinks(
        [
            entry("folder", "FolderSink"),
            entry("text", "NOT_CALLABLE"),
            entry("missing", "Nobody"),
            entry("prometheus", "FolderSink"),
        ]
    )
    assert found.distributions == {"prometheus": "springback", "folder": "an unknown distribution"}
    told = {fault.name: fault.reason for fault in found.faults}
    assert "it is a str, expected a class or function" in told["text"]
    assert "cannot be loaded (AttributeError" in told["missing"]
    assert "springback has a sink 'prometheus' already" in told["prometheus"]


def test_a_sink_is_made_of_its_options() -> None:
    (made,) = make_sinks(["folder", "prometheus", "folder"], ["folder.path=/data=1"], [entry("folder", "FolderSink")])
    assert isinstance(made, ThirdPartySink)
    assert (made.name, made._sink.path) == ("folder", "/data=1")


@pytest.mark.parametrize(
    ("names", "options", "told"),
    [
        (["nobody"], [], r"--sink nobody: there is no such sink; there are prometheus, folder, nameless, nothing"),
        (["missing"], [], r"--sink missing: missing of .* is left out: .* cannot be loaded"),
        (["folder"], ["folder.colour=red"], r"cannot be made with the options .*TypeError.*colour.*folder.KEY=VALUE"),
        (["folder"], ["path=x"], r"expected NAME.KEY=VALUE, with NAME one of folder"),
        ([], ["folder.path=x"], r"with NAME one of none"),
        (["nothing"], [], r"gives a str without name, write, write_dead_letter, flush, close, expected a `Sink`"),
        (["nameless"], [], r"gives a Nameless without name, expected a `Sink`"),
    ],
)
def test_what_cannot_be_made_says_which_and_what_to_do(names: list[str], options: list[str], told: str) -> None:
    entries = [entry("folder", "FolderSink"), entry("nothing", "no_sink"), entry("missing", "Nobody")]
    entries.append(entry("nameless", "Nameless"))
    with pytest.raises(SinkOptionError, match=told):
        make_sinks(names, options, entries)


def test_a_sink_that_fails_is_named_and_one_that_is_away_is_tried_again(status: Make) -> None:
    class Failing(MemorySink):
        def write_dead_letter(self, letter: DeadLetter) -> None:
            raise SinkUnavailableError

        def flush(self) -> None:
            message = "the disk"
            raise OSError(message)

    sink = ThirdPartySink("folder", "acme", Failing())
    sink.write(status())
    with pytest.raises(SinkUnavailableError):
        sink.write_dead_letter(DeadLetter("nan", b"1"))
    with pytest.raises(SinkError, match=r"'folder' of acme failed \(OSError: the disk\)"):
        sink.flush()


@pytest.mark.broker
def test_readings_reach_it_beside_the_metrics_page_which_waits_for_no_other(
    embedded_broker: str,
    prefix: str,
    status: Make,
    send: Callable[..., Awaitable[None]],
    until: Callable[[Callable[[], Awaitable[bool]]], Awaitable[None]],
) -> None:
    class Away(MemorySink):
        def write(self, reading: Any) -> None:
            message = "away"
            raise SinkUnavailableError(message)

    there, away = MemorySink(), Away()
    pages: list[str] = []

    async def scenario() -> None:
        await declare_topics(embedded_broker, prefix=prefix, partitions=1)
        await send(embedded_broker, ReadingTopics.of_prefix(prefix).statuses, [status()])
        stop = asyncio.Event()
        sinks = [ThirdPartySink("there", "acme", there), ThirdPartySink("away", "acme", away)]
        exporting = asyncio.ensure_future(
            export_readings(embedded_broker, stop, port=0, prefix=prefix, more_sinks=sinks, on_ready=pages.append)
        )

        async def reached() -> bool:
            return bool(pages) and "robot-7" in there.statuses

        await until(reached)
        stop.set()
        await exporting

    asyncio.run(scenario())
