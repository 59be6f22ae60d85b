import logging

import pytest

from sinks.quiet_log import RepetitionFilter, quiet_clients


def record(message: str, *arguments: object, level: int = logging.ERROR) -> logging.LogRecord:
    return logging.LogRecord("client", level, __file__, 1, message, arguments, None)


def test_the_same_trouble_is_told_once_in_a_while() -> None:
    now_s = 0.0
    repetition = RepetitionFilter(interval_s=60.0, clock=lambda: now_s)
    assert repetition.filter(record("cannot reach node %d", 1))
    now_s = 59.0
    assert not repetition.filter(record("cannot reach node %d", 2))
    assert repetition.filter(record("disk full"))
    assert repetition.filter(record("cannot reach node %d", 1, level=logging.WARNING))
    now_s = 60.0
    assert repetition.filter(record("cannot reach node %d", 1))


def test_loggers_are_as_before_after_the_block(caplog: pytest.LogCaptureFixture) -> None:
    client = logging.getLogger("aiokafka.conn")
    caplog.set_level(logging.ERROR, logger=client.name)  # a command run in this process may have hushed it
    with quiet_clients():
        client.error("away")
        client.error("away")
    client.error("away")
    assert len(caplog.records) == 2
    assert not client.filters
