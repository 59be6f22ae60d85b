"""No message stops a partition: batches are cut into slices; one that costs too much, or fills a state, is refused."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from springback.stream_processors.exact import state as exact_state
from springback.stream_processors.exact.port import Output, StageEvent
from springback.stream_processors.exact.stage import SLICE_BYTES, TRIES
from tests.stream_processors.fake_engine import CountingReducer, FakeEngine, State, run, stage_on, ticks, values

SESSION_S = 10.0


class SlowReducer(CountingReducer):
    """Takes a second for each `s` of a value, on the engine's clock."""

    def __init__(self, engine: FakeEngine) -> None:
        super().__init__()
        self._engine = engine

    def apply(self, events: Sequence[StageEvent], states: Sequence[State]) -> list[Output]:
        self._engine.now += sum(event.value.count(b"s") for event in events)
        return super().apply(events, states)


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


def read_to_the_end(engine: FakeEngine, process: Callable[[], list[int]], rounds: int = 50) -> int:
    """Processes what the engine hands over until the state has it all; how often that was."""
    for count in range(1, rounds):
        if len(process()) == 0 and engine.read_next[0] == len(engine.log[0]):
            return count
    message = "it never ends"
    raise AssertionError(message)


def test_a_message_that_takes_too_long_is_given_up_after_some_tries_and_the_others_are_applied(
    engine: FakeEngine,
) -> None:
    for value in (b"x", b"y", b"s" * 9, b"z"):
        engine.append(0, b"k", value)
    stage = stage_on(engine, SlowReducer(engine))
    read_to_the_end(engine, lambda: run(stage, engine.read(0)))
    assert values(engine, "dead") == [b"s" * 9]
    assert [value.split(b":")[0] for value in values(engine) if value is not None] == [b"1", b"2", b"3"]
    assert (stage.counts.too_costly, stage.counts.rejected, stage.counts.events) == (1, 0, 4)


def test_it_is_tried_so_often_and_its_outputs_are_never_sent(engine: FakeEngine) -> None:
    engine.append(0, b"k", b"s" * 9)
    reducer = SlowReducer(engine)
    stage = stage_on(engine, reducer)
    for _ in range(TRIES):
        assert run(stage, engine.read(0)) == []
        assert engine.sent == []
    assert run(stage, engine.read(0)) == [0]
    assert (reducer.calls, values(engine), values(engine, "dead")) == ([1] * TRIES, [], [b"s" * 9])
    # Another worker does not take it up again.
    assert run(stage_on(engine, reducer), engine.arrivals([engine.log[0][0]])) == [0]  # type: ignore[list-item]
    assert reducer.calls == [1] * TRIES


def test_a_rebalance_does_not_make_it_forget_how_often_it_has_tried(engine: FakeEngine) -> None:
    engine.append(0, b"k", b"s" * 9)
    stage = stage_on(engine, SlowReducer(engine))
    for _ in range(TRIES):
        run(stage, engine.read(0))
        engine.group_generation += 1
        engine.read_next[0] = 0
    assert run(stage, engine.read(0)) == [0]
    assert stage.counts.too_costly == 1


def test_a_slow_broker_costs_no_message(engine: FakeEngine) -> None:
    engine.append(0, b"k", b"x")
    stage = stage_on(engine)

    def away() -> None:
        engine.now += 9

    engine.on_send = away
    for _ in range(3 * TRIES):
        assert run(stage, engine.read(0)) == []
    engine.on_send = lambda: None
    assert run(stage, engine.read(0)) == [0]
    assert (stage.counts.too_costly, values(engine, "dead")) == (0, [])


def test_large_messages_are_applied_in_slices_between_which_others_have_their_turn(engine: FakeEngine) -> None:
    for _ in range(4):
        engine.append(0, b"k", b"x" * SLICE_BYTES)
    reducer = CountingReducer()
    stage = stage_on(engine, reducer)
    turns: list[int] = []

    async def process() -> list[int]:
        def beat() -> None:
            turns.append(len(reducer.calls))
            if len(turns) < 10:
                asyncio.get_running_loop().call_soon(beat)

        asyncio.get_running_loop().call_soon(beat)
        return await stage.process(engine.read(0))

    assert asyncio.run(process()) == [0, 1, 2, 3]
    assert reducer.calls == [1, 1, 1, 1]
    assert turns[:3] == [1, 2, 3]


def test_a_batch_that_has_taken_long_is_written_before_it_is_gone_on_with(engine: FakeEngine) -> None:
    for _ in range(4):
        engine.append(0, b"k", b"sss" + b"x" * SLICE_BYTES)
    stage = stage_on(engine, SlowReducer(engine))
    assert run(stage, engine.read(0)) == [0, 1, 2, 3]  # twelve seconds of work, of which no batch took eight
    assert (stage.counts.abandoned, stage.counts.events) == (0, 4)


def test_a_failure_in_a_later_slice_undoes_none_of_the_earlier(engine: FakeEngine) -> None:
    for value in (b"a" * SLICE_BYTES, b"b" * SLICE_BYTES, b"boom", b"c"):
        engine.append(0, b"k", value)
    plain = FakeEngine()
    for value in (b"a" * SLICE_BYTES, b"b" * SLICE_BYTES, b"c"):
        plain.append(0, b"k", value)
    assert run(stage_on(engine), engine.read(0)) == [0, 1, 2, 3]
    run(stage_on(plain), plain.read(0))
    assert values(engine) == values(plain)
    assert values(engine, "dead") == [b"boom"]


def test_partitions_that_are_revoked_between_two_slices_are_given_up(engine: FakeEngine) -> None:
    for _ in range(3):
        engine.append(0, b"k", b"x" * SLICE_BYTES)
    stage = stage_on(engine)

    async def process() -> list[int]:
        asyncio.get_running_loop().call_soon(stage.forget)
        return await stage.process(engine.read(0))

    assert asyncio.run(process()) == []
    assert engine.table == {}


def test_keys_beyond_the_bound_on_buckets_are_refused_and_those_that_are_in_go_on(engine: FakeEngine) -> None:
    for key in (b"a", b"b", b"c", b"a", b"c", b"b"):  # each of a bucket of its own
        engine.append(0, key, b"x" + key)
    stage = stage_on(engine, most_buckets=2)
    assert run(stage, engine.read(0, 3)) == [0, 1, 2]
    restarted = stage_on(engine, most_buckets=2)
    assert run(restarted, engine.read(0)) == [0, 1, 2]
    assert values(engine, "dead") == [b"xc", b"xc"]
    assert [value.split(b":")[0] for value in values(engine) if value is not None] == [b"1", b"1", b"2", b"2"]
    assert (stage.counts.too_large, restarted.counts.too_large) == (1, 1)
    assert {key for key in engine.table if key != b"0/next"} == {b"0/%d" % (sum(key) % 4) for key in (b"a", b"b")}


class GrowingReducer(CountingReducer):
    """A state that each tick makes larger."""

    def tick(self, state: State, now_s: float) -> list[Output] | None:
        state["x" * 5000] = [0, 0, 0]
        return [Output("idle", b"", b"")]


def test_an_event_that_would_make_the_state_too_large_is_refused_and_the_worker_lives(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact_state, "_LARGEST_RECORD", 2000)
    monkeypatch.setattr(exact_state, "_COMPRESS_FROM_BYTES", 1 << 30)
    keys = [b"%d" % number * 10 for number in range(0, 300)]
    for key in keys:
        engine.append(0, key, b"x")
    stage = stage_on(engine)
    assert run(stage, engine.read(0)) == list(range(300))
    refused = values(engine, "dead")
    assert stage.counts.too_large == len(refused) > 0
    assert len(values(engine)) + len(refused) == 300
    assert max(map(len, engine.table.values())) <= 2000
    # Those who are in go on.
    engine.append(0, keys[0], b"x")
    assert run(stage, engine.read(0)) == [0]
    assert (values(engine) or [b""])[-1].split(b":")[0] == b"2"  # type: ignore[union-attr]


def test_a_tick_that_would_make_the_state_too_large_changes_and_sends_nothing(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact_state, "_LARGEST_RECORD", 2000)
    monkeypatch.setattr(exact_state, "_COMPRESS_FROM_BYTES", 1 << 30)
    engine.append(0, b"k", b"x")
    stage = stage_on(engine, GrowingReducer())
    run(stage, engine.read(0))
    before = dict(engine.table)
    ticks(engine, stage, 2)
    assert (engine.table, values(engine, "idle"), stage.counts.tick_failures > 0) == (before, [], True)
