"""Workers of one stage on a broker in memory: killed at any operation, or paused in it until another has taken over.

What a worker puts reaches the changelog at once, but may be lost until it has waited for it; of what is on its way when
it is killed a part arrives. A paused worker goes on later as if nothing had been, and what it then writes arrives after
what its successor has written.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from springback.stream_processors.exact.port import Arrival, Output, StageEvent


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
        self.read_next: dict[int, int] = {}
        self.kill_in: int | None = None
        self.survives = 0
        self.pause_in: int | None = None
        self.resumed = asyncio.Event()
        self.noticed = False

    def read(self, partition: int, most: int) -> list[Arrival]:
        start = self.read_next.get(partition, 0)
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
        return not self.noticed

    def assigned(self) -> set[int]:
        return set() if self.noticed else set(self.broker.log)

    async def seek(self, partition: int, offset: int) -> None:
        self.read_next[partition] = offset

    async def ends(self, partitions: Iterable[int]) -> Mapping[int, int]:
        return {p: len(self.broker.log[p]) for p in partitions}

    async def first_offset(self, partition: int, offset: int) -> int:
        return offset

    async def holds(self, partition: int, offset: int) -> bool:
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
