"""Which time a mapped message has, and what a clock that is odd comes to."""

import math
import time

import pytest

from springback.producers.mapping.clocks import LocalHours, ReorderBuffer, SessionClock, TimeJumps
from springback.producers.mapping.values import seconds_of
from tests.producers.mapping.mapped_play import EVENTS, GAPS, T0, Play, pose, stamp

LAGGING = 'time = "header"\n' + GAPS.replace("progress", 'risk = { topic = "q", field = "x" }, progress')


@pytest.mark.parametrize(("silence_s", "episodes"), [(10.0, 1), (11.0, 2)])
def test_silence_for_longer_than_the_gap_ends_an_episode(silence_s: float, episodes: int) -> None:
    play = Play(GAPS, STEP='trigger = "p"')
    play.say("p", 0.0, {"x": 0.1})
    play.say("p", silence_s, {"x": 0.2})
    assert len({step.header.episode for step in play.steps}) == episodes


def test_a_begin_ends_the_episode_that_runs() -> None:
    begin = 'begin = { topic = "b" }, outcome = "failure"'
    play = Play(GAPS.replace('gap_s = 10, outcome = "timeout"', begin), STEP='trigger = "p"')
    for at_s in range(3):
        play.say("b", at_s, {})
        play.say("p", at_s + 0.5, {"x": 0.1})
    assert play.ends == [("0", "failure"), ("1", "failure")]


def test_values_from_before_the_clock_was_known_get_old_too() -> None:
    play = Play(EVENTS, TIME="header")
    play.say("r/task", 1000.0, {"id": "t", "state": "started"})
    play.say("r/risk", 1000.0, {"level": 0.5})
    for second in (1, 4, 9):
        play.say("r/pose", 1000.0 + second, pose(0.1, x=second, **stamp(T0 + second)))
    assert [step.signals.get("risk") for step in play.steps] == [0.5, 0.5, None]


@pytest.mark.parametrize("never_set", [{"sec": 0, "nanosec": 0}, -5.0])
def test_a_stamp_that_was_never_set_is_none(never_set: object) -> None:
    play = Play(EVENTS, TIME="header")
    play.say("r/task", 0.0, {"id": "t", "state": "started", **stamp(T0)})
    play.say("r/pose", 1.0, pose(0.1, header={"stamp": never_set}))
    play.say("r/pose", 2.0, pose(0.2, **stamp(T0 + 2.0)))
    assert [step.signals["time_s"] for step in play.steps] == [T0, T0 + 2.0]
    assert play.left_out["no_header_time"] == 1
    assert "clock_reset" not in play.left_out


def test_what_was_only_late_is_not_used_again_after_a_jump() -> None:
    play = Play(LAGGING, STEP='trigger = "p"')
    for topic, at_s in (("q", 10.0), ("p", 5.0), ("q", 11.0), ("q", 0.0), ("q", 1.0)):
        play.say(topic, 20.0, {"x": 0.1, **stamp(T0 + at_s)})
    assert play.left_out["clock_reset"] == 1
    assert len(play.steps) == 1


def test_time_has_jumped_where_a_topic_lags_by_far_with_a_new_time() -> None:
    jumps = TimeJumps()
    jumps.note("a", 10.0)
    jumps.note("b", 100.0)
    assert jumps.jumped_back("a", 9.5, 1.0)
    assert not jumps.jumped_back("a", 10.0, 1.0)  # it says its old time again
    assert not jumps.jumped_back("a", 96.0, 1.0)


def test_what_is_held_comes_before_what_follows_a_jump() -> None:
    buffer = ReorderBuffer[str](1.0)
    given = [item for time_s in (10.0, 10.5, 0.0, 0.5, 2.0) for item in buffer.add("t", time_s, f"{time_s}")]
    assert [*given, *buffer.flush()] == ["10.0", "10.5", "0.0", "0.5", "2.0"]


def test_a_simulated_clock_that_begins_anew_goes_on_after_the_last_episode() -> None:
    clock = SessionClock()
    assert clock.place("t", 0.0, T0) == T0
    assert clock.place("t", 100.0, T0 + 1.0) == T0 + 100.0  # it runs fast
    clock.begin()
    assert clock.place("t", 0.0, T0 + 2.0) == T0 + 100.0


def test_a_clock_that_is_set_tells_dates_from_then_on() -> None:
    clock = SessionClock()
    clock.place("t", 5.0, T0)
    assert clock.place("t", T0 + 10.0, T0 + 10.0) == T0 + 10.0


def test_a_mean_is_held_and_sums_of_sources_add_up() -> None:
    signals = """travel = [{ topic = "l", field = "x", over = "sum" }, { topic = "r", field = "x", over = "sum" }],
        risk = { topic = "l", field = "x", over = "mean" }, progress"""
    play = Play(GAPS.replace("progress", signals.replace("\n", "")), STEP='trigger = "p"')
    play.say("p", 0.0, {"x": 0.1})
    for topic, value in (("l", 1.0), ("l", 3.0), ("r", 0.5)):
        play.say(topic, 0.5, {"x": value})
    play.say("p", 1.0, {"x": 0.1})
    play.say("p", 2.0, {"x": 0.1})
    assert [(step.signals["travel"], step.signals["risk"]) for step in play.steps[1:]] == [(4.5, 2.0), (0.0, 2.0)]


def test_a_time_without_a_zone_is_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "America/New_York")
        time.tzset()
        assert seconds_of("2026-01-01T00:00:00") == 1_767_225_600.0
        assert seconds_of("2026-01-01T01:00:00+01:00") == 1_767_225_600.0
    time.tzset()


LOCAL = 'time = "header"\nheader_time = "at"\n' + GAPS.replace(
    "progress", 'risk = { topic = "q", field = "x" }, progress'
).replace("gap_s = 10", "gap_s = 60")


def local_play(*told: tuple[str, float, str]) -> Play:
    """Messages of a topic, received so many seconds after T0, with the local time of a wall clock."""
    play = Play(LOCAL, STEP='trigger = "p"')
    for topic, received_s, at in told:
        play.say(topic, T0 + received_s, {"x": 0.1, "at": f"2026-10-25T{at}"})
    return play


def test_an_hour_that_comes_twice_splits_nothing() -> None:
    play = local_play(
        ("q", 0.0, "02:59:57"), ("p", 0.1, "02:59:57"), ("p", 2.1, "02:59:59"),
        ("p", 3.1, "02:00:00"), ("q", 4.0, "02:00:01"), ("p", 5.1, "02:00:02"),
        ("new", 6.0, "02:00:03"), ("p", 3602.1, "02:59:59"), ("p", 3603.1, "03:00:00"),
    )  # fmt: skip
    times = [step.signals["time_s"] for step in play.steps]
    assert [time_s - times[0] for time_s in times] == [0.0, 2.0, 3.0, 5.0, 3602.0, 3603.0]
    assert "clock_reset" not in play.left_out
    assert len({step.header.episode for step in play.steps[:4]}) == 1


def test_an_hour_that_never_comes_is_no_silence() -> None:
    play = local_play(("p", 0.0, "01:59:58"), ("p", 1.0, "01:59:59"), ("p", 2.0, "03:00:00"), ("p", 3.0, "03:00:01"))
    times = [step.signals["time_s"] for step in play.steps]
    assert [time_s - times[0] for time_s in times] == [0.0, 1.0, 2.0, 3.0]
    assert len({step.header.episode for step in play.steps}) == 1


def test_an_hour_that_has_passed_is_an_hour() -> None:
    play = local_play(("p", 0.0, "01:00:00"), ("p", 3600.0, "02:00:00"))
    assert [step.signals["time_s"] for step in play.steps][1] - play.steps[0].signals["time_s"] == 3600.0


@pytest.mark.parametrize("zone", ["Z", "+02:00"])
def test_a_time_with_a_zone_that_goes_back_by_an_hour_is_a_clock_that_was_set(zone: str) -> None:
    play = local_play(("p", 0.0, f"02:59:59{zone}"), ("p", 1.0, f"02:00:00{zone}"))
    assert play.left_out["clock_reset"] == 1


def test_rows_of_a_table_have_an_hour_twice_too() -> None:
    hours = LocalHours()
    told = [(7198.0, 7198.0), (7199.0, 7199.0), (3600.0, 3600.0), (3601.0, 3601.0), (20_000.0, 20_000.0)]
    assert [hours.settled("", *times) for times in told] == [7198.0, 7199.0, 7200.0, 7201.0, 23_600.0]


def test_stamps_of_every_spelling_are_seconds() -> None:
    for whole, part in (("sec", "nanosec"), ("sec", "nsec"), ("secs", "nsecs")):
        assert seconds_of({whole: 3, part: 500_000_000}) == 3.5
    assert seconds_of({"sec": 3}) is None
    assert seconds_of(math.nan) is None


BY_HEADER = 'time = "header"\n' + GAPS


# What counts from 2000 was never set: it is moved to the times of arrival, and need not be set.
@pytest.mark.parametrize(("jump_s", "told"), [(3600.0, {"clock_set": 1}), (26 * 31_557_600.0, {})])
def test_a_clock_that_is_set_ahead_makes_no_steps_and_ends_nothing(jump_s: float, told: dict[str, int]) -> None:
    play = Play(BY_HEADER, STEP="cycle_s = 1")
    for second in range(8):
        play.say("p", second, {"x": second / 10, **stamp(T0 + second - (jump_s if second < 4 else 0.0))})
    play.finish()
    assert [step.step for step in play.steps] == list(range(7))
    assert play.left_out == told
    assert [step.signals["time_s"] - T0 for step in play.steps][4:] == [5.0, 6.0, 7.0]
    assert len(play.ends) == 1


def test_a_clock_that_counts_from_2000_is_one_that_was_never_set() -> None:
    play = Play(BY_HEADER, STEP='trigger = "p"')
    for second in range(6):
        since_boot = 946_684_900.0 + second
        play.say("p", second, {"x": 0.1, **stamp(since_boot if second < 3 else T0 + second)})
    assert [step.signals["time_s"] - T0 for step in play.steps] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert play.left_out == {}


def test_a_silence_by_both_clocks_is_a_silence() -> None:
    play = Play(BY_HEADER, STEP='trigger = "p"')
    for second in (0, 1, 3600):
        play.say("p", second, {"x": 0.1, **stamp(T0 + second)})
    assert (play.left_out, len(play.ends)) == ({}, 1)
