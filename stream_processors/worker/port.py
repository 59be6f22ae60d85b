"""Faust's consumer, producer and table behind the exact protocol's port, for one stage.

The table's keys say which partition they belong to, and it knows when its changelog has them.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import aiokafka  # type: ignore[import-untyped]
import faust
from aiokafka.errors import IllegalStateError, KafkaError  # type: ignore[import-untyped]
from faust.exceptions import ProducerSendError
from faust.tables.table import Table
from faust.types import TP

from springback.producers.broker_fault import access_fault
from springback.stream_processors.errors import StateWriteError, TransientBrokerError
from springback.stream_processors.exact.port import Output
from springback.stream_processors.exact.state import read_key
from springback.stream_processors.service.kafka_connection import KafkaConnection
from springback.stream_processors.service.topic_look import plain_consumer
from springback.stream_processors.topics import topic_name
from springback.stream_processors.worker.transport import PromptConsumer

_ASK_TIMEOUT_S = 5.0
_PROBE_WAIT_MS = 1000
_log = logging.getLogger(__name__)


class PartitionedTable(Table[bytes, bytes]):
    """Keys begin with the input partition, so that a batch of several partitions is logged where it belongs.

    Left alone, Faust takes the partition of the current event, and forgets what became of a change that it sent.
    """

    logger = logging.getLogger("faust.tables")  # else what Faust says of it would go out under our name

    def __init__(self, app: faust.App, **options: Any) -> None:
        super().__init__(app, **options)
        self._sent: list[Any] = []

    def partition_for_key(self, key: bytes) -> int:
        """The partition that the key begins with."""
        return read_key(key).partition

    def send_changelog(self, partition: int | None, key: Any, value: Any, *options: Any, **more: Any) -> Any:
        """Sends a change to the changelog, and remembers to wait for it."""
        sent = super().send_changelog(partition, key, value, *options, **more)
        self._sent.append(sent)
        return sent

    def stored(self) -> Mapping[bytes, bytes]:
        """What the table holds."""
        data: Mapping[bytes, bytes] = self.data
        return data

    def put(self, key: bytes, value: bytes) -> None:
        """Sets a key, here and in the changelog."""
        self[key] = value

    def delete(self, key: bytes) -> None:
        """Takes a key out, here and in the changelog."""
        del self[key]

    async def written(self) -> None:
        """Waits until the changelog has all that was put.

        Raises:
            StateWriteError: it has not taken it all.
        """
        sent, self._sent = self._sent, []
        for change in sent:
            try:
                await change
            except Exception as error:
                message = (
                    f"The changelog of {self.name} did not take a record: {error!r}. The worker must recover its state "
                    "from there: start it again."
                )
                raise StateWriteError(message) from error


class FaustPort:
    """A stage's seam to Faust.

    Args:
        app: the Faust application.
        table: the stage's table.
        source: name of the input topic, with its prefix.
        prefix: what output topics' names begin with.
        kafka: how to reach the broker apart from Faust.
    """

    def __init__(
        self, app: faust.App, table: PartitionedTable, source: str, prefix: str, kafka: KafkaConnection
    ) -> None:
        self._app = app
        self._table = table
        self._source = source
        self._prefix = prefix
        self._kafka = kafka

    def generation(self) -> int:
        """The consumer group's generation just now."""
        return int(self._app.consumer_generation_id)

    def stable(self) -> bool:
        """Whether no rebalance is on, the tables are recovered, and the group has confirmed this worker lately."""
        if self._app.rebalancing or self._app.in_recovery or self._app.should_stop:
            return False
        return cast(PromptConsumer, self._app.consumer).is_member()

    def assigned(self) -> set[int]:
        """The input partitions that this worker holds."""
        return {tp.partition for tp in self._app.consumer.assignment() if tp.topic == self._source}

    async def seek(self, partition: int, offset: int) -> None:
        """Reads the partition again from the offset; one that is no longer held is left alone."""
        if partition in self.assigned():
            try:
                await self._app.consumer.seek(TP(self._source, partition), offset)
            except IllegalStateError:
                _log.info("seek_left topic=%s partition=%d reason=not_held_any_more", self._source, partition)

    async def ends(self, partitions: Iterable[int]) -> Mapping[int, int]:
        """The offsets that the partitions' next messages will get.

        Raises:
            TransientBrokerError: the broker did not say.
        """
        wanted = [TP(self._source, partition) for partition in partitions]
        if not wanted:
            return {}
        try:
            async with asyncio.timeout(_ASK_TIMEOUT_S):
                ends = await self._app.consumer.highwaters(*wanted)
        except (KafkaError, TimeoutError) as error:
            message = f"the broker did not say where {self._source} ends: {error!r}"
            raise TransientBrokerError(message) from error
        return {tp.partition: int(end) for tp, end in ends.items() if end is not None}

    async def first_offset(self, partition: int, offset: int) -> int:
        """The first offset at or after the one given that the broker has a message at, or else where reading is then.

        Raises:
            TransientBrokerError: the broker did not say.
        """
        found, position = await self._look(partition, offset)
        return position if found is None else found

    async def holds(self, partition: int, offset: int) -> bool | None:
        """Whether the broker has a message at this very offset; None where it brings nothing within a second.

        Raises:
            TransientBrokerError: the broker did not say.
        """
        found, position = await self._look(partition, offset)
        return None if found is None and position == offset else found == offset

    async def _look(self, partition: int, offset: int) -> tuple[int | None, int]:
        """The offset of the first message that reading from `offset` on brings, if any, and where reading is then.

        Asked through a consumer of its own: whatever Faust's has buffered or passed over plays no part.
        """
        place = aiokafka.TopicPartition(self._source, partition)
        probe = plain_consumer(self._kafka)
        try:
            async with asyncio.timeout(_ASK_TIMEOUT_S):
                await probe.start()
                probe.assign([place])
                probe.seek(place, offset)
                records = (await probe.getmany(place, timeout_ms=_PROBE_WAIT_MS, max_records=1)).get(place)
                return int(records[0].offset) if records else None, int(await probe.position(place))
        except (KafkaError, TimeoutError) as error:
            message = f"the broker did not say what {self._source} holds from {offset} on: {error!r}"
            raise TransientBrokerError(message) from error
        finally:
            await probe.stop()

    async def send(self, outputs: Sequence[Output]) -> None:
        """Sends the outputs and waits until the broker has them.

        Raises:
            TransientBrokerError: it has not taken them all.
        """
        producer = self._app.producer
        try:
            sent = [
                await producer.send(
                    topic_name(output.topic, self._prefix), output.key, output.value, None, None, list(output.headers)
                )
                for output in outputs
            ]
            for acknowledgement in sent:
                await acknowledgement
        except (KafkaError, ProducerSendError, TimeoutError) as error:
            refusal = access_fault(error) or access_fault(error.__cause__)
            message = f"the broker has not taken {len(outputs)} outputs: {refusal or repr(error)}"
            raise TransientBrokerError(message) from error

    async def written(self) -> None:
        """Waits until the changelog has all that was put into the table.

        Raises:
            StateWriteError: it has not taken it all.
        """
        await self._table.written()
