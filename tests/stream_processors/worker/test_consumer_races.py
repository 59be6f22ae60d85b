"""A rebalance, or a seek, at the worst moment of a fetch does not end the consumer."""

import asyncio
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import aiokafka  # type: ignore[import-untyped]
import pytest
from aiokafka.consumer.fetcher import Fetcher  # type: ignore[import-untyped]
from aiokafka.consumer.group_coordinator import (  # type: ignore[import-untyped]
    CoordinatorGroupRebalance,
    GroupCoordinator,
)
from aiokafka.errors import IllegalStateError  # type: ignore[import-untyped]
from aiokafka.protocol.group import HeartbeatRequest, SyncGroupRequest  # type: ignore[import-untyped]
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread
from faust.types import TP

from springback.stream_processors.service.kafka_connection import KafkaConnection
from springback.stream_processors.worker import transport
from springback.stream_processors.worker.port import FaustPort
from springback.stream_processors.worker.transport import PromptConsumer, PromptConsumerThread

PLACE = aiokafka.TopicPartition("steps", 0)
DEADLINE_S = 60


class WatchedRecords(dict[Any, Any]):
    """What has been fetched; whoever looks through it waits until a seek has been asked for."""

    def __init__(self) -> None:
        super().__init__({PLACE: SimpleNamespace(check_raise=lambda: None)})
        self.looked_through, self.seek_asked = threading.Event(), threading.Event()

    def keys(self) -> Any:
        found = dict(self).keys()
        self.looked_through.set()
        assert self.seek_asked.wait(DEADLINE_S)
        return found


class Fetching:
    """aiokafka's fetcher, without its connections."""

    fetched_records = Fetcher.fetched_records
    seek_to = Fetcher.seek_to

    def __init__(self) -> None:
        self._records = WatchedRecords()
        self._wait_consume_future = None
        self._subscriptions = SimpleNamespace(reassignment_in_progress=False, seek=lambda tp, offset: None)

    def _notify(self, future: object) -> None:
        pass


class LiveThread:
    """The consumer's thread, with a loop that runs in it."""

    def __init__(self, consumer: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.service = PromptConsumerThread.__new__(PromptConsumerThread)
        self.service.thread_loop = self.loop
        self.service._consumer = consumer

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(DEADLINE_S)
        self.loop.close()


@pytest.fixture
def fetching() -> Fetching:
    return Fetching()


@pytest.fixture
def live(fetching: Fetching) -> Iterator[LiveThread]:
    def seek(partition: Any, offset: int) -> None:
        fetching.seek_to(partition, offset)

    thread = LiveThread(SimpleNamespace(seek=seek, assignment=set))
    yield thread
    thread.close()


def test_a_seek_waits_for_a_fetch_that_looks_through_what_it_has_got(fetching: Fetching, live: LiveThread) -> None:
    consumer = PromptConsumer.__new__(PromptConsumer)
    consumer._thread = live.service

    async def seek_amid_a_fetch() -> Any:
        fetch = asyncio.run_coroutine_threadsafe(fetching.fetched_records({PLACE}), live.loop)
        assert await asyncio.to_thread(fetching._records.looked_through.wait, DEADLINE_S)
        seek = asyncio.create_task(consumer._seek(TP("steps", 0), 7))
        await asyncio.sleep(0)  # the seek has done what it does from here
        fetching._records.seek_asked.set()
        await seek
        return await asyncio.wrap_future(fetch)

    assert asyncio.run(seek_amid_a_fetch()) == {}


class Revoked:
    """A consumer from which the partition has just been taken away."""

    def __init__(self, fails: type[Exception]) -> None:
        self.fails = fails

    def assignment(self) -> set[Any]:
        return set()

    def highwater(self, partition: Any) -> int:
        raise self.fails

    def seek(self, partition: Any, offset: int) -> None:
        raise self.fails


@pytest.mark.parametrize("fails", [AssertionError, AttributeError])
def test_the_end_of_a_partition_that_was_taken_away_is_no_failure(fails: type[Exception]) -> None:
    service = PromptConsumerThread.__new__(PromptConsumerThread)
    service._consumer = Revoked(fails)
    service.consumer = cast(Any, SimpleNamespace(in_transaction=False))
    assert service.highwater(TP("steps", 0)) == 0


def test_a_failure_of_a_partition_that_is_held_is_one() -> None:
    service = PromptConsumerThread.__new__(PromptConsumerThread)
    service._consumer = SimpleNamespace(assignment=lambda: {PLACE}, highwater=Revoked(AttributeError).highwater)
    service.consumer = cast(Any, SimpleNamespace(in_transaction=False))
    with pytest.raises(AttributeError):
        service.highwater(TP("steps", 0))


def test_a_partition_that_is_taken_away_before_a_seek_is_left_alone() -> None:
    async def seek(partition: TP, offset: int) -> None:
        raise IllegalStateError

    consumer = SimpleNamespace(assignment=lambda: {TP("steps", 0)}, seek=seek)
    port = FaustPort(cast(Any, SimpleNamespace(consumer=consumer)), cast(Any, None), "steps", "", KafkaConnection())
    asyncio.run(port.seek(0, 7))


class Group:
    """The coordinator of a group, which answers what it is told to, while time goes on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.error_code = 0
        self.takes_s = 0.0
        monkeypatch.setattr(transport, "awake_or_not_s", lambda: self.now)
        monkeypatch.setattr(AIOKafkaConsumerThread, "on_start", lambda thread: asyncio.sleep(0))
        self.thread = PromptConsumerThread.__new__(PromptConsumerThread)
        self.thread._consumer = SimpleNamespace(_coordinator=self)
        self.thread.app = SimpleNamespace(conf=SimpleNamespace(broker_session_timeout=10.0))  # type: ignore[assignment]
        asyncio.run(self.thread.on_start())

    async def _send_req(self, request: object) -> object:
        self.now += self.takes_s
        return SimpleNamespace(error_code=self.error_code)

    def answer(self, request: object) -> bool:
        asyncio.run(cast(Any, self)._send_req(request))
        return self.thread.is_member()


def test_a_worker_holds_its_partitions_for_sure_only_while_the_group_confirms_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group = Group(monkeypatch)
    joined = SyncGroupRequest("g", 1, "m", None, [])
    beat = HeartbeatRequest("g", 1, "m")
    assert not group.thread.is_member()
    assert group.answer(joined)
    group.now += 7.9
    assert group.thread.is_member()
    group.now += 0.2  # stopped for longer than eight tenths of its session
    assert not group.thread.is_member()
    group.error_code = 25  # unknown member
    assert not group.answer(beat)
    group.error_code = 0
    assert group.answer(beat)
    group.takes_s = 9.0  # an answer says how it was when it was asked for
    assert not group.answer(beat)
    assert not group.answer(object())


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="this system does not count the time it sleeps")
def test_time_asleep_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "clock_gettime", {time.CLOCK_BOOTTIME: 7200.0}.__getitem__)
    assert transport.awake_or_not_s() == 7200.0


def test_what_is_changed_in_aiokafka_is_there_to_be_changed() -> None:
    assert "_fetch_max_wait_ms" in aiokafka.AIOKafkaConsumer.start.__code__.co_names
    for caller in (GroupCoordinator._do_heartbeat, CoordinatorGroupRebalance._send_sync_group_request):
        assert "_send_req" in caller.__code__.co_names
    assert isinstance(HeartbeatRequest, type)
    assert isinstance(SyncGroupRequest, type)
