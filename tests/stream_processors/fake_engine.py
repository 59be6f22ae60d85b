"""A stream engine in memory that loses, repeats and delays as Faust does, and a stage on it that counts."""

import asyncio
from ast import literal_eval
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from springback.stream_processors.errors import TransientBrokerError
from springback.stream_processors.exact.port import Arrival, Output, StageEvent
from springback.stream_processors.exact.stage import ExactStage

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
        self.silences = 0
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

    async def holds(self, partition: int, offset: int) -> bool | None:
        if self.silences:
            self.silences -= 1
            return None
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

    def delete(self, key: bytes) -> None:
        del self.table[key]


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


def stage_on(engine: FakeEngine, reducer: CountingReducer | None = None, **options: Any) -> ExactStage[State]:
    reducer = reducer or CountingReducer()
    return ExactStage("test", engine, engine, reducer, lambda key: sum(key) % BUCKETS, clock=engine.clock, **options)


def run(stage: ExactStage[State], arrivals: list[Arrival]) -> list[int]:
    return asyncio.run(stage.process(arrivals))


def values(engine: FakeEngine, topic: str = "out") -> list[bytes | None]:
    return [output.value for output in engine.sent if output.topic == topic]


def ticks(engine: FakeEngine, stage: ExactStage[State], seconds: int) -> None:
    async def tick() -> None:
        for _ in range(seconds):
            engine.now += 1
            await stage.tick()

    asyncio.run(tick())
