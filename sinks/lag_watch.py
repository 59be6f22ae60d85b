"""Asks the broker again and again how far the workers are behind, and so learns whether it answers at all."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from aiokafka.errors import KafkaError  # type: ignore[import-untyped]
from springback.sinks.broker_lag import BrokerLag

_log = logging.getLogger(__name__)

_INTERVAL_S = 2.0
_TIMEOUT_S = 5.0


class LagObserver(Protocol):
    """Who is told."""

    def show_frames_behind(self, behind: Mapping[int, int]) -> None:
        """The broker has answered: so many frames are unread, by partition."""
        ...

    def show_broker_away(self) -> None:
        """The broker does not answer."""
        ...


async def watch_lag(observer: LagObserver, broker_lag: Callable[[], BrokerLag]) -> None:
    """Tell the observer every two seconds, until cancelled.

    Args:
        observer: who is told.
        broker_lag: makes what asks; one connection after the other.
    """
    while True:
        try:
            async with broker_lag() as lag:
                while True:
                    async with asyncio.timeout(_TIMEOUT_S):
                        behind = await lag.read()
                    observer.show_frames_behind(behind)
                    await asyncio.sleep(_INTERVAL_S)
        except (KafkaError, TimeoutError) as error:
            observer.show_broker_away()
            _log.debug("Frames behind are unknown for now: %s", error)
        await asyncio.sleep(_INTERVAL_S)
