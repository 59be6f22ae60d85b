from collections.abc import Callable
from typing import Any

from springback.sinks.memory_sink import MemorySink
from springback.sinks.sink import DeadLetter, Sink

Make = Callable[..., Any]


def test_repetitions_are_dropped_and_the_first_is_kept(window: Make, summary: Make) -> None:
    sink = MemorySink()
    opened = window(state="open", recovery_cost=0.5)
    for reading in (opened, window(), window(recovery_cost=9.0), summary(), summary(steps=99), window(number=1)):
        sink.write(reading)
    sink.write_dead_letter(DeadLetter("late", b"1"))
    sink.write_dead_letter(DeadLetter("late", b"1"))
    assert sink.windows == [opened, window(), window(number=1)]
    assert sink.closed_windows == [window(), window(number=1)]
    assert sink.summaries == [summary()]
    assert sink.dead_letters == [DeadLetter("late", b"1")]


def test_the_latest_of_a_family_is_kept(family: Make) -> None:
    sink = MemorySink()
    for reading in (family(sequence=1), family(sequence=3), family(sequence=2), family(version="1", sequence=1)):
        sink.write(reading)
    assert [reading.sequence for reading in sink.families.values()] == [3, 1]
    assert sink.families["navigation", "default", "0"] == family(sequence=3)


def test_beginnings_are_kept_once(begun: Make) -> None:
    sink = MemorySink()
    for reading in (begun(), begun(time_s=99.0), begun(episode="2")):
        sink.write(reading)
    assert sink.begun == [begun(), begun(episode="2")]


def test_the_latest_status_of_an_agent_is_kept(status: Make) -> None:
    sink: Sink = MemorySink()
    for seen_s in (1000.0, 1002.0, 1001.0):
        sink.write(status(seen_s=seen_s))
    sink.flush()
    sink.close()
    assert isinstance(sink, MemorySink)
    assert sink.statuses == {"robot-7": status(seen_s=1002.0)}
