"""Reading on a thread of its own: a topic with a long past must not keep the page from answering."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any


async def run_on_own_thread(part: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
    """Run a coroutine on a thread and an event loop of its own, to its end, or until this one is cancelled.

    Args:
        part: makes the coroutine.
        name: of the thread.

    Raises:
        Exception: what the coroutine raised.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name=name, daemon=True)
    thread.start()
    running = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(part(), loop))
    try:
        await running
    finally:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_end_the_others(), loop))
        loop.call_soon_threadsafe(loop.stop)
        await asyncio.to_thread(thread.join)
        loop.close()


async def _end_the_others() -> None:
    """Cancel what still runs on this loop, and wait until it has cleaned up."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
