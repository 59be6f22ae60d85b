"""The exact protocol between batches: silence, stalled partitions, and a topic that was made anew."""

import pytest

from springback.stream_processors.errors import StateAheadError
from tests.stream_processors.fake_engine import FakeEngine, run, stage_on, ticks, values


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


def test_silence_is_counted_from_when_the_partition_was_read_to_its_end(engine: FakeEngine) -> None:
    engine.append(0, b"k", b"x")
    run(stage_on(engine), engine.read(0))
    engine.now += 3600  # the worker was down
    restarted = stage_on(engine)
    ticks(engine, restarted, 10)
    assert values(engine, "idle") == []
    ticks(engine, restarted, 2)
    assert values(engine, "idle") == [b""]
    ticks(engine, restarted, 30)
    assert values(engine, "idle") == [b""]


def test_no_time_passes_while_the_broker_is_away_or_there_is_more_to_read(engine: FakeEngine) -> None:
    engine.append(0, b"k", b"x")
    stage = stage_on(engine)
    run(stage, engine.read(0))
    engine.fail_ends = True
    ticks(engine, stage, 60)
    engine.fail_ends = False
    engine.append(0, b"other", b"x")
    ticks(engine, stage, 60)
    assert values(engine, "idle") == []


def test_a_partition_that_stalls_is_read_again(engine: FakeEngine) -> None:
    stage = stage_on(engine)
    engine.append(0, b"k", b"x")
    engine.read(0)  # lost on its way
    ticks(engine, stage, 7)
    assert engine.seeks == [(0, 0)]
    assert run(stage, engine.read(0)) == [0]


def test_an_end_that_the_broker_gives_short_stops_nothing(engine: FakeEngine) -> None:
    stage = stage_on(engine)
    for _ in range(3):
        engine.append(0, b"k", b"x")
    run(stage, engine.read(0))
    engine.ends_short_by = 1
    ticks(engine, stage, 30)
    assert values(engine, "idle") == [b""]
    assert engine.seeks == []


def test_a_broker_that_is_too_busy_to_bring_the_last_message_is_asked_again(engine: FakeEngine) -> None:
    stage = stage_on(engine)
    for _ in range(3):
        engine.append(0, b"k", b"x")
    run(stage, engine.read(0))
    engine.ends_short_by, engine.silences = 2, 15
    ticks(engine, stage, 40)
    assert values(engine, "idle") == [b""]
    assert (engine.silences, engine.seeks) == (0, [])


def test_a_log_that_has_lost_its_last_message_for_good_is_an_error(engine: FakeEngine) -> None:
    engine.append(0, b"k", b"x")
    stage = stage_on(engine)
    run(stage, engine.read(0))
    engine.ends_short_by, engine.silences = 1, 1_000_000  # Kafka waits at the end of a log, and says nothing
    with pytest.raises(StateAheadError, match="partition 0"):
        ticks(engine, stage, 30)


def test_a_topic_that_was_made_anew_is_an_error(engine: FakeEngine) -> None:
    engine.append(0, b"k", b"x")
    stage = stage_on(engine)
    run(stage, engine.read(0))
    engine.log[0].clear()
    with pytest.raises(StateAheadError, match="partition 0"):
        ticks(engine, stage, 3)
