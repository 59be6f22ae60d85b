"""Events are applied by the context that was written for their offsets, whatever happens to the workers meanwhile."""

import asyncio
from collections.abc import Iterable, Sequence

from hypothesis import given, settings

from springback.stream_processors.exact.context_log import (
    ContextLog,
    Switch,
    decode_content,
    decode_switch,
    digest_of,
    read_context_key,
)
from springback.stream_processors.exact.contexts import HeldContext, Renewal
from springback.stream_processors.exact.port import Output, StageEvent
from springback.stream_processors.exact.stage import ExactStage
from tests.examples import examples
from tests.stream_processors.crashing_workers import Action, Broker, Worker, action_lists, live_through
from tests.stream_processors.fake_engine import CountingReducer

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
