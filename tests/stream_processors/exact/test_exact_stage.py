"""The exact protocol: batches that are repeated, torn, late, or fail."""

from ast import literal_eval
from collections.abc import Sequence

import pytest

from springback.stream_processors.errors import StateFormatError, TopicMismatchError
from springback.stream_processors.exact.port import Output, StageEvent
from springback.stream_processors.exact.state import decode_bucket
from tests.stream_processors.fake_engine import CountingReducer, FakeEngine, State, run, stage_on, values


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


def test_a_batch_is_applied_in_one_call_and_acknowledged(engine: FakeEngine) -> None:
    events = [engine.append(p, b"k%d" % p, b"x") for p in (0, 1, 2, 0)]
    reducer = CountingReducer()
    assert run(stage_on(engine, reducer), engine.arrivals(events)) == [0, 1, 2, 3]
    assert reducer.calls == [4]
    assert set(engine.table) == {b"0/%d" % (sum(b"k0") % 4), b"1/0", b"2/1", b"0/next", b"1/next", b"2/next"}


def test_what_the_state_covers_is_acknowledged_and_not_applied(engine: FakeEngine) -> None:
    events = [engine.append(0, b"k", b"x") for _ in range(3)]
    run(stage_on(engine), engine.arrivals(events))
    restarted = stage_on(engine)
    assert run(restarted, engine.arrivals(events)) == [0, 1, 2]
    assert values(engine) == [b"1:120", b"2:3840", b"3:119160"]
    assert restarted.counts.covered == 3


def test_left_over_from_another_generation_is_dropped(engine: FakeEngine) -> None:
    arrivals = engine.arrivals([engine.append(0, b"k", b"x")])
    engine.group_generation = 2
    stage = stage_on(engine)
    assert run(stage, arrivals) == []
    assert (engine.table, stage.counts.left_over) == ({}, 1)


def test_a_hole_sends_the_consumer_back(engine: FakeEngine) -> None:
    events = [engine.append(0, b"k", b"x") for _ in range(4)]
    stage = stage_on(engine)
    assert run(stage, engine.arrivals([events[0], events[2], events[3]])) == [0]
    assert engine.seeks == [(0, 1)]
    assert run(stage, engine.read(0)) == [0, 1, 2]
    assert len(values(engine)) == 4


def test_an_offset_that_comes_again_is_no_hole_while_the_broker_has_those_before(engine: FakeEngine) -> None:
    events = [engine.append(0, b"k", b"x") for _ in range(3)]
    stage = stage_on(engine)
    run(stage, engine.arrivals([events[0]]))
    for _ in range(3):
        assert run(stage, engine.arrivals([events[2]])) == []
    assert stage.counts.lost_offsets == 0


def test_a_hole_that_the_broker_confirms_is_accepted_and_counted(engine: FakeEngine) -> None:
    for _ in range(5):
        engine.append(0, b"k", b"x")
    stage = stage_on(engine)
    run(stage, engine.read(0, 1))
    engine.lose(0, 1)
    engine.lose(0, 2)
    assert run(stage, engine.read(0)) == []
    assert run(stage, engine.read(0)) == [0, 1]
    assert stage.counts.lost_offsets == 2


def test_a_rebalance_while_outputs_are_sent_abandons_the_batch(engine: FakeEngine) -> None:
    event = engine.append(0, b"k", b"x")
    stage = stage_on(engine)

    def rebalance() -> None:
        engine.group_generation = 2

    engine.on_send = rebalance
    assert run(stage, engine.arrivals([event])) == []
    assert (engine.table, engine.seeks, stage.counts.abandoned) == ({}, [], 1)


def test_a_worker_whose_partitions_may_be_another_s_sends_nothing(engine: FakeEngine) -> None:
    event = engine.append(0, b"k", b"x")

    class Doubted(CountingReducer):
        def apply(self, events: Sequence[StageEvent], states: Sequence[State]) -> list[Output]:
            engine.is_stable = False  # the group has confirmed the worker too long ago
            return super().apply(events, states)

    stage = stage_on(engine, Doubted())
    assert run(stage, engine.arrivals([event])) == []
    assert (values(engine), engine.table, stage.counts.abandoned) == ([], {}, 1)
    assert run(stage, engine.arrivals([event])) == []
    engine.is_stable = True
    assert run(stage_on(engine), engine.arrivals([event])) == [0]
    assert values(engine) == [b"1:120"]


def test_revocation_while_outputs_are_sent_abandons_the_batch(engine: FakeEngine) -> None:
    event = engine.append(0, b"k", b"x")
    stage = stage_on(engine)
    engine.on_send = stage.forget
    assert run(stage, engine.arrivals([event])) == []
    assert engine.table == {}


def test_a_paused_process_abandons_its_batch_reads_it_again_and_takes_less_at_once(engine: FakeEngine) -> None:
    events = [engine.append(0, b"k", b"x") for _ in range(8)]
    reducer = CountingReducer()
    stage = stage_on(engine, reducer, batch_max=8)

    def pause() -> None:
        engine.now += 9

    engine.on_send = pause
    assert run(stage, engine.arrivals(events)) == []
    assert (engine.table, engine.seeks) == ({}, [(0, 0)])
    engine.on_send = lambda: None
    assert run(stage, engine.read(0)) == list(range(8))
    assert reducer.calls == [8, 4, 4]


def test_outputs_that_the_broker_does_not_take_are_made_again(engine: FakeEngine) -> None:
    engine.append(0, b"k", b"x")
    engine.fail_sends = 1
    stage = stage_on(engine)
    assert run(stage, engine.read(0)) == []
    assert engine.seeks == [(0, 0)]
    assert stage.counts.report()["not_taken"] == "away"
    assert run(stage, engine.read(0)) == [0]
    assert stage.counts.report()["not_taken"] is None
    assert values(engine) == [b"1:120"]


def test_an_event_that_the_reducer_fails_on_is_rejected_alone(engine: FakeEngine) -> None:
    events = [engine.append(0, b"k", value) for value in (b"x", b"x", b"boom", b"x")]
    stage = stage_on(engine)
    assert run(stage, engine.arrivals(events[:1])) == [0]
    assert run(stage, engine.arrivals(events[1:])) == [0, 1, 2]
    assert values(engine) == [b"1:120", b"2:3840", b"3:119160"]
    assert values(engine, "dead") == [b"boom"]
    assert stage.counts.rejected == 1


def test_a_bucket_that_was_overwritten_by_an_older_worker_is_read_again(engine: FakeEngine) -> None:
    for key in (b"a", b"b", b"a", b"b"):
        engine.append(0, key, b"x")
    run(stage_on(engine), engine.read(0, 2))
    old = engine.table[b"0/1"]  # bucket of "a"
    run(stage_on(engine), engine.read(0))
    engine.table[b"0/1"] = old
    restarted = stage_on(engine)
    engine.append(0, b"b", b"x")
    run(restarted, engine.read(0))
    run(restarted, engine.read(0))
    assert literal_eval(stage_state(engine, 1))["a"][0] == 2
    assert literal_eval(stage_state(engine, 2))["b"][0] == 3


def stage_state(engine: FakeEngine, bucket: int) -> str:
    return decode_bucket(b"", engine.table[b"0/%d" % bucket])[1].decode()


def test_a_record_that_cannot_be_read_is_an_error(engine: FakeEngine) -> None:
    engine.table[b"0/next"] = b"not ours"
    with pytest.raises(StateFormatError, match="0/next"):
        run(stage_on(engine), engine.arrivals([engine.append(0, b"k", b"x")]))


def test_state_of_an_input_that_has_other_partitions_now_is_refused(engine: FakeEngine) -> None:
    events = [engine.append(0, b"k", b"x") for _ in range(2)]
    assert run(stage_on(engine, input_partitions=4), engine.arrivals(events[:1])) == [0]
    before = dict(engine.table)
    with pytest.raises(TopicMismatchError, match=r"made with 4 partitions, and now there are 6.*--partitions 6"):
        run(stage_on(engine, input_partitions=6), engine.arrivals(events))
    assert engine.table == before
    assert run(stage_on(engine, input_partitions=4), engine.arrivals(events)) == [0, 1]


def test_state_that_does_not_say_of_how_many_partitions_it_is_goes_on(engine: FakeEngine) -> None:
    events = [engine.append(0, b"k", b"x") for _ in range(2)]
    assert run(stage_on(engine), engine.arrivals(events[:1])) == [0]
    assert run(stage_on(engine, input_partitions=4), engine.arrivals(events)) == [0, 1]
    with pytest.raises(TopicMismatchError):
        run(stage_on(engine, input_partitions=5), engine.arrivals(events))
