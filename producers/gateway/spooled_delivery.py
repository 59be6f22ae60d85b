"""Frames of a gateway with a spool: what a request is told to be taken is in Kafka, or on the gateway's disk."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

from springback.producers.emitter.kafka_publisher import KafkaPublisher
from springback.producers.emitter.publishers import FramePublisher
from springback.producers.emitter.reports import SpoolReport
from springback.producers.emitter.spooled_publisher import SpooledPublisher
from springback.producers.errors import FrameRefusedError
from springback.producers.gateway.kafka_delivery import DEFAULT_LARGEST_RECORD, NOT_ACKNOWLEDGED
from springback.producers.gateway.request_bodies import AdmittedFrame


class Delivery(Protocol):
    """Where a gateway's frames go.

    Attributes:
        largest_record: the largest record that is taken, bytes.
        problem: why nothing can be taken now; None where it can.
        kafka_up: whether Kafka takes what comes.
        spool_report: what is on disk; None without a spool.
    """

    largest_record: int
    problem: str | None

    @property
    def kafka_up(self) -> bool: ...  # noqa: D102

    @property
    def spool_report(self) -> SpoolReport | None: ...  # noqa: D102

    async def deliver(self, frames: Sequence[AdmittedFrame]) -> list[tuple[str, str] | None]: ...  # noqa: D102

    async def run(self) -> None: ...  # noqa: D102


class SpooledDelivery:
    """Brings frames to a topic by way of a spool.

    Args:
        publisher: what sends them.
        folder: the spool's.
        ack_timeout_s: how long a frame may take to be acknowledged or on disk.

    Raises:
        SpoolInUseError: another process has the spool.
    """

    largest_record = DEFAULT_LARGEST_RECORD
    problem: str | None = None

    def __init__(self, publisher: FramePublisher, folder: str | os.PathLike[str], *, ack_timeout_s: float) -> None:
        self._publisher = SpooledPublisher(publisher, folder)
        self._ack_timeout_s = ack_timeout_s

    @classmethod
    def to_kafka(
        cls, bootstrap: str, topic: str, folder: str | os.PathLike[str], *, ack_timeout_s: float, **options: Any
    ) -> SpooledDelivery:
        """One that sends to a topic; the options are those of `KafkaPublisher`."""
        return cls(KafkaPublisher(bootstrap, topic, **options), folder, ack_timeout_s=ack_timeout_s)

    @property
    def kafka_up(self) -> bool:
        """Whether nothing has to wait on disk."""
        report = self._publisher.spool_report
        return not (report.frames or report.left_frames)

    @property
    def spool_report(self) -> SpoolReport | None:
        """What is on disk."""
        return self._publisher.spool_report

    async def deliver(self, frames: Sequence[AdmittedFrame]) -> list[tuple[str, str] | None]:
        """Takes the frames in order, and waits until each is in Kafka or on disk.

        Returns:
            For each frame None when it is, else a reason and a detail. With the reason `NOT_ACKNOWLEDGED` it may still
            arrive and should be sent again; with any other it never will be taken.
        """
        loop = asyncio.get_running_loop()
        taken: list[asyncio.Future[Exception | None]] = []
        for frame in frames:
            if taken and taken[-1].done() and _failed(taken[-1].result()):
                break  # no frame may pass one that was not taken: its steps would then come too late, for good
            taken.append(loop.create_future())
            done = partial(_settle, taken[-1])
            self._publisher.publish(frame.key, frame.value, partial(_told, loop, done))
            await asyncio.sleep(0)  # so that an answer that came at once is seen
        if taken:
            await asyncio.wait(taken, timeout=self._ack_timeout_s)
        results = [self._result(future) for future in taken]
        return results + [results[-1]] * (len(frames) - len(taken))

    async def run(self) -> None:
        """Works until it is cancelled; then sends what can be sent at once, and leaves the rest on disk."""
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.get_running_loop().run_in_executor(None, self._publisher.close)

    def _result(self, future: asyncio.Future[Exception | None]) -> tuple[str, str] | None:
        if not future.done():
            return NOT_ACKNOWLEDGED, f"neither Kafka nor the spool took it within {self._ack_timeout_s:g} s"
        error = future.result()
        if error is None:
            return None
        return "refused_by_kafka" if isinstance(error, FrameRefusedError) else NOT_ACKNOWLEDGED, str(error)


def _failed(error: Exception | None) -> bool:
    return error is not None and not isinstance(error, FrameRefusedError)


def _told(loop: asyncio.AbstractEventLoop, done: Any, error: Exception | None) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(done, error)


def _settle(future: asyncio.Future[Exception | None], error: Exception | None) -> None:
    if not future.done():
        future.set_result(error)
