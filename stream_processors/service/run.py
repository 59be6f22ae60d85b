"""The run of a command that goes on for days: its parts side by side until a signal or a failure, and its log.

The log is one line per event on stderr. Libraries speak up only when something is wrong, and do not repeat themselves.
"""

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

_LIBRARIES = frozenset({"faust", "mode", "aiokafka", "asyncio", "kafka", "httpx", "httpcore"})
_MOST_REMEMBERED = 1000
# An id from outside must neither forge a line of the log nor steer the terminal that shows it.
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)
_ONE_LINE = {**{code: f"\\x{code:02x}" for code in _CONTROLS}, ord("\t"): " ", ord("\n"): " | "}


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
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    partial.write_bytes(msgspec.json.encode(addresses))
    partial.replace(file)


class LineFormatter(logging.Formatter):
    """One line per record, whatever it holds: a traceback is folded into it."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line."""
        clock = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = (
            f"time={clock}.{int(record.msecs):03d}Z "
            f"level={record.levelname.lower()} logger={record.name} {record.getMessage()}"
        )
        if record.exc_info:
            line += f" traceback={self.formatException(record.exc_info)}"
        return line.translate(_ONE_LINE)


class RepetitionFilter(logging.Filter):
    """Lets a library's message through once in a while. Messages are the same that differ in their arguments alone.

    While a broker is away, aiokafka reports it more than a hundred times a second.

    Args:
        interval_s: how long the same message is held back.
        clock: seconds, only ever rising.
    """

    def __init__(self, interval_s: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._interval_s = interval_s
        self._clock = clock
        self._last_s: dict[tuple[str, int, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is passed on."""
        if record.name.partition(".")[0] not in _LIBRARIES:
            return True
        key = record.name, record.levelno, str(record.msg)
        now_s = self._clock()
        last_s = self._last_s.get(key)
        if last_s is not None and now_s - last_s < self._interval_s:
            return False
        if len(self._last_s) >= _MOST_REMEMBERED:
            self._last_s.clear()
        self._last_s[key] = now_s
        return True


def configure_logging(level: int = logging.INFO) -> None:
    """Sends the log to stderr: ours from `level` on, that of libraries from WARNING on and without repetitions."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    handler.addFilter(RepetitionFilter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in _LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
    # A commit waits for outputs that are still being sent, which its timer reports as overlapping.
    logging.getLogger("mode.timers").setLevel(logging.ERROR)
