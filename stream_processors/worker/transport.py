"""Faust's consumer without its naps: a worker that catches up would spend most of its time in them.

- When back pressure has paused every partition, Faust sleeps a whole second; when it has paused some, it waits as long
  for the others, though the paused ones have been let go again long before.
- It lets the broker hold a fetch for 1.5 s until there is something to send. aiokafka has one fetch at a time under way
  to each broker, so while one waits for a quiet partition, busy ones get nothing, and no question is answered.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import aiokafka  # type: ignore[import-untyped]
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport
from faust.types import TP

_LOOK_EVERY_S = 0.01
_LOOKS = 100
_LONGEST_WAIT_S = 0.05
_LONGEST_FETCH_MS = 100


class PromptConsumerThread(AIOKafkaConsumerThread):
    """The thread that Faust's consumer lives in, with fetches that the broker answers soon."""

    logger = logging.getLogger("faust.transport")

    def _create_worker_consumer(self, transport: Transport) -> aiokafka.AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = _LONGEST_FETCH_MS  # Faust has no setting for it; read when the consumer starts
        return consumer


class PromptConsumer(Consumer):
    """Faust's consumer, but for how long it waits."""

    logger = logging.getLogger("faust.transport")

    def _new_consumer_thread(self) -> PromptConsumerThread:
        return PromptConsumerThread(self, loop=self.loop, beacon=self.beacon)

    async def _wait_next_records(self, timeout: float) -> tuple[Mapping[TP, list[Any]] | None, set[TP] | None]:
        for _ in range(_LOOKS):
            if self._get_active_partitions() or not self.flow_active or self.should_stop:
                break
            await asyncio.sleep(_LOOK_EVERY_S)
        return await super()._wait_next_records(min(timeout, _LONGEST_WAIT_S))


class PromptTransport(Transport):
    """Faust's transport with that consumer."""

    logger = logging.getLogger("faust.transport")
    Consumer = PromptConsumer
