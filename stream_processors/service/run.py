"""The run of a command that goes on for days: its parts side by side until a signal or a failure."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from springback.producers.whole_file import write_whole


def run_until_signalled(service: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    """Runs a service to its end, in the main thread of a process, and ends it at SIGTERM or SIGINT.

    Args:
        service: called with an event that either signal sets; it is to end then.
    """

    async def run() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await service(stop)

    asyncio.run(run())


async def run_until(stop: asyncio.Event, *parts: Awaitable[Any]) -> bool:
    """Waits for the first of the parts to end, or for `stop`; the others are cancelled, and what failed is raised.

    Returns:
        Whether it was a part that ended.
    """
    stopped = asyncio.ensure_future(stop.wait())
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        done, _ = await asyncio.wait([stopped, *tasks], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (stopped, *tasks):
            task.cancel()
        await asyncio.gather(stopped, *tasks, return_exceptions=True)
    for task in done:
        task.result()
    return stopped not in done


def write_ready_file(file: Path, addresses: Mapping[str, str]) -> None:
    """Writes where the service answers as JSON; whoever waits for the file sees all of it or nothing."""
    write_whole(file, msgspec.json.encode(addresses))
