"""The places in the logs: what was read is passed over, another log is known, and how far back they reach."""

from typing import Any

from aiokafka import ConsumerRecord, TopicPartition  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from springback.sinks.log_places import LogPlaces, LogReach, first_offsets
from springback.sinks.sink import TopicReach

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


def reach_of(reach: LogReach, *records: tuple[int, int, int]) -> list[TopicReach]:
    """How far back it is after messages of some partitions (partition, offset, time)."""
    for partition, offset, at_ms in records:
        reach.passed(TopicPartition("rebound-windows", partition), record(offset, at_ms))
    return list(reach.reaches())


def reach_from(*partitions: tuple[int, int]) -> LogReach:
    """Of partitions that begin at an offset, and are read from another one."""
    reach = LogReach()
    for number, (begin, first) in enumerate(partitions):
        reach.begins(TopicPartition("rebound-windows", number), begin, first)
    return reach


def test_a_topic_that_has_lost_nothing_reaches_back_to_its_first_message() -> None:
    reach = reach_from((0, 0), (0, 0), (0, 0))
    assert reach_of(reach) == [TopicReach("rebound-windows", None, "none")]
    assert reach_of(reach, (0, 0, 2000), (1, 0, 1000), (1, 1, 9000)) == [TopicReach("rebound-windows", 1.0, "none")]


def test_what_retention_took_is_gone_up_to_the_latest_beginning() -> None:
    reach = reach_from((7, 7), (3, 3), (0, 0))
    assert reach_of(reach) == [TopicReach("rebound-windows", None, "gone")]
    # The third has lost nothing: how young its first message is says nothing.
    shown = reach_of(reach, (0, 7, 2000), (1, 3, 5000), (2, 0, 9000), (0, 8, 9000))
    assert shown == [TopicReach("rebound-windows", 5.0, "gone")]


def test_what_was_left_unread_is_told_apart_from_what_is_gone() -> None:
    reach = reach_from((7, 7), (3, 30))
    assert reach_of(reach, (0, 7, 6000), (1, 30, 5000)) == [TopicReach("rebound-windows", 6.0, "left")]


def test_where_compaction_has_taken_messages_all_is_there_only_after_the_last_gap() -> None:
    reach = reach_from((0, 0))
    assert reach_of(reach, (0, 2, 1000), (0, 3, 2000)) == [TopicReach("rebound-windows", 1.0, "gone")]
    assert reach_of(reach, (0, 9, 3000), (0, 10, 4000)) == [TopicReach("rebound-windows", 3.0, "gone")]


def test_a_topic_made_anew_in_the_place_of_another_has_lost_nothing() -> None:
    reach = reach_from((7, 7))
    reach_of(reach, (0, 7, 1000))
    reach.forget(TopicPartition("rebound-windows", 0))
    assert reach.reaches() == ()
    assert reach_of(reach, (0, 0, 5000)) == [TopicReach("rebound-windows", 5.0, "none")]


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1, max_size=6), st.integers(1, 2000))
def test_no_more_is_read_than_wanted_and_the_same_share_of_each(sizes: list[tuple[int, int]], most: int) -> None:
    begins = {TopicPartition("t", number): begin for number, (begin, _) in enumerate(sizes)}
    ends = {TopicPartition("t", number): begin + size for number, (begin, size) in enumerate(sizes)}
    firsts = first_offsets(begins, ends, most)
    held = sum(size for _, size in sizes)
    if held <= most:
        assert firsts == begins
    assert sum(ends[partition] - first for partition, first in firsts.items()) <= most
    for number, (begin, size) in enumerate(sizes):
        first = firsts[TopicPartition("t", number)]
        assert begin <= first <= begin + size
        if held > most:
            assert abs((begin + size - first) - size * most / held) < 1
