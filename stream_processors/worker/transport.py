"""Faust's consumer without its naps, and without what a rebalance can end it by.

A worker that catches up would spend most of its time in naps:

- When back pressure has paused every partition, Faust sleeps a whole second; when it has paused some, it waits as long
  for the others, though the paused ones have been let go again long before.
- It lets the broker hold a fetch for 1.5 s until there is something to send. aiokafka has one fetch at a time under way
  to each broker, so while one waits for a quiet partition, busy ones get nothing, and no question is answered.

aiokafka's consumer lives in a thread of its own, where a rebalance may take partitions away at any time:

- Faust seeks in it from the main thread, under the hands of a fetch that is looking through what it has got: a KeyError
  of the partition, and the worker ends. Here the consumer's own thread seeks.
- Faust asks it where a partition ends as each message is handed on. That of a partition that has just been taken away
  is not known, which is an AssertionError or an AttributeError there, and no reason to end.

A worker that was stopped, or slept with its machine, for longer than its session learns only from its next heartbeat
that its partitions are another's. What it sends before that would stand above what the other has sent meanwhile, so the
consumer also says whether the group has confirmed it lately (`is_member`).

What begins with an underscore here is Faust's and aiokafka's own; pyproject.toml names the versions that have it.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any, cast

import aiokafka  # type: ignore[import-untyped]
from aiokafka.errors import TopicAuthorizationFailedError  # type: ignore[import-untyped]
from aiokafka.protocol.group import HeartbeatRequest, SyncGroupRequest  # type: ignore[import-untyped]
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport
from faust.types import TP

_LOOK_EVERY_S = 0.01
_LOOKS = 100
_LONGEST_WAIT_S = 0.05
_LONGEST_FETCH_MS = 100
_SESSION_SHARE = 0.8
"""So long after it was confirmed, as a share of the session timeout, the partitions are still this worker's."""
_log = logging.getLogger(__name__)


def awake_or_not_s() -> float:
    """Seconds that never go back, and that go on while the machine sleeps, where the system counts them."""
    counted = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if counted is None else time.clock_gettime(counted)


class PromptConsumerThread(AIOKafkaConsumerThread):
    """The thread that Faust's consumer lives in, with fetches that the broker answers soon."""

    logger = logging.getLogger("faust.transport")
    _confirmed_at = float("-inf")

    async def on_start(self) -> None:
        """Starts the consumer, and takes note of each answer of the group that confirms this worker."""
        await super().on_start()
        coordinator = cast(Any, self._consumer)._coordinator
        send = coordinator._send_req

        async def send_and_note(request: Any) -> Any:
            asked_at = awake_or_not_s()
            answer = await send(request)
            if isinstance(request, HeartbeatRequest | SyncGroupRequest) and answer.error_code == 0:
                self._confirmed_at = asked_at
            return answer

        coordinator._send_req = send_and_note

    def is_member(self) -> bool:
        """Whether the group has confirmed this worker so lately that nobody else can have its partitions."""
        return awake_or_not_s() - self._confirmed_at < _SESSION_SHARE * self.app.conf.broker_session_timeout

    def _create_worker_consumer(self, transport: Transport) -> aiokafka.AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = _LONGEST_FETCH_MS  # Faust has no setting for it; read when the consumer starts
        return consumer

    async def seek_there(self, partition: TP, offset: int) -> None:
        """Seeks in the consumer's own thread, between its other work.

        Raises:
            IllegalStateError: the partition is not this worker's any more.
        """

        async def sought() -> None:
            self.seek(partition, offset)

        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(sought(), self.thread_loop))

    def highwater(self, tp: TP) -> int:
        """The end of a partition as last heard of; 0 if the partition has been taken away. Faust only shows it."""
        try:
            return super().highwater(tp)
        except (AssertionError, AttributeError):
            if tp in self.assignment():
                raise
            return 0

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Faust's own watch for a partition from which nothing comes; it says nothing of one that was taken away."""
        try:
            super().verify_event_path(now, tp)
        except AttributeError:
            if tp in self.assignment():
                raise


class PromptConsumer(Consumer):
    """Faust's consumer, but for how long it waits, and where it seeks."""

    logger = logging.getLogger("faust.transport")

    def _new_consumer_thread(self) -> PromptConsumerThread:
        return PromptConsumerThread(self, loop=self.loop, beacon=self.beacon)

    def is_member(self) -> bool:
        """Whether the group has confirmed this worker so lately that nobody else can have its partitions."""
        return self._thread is not None and cast(PromptConsumerThread, self._thread).is_member()

    async def _seek(self, partition: TP, offset: int) -> None:
        await cast(PromptConsumerThread, self._thread).seek_there(partition, offset)

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

    async def _create_topic(self, *arguments: Any, **options: Any) -> None:
        """Lets Faust make a topic where this user may. All have been declared before, and most users may not."""
        try:
            await super()._create_topic(*arguments, **options)
        except TopicAuthorizationFailedError as error:
            _log.debug("Faust may not make a topic: %s", error)
