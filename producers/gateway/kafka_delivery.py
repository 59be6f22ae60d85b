"""Brings frames to Kafka and says of each whether it has arrived; outlives brokers that go away and come back."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]
from aiokafka.admin import AIOKafkaAdminClient  # type: ignore[import-untyped]
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType  # type: ignore[import-untyped]
from aiokafka.errors import (  # type: ignore[import-untyped]
    InvalidMessageError,
    KafkaConnectionError,
    KafkaError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
    UnknownError,
    UnsupportedVersionError,
)

from springback.producers.backoff import Backoff
from springback.producers.broker_fault import BrokerFault, FaultLog, access_fault, find_fault_soon
from springback.producers.errors import PublishError
from springback.producers.gateway.request_bodies import AdmittedFrame

log = logging.getLogger(__name__)

DEFAULT_LARGEST_RECORD = 1024 * 1024
NOT_ACKNOWLEDGED = "not_acknowledged"
_NEVER_TAKEN = (InvalidMessageError, MessageSizeTooLargeError, RecordListTooLargeError)
_BATCH_BYTES = 256 * 1024
_PROBE_S, _PROBE_TIMEOUT_S = 1.0, 2.0
_BACKOFF = Backoff(0.25, 2.0)


class KafkaDelivery:
    """A connection to one topic, made anew whenever it can no longer be used.

    Frames are written idempotently where the broker can (the embedded one cannot), so that aiokafka's own tries do not
    write one twice.

    Args:
        bootstrap: HOST:PORT of a broker, several with commas between.
        topic: where to.
        ack_timeout_s: how long all replicas may take to acknowledge.
        client_options: further options of aiokafka's clients (security).

    Attributes:
        largest_record: what the topic takes, bytes.
        problem: why nothing can be delivered now; None where it can.
    """

    def __init__(self, bootstrap: str, topic: str, *, ack_timeout_s: float, client_options: Mapping[str, Any]) -> None:
        self._topic = topic
        self._ack_timeout_s = ack_timeout_s
        self._options = {"bootstrap_servers": bootstrap, **client_options}
        self._producer: AIOKafkaProducer | None = None
        self._spoiled = asyncio.Event()
        self._faults = FaultLog("what comes to the gateway", log)
        self._under_way = 0
        self._settled = asyncio.Condition()
        self.largest_record = DEFAULT_LARGEST_RECORD
        self.problem: str | None = "not yet connected to Kafka"

    @property
    def kafka_up(self) -> bool:
        """Whether Kafka takes what comes."""
        return self.problem is None

    @property
    def spool_report(self) -> None:
        """There is no spool."""
        return None

    async def deliver(self, frames: Sequence[AdmittedFrame]) -> list[tuple[str, str] | None]:
        """Sends the frames in order and waits for the acknowledgements.

        Returns:
            For each frame None when it is in Kafka, else a reason and a detail. With the reason `NOT_ACKNOWLEDGED`
            it may still arrive and should be sent again; with any other it never will be taken.
        """
        producer = self._producer
        if producer is None or self.problem is not None:
            return [(NOT_ACKNOWLEDGED, self.problem or "not connected to Kafka")] * len(frames)
        deadline = asyncio.get_running_loop().time() + self._ack_timeout_s
        self._under_way += 1
        try:
            sent = await self._sent(producer, frames, deadline)
            futures = [future for future in sent if isinstance(future, asyncio.Future)]
            if futures:
                await self._wait_for(futures, deadline)
            return [self._result(future) if isinstance(future, asyncio.Future) else future for future in sent]
        finally:
            self._under_way -= 1
            async with self._settled:
                self._settled.notify_all()

    async def run(self) -> None:
        """Keeps a connection until it is cancelled."""
        failures = 0
        while True:
            try:
                if fault := await self._look():
                    raise PublishError(str(fault))
                producer = await self._connected()
            except (KafkaError, OSError, TimeoutError, PublishError) as error:
                self._faults.note(access_fault(error))
                self._say(f"no connection to the topic {self._topic}: {_told(error)}")
                failures += 1
                await asyncio.sleep(_BACKOFF.pause_s(failures))
                continue
            failures = 0
            self._spoiled.clear()
            self._producer = producer
            try:
                await self._watch(producer)
            finally:
                self._producer = None
                await self._end(producer)

    async def _wait_for(self, futures: list[asyncio.Future[Any]], deadline: float) -> None:
        """Waits until all are done, the connection is spoiled, or the deadline is over."""
        spoiled = asyncio.create_task(self._spoiled.wait())
        all_done: asyncio.Future[Any] = asyncio.gather(*futures, return_exceptions=True)
        left_s = max(0.0, deadline - asyncio.get_running_loop().time())
        waiters: list[asyncio.Future[Any]] = [all_done, spoiled]
        await asyncio.wait(waiters, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        spoiled.cancel()

    async def _sent(self, producer: Any, frames: Sequence[AdmittedFrame], deadline: float) -> list[Any]:
        """What became of sending each frame: a future, or a reason and a detail."""
        sent: list[Any] = []
        for frame in frames:
            # No frame may overtake one that was not taken: its steps would then come too late, for good.
            stuck = bool(sent) and isinstance(sent[-1], tuple) and sent[-1][0] == NOT_ACKNOWLEDGED
            sent.append(sent[-1] if stuck else await self._send(producer, frame, deadline))
        return sent

    async def _send(self, producer: Any, frame: AdmittedFrame, deadline: float) -> Any:
        try:
            async with asyncio.timeout_at(deadline):
                future = await producer.send(self._topic, frame.value, key=frame.key)
        except (KafkaError, TimeoutError) as error:
            return self._failure(error)
        future.add_done_callback(partial(self._see_order, producer))
        return future

    def _see_order(self, producer: Any, done: asyncio.Future[Any]) -> None:
        """Lets nothing pass a frame that was given up: what came after it is not sent over this connection any more.

        A frame may fail after its request was answered, when nobody else looks at its result.
        """
        error = None if done.cancelled() else done.exception()
        if error is not None and not isinstance(error, _NEVER_TAKEN):
            self._spoiled.set()
            producer._sender.sender_task.cancel()  # this runs before the task can go on with the next batch

    def _result(self, future: asyncio.Future[Any]) -> tuple[str, str] | None:
        if not future.done():
            self._spoiled.set()
            return NOT_ACKNOWLEDGED, f"Kafka did not acknowledge it within {self._ack_timeout_s:g} s"
        error = asyncio.CancelledError("the connection was closed") if future.cancelled() else future.exception()
        if error is not None:
            return self._failure(error)
        self._faults.clear()
        return None

    def _failure(self, error: BaseException) -> tuple[str, str]:
        if isinstance(error, _NEVER_TAKEN):
            return "refused_by_kafka", f"{type(error).__name__}: {error}"
        self._spoiled.set()
        self._faults.note(access_fault(error))
        return NOT_ACKNOWLEDGED, _told(error)

    async def _connected(self) -> Any:
        self.largest_record = await self._asked_largest_record()
        try:
            return await self._started(enable_idempotence=True)
        except (UnknownError, UnsupportedVersionError):
            log.info("the broker knows no idempotent producer; a frame may be written twice when a connection breaks")
            return await self._started(enable_idempotence=False)

    async def _started(self, *, enable_idempotence: bool) -> Any:
        producer = AIOKafkaProducer(
            acks="all",
            enable_idempotence=enable_idempotence,
            max_batch_size=min(_BATCH_BYTES, self.largest_record // 2),
            max_request_size=self.largest_record,
            request_timeout_ms=int(self._ack_timeout_s * 1000),
            **self._options,
        )
        try:
            async with asyncio.timeout(self._ack_timeout_s):
                await producer.start()
                await producer.partitions_for(self._topic)
        except BaseException:
            await self._end(producer)
            raise
        return producer

    async def _asked_largest_record(self) -> int:
        admin = AIOKafkaAdminClient(request_timeout_ms=int(self._ack_timeout_s * 1000), **self._options)
        try:
            async with asyncio.timeout(self._ack_timeout_s):
                await admin.start()
                answers = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, self._topic)])
        except KafkaConnectionError:
            raise
        except KafkaError as error:  # not every broker lets everybody ask
            log.warning("%s could not be asked for max.message.bytes: %s", self._topic, error)
            return DEFAULT_LARGEST_RECORD
        finally:
            await admin.close()
        for answer in answers:
            for _, _, _, _, entries in answer.resources:
                for name, value, *_ in entries:
                    if name == "max.message.bytes" and value:
                        return int(value)
        return DEFAULT_LARGEST_RECORD

    async def _watch(self, producer: Any) -> None:
        """Returns when the connection can no longer be used; until then keeps track of whether the broker is there."""
        while not self._spoiled.is_set():
            try:
                async with asyncio.timeout(_PROBE_TIMEOUT_S):
                    await producer.client.fetch_all_metadata()
            except (KafkaError, TimeoutError, OSError) as error:
                self._say(f"Kafka does not answer: {await self._look() or _told(error)}")
            else:
                self._say(None)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PROBE_S):
                    await self._spoiled.wait()
        self._say("connecting to Kafka again")

    async def _look(self) -> BrokerFault | None:
        fault = await find_fault_soon(self._options["bootstrap_servers"], self._options)
        self._faults.note(fault)
        return fault

    async def _end(self, producer: Any) -> None:
        # Requests under way may yet get their answer of this connection, and each of them is bounded.
        async with self._settled:
            await self._settled.wait_for(lambda: self._under_way == 0)
        try:
            async with asyncio.timeout(_PROBE_TIMEOUT_S):
                await producer.stop()
        except (KafkaError, TimeoutError, OSError) as error:
            log.warning("the connection to Kafka was given up: %s: %s", type(error).__name__, error)
            await producer._sender.close()
            await producer.client.close()

    def _say(self, problem: str | None) -> None:
        if problem is None and self.problem is not None:
            log.info("Kafka takes frames")
        elif problem is not None and problem != self.problem:
            log.warning("frames are refused for now: %s", problem)
        self.problem = problem


def _told(error: BaseException) -> str:
    if isinstance(error, PublishError):
        return str(error)
    return str(access_fault(error) or f"{type(error).__name__}: {error}")
