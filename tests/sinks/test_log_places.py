"""The places in the logs: what was read is passed over, and another log in its place is known."""

from typing import Any

from aiokafka import ConsumerRecord, TopicPartition  # type: ignore[import-untyped]

from springback.sinks.sink_runner import LogPlaces

PARTITION = TopicPartition("rebound-windows", 0)


def record(offset: int, at_ms: int) -> Any:
    return ConsumerRecord("rebound-windows", 0, offset, at_ms, 0, None, b"", None, -1, 0, ())


def read_up_to(last: int) -> LogPlaces:
    places = LogPlaces()
    for offset in range(last + 1):
        places.passed(PARTITION, record(offset, 1000 + offset))
    return places


def test_what_was_read_is_not_new_and_what_follows_is() -> None:
    places = read_up_to(9)
    assert places.last_offset(PARTITION) == 9
    assert [places.is_new(PARTITION, record(offset, 1000 + offset)) for offset in (0, 9, 10)] == [False, False, True]
    assert not any(places.is_of_another_log(PARTITION, record(offset, 1000 + offset)) for offset in range(12))


def test_a_newer_message_at_a_place_that_was_passed_is_of_another_log() -> None:
    places = read_up_to(9)
    assert places.is_of_another_log(PARTITION, record(9, 1010))
    assert places.is_of_another_log(PARTITION, record(0, 5000))
    assert not places.is_of_another_log(PARTITION, record(10, 5000))
    places.forget(PARTITION)
    assert places.is_new(PARTITION, record(0, 5000))
    assert not places.is_of_another_log(PARTITION, record(0, 5000))
    assert places.last_offset(PARTITION) is None


def test_times_that_run_back_a_little_are_of_the_same_log() -> None:
    places = LogPlaces()
    for offset, at_ms in enumerate((1000, 1200, 1100)):
        places.passed(PARTITION, record(offset, at_ms))
    assert not any(places.is_of_another_log(PARTITION, record(o, t)) for o, t in enumerate((1000, 1200, 1100)))


def test_a_log_that_is_too_short_twice_in_a_row_is_another_one() -> None:
    places = read_up_to(9)
    assert places.ended_before({PARTITION: 5}) == []
    assert places.ended_before({PARTITION: 10}) == []  # the new leader has caught up
    assert places.ended_before({PARTITION: 5}) == []
    assert places.ended_before({PARTITION: 9}) == [PARTITION]
    assert places.ended_before({TopicPartition("never-read", 0): 0}) == []


def test_a_log_said_to_be_short_whose_last_message_comes_again_is_the_same() -> None:
    places = read_up_to(9)
    for _ in range(3):
        assert places.ended_before({PARTITION: 9}) == []
        assert places.doubted == {PARTITION}
        places.comes_again(PARTITION, record(9, 1009))
        assert not places.doubted
    assert places.ended_before({PARTITION: 9}) == []
    places.comes_again(PARTITION, record(8, 1008))  # that is not the last one
    assert places.ended_before({PARTITION: 9}) == [PARTITION]
