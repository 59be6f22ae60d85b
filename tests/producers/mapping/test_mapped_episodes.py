"""From timed messages to episodes and steps: by hand, and whatever arrives."""

from __future__ import annotations

import math

import pytest

from springback.producers.contract.frame import NavigationOutcome
from springback.producers.emitter.reports import ReportedEnd
from springback.producers.mapping.assembler import EpisodeAssembler, SessionClosed
from springback.producers.mapping.clocks import MOST_HELD, ReorderBuffer
from springback.producers.mapping.signal_mapping import TimedMessage, parse_mapping
from tests.producers.mapping.mapped_play import EVENTS, GAPS, T0, Play, pose, stamp


def test_an_episode_by_hand() -> None:
    play = Play(EVENTS, TIME="receive")
    play.say("r7/about", -9.0, {"version": "1.4"}, retained=True)
    play.say("r7/pose", -1.0, pose(0.9))  # no task yet
    play.say("r7/task", 0.0, {"id": "t1", "state": "started", "phase": "go"})
    play.say("r7/pose", 1.0, pose(0.1, x=1.0))
    play.say("r7/bump", 1.2, {})
    play.say("r7/bump", 1.3, {})
    play.say("r7/risk", 1.4, {"level": 0.5})
    play.say("r7/pose", 2.0, pose(0.2, x=3.0))
    play.say("r7/task", 2.5, {"id": "t1", "state": "started", "phase": "grasp"})
    play.say("r7/pose", 8.0, pose(1.0, x=3.0))
    play.say("r7/task", 9.0, {"id": "t1", "state": "done", "metres": 4.5})
    play.say("r7/pose", 10.0, pose(1.0))
    first, second, third = play.steps
    assert (first.header.agent, first.header.episode, first.header.version) == ("r7", "t1", "1.4")
    assert first.signals == {"progress": 0.1, "mode": "navigate", "travel": 0.0, "time_s": T0 + 1.0}
    assert second.signals == {
        "progress": 0.2, "mode": "navigate", "retries": 2.0, "risk": 0.5, "travel": 2.0, "time_s": T0 + 2.0,
    }  # fmt: skip
    # The risk is older than 5 s by now; the phase, said 5.5 s ago, too.
    assert third.signals == {"progress": 1.0, "retries": 0.0, "travel": 0.0, "time_s": T0 + 8.0}
    assert [step.step for step in play.steps] == [0, 1, 2]
    assert play.ends == [("t1", "success")]
    end = next(told.report for told in play.reports if isinstance(told.report, ReportedEnd))
    assert end.navigation is not None
    assert end.navigation.path == 4.5


def test_robots_of_a_fleet_keep_apart() -> None:
    play = Play(EVENTS, TIME="receive")
    for robot in ("r1", "r2"):
        play.say(f"{robot}/task", 0.0, {"id": "t", "state": "started"})
    for number in range(4):
        play.say(f"r{1 + number % 2}/pose", 1.0 + number, pose(0.1 * number))
    assert {told.producer: told.session for told in play.reports} == {"r1": "s.1", "r2": "s.2"}
    assert [step.header.agent for step in play.steps] == ["r1", "r2", "r1", "r2"]
    assert [step.step for step in play.steps] == [0, 0, 1, 1]


def test_another_id_is_another_episode() -> None:
    play = Play(EVENTS, TIME="receive")
    for name in ("t1", "t2"):
        play.say("r/task", 0.0, {"id": name, "state": "started"})
        play.say("r/pose", 1.0, pose(0.1))
    assert [step.header.episode for step in play.steps] == ["t1", "t2"]
    assert play.ends == [("t1", "aborted")]


def test_a_step_without_progress_is_left_out_and_leaves_a_gap() -> None:
    play = Play(EVENTS, TIME="receive")
    play.say("r/task", 0.0, {"id": "t", "state": "started"})
    for at_s, done in ((1.0, math.nan), (2.0, 0.1), (3.0, math.nan), (4.0, 0.3), (5.0, "much")):
        play.say("r/pose", at_s, pose(done))  # type: ignore[arg-type]
    assert [(step.step, step.signals["progress"]) for step in play.steps] == [(0, 0.1), (2, 0.3)]
    assert play.left_out["no_progress"] == 3
    assert play.left_out["unusable_value"] == 3


def test_a_repeated_delivery_is_dropped_and_an_equal_message_is_not() -> None:
    play = Play(EVENTS, TIME="receive")
    play.say("r/task", 0.0, {"id": "t", "state": "started"})
    stamped = pose(0.1, header={"stamp": {"sec": 1_790_000_001, "nanosec": 5}})
    for at_s in (1.0, 1.2):
        play.say("r/pose", at_s, stamped)
    play.say("r/pose", 2.0, pose(0.2), redelivered=True)
    play.say("r/pose", 2.1, pose(0.2), redelivered=True)
    play.say("r/pose", 3.0, pose(0.2))
    play.say("r/pose", 4.0, pose(0.2))
    assert len(play.steps) == 4
    assert play.left_out["repeated"] == 2


def test_a_message_id_tells_repetitions() -> None:
    play = Play('message_id = "seq"\n' + EVENTS, TIME="receive")
    play.say("r/task", 0.0, {"id": "t", "state": "started", "seq": 1})
    for seq in (1, 2, 2, 1, 3):
        play.say("r/pose", 1.0 + seq, pose(0.1, seq=seq))
    assert len(play.steps) == 3


def test_a_retained_message_makes_no_step_and_begins_nothing() -> None:
    play = Play(EVENTS, TIME="receive")
    play.say("r/task", 0.0, {"id": "t", "state": "started"}, retained=True)
    play.say("r/pose", 1.0, pose(0.5), retained=True)
    play.say("r/pose", 2.0, pose(0.5))
    assert not play.steps
    assert play.left_out["retained"] == 2


def test_a_will_ends_the_session() -> None:
    play = Play(EVENTS, TIME="receive")
    for at_s in (0.0, 10.0):
        play.say("r/status", at_s, {"state": "online"})
        play.say("r/task", at_s, {"id": "t", "state": "started"})
        play.say("r/pose", at_s + 1.0, pose(0.1))
        play.say("r/status", at_s + 2.0, {"state": "offline"})
        play.say("r/status", at_s + 3.0, {"state": "offline"})
    assert play.ends == [("t", "aborted"), ("t", "aborted")]
    assert [told.session for told in play.reports if isinstance(told.report, SessionClosed)] == ["s.1", "s.2"]


@pytest.mark.parametrize("zero_s", [0.0, T0])
def test_time_that_jumps_back_aborts_and_begins_a_session(zero_s: float) -> None:
    play = Play(EVENTS, TIME="header")
    for lap in (0.0, 1.0):  # a recording in a loop, or a simulation that was reset
        play.say("r/task", lap * 30.0, {"id": "t", "state": "started", **stamp(zero_s + 5.0)})
        for second in range(3):
            play.say("r/pose", lap * 30.0 + second, pose(0.1 * second, **stamp(zero_s + 6.0 + second)))
    play.finish()
    assert play.ends == [("t", "aborted"), ("t", "aborted")]
    assert play.left_out["clock_reset"] == 1
    assert [told.session for told in play.reports if isinstance(told.report, SessionClosed)] == ["s.1", "s.2"]
    assert [step.step for step in play.steps] == [0, 1, 2] * 2
    times = [step.signals["time_s"] for step in play.steps]
    assert all(later - earlier == pytest.approx(1.0) for earlier, later in zip(times, times[1:3]))
    assert all(T0 - 10.0 <= time_s <= T0 + 60.0 for time_s in times)  # dates, whatever the robot's clock says


def test_late_messages_of_a_recording_are_put_in_order() -> None:
    play = Play(EVENTS, recorded=True, TIME="receive")
    play.say("r/task", 0.0, {"id": "t", "state": "started"})
    for at_s in (1.0, 1.4, 1.2, 2.0, 1.6):
        play.say("r/pose", at_s, pose(at_s / 10.0))
    play.finish()
    assert [step.signals["progress"] for step in play.steps] == pytest.approx([0.1, 0.12, 0.14, 0.16, 0.2])
    assert set(play.left_out) == {"missing_field"}


def test_a_topic_that_lags_behind_is_no_jump_of_time() -> None:
    play = Play(EVENTS, TIME="header")
    play.say("r/task", 0.0, {"id": "t", "state": "started", **stamp(T0)})
    for second in range(1, 5):
        play.say("r/pose", second, pose(0.1 * second, **stamp(T0 + second)))
        play.say("r/risk", second + 0.1, {"level": 0.1 * second, **stamp(T0 + second - 3.0)})
    assert len(play.steps) == 4
    assert "clock_reset" not in play.left_out
    assert [step.signals.get("risk") for step in play.steps] == [None, 0.1, 0.2, pytest.approx(0.3)]


def test_an_old_stamp_that_is_said_again_is_no_jump_of_time() -> None:
    play = Play(EVENTS, TIME="header")
    play.say("r/task", 0.0, {"id": "t", "state": "started", **stamp(T0)})
    for second in range(0, 60, 10):
        play.say("r/pose", second, pose(0.1, x=second, **stamp(T0 + second)))
        play.say("r/risk", second + 0.1, {"level": 0.01 * second, **stamp(T0 - 100.0)})
    assert len(play.steps) == 6
    assert "clock_reset" not in play.left_out


def test_a_fixed_rate_holds_the_latest_values_until_they_are_stale() -> None:
    play = Play(GAPS, STEP="cycle_s = 1.0, stale_s = 2.5")
    play.say("p", 0.0, {"x": 0.1})
    play.say("p", 2.2, {"x": 0.2})
    play.say("p", 8.2, {"x": 0.3})
    play.reports += play.assembler.advance(T0 + 9.5)
    told = [(step.step, step.signals["time_s"] - T0, step.signals["progress"]) for step in play.steps]
    assert told == [(0, 1.0, 0.1), (1, 2.0, 0.1), (2, 3.0, 0.2), (3, 4.0, 0.2), (8, 9.0, 0.3)]


def test_silence_ends_an_episode() -> None:
    play = Play(GAPS, STEP='trigger = "p"')
    play.say("p", 0.0, {"x": 0.1})
    play.say("p", 1.0, {"x": 0.2})
    play.say("p", 30.0, {"x": 0.1})
    play.reports += play.assembler.advance(T0 + 60.0)
    assert play.ends == [("0", "timeout"), ("1", "timeout")]


def test_an_agent_too_many_is_counted_and_an_idle_one_makes_room() -> None:
    mapping = parse_mapping(GAPS.replace('"a"', '{ field = "who" }').replace("STEP", 'trigger = "p"'), "mine.toml")
    assembler = EpisodeAssembler(mapping, session="s", most_agents=2)
    for who in ("a", "b", "c"):
        assembler.add(TimedMessage("p", T0, {"x": 0.1, "who": who}))
    assembler.add(TimedMessage("p", T0, {"x": 0.1}))
    assert assembler.report.left_out == {"too_many_agents": 1, "no_agent": 1}
    assembler.advance(T0 + 60.0)  # both have ended
    closed, step = assembler.add(TimedMessage("p", T0 + 61.0, {"x": 0.1, "who": "c"}))
    assert (closed.producer, closed.report) == ("a", SessionClosed())
    assert (step.producer, step.session) == ("c", "s.3")


def test_a_recording_may_have_any_number_of_agents_one_after_the_other() -> None:
    mapping = parse_mapping(GAPS.replace('"a"', '{ field = "who" }').replace("STEP", 'trigger = "p"'), "mine.toml")
    assembler = EpisodeAssembler(mapping, session="s", recorded=True, most_agents=3)
    reports = []
    for who in range(10):
        for second in range(4):
            message = TimedMessage("p", T0 + second, {"x": 0.1 * second, "who": who})
            reports += assembler.add(message)
    reports += assembler.finish()
    assert (assembler.report.steps, assembler.report.ends) == (40, 10)
    assert len({report.session for report in reports}) == 10
    assert not assembler.report.left_out


def test_too_many_agents_at_a_time_are_counted_in_a_recording_too() -> None:
    mapping = parse_mapping(GAPS.replace('"a"', '{ field = "who" }').replace("STEP", 'trigger = "p"'), "mine.toml")
    assembler = EpisodeAssembler(mapping, session="s", recorded=True, most_agents=2)
    for second in range(9):
        assembler.add(TimedMessage("p", T0 + second, {"x": 0.1, "who": second % 3}))
    assembler.finish()
    assert assembler.report.steps == 6
    assert assembler.report.left_out == {"too_many_agents": 3}


def test_a_header_that_cannot_be_is_told_with_its_reason() -> None:
    play = Play(GAPS.replace('family = "f"', 'family = "f", stress = { field = "l" }'), STEP='trigger = "p"')
    play.say("p", 0.0, {"x": 0.1, "l": 60})
    assert not play.steps
    assert "stress" in play.assembler.report.examples["unusable_header"]


def test_the_reorder_buffer_is_bounded() -> None:
    buffer = ReorderBuffer[int](math.inf)
    given_out = [item for number in range(MOST_HELD + 500) for item in buffer.add("t", float(number), number)]
    assert given_out == list(range(500))


CARTS = """
agent = { segment = "cart" }
header = { family = "hauling", stress = { topic = "{cart}/load", field = "kg", transform = { linear = [0, 20] } } }
step = { trigger = "{cart}/tick" }
signals = { progress = { topic = "{cart}/tick", field = "done" } }
[episode]
id = { topic = "{cart}/tick", field = "job" }
end = { topic = "{cart}/tick", field = "done", equals = 1, outcome = "success" }
navigation = { final_distance = { topic = "{cart}/tick", field = "cells" }, metres_per_unit = 0.05 }
"""


def headers_of(play: Play) -> dict[str, float | None]:
    return {step.header.episode: step.header.stress for step in play.steps}


def test_stress_is_what_was_measured_before_the_first_step() -> None:
    play = Play(CARTS)
    play.say("7/tick", 0.0, {"job": "a", "done": 0.5})
    play.say("7/load", 1.0, {"kg": 15})  # too late for the episode under way: its header has gone out
    play.say("7/tick", 2.0, {"job": "a", "done": 1})
    play.say("7/tick", 3.0, {"job": "b", "done": 0.5})  # 15 of 20 kg, and held: what was weighed last is on it
    play.say("7/tick", 4.0, {"job": "b", "done": 1})
    play.say("7/load", 5.0, {"kg": 30})
    play.say("7/tick", 6.0, {"job": "c", "done": 0.5})
    assert headers_of(play) == {"a": None, "b": 0.75, "c": 1.0}


def test_a_mapping_says_how_many_metres_its_unit_is() -> None:
    play = Play(CARTS)
    play.say("7/tick", 0.0, {"job": "a", "done": 1, "cells": 30})
    (end,) = (told.report for told in play.reports if isinstance(told.report, ReportedEnd))
    assert end.navigation == NavigationOutcome(final_distance=30.0, metres_per_unit=0.05)
