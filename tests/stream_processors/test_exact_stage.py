"""The exact protocol against an engine in memory that loses, repeats and delays as Faust does."""

import asyncio
from ast import literal_eval
from collections.abc import Callable, Iterable, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_processors.errors import StateAheadError, StateFormatError, TransientBrokerError
from stream_processors.exact_stage import ExactStage
from stream_processors.stage_port import Arrival
from stream_processors.stage_reducer import Output, StageEvent
from stream_processors.state_codec import decode_bucket

PARTITIONS = 3
BUCKETS = 4


class FakeEngine:
    """The input log, the table, its changelog and the outputs; it hands over what the test says, in any order."""

    def __init__(self) -> None:
        self.log: dict[int, list[StageEvent | None]] = {p: [] for p in range(PARTITIONS)}
        self.table: dict[bytes, bytes] = {}
        self.sent: list[Output] = []
        self.seeks: list[tuple[int, int]] = []
        self.read_next = dict.fromkeys(range(PARTITIONS), 0)
        self.group_generation = 1
        self.is_stable = True
        self.held = set(range(PARTITIONS))
        self.fail_sends = 0
        self.fail_ends = False
        self.ends_short_by = 0
        self.now = 100.0
        self.on_send: Callable[[], object] = lambda: None

    def append(self, partition: int, key: bytes, value: bytes, time_s: float = 1000.0) -> StageEvent:
        event = StageEvent("input", partition, len(self.log[partition]), key, value, time_s)
        self.log[partition].append(event)
        return event

    def lose(self, partition: int, offset: int) -> None:
        self.log[partition][offset] = None

    def arrivals(self, events: Iterable[StageEvent]) -> list[Arrival]:
        return [Arrival(self.group_generation, event) for event in events]

    def read(self, partition: int, most: int = 1000) -> list[Arrival]:
        """What a consumer gets next."""
        events = [e for e in self.log[partition][self.read_next[partition] :] if e is not None][:most]
        if events:
            self.read_next[partition] = events[-1].offset + 1
        return self.arrivals(events)

    def clock(self) -> float:
        return self.now

    def generation(self) -> int:
        return self.group_generation

    def stable(self) -> bool:
        return self.is_stable

    def assigned(self) -> set[int]:
        return self.held

    async def seek(self, partition: int, offset: int) -> None:
        self.seeks.append((partition, offset))
        self.read_next[partition] = offset

    async def ends(self, partitions: Iterable[int]) -> Mapping[int, int]:
        if self.fail_ends:
            message = "away"
            raise TransientBrokerError(message)
        return {p: max(0, len(self.log[p]) - self.ends_short_by) for p in partitions}

    async def first_offset(self, partition: int, offset: int) -> int:
        there = [event.offset for event in self.log[partition][offset:] if event is not None]
        return there[0] if there else len(self.log[partition])

    async def holds(self, partition: int, offset: int) -> bool:
        return any(event is not None and event.offset == offset for event in self.log[partition])

    async def send(self, outputs: Sequence[Output]) -> None:
        if self.fail_sends:
            self.fail_sends -= 1
            message = "away"
            raise TransientBrokerError(message)
        self.sent += outputs
        self.on_send()

    async def written(self) -> None:
        return

    def stored(self) -> Mapping[bytes, bytes]:
        return self.table

    def put(self, key: bytes, value: bytes) -> None:
        self.table[key] = value


class CountingReducer:
    """Counts values per key, with a running hash that shows any loss, repetition or change of order.

    The value `boom` makes it fail after it has changed the state. A key is due for an `idle` output `idle_s` after its
    last event.
    """

    def __init__(self, idle_s: float = 10.0) -> None:
        self.calls: list[int] = []
        self.idle_s = idle_s

    def blank(self) -> dict[str, list[float]]:
        return {}

    def encode(self, state: dict[str, list[float]]) -> bytes:
        return repr(state).encode()

    def decode(self, data: bytes) -> dict[str, list[float]]:
        return dict(literal_eval(data.decode()))

    def apply(self, events: Sequence[StageEvent], states: Sequence[dict[str, list[float]]]) -> list[Output]:
        self.calls.append(len(events))
        outputs = []
        for event, state in zip(events, states, strict=True):
            key = event.key.decode()
            count, digest, _ = state.get(key, [0, 0, 0])
            state[key] = [count + 1, (digest * 31 + sum(event.value)) % 1_000_003, event.time_s]
            if event.value == b"boom":
                message = "boom"
                raise ValueError(message)
            outputs.append(Output("out", event.key, b"%d:%d" % (state[key][0], state[key][1])))
        return outputs

    def tick(self, state: dict[str, list[float]], now_s: float) -> list[Output] | None:
        due = [key for key, (_, _, time_s) in state.items() if now_s - time_s > self.idle_s]
        for key in due:
            del state[key]
        return [Output("idle", key.encode(), b"") for key in due] or None

    def reject(self, event: StageEvent, error: Exception) -> list[Output]:
        return [Output("dead", event.key, event.value)]


State = dict[str, list[float]]


def stage_on(engine: FakeEngine, reducer: CountingReducer | None = None, **options: int) -> ExactStage[State]:
    reducer = reducer or CountingReducer()
    return ExactStage("test", engine, engine, reducer, lambda key: sum(key) % BUCKETS, clock=engine.clock, **options)


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


def run(stage: ExactStage[State], arrivals: list[Arrival]) -> list[int]:
    return asyncio.run(stage.process(arrivals))


def values(engine: FakeEngine, topic: str = "out") -> list[bytes | None]:
    return [output.value for output in engine.sent if output.topic == topic]


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
    assert run(stage, engine.read(0)) == [0]
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


def ticks(engine: FakeEngine, stage: ExactStage[State], seconds: int) -> None:
    async def tick() -> None:
        for _ in range(seconds):
            engine.now += 1
            await stage.tick()

    asyncio.run(tick())


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


def test_a_topic_that_was_made_anew_is_an_error(engine: FakeEngine) -> None:
    engine.append(0, b"k", b"x")
    stage = stage_on(engine)
    run(stage, engine.read(0))
    engine.log[0].clear()
    with pytest.raises(StateAheadError, match="partition 0"):
        ticks(engine, stage, 3)


ACTIONS = st.one_of(
    st.tuples(st.just("append"), st.integers(0, PARTITIONS - 1), st.integers(0, 5)),
    st.tuples(st.just("read"), st.integers(0, PARTITIONS - 1), st.integers(1, 6)),
    st.tuples(st.just("drop"), st.integers(0, PARTITIONS - 1), st.integers(1, 3)),
    st.tuples(st.just("rewind"), st.integers(0, PARTITIONS - 1), st.integers(0, 20)),
    st.tuples(st.sampled_from(["crash", "rebalance", "left over", "fail", "torn", "tick"]), st.just(0), st.just(0)),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(ACTIONS, max_size=60))
def test_whatever_happens_the_state_is_that_of_a_quiet_run(actions: list[tuple[str, int, int]]) -> None:
    engine, quiet, reducer = FakeEngine(), FakeEngine(), CountingReducer(idle_s=1e9)
    stage = stage_on(engine, reducer)
    for action, partition, number in actions:
        engine.now += 3
        before = dict(engine.table)
        if action == "append":
            engine.append(partition, b"k%d" % number, b"%d" % len(engine.log[partition]))
        elif action == "read":
            run(stage, engine.read(partition, number))
        elif action == "drop":
            engine.read(partition, number)
        elif action == "rewind":
            engine.read_next[partition] = min(engine.read_next[partition], number)
        elif action == "crash":
            stage = stage_on(engine, reducer)
        elif action == "rebalance":
            engine.group_generation += 1
        elif action == "left over":
            arrivals = engine.read(0, 2)
            engine.group_generation += 1
            run(stage, arrivals)
        elif action == "fail":
            engine.fail_sends = 1
        elif action == "torn":  # killed when only the first record of the batch had been written
            run(stage, engine.read(0))
            written = [key for key in engine.table if before.get(key) != engine.table[key]]
            engine.table = before | {key: engine.table[key] for key in written[:1]}
            stage = stage_on(engine, reducer)
        else:
            ticks(engine, stage, 1)
    engine.fail_sends = 0
    for _ in range(8):
        for partition in range(PARTITIONS):
            run(stage, engine.read(partition))
        engine.now += 6
        ticks(engine, stage, 1)
    quiet.log = engine.log
    calm = stage_on(quiet)
    for partition in range(PARTITIONS):
        run(calm, quiet.read(partition))
    assert {(o.key, o.value) for o in engine.sent} == {(o.key, o.value) for o in quiet.sent}
    assert {k: v for k, v in engine.table.items() if b"next" not in k} == {
        k: v for k, v in quiet.table.items() if b"next" not in k
    }
