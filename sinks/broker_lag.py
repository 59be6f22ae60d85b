"""How far the workers are behind their input, as the broker knows it; and so, whether the broker answers at all."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Protocol, Self

from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped]
from aiokafka.errors import KafkaError  # type: ignore[import-untyped]

from springback.producers.broker_fault import FaultLog, access_fault

_METADATA_AGE_MS = 10_000
_INTERVAL_S = 2.0
_TIMEOUT_S = 5.0
_CONNECT_TIMEOUT_S = 10.0  # a client of aiokafka waits four times as long for an address that does not answer
_log = logging.getLogger(__name__)


class BrokerLag:
    """Frames in each partition of a topic after a consumer group's committed offset.

    It asks on behalf of the group but never joins it, takes no message and commits nothing. Commits are a hint only
    (the workers' own state says how far they have read), good enough for a gauge.

    Args:
        bootstrap: HOST:PORT of the broker, several with commas between.
        topic: the workers' input.
        group: the workers' consumer group.
        client_options: further options of aiokafka's consumer (security).
    """

    def __init__(
        self, bootstrap: str, topic: str, group: str, *, client_options: Mapping[str, Any] | None = None
    ) -> None:
        self._topic = topic
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            enable_auto_commit=False,
            metadata_max_age_ms=_METADATA_AGE_MS,
            **(client_options or {}),
        )

    async def __aenter__(self) -> Self:
        """Connects. Raises a `KafkaError` or `TimeoutError` if the broker is away."""
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                await self._consumer.start()
        except BaseException:
            await self._consumer.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnects."""
        await self._consumer.stop()

    async def read(self) -> dict[int, int]:
        """The frames behind, by partition: all that the broker keeps if nothing was committed; none without the topic.

        Raises:
            KafkaError: the broker is away.
        """
        if not self._consumer.assignment() and not await self._learn_topic():
            return {}
        known = self._consumer.partitions_for_topic(self._topic) or {0}
        partitions = [TopicPartition(self._topic, partition) for partition in sorted(known)]
        ends = await self._consumer.end_offsets(partitions)
        begins = await self._consumer.beginning_offsets(partitions)
        behind = {}
        for partition in partitions:
            committed = await self._consumer.committed(partition)
            # Retention may have taken frames that nobody has read, and a topic made anew starts below the commit.
            read = max(committed or 0, begins[partition])
            behind[partition.partition] = max(0, ends[partition] - read)
        return behind

    async def _learn_topic(self) -> bool:
        # Asked for by name, a broker may make the topic; asked for all, it cannot.
        if self._topic not in await self._consumer.topics():
            return False
        # An assignment makes the client keep the topic's partitions in mind; paused, it fetches nothing of it.
        first = TopicPartition(self._topic, 0)
        self._consumer.assign([first])
        self._consumer.pause(first)
        await self._consumer.end_offsets([first])
        return True


class LagObserver(Protocol):
    """Learns what the broker says."""

    def show_frames_behind(self, behind: Mapping[int, int]) -> None:
        """Takes in that the broker has answered: so many frames are unread, by partition."""
        ...

    def show_broker_away(self) -> None:
        """Takes in that the broker does not answer."""
        ...


async def watch_lag(observer: LagObserver, broker_lag: Callable[[], BrokerLag]) -> None:
    """Asks the broker every two seconds and tells the observer, until cancelled.

    Args:
        observer: learns what the broker says.
        broker_lag: makes what asks it; one connection after the other.
    """
    refusals = FaultLog("the measure of how far workers are behind", _log)
    while True:
        try:
            async with broker_lag() as lag:
                while True:
                    async with asyncio.timeout(_TIMEOUT_S):
                        behind = await lag.read()
                    refusals.clear()
                    observer.show_frames_behind(behind)
                    await asyncio.sleep(_INTERVAL_S)
        except (KafkaError, TimeoutError) as error:
            observer.show_broker_away()
            refusals.note(access_fault(error))  # of a broker that is away the runner of the sinks tells more
            _log.debug("Frames behind are unknown for now: %s", error)
        await asyncio.sleep(_INTERVAL_S)
