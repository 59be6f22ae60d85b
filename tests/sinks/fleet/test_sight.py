"""When we are blind: the broker away, or the workers. And for how long we were."""

import math

import pytest

from springback.sinks.fleet.sight import BrokerSight, UnseenTime


@pytest.mark.parametrize(
    ("since_s", "now_s", "expected"),
    [(0.0, 50.0, 50.0), (90.0, 120.0, 10.0), (90.0, 200.0, 80.0), (110.0, 120.0, 0.0), (110.0, 200.0, 70.0),
     (150.0, 200.0, 50.0), (-math.inf, 120.0, math.inf)],
)  # fmt: skip
def test_time_passes_outside_of_the_unseen_alone(since_s: float, now_s: float, expected: float) -> None:
    assert UnseenTime(100.0, 130.0).elapsed(since_s, now_s) == expected


def test_a_broker_that_is_away_blinds_from_its_last_answer_to_its_next() -> None:
    sight = BrokerSight()
    sight.answer(100.0, 0, 99.0)
    assert (sight.blind, sight.unseen) == (False, UnseenTime())
    for now_s in (105.0, 110.0):
        sight.silence(now_s)
        assert (sight.blind, sight.unseen) == (True, UnseenTime(100.0, now_s))
    sight.answer(120.0, 0, 99.0)
    assert (sight.blind, sight.unseen) == (False, UnseenTime(100.0, 120.0))
    sight.answer(130.0, 0, 99.0)
    assert sight.unseen == UnseenTime(100.0, 120.0)


def test_a_broker_that_never_answered_blinds_from_the_first_question_on() -> None:
    sight = BrokerSight()
    sight.silence(100.0)
    assert (sight.blind, sight.unseen) == (True, UnseenTime(100.0, 100.0))


def test_input_that_lies_unread_while_nothing_new_is_processed_blinds() -> None:
    sight = BrokerSight()
    sight.answer(100.0, 5, 99.0)
    sight.answer(159.0, 9, 99.0)
    assert not sight.blind
    sight.answer(161.0, 9, 99.0)
    assert (sight.blind, sight.unseen) == (True, UnseenTime(99.0, 161.0))
    sight.answer(170.0, 4, 165.0)
    assert (sight.blind, sight.unseen) == (False, UnseenTime(99.0, 170.0))


@pytest.mark.parametrize("frames_behind", [0, 3])
def test_a_fleet_at_rest_blinds_nobody_nor_does_its_first_frame(frames_behind: int) -> None:
    sight = BrokerSight()
    sight.answer(9000.0, 0, 99.0)
    sight.answer(9002.0, frames_behind, 99.0)
    assert not sight.blind


def test_workers_that_are_behind_but_at_work_blind_while_they_are_late() -> None:
    sight = BrokerSight()
    for now_s in (1000.0, 1020.0):
        sight.answer(now_s, 500, now_s - 90.0)
    assert sight.blind
    sight.answer(1040.0, 500, 1039.0)
    assert not sight.blind
