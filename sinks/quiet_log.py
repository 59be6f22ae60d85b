"""Keeps a client that reports the same trouble several times a second to one line a minute."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence

CLIENT_LOGGERS = (
    "aiokafka",
    "aiokafka.client",
    "aiokafka.cluster",
    "aiokafka.conn",
    "aiokafka.consumer.consumer",
    "aiokafka.consumer.fetcher",
    "aiokafka.consumer.group_coordinator",
)


class RepetitionFilter(logging.Filter):
    """Lets a message through once in a while; its text counts before its arguments are filled in.

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
        key = record.name, record.levelno, str(record.msg)
        now_s = self._clock()
        last_s = self._last_s.get(key)
        if last_s is not None and now_s - last_s < self._interval_s:
            return False
        self._last_s[key] = now_s
        return True


@contextlib.contextmanager
def quiet_clients(loggers: Sequence[str] = CLIENT_LOGGERS) -> Iterator[None]:
    """Hold back repetitions of these loggers for as long as the block runs."""
    repetition = RepetitionFilter()
    for name in loggers:
        logging.getLogger(name).addFilter(repetition)
    try:
        yield
    finally:
        for name in loggers:
            logging.getLogger(name).removeFilter(repetition)
