"""Workers of one stage on a broker in memory: killed at any operation, or paused in it until another has taken over.

What a worker puts reaches the changelog at once, but may be lost until it has waited for it; of what is on its way when
it is killed a part arrives. A paused worker goes on later as if nothing had been, and what it then writes arrives after
what its successor has written.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from springback.stream_processors.exact.port import Arrival, Output, StageEvent
from springback.stream_processors.exact.stage import ExactStage
from springback.stream_processors.exact.state import decode_position, position_key

Action = tuple[str, int, int]
SESSION_S = 8.0


class KilledError(Exception):
    """The worker was killed at this operation."""


class Broker:
    """Input, changelog and outputs; the clock is everyone's."""

    def __init__(self, partitions: int) -> None:
        self.log: dict[int, list[StageEvent]] = {p: [] for p in range(partitions)}
        self.changelog: dict[bytes, bytes] = {}
        self.history: list[tuple[bytes, bytes | None]] = []
        self.sent: list[Output] = []
        self.generation = 0
        self.now = 100.0

    def append(self, partition: int, key: bytes, value: bytes, time_s: float = 1000.0) -> None:
        self.log[partition].append(StageEvent("input", partition, len(self.log[partition]), key, value, time_s))

    def write(self, key: bytes, value: bytes | None) -> None:
        self.history.append((key, value))
        if value is None:
            self.changelog.pop(key, None)
        else:
            self.changelog[key] = value


class Worker:
    """A worker: its port and its table. It recovers its table as it is made.

    Attributes:
        kill_in: operations until it is killed; None for never. `pause_in` likewise, until `paused` is let go.
        survives: how many of the records and outputs on their way arrive if it is killed.
    """

    def __init__(self, broker: Broker) -> None:
        broker.generation += 1
        self.broker = broker
        self.own_generation = broker.generation
        self.table = dict(broker.changelog)
        self.pending: list[tuple[bytes, bytes | None]] = []
        self.read_next = {p: max(0, self._wanted(p) - 2) for p in broker.log}  # as of a commit that is a little older
        self.kill_in: int | None = None
        self.survives = 0
        self.pause_in: int | None = None
        self.resumed = asyncio.Event()
        self.confirmed_at = broker.now
        self.noticed = False

    def _wanted(self, partition: int) -> int:
        key = position_key(partition)
        return decode_position(key, self.table[key]).wanted if key in self.table else 0

    def read(self, partition: int, most: int) -> list[Arrival]:
        start = self.read_next[partition]
        events = self.broker.log[partition][start : start + most]
        self.read_next[partition] = start + len(events)
        return [Arrival(self.own_generation, event) for event in events]

    async def _operation(self, sending: Sequence[Output] = ()) -> None:
        if self.kill_in is not None:
            if self.kill_in == 0:
                self.broker.sent += sending[: self.survives]
                for change in self.pending[: self.survives]:
                    self.broker.write(*change)
                raise KilledError
            self.kill_in -= 1
        if self.pause_in is not None:
            self.pause_in -= 1
            if self.pause_in < 0:
                await self.resumed.wait()

    def generation(self) -> int:
        return -1 if self.noticed else self.own_generation

    def stable(self) -> bool:
        """As Faust's port: not while the group has not confirmed this worker for most of the session timeout."""
        return not self.noticed and self.broker.now - self.confirmed_at < SESSION_S

    def assigned(self) -> set[int]:
        return set() if self.noticed else set(self.broker.log)

    async def seek(self, partition: int, offset: int) -> None:
        self.read_next[partition] = offset

    async def ends(self, partitions: Iterable[int]) -> Mapping[int, int]:
        return {p: len(self.broker.log[p]) for p in partitions}

    async def first_offset(self, partition: int, offset: int) -> int:
        return offset

    async def holds(self, partition: int, offset: int) -> bool | None:
        return True

    async def send(self, outputs: Sequence[Output]) -> None:
        await self._operation(outputs)
        self.broker.sent += outputs

    async def written(self) -> None:
        await self._operation()
        for change in self.pending:
            self.broker.write(*change)
        self.pending.clear()

    def stored(self) -> Mapping[bytes, bytes]:
        return self.table

    def put(self, key: bytes, value: bytes) -> None:
        self.table[key] = value
        self.pending.append((key, value))

    def delete(self, key: bytes) -> None:
        del self.table[key]
        self.pending.append((key, None))


def action_lists(partitions: int, most: int = 60) -> st.SearchStrategy[list[Action]]:
    """What may happen to the workers of a stage, one thing after another."""
    partition = st.integers(0, partitions - 1)
    nothing = st.just(0)
    return st.lists(
        st.one_of(
            st.tuples(st.just("append"), partition, st.integers(0, 3)),
            st.tuples(st.just("read"), partition, st.integers(1, 6)),
            st.tuples(st.just("read"), partition, st.integers(1, 6)),
            st.tuples(st.sampled_from(["learn", "tick", "rewind", "wake"]), nothing, nothing),
            st.tuples(st.just("kill"), st.integers(0, 7), st.integers(0, 4)),
            st.tuples(st.just("pause"), st.integers(0, 7), st.integers(1, 6)),
        ),
        max_size=most,
    )


async def live_through(
    broker: Broker,
    stage_of: Callable[[Worker], ExactStage[Any]],
    actions: Sequence[Action],
    append: Callable[[int, int], None],
    learn: Callable[[], None],
) -> None:
    """Has all of it happen, then lets a last worker read to the end.

    Args:
        broker: where the workers are.
        stage_of: makes the stage of a worker.
        actions: what happens.
        append: puts a message, of a key by number, into a partition.
        learn: changes what the stage's context is to be.
    """
    worker = Worker(broker)
    stage = stage_of(worker)
    paused: list[_Paused] = []
    for action, first, second in actions:
        broker.now += 1.5
        worker.confirmed_at = broker.now
        if action == "append":
            append(first, second)
        elif action == "read":
            await stage.process(worker.read(first, second))
        elif action == "learn":
            learn()
        elif action == "tick":
            await stage.tick()
        elif action == "rewind":
            worker.read_next = dict.fromkeys(broker.log, 0)
        elif action == "wake":
            await _wake(paused)
        elif action == "kill":
            worker.kill_in, worker.survives = first, second
            try:
                for partition in broker.log:
                    await stage.process(worker.read(partition, 6))
            except KilledError:
                pass
        elif action == "pause":
            worker.pause_in = first
            task = asyncio.create_task(stage.process(worker.read(second % len(broker.log), second)))
            for _ in range(50):
                await asyncio.sleep(0)
            paused.append(_Paused(worker, stage, task))
            broker.now += 20  # longer than the session timeout
        if action in ("kill", "pause"):
            worker = Worker(broker)
            stage = stage_of(worker)
    await _wake(paused)
    worker = Worker(broker)
    stage = stage_of(worker)
    for _ in range(8):
        for partition in broker.log:
            await stage.process(worker.read(partition, 1000))
        broker.now += 6
        worker.confirmed_at = broker.now
        await stage.tick()


class _Paused(NamedTuple):
    worker: Worker
    stage: ExactStage[Any]
    task: asyncio.Task[list[int]]


async def _wake(paused: list[_Paused]) -> None:
    """Lets them go on, and take in something more before they notice that they are out of the group."""
    for worker, stage, task in paused:
        worker.resumed.set()
        await task
        for partition in worker.read_next:
            await stage.process(worker.read(partition, 3))
        worker.noticed = True
    paused.clear()
