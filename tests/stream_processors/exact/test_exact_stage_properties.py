"""The exact protocol under any sequence of losses, repetitions, rebalances and crashes."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.stream_processors.fake_engine import PARTITIONS, CountingReducer, FakeEngine, run, stage_on, ticks

ACTIONS = st.one_of(
    st.tuples(st.just("append"), st.integers(0, PARTITIONS - 1), st.integers(0, 5)),
    st.tuples(st.just("read"), st.integers(0, PARTITIONS - 1), st.integers(1, 6)),
    st.tuples(st.just("drop"), st.integers(0, PARTITIONS - 1), st.integers(1, 3)),
    st.tuples(st.just("rewind"), st.integers(0, PARTITIONS - 1), st.integers(0, 20)),
    st.tuples(st.sampled_from(["crash", "rebalance", "left over", "fail", "torn", "tick"]), st.just(0), st.just(0)),
)


@settings(max_examples=examples(150), deadline=None)
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
