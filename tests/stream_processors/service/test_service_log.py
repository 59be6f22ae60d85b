import logging

from springback.stream_processors.service.run import LineFormatter, RepetitionFilter


def record(message: str, *arguments: object, level: int = logging.ERROR, name: str = "aiokafka") -> logging.LogRecord:
    return logging.LogRecord(name, level, __file__, 1, message, arguments, None)


def test_the_same_trouble_is_told_once_in_a_while() -> None:
    now_s = 0.0
    repetition = RepetitionFilter(interval_s=60.0, clock=lambda: now_s)
    assert repetition.filter(record("cannot reach node %d", 1))
    now_s = 59.0
    assert not repetition.filter(record("cannot reach node %d", 2))
    assert repetition.filter(record("disk full"))
    assert repetition.filter(record("cannot reach node %d", 1, level=logging.WARNING))
    assert repetition.filter(record("cannot reach node %d", 1, name="aiokafka.conn"))
    now_s = 60.0
    assert repetition.filter(record("cannot reach node %d", 1))


def test_our_own_messages_are_all_told() -> None:
    repetition = RepetitionFilter()
    ours = [record("batch_abandoned", name="springback.stream_processors.exact.stage") for _ in range(3)]
    assert all(map(repetition.filter, ours))


def test_a_record_is_one_line_whatever_ids_it_holds() -> None:
    line = LineFormatter().format(record("rejected agent=%s", "a\nlevel=info forged\r\x1b[2J\x85\u2028b"))
    assert line.endswith("rejected agent=a | level=info forged\\x0d\\x1b[2J\\x85\\x2028b")
    assert len(line.splitlines()) == 1
