"""Events are applied by the context that was written for their offsets, whatever happens to the workers meanwhile."""

import asyncio
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springback.stream_processors.errors import StateFormatError, TransientBrokerError
from springback.stream_processors.exact.context_log import (
    KEPT_CONTEXTS,
    KEPT_SWITCHES,
    ContextLog,
    Switch,
    content_key,
    decode_content,
    decode_switch,
    digest_of,
    encode_switch,
    read_context_key,
    switch_key,
)
from springback.stream_processors.exact.contexts import HeldContext, Renewal
from springback.stream_processors.exact.port import Output, StageEvent
from springback.stream_processors.exact.stage import ExactStage
from tests.examples import examples
from tests.stream_processors.crashing_workers import Action, Broker, Worker, action_lists, live_through
from tests.stream_processors.fake_engine import CountingReducer, FakeEngine, run, stage_on, ticks, values

PARTITIONS = 2
State = dict[str, list[float]]


class Factor:
    """A context of one part: a number, which stands in each output. Any change of it is due at once."""

    topic = "switches"
    interval_s = 0.0

    def __init__(self) -> None:
        self.value = 0
        self.calls: list[tuple[bytes, int]] = []

    def learn(self) -> None:
        self.value += 1

    def version(self) -> int:
        return self.value

    def renewed(self, held: Sequence[HeldContext]) -> Renewal:
        if not self.value:
            return Renewal({}, {})
        content = b"%d" % self.value
        return Renewal({"factor": digest_of(content)}, {digest_of(content): content})

    def apply(self, events: Sequence[StageEvent], states: Sequence[State], context: HeldContext) -> list[Output]:
        factor = b"".join(context.content(digest) for digest in context.parts.values())
        self.calls.append((factor, len(events)))
        return [
            Output(output.topic, output.key, (output.value or b"") + b"x" + factor)
            for output in CountingReducer().apply(events, states)
        ]


def stage_of(worker: Worker, factor: Factor, batch_max: int = 5) -> ExactStage[State]:
    return ExactStage(
        "test",
        worker,
        worker,
        CountingReducer(idle_s=1e9),
        lambda key: sum(key) % 3,
        batch_max=batch_max,
        contexts=factor,
        clock=lambda: worker.broker.now,
    )


def expected(broker: Broker, records: Iterable[tuple[bytes, bytes | None]]) -> set[tuple[bytes, bytes]]:
    """What each event comes to by the switches among the records, in the order of the log."""
    switches: dict[int, dict[bytes, Switch]] = {}
    contents: dict[bytes, bytes] = {}
    for key, record in records:
        place = read_context_key(key)
        if place is None or record is None:
            continue
        if place.digest is None:
            switches.setdefault(place.partition, {})[key] = decode_switch(key, record)
        else:
            contents[place.digest] = decode_content(key, record)
    outputs: set[tuple[bytes, bytes]] = set()
    for partition, events in broker.log.items():
        state: State = {}
        log = ContextLog(switches.get(partition, {}).values())
        for event in events:
            switch = log.at(event.offset)
            assert switch is not None
            [output] = CountingReducer().apply([event], [state])
            factor = b"".join(contents[digest] for digest in switch.parts.values())
            outputs.add((output.key, (output.value or b"") + b"x" + factor))
    return outputs


@settings(max_examples=examples(400), deadline=None)
@given(action_lists(PARTITIONS))
def test_whatever_happens_each_event_is_applied_by_what_was_written_for_its_offset(
    actions: list[Action],
) -> None:
    broker, factor = Broker(PARTITIONS), Factor()

    def append(partition: int, number: int) -> None:
        broker.append(partition, b"k%d" % (10 * partition + number), b"%d" % len(broker.log[partition]))

    asyncio.run(live_through(broker, lambda worker: stage_of(worker, factor), actions, append, factor.learn))
    shown = [(output.key, output.value) for output in broker.sent if output.topic == "switches"]
    found = {(output.key, output.value or b"") for output in broker.sent if output.topic == "out"}
    assert found == expected(broker, shown)
    assert found == expected(broker, broker.history)


class Calm:
    """A broker with one worker after another, to which nothing happens that a test does not say."""

    def __init__(self) -> None:
        self.broker, self.factor = Broker(PARTITIONS), Factor()
        self.start()

    def start(self) -> None:
        self.worker = Worker(self.broker)
        self.stage = stage_of(self.worker, self.factor, batch_max=500)

    def arrive(self, *keys: bytes, partition: int = 0) -> None:
        for key in keys:
            self.broker.append(partition, key, b"x")

    def read(self, partition: int = 0, most: int = 1000) -> list[int]:
        self.broker.now = self.worker.confirmed_at = self.broker.now + 2
        return asyncio.run(self.stage.process(self.worker.read(partition, most)))

    def tick(self) -> None:
        asyncio.run(self.stage.tick())

    def factors(self) -> list[bytes]:
        return [(output.value or b"").partition(b"x")[2] for output in self.broker.sent if output.topic == "out"]

    def switches(self, partition: int = 0) -> list[Switch]:
        found = [decode_switch(key, record) for key, record in self.broker.changelog.items() if b"/switch/" in key]
        return sorted((s for s in found if s.partition == partition), key=lambda s: (s.from_offset, s.reign))


def test_a_partition_that_nobody_had_begins_by_what_is_known_now() -> None:
    calm = Calm()
    calm.factor.learn()
    calm.arrive(b"a", b"b")
    assert calm.read() == [0, 1]
    assert calm.factors() == [b"1", b"1"]
    assert [(s.from_offset, s.reign) for s in calm.switches()] == [(0, (1, 1))]


def test_a_switch_counts_from_the_next_event_and_is_written_before_it_is_applied() -> None:
    calm = Calm()
    calm.arrive(b"a")
    calm.read()
    calm.factor.learn()
    calm.arrive(b"a")
    calm.read()
    assert calm.factors() == [b"", b"1"]
    topics = [output.topic for output in calm.broker.sent]
    assert topics == ["switches", "out", "switches", "switches", "out"]  # a term; then a content and its switch
    assert [s.from_offset for s in calm.switches()] == [0, 1]


def test_a_successor_keeps_to_what_it_finds_until_it_has_read_what_was_there_before_it() -> None:
    calm = Calm()
    calm.arrive(b"a")
    calm.read()
    calm.arrive(b"a", b"a")  # its predecessor may have sent outputs of these, and died
    calm.factor.learn()
    calm.start()
    calm.read()
    calm.tick()
    calm.arrive(b"a")
    calm.read()
    assert calm.factors() == [b"", b"", b"", b"1"]


def test_a_successor_that_knows_where_it_ended_reads_up_to_there_first() -> None:
    calm = Calm()
    calm.arrive(b"a")
    calm.read()
    calm.arrive(b"a", b"a", b"a")  # its predecessor may have sent outputs of these, and died
    calm.factor.learn()
    calm.start()
    calm.worker.read_next[0] = 1
    calm.read(most=1)
    calm.tick()
    calm.arrive(b"a")
    calm.tick()  # where it ended at first is what counts
    for _ in range(3):
        calm.read(most=1)
    assert calm.factors() == [b"", b"", b"", b"", b"1"]


def test_a_worker_that_has_a_partition_again_stands_above_one_that_had_it_meanwhile() -> None:
    calm = Calm()
    calm.arrive(b"a")
    calm.read()
    calm.broker.generation = calm.worker.own_generation = 3
    late = Switch(
        1, 0, 2, 2, 1, {"factor": digest_of(b"another")}
    )  # of the second generation's worker, in a long pause
    calm.arrive(b"a")
    calm.worker.read_next[0] = 1
    calm.read()
    calm.broker.write(switch_key(late), encode_switch(late))
    assert {switch.reign for switch in ContextLog(calm.switches()).path} == {(1, 1), (2, 3)}


def test_a_worker_stands_above_its_predecessor_though_the_group_counts_anew() -> None:
    calm = Calm()
    calm.arrive(b"a")
    calm.broker.generation = calm.worker.own_generation = 7
    calm.read()
    calm.broker.generation = 0  # nobody was there, and the broker has forgotten the group
    calm.factor.learn()
    calm.start()
    calm.tick()
    calm.arrive(b"a")
    calm.read()
    calm.tick()
    calm.arrive(b"a")
    calm.read()
    assert calm.factors() == [b"", b"", b"1"]
    assert [switch.reign for switch in ContextLog(calm.switches()).path] == [(1, 7), (2, 1), (2, 1)]


def test_a_switch_that_was_shown_and_not_written_is_withdrawn_by_a_new_term() -> None:
    calm = Calm()
    calm.arrive(b"a")
    calm.read()
    calm.factor.learn()
    calm.arrive(b"a")
    send = calm.worker.send

    async def shown_but_not_answered(outputs: Sequence[Output]) -> None:
        await send(outputs)
        message = "away"
        raise TransientBrokerError(message)

    calm.worker.send = shown_but_not_answered  # type: ignore[method-assign]
    assert calm.read() == []
    calm.worker.send = send  # type: ignore[method-assign]
    calm.read()
    shown = [(output.key, output.value) for output in calm.broker.sent if output.topic == "switches"]
    found = {(output.key, output.value or b"") for output in calm.broker.sent if output.topic == "out"}
    assert found == expected(calm.broker, shown) == expected(calm.broker, calm.broker.history)


def test_events_of_one_batch_in_one_context_are_applied_in_one_call() -> None:
    calm = Calm()
    calm.arrive(b"a", b"b")
    calm.arrive(b"c", partition=1)
    asyncio.run(calm.stage.process([*calm.worker.read(0, 9), *calm.worker.read(1, 9)]))
    assert calm.factor.calls == [(b"", 3)]


def test_a_bucket_that_fell_behind_is_read_again_by_what_counted_then() -> None:
    calm = Calm()
    calm.arrive(b"a", b"b")
    calm.read()
    old = {key: value for key, value in calm.broker.changelog.items() if key == b"0/1"}
    assert old
    for calm.factor.value in (1, 2, 1):
        calm.arrive(b"a", b"b")
        calm.read()
    calm.broker.changelog |= old  # a worker that came back from a long pause has written over it
    sent = len(calm.factors())
    calm.start()
    calm.worker.read_next = {0: 0, 1: 0}
    calm.read()
    assert calm.factors()[sent:] == [b"1", b"2", b"1"]  # in their order


def test_only_the_latest_contexts_are_kept() -> None:
    calm = Calm()
    for _ in range(3 * KEPT_CONTEXTS):
        calm.arrive(b"a")
        calm.read()
        calm.factor.learn()
    kept = {content_key(0, digest) for switch in calm.switches() for digest in switch.parts.values()}
    assert len(calm.switches()) == KEPT_CONTEXTS
    assert kept == {key for key in calm.broker.changelog if b"/content/" in key}


def test_terms_in_one_context_do_not_pile_up() -> None:
    calm = Calm()
    for _ in range(3 * KEPT_SWITCHES):
        calm.arrive(b"a")
        calm.read()
        calm.start()
    assert len(calm.switches()) == KEPT_SWITCHES


def test_what_is_due_is_looked_for_at_most_once_in_the_interval() -> None:
    calm = Calm()
    calm.factor.interval_s = 60.0
    calm.factor.learn()
    for _ in range(5):
        calm.factor.learn()
        calm.arrive(b"a")
        calm.read()
    assert calm.factors() == [b"2"] * 5
    calm.broker.now += 60
    calm.arrive(b"a")
    calm.read()
    assert calm.factors()[-1] == b"6"


def test_a_switch_that_the_broker_does_not_take_is_made_again_before_anything_is_applied() -> None:
    engine, factor = FakeEngine(), Factor()
    factor.learn()
    engine.append(0, b"k", b"x")
    engine.fail_sends = 1
    stage = stage_on(engine, contexts=factor)
    assert run(stage, engine.read(0)) == []
    assert (engine.table, engine.seeks) == ({}, [(0, 0)])
    assert run(stage, engine.read(0)) == [0]
    assert values(engine) == [b"1:120x1"]
    assert stage.counts.switches == 1


def test_a_state_from_before_there_were_contexts_goes_on_at_once() -> None:
    engine, factor = FakeEngine(), Factor()
    run(stage_on(engine), engine.arrivals([engine.append(0, b"k", b"x")]))
    factor.learn()
    stage = stage_on(engine, contexts=factor)
    engine.append(0, b"k", b"x")
    ticks(engine, stage, 1)
    run(stage, engine.read(0))
    assert values(engine) == [b"1:120", b"2:3840x1"]


def test_a_content_that_is_missing_ends_the_worker_and_rejects_no_event() -> None:
    calm = Calm()
    calm.factor.learn()
    calm.arrive(b"a")
    calm.read()
    [content] = [key for key in calm.broker.changelog if b"/content/" in key]
    del calm.broker.changelog[content]
    calm.arrive(b"a")
    calm.start()
    with pytest.raises(StateFormatError, match="is missing"):
        calm.read()
    assert all(output.topic != "dead" for output in calm.broker.sent)


def test_a_record_of_another_version_is_an_error_that_names_it() -> None:
    switch = Switch(2, 0, 1, 1, 0, {})
    with pytest.raises(StateFormatError, match=r"0/switch/1/1/0.*version 2"):
        decode_switch(switch_key(switch), encode_switch(switch))


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(0, 9)), unique=True), st.integers(0, 10))
def test_of_the_switches_from_before_the_latest_workers_last_one_counts(
    places: list[tuple[int, int, int]], offset: int
) -> None:
    switches = [Switch(1, 0, *place, {"name": bytes(place)}) for place in places]
    before = [switch for switch in switches if switch.from_offset <= offset]
    expected = max(before, key=lambda switch: (switch.reign, switch.from_offset), default=None)
    assert ContextLog(switches).at(offset) == expected


@pytest.mark.parametrize("at", range(7))
def test_a_revocation_at_any_wait_gives_the_batch_up(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, factor = FakeEngine(), Factor()
    factor.learn()
    stage = stage_on(engine, contexts=factor)
    engine.append(0, b"k", b"x")
    run(stage, engine.read(0))
    factor.learn()
    engine.now += 2
    engine.append(0, b"k", b"x")
    waits = 0

    async def revoked_at() -> None:
        nonlocal waits
        if waits == at:
            stage.forget()
        waits += 1

    async def send(outputs: Sequence[Output]) -> None:
        engine.sent += outputs
        await revoked_at()

    monkeypatch.setattr(engine, "send", send)
    monkeypatch.setattr(engine, "written", revoked_at)
    # A send, contents, switches, what is let go; then the outputs and the state.
    assert run(stage, engine.read(0)) == ([0] if at > 5 else [])
    engine.read_next[0] = 0
    run(stage, engine.read(0))
    # Until its switch had been written it counted for nothing.
    assert set(values(engine)) == {b"1:120x1", b"2:3840x1" if at < 2 else b"2:3840x2"}
