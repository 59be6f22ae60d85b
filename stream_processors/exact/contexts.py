"""The contexts that one stage's partitions are in: taken over with them, switched between batches, kept in its table.

A switch counts from where nothing has been sent of yet. So a worker that has taken a partition over first reads up to
where the partition ended at that time, by the contexts that it found: its predecessor may have sent outputs of all that
lies before, and have died before it wrote so. What is written comes in this order: outputs for whoever wants to know;
the contents; once the changelog has those, the switches; and once it has these, events are applied by them.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from springback.stream_processors.errors import StateFormatError
from springback.stream_processors.exact.context_log import (
    CONTEXT_SCHEMA_VERSION,
    ContextLog,
    Parts,
    Switch,
    content_key,
    decode_content,
    decode_switch,
    encode_content,
    encode_switch,
    is_content_of,
    read_context_key,
    switch_key,
)
from springback.stream_processors.exact.port import Output, StageEvent, StagePort
from springback.stream_processors.exact.state import Bucket, PartitionState, StateTable

S = TypeVar("S")
T = TypeVar("T", contravariant=True)
_LOOK_EVERY_S = 1.0
_log = logging.getLogger(__name__)


class HeldContext(NamedTuple):
    """A context that partitions are in: its parts' digests, and what gives the content of a digest."""

    parts: Parts
    content: Callable[[bytes], bytes]


class Renewal(NamedTuple):
    """The context to go on with: its parts' digests, and the content of those that no partition holds yet."""

    parts: dict[str, bytes]
    contents: dict[bytes, bytes]


class ContextSource(Protocol[T]):
    """Where a stage gets its contexts from, and how its events are applied by one.

    Attributes:
        topic: where switches and contents are also sent, as they are written, without the prefix.
        interval_s: shortest time between two switches that nothing but the source asks for.
    """

    topic: str
    interval_s: float

    def version(self) -> int:
        """Rises with every change of what the source knows."""

    def renewed(self, held: Sequence[HeldContext]) -> Renewal:
        """The context to go on with, for partitions that are in these; one of these itself if none is due."""

    def apply(self, events: Sequence[StageEvent], states: Sequence[T], context: HeldContext) -> list[Output]:
        """As the reducer's, by a context."""


class _Live:
    __slots__ = ("asked", "log", "safe_from")

    def __init__(self, log: ContextLog) -> None:
        self.log = log
        self.safe_from: int | None = None
        self.asked = False


class StageContexts(Generic[S]):
    """The contexts of one stage's partitions.

    Args:
        stage: its name, for the log.
        port: the stream engine.
        table: the stage's table.
        source: where contexts come from.
        clock: seconds that never go back. It says when to look for a newer context, and nothing else.
    """

    def __init__(
        self,
        stage: str,
        port: StagePort,
        table: StateTable,
        source: ContextSource[S],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.switches = 0
        self._stage = stage
        self._port = port
        self._table = table
        self._source = source
        self._clock = clock
        self._live: dict[int, _Live] = {}
        self._reigns: dict[int, tuple[int, int]] = {}
        self._switched_at = self._looked_at = float("-inf")
        self._seen_version = -1

    def forget(self) -> None:
        """Drops what is live: the next use reads the table again."""
        self._live.clear()

    def ends_at(self, partition: int, offset: int) -> None:
        """Notes where a partition ended, asked after this worker had taken it over."""
        live = self._live.get(partition)
        if live is not None and live.safe_from is None:
            live.safe_from = offset

    async def settle(self, wanted: Mapping[int, int], current: Callable[[], bool]) -> bool:
        """Takes over partitions that are new to this worker, and switches where it is due.

        Args:
            wanted: the next offset wanted of each live partition.
            current: whether the partitions are still this worker's.

        Returns:
            whether events may be applied: False if the partitions have gone to another worker meanwhile.

        Raises:
            TransientBrokerError: the broker has not taken what says so.
            StateFormatError: a record cannot be read.
            StateWriteError: the changelog has not taken a record.
        """
        switches = [s for number, offset in wanted.items() for s in self._taken_over(number, offset)]
        eligible = self._eligible(wanted)
        renewal, renewed = self._due(eligible), 0
        if renewal is not None:
            switches, renewed = self._with_renewal(switches, renewal, eligible)
        if switches:
            for switch in switches:
                self._reigns.pop(switch.partition, None)  # should this fail, a term of its own begins after it
            if not await self._write(switches, {} if renewal is None else renewal.contents, current):
                return False
            for switch in switches:
                self._live[switch.partition].log.add(switch)
                self._reigns[switch.partition] = switch.reign
            if renewed:
                self.switches += renewed
                self._switched_at = self._clock()
            self._prune({switch.partition for switch in switches})
            await self._port.written()
            if not current():
                return False
        if renewal is not None:
            for number in eligible:
                self._live[number].asked = True
        return True

    def apply(self, work: Iterable[tuple[StageEvent, PartitionState[S], Bucket[S]]]) -> list[Output]:
        """Applies events by what counts at their offsets: in one call those that are in the same context."""
        groups: list[tuple[HeldContext, list[tuple[StageEvent, S]]]] = []
        last_group: dict[int, int] = {}
        for event, _, bucket in work:
            parts = self._at(event.partition, event.offset)
            earliest = last_group.get(event.partition, 0)  # a partition's events stay in order
            place = next((i for i in range(earliest, len(groups)) if groups[i][0].parts == parts), None)
            if place is None:
                place = len(groups)
                groups.append((self._held(event.partition, parts), []))
            last_group[event.partition] = place
            groups[place][1].append((event, bucket.state))
        outputs: list[Output] = []
        for context, group in groups:
            outputs += self._source.apply([event for event, _ in group], [state for _, state in group], context)
        return outputs

    def _taken_over(self, number: int, wanted: int) -> list[Switch]:
        """The switches that begin this worker's term in a partition that is not live: what counts, over again."""
        if number in self._live:
            return []
        live = self._live[number] = _Live(self._read(number))
        log = live.log
        generation = self._port.generation()
        if self._reigns.get(number) == log.reign and log.reign[1] == generation:
            return []
        if not log.path:
            live.safe_from = wanted  # nobody has ever sent anything under this protocol
            return [self._switch(number, (1, generation), wanted, {})]
        now = log.at(wanted)
        if now is None:
            now = log.path[0]
            place = (self._stage, number, wanted, now.from_offset)
            _log.error("context_gone stage=%s partition=%d offset=%d oldest=%d", *place)
        reign = log.reign[0] + 1, generation
        later = [self._switch(number, reign, switch.from_offset, switch.parts) for switch in log.after(wanted)]
        return [self._switch(number, reign, wanted, now.parts), *later]

    def _eligible(self, wanted: Mapping[int, int]) -> dict[int, int]:
        """Of what is wanted the partitions that nobody can have sent outputs of, from there on."""
        eligible = {}
        for number, offset in wanted.items():
            live = self._live[number]
            last = live.log.path[-1].from_offset if live.log.path else 0
            if live.safe_from is not None and offset >= max(live.safe_from, last):
                eligible[number] = offset
        return eligible

    def _due(self, eligible: Mapping[int, int]) -> Renewal | None:
        now = self._clock()
        changed = self._source.version() != self._seen_version
        waited = now - self._switched_at >= self._source.interval_s and now - self._looked_at >= _LOOK_EVERY_S
        new = any(not self._live[number].asked for number in eligible)
        if not new and not (eligible and changed and waited):
            return None
        self._looked_at, self._seen_version = now, self._source.version()
        held: list[HeldContext] = []
        for number, offset in eligible.items():
            at = self._live[number].log.at(offset)
            parts = {} if at is None else at.parts
            if all(context.parts != parts for context in held):
                held.append(self._held(number, parts))
        return self._source.renewed(held)

    def _with_renewal(
        self, switches: list[Switch], renewal: Renewal, eligible: Mapping[int, int]
    ) -> tuple[list[Switch], int]:
        """The switches, with those of partitions that go over to the renewal, and how many do."""
        by_place = {(switch.partition, switch.from_offset): switch for switch in switches}
        renewed = 0
        for number, offset in eligible.items():
            place = number, offset
            before = by_place.get(place) or self._live[number].log.at(offset)
            if before is not None and before.parts != renewal.parts:
                by_place[place] = self._switch(number, before.reign, offset, renewal.parts)
                renewed += 1
        return list(by_place.values()), renewed

    async def _write(
        self, switches: Sequence[Switch], contents: Mapping[bytes, bytes], current: Callable[[], bool]
    ) -> bool:
        new: dict[bytes, bytes] = {}
        for switch in switches:
            for digest in switch.parts.values():
                key = content_key(switch.partition, digest)
                if key not in self._table.stored():
                    new[key] = encode_content(contents[digest] if digest in contents else self._copied(key, digest))
        records = {switch_key(switch): encode_switch(switch) for switch in switches}
        await self._port.send([Output(self._source.topic, key, value) for key, value in (new | records).items()])
        for written in (new, records):
            if not current():
                return False
            for key, value in written.items():
                self._table.put(key, value)
            await self._port.written()
        for switch in switches:
            sizes = sum(len(value) for key, value in new.items() if key.startswith(b"%d/" % switch.partition))
            place = (self._stage, switch.partition, switch.from_offset, *switch.reign)
            _log.info(
                "context stage=%s partition=%d from=%d term=%d generation=%d parts=%d new_bytes=%d",
                *place,
                len(switch.parts),
                sizes,
            )
        return current()

    def _prune(self, partitions: Iterable[int]) -> None:
        stored = self._table.stored()
        for number in partitions:
            log = self._live[number].log
            gone = [switch_key(switch) for switch in log.let_go()]
            needed = {switch_key(switch) for switch in log.path}
            needed |= {content_key(number, digest) for switch in log.path for digest in switch.parts.values()}
            gone += [key for key in stored if is_content_of(number, key)]
            for key in dict.fromkeys(gone):
                if key in stored and key not in needed:
                    self._table.delete(key)

    def _read(self, number: int) -> ContextLog:
        switches = []
        for key, record in self._table.stored().items():
            place = read_context_key(key)
            if place is not None and place.partition == number and place.digest is None:
                switches.append(decode_switch(key, record))
        return ContextLog(switches)

    def _at(self, number: int, offset: int) -> dict[str, bytes]:
        log = self._live[number].log
        switch = log.at(offset) or log.path[0]  # below the first only where that is gone, which has been told
        return switch.parts

    def _held(self, number: int, parts: Parts) -> HeldContext:
        return HeldContext(parts, lambda digest: self._content(content_key(number, digest)))

    def _content(self, key: bytes) -> bytes:
        record = self._table.stored().get(key)
        if record is None:
            message = (
                f"State record {key!r} is missing, though a switch names it. The changelog is damaged: restore the "
                "topic, or start anew under another app_id."
            )
            raise StateFormatError(message)
        return decode_content(key, record)

    def _copied(self, key: bytes, digest: bytes) -> bytes:
        """A content that another partition has."""
        others = (content_key(number, digest) for number in self._live)
        return self._content(next((other for other in others if other in self._table.stored()), key))

    def _switch(self, number: int, reign: tuple[int, int], offset: int, parts: Parts) -> Switch:
        return Switch(CONTEXT_SCHEMA_VERSION, number, *reign, offset, dict(parts))
