"""Where the episodes of mapped messages begin and end, and what is told of a whole one."""

import math

from springback.producers.contract.frame import NavigationOutcome
from springback.producers.emitter.reports import ReportedEnd
from tests.producers.mapping.mapped_play import EVENTS, GAPS, Play, pose

ORDERS = """
agent = "r"
header = { family = "delivery" }
step = { trigger = "report" }
signals = { progress = { topic = "report", field = "done" } }
[episode]
id = { topic = "report", field = "order" }
end = { topic = "report", field = "result", outcomes = { delivered = "success" } }
"""

ROWS = """
agent = "r"
header = { family = "f" }
step = { trigger = "#" }
signals = { progress = { field = "done" } }
episode = { end = { field = "result", outcomes = { ok = "success" } } }
"""

STARTED = {"id": "t", "state": "started"}
DONE = {"id": "t", "state": "done"}


def test_what_an_agent_still_says_of_an_ended_episode_is_no_new_one() -> None:
    play = Play(ORDERS)
    for at_s, result in enumerate(["", "", "delivered", "delivered", "", "delivered"]):
        play.say("report", at_s, {"done": 0.1 * at_s, "order": 12, "result": result})
    play.say("report", 7.0, {"done": 0.0, "order": 13, "result": ""})
    play.finish()
    assert [(step.header.episode, step.step) for step in play.steps] == [("12", 0), ("12", 1), ("12", 2), ("13", 0)]
    assert play.ends == [("12", "success"), ("13", "aborted")]
    assert play.left_out == {"after_end": 3}


def test_an_id_that_comes_again_is_another_episode_of_the_same_task() -> None:
    play = Play(EVENTS, TIME="receive")
    for at_s in (0.0, 10.0, 20.0):
        play.say("r/task", at_s, STARTED)
        play.say("r/pose", at_s + 1.0, pose(0.5))
        play.say("r/task", at_s + 2.0, DONE)
    assert play.ends == [("t", "success"), ("t#2", "success"), ("t#3", "success")]
    assert [step.header.task for step in play.steps] == [None, "t", "t"]
    assert play.left_out["id_again"] == 2


def test_episodes_of_one_agent_that_alternate_keep_all_their_steps() -> None:
    play = Play(ORDERS)
    for at_s in range(6):
        play.say("report", at_s, {"done": 0.1, "order": at_s % 2})
    assert len({(step.header.episode, step.step) for step in play.steps}) == 6
    assert play.left_out["id_again"] == 4


def test_an_end_without_a_begin_and_a_second_end_are_nothing() -> None:
    play = Play(EVENTS, TIME="receive")
    play.say("r/task", 0.0, DONE)
    play.say("r/pose", 1.0, pose(0.1))
    play.say("r/task", 2.0, STARTED)
    play.say("r/pose", 3.0, pose(0.2))
    play.say("r/task", 4.0, DONE)
    play.say("r/task", 5.0, DONE)
    play.say("r/pose", 6.0, pose(0.3))
    play.finish()
    assert [step.signals["progress"] for step in play.steps] == [0.2]
    assert play.ends == [("t", "success")]


def test_an_end_is_told_by_a_field_that_is_there_at_ends_alone() -> None:
    play = Play(ROWS, recorded=True)
    for at_s in range(9):
        play.say("", at_s, {"done": at_s % 3 / 2} | ({"result": "ok"} if at_s % 3 == 2 else {}))
    play.finish()
    assert play.ends == [("0", "success"), ("1", "success"), ("2", "success")]
    assert [step.step for step in play.steps] == [0, 1, 2] * 3


def test_what_is_told_at_the_end_is_of_the_whole_episode() -> None:
    navigation = """{ path = { topic = "p", field = "at", transform = "distance_travelled" },
        actions = { topic = "p", over = "count" }, goals_met = { topic = "p", field = "goal", over = "sum" } }"""
    play = Play(
        GAPS.replace('"timeout"', f'"timeout", navigation = {navigation}'.replace("\n", "")), STEP='trigger = "p"'
    )
    for at_s in range(5):
        play.say("p", at_s, {"x": 0.1, "at": [2.0 * at_s, 0.0], "goal": at_s % 2})
    play.finish()
    (end,) = [told.report for told in play.reports if isinstance(told.report, ReportedEnd)]
    assert end.navigation == NavigationOutcome(path=8.0, actions=5, goals_met=2)
    assert isinstance(end.navigation.actions, int)


def test_a_value_that_is_no_number_leaves_the_greatest_of_a_step() -> None:
    play = Play(
        GAPS.replace("progress", 'risk = { topic = "r", field = "x", over = "maximum" }, progress'),
        STEP='trigger = "p"',
    )
    play.say("p", 0.0, {"x": 0.1})
    for place, value in enumerate([1.0, 3.0, math.nan, 2.0]):
        play.say("r", 0.1 * (1 + place), {"x": value})
    play.say("p", 1.0, {"x": 0.2})
    assert play.steps[-1].signals["risk"] == 3.0
    assert play.left_out == {"unusable_value": 1}


def test_a_silent_agent_makes_no_steps_of_defaults() -> None:
    play = Play(GAPS.replace('field = "x"', 'field = "x", default = 0').replace("gap_s = 10", "whole = true"),
                STEP="cycle_s = 0.5, stale_s = 3")  # fmt: skip
    play.say("p", 0.0, {"x": 0.1})
    play.say("p", 300_000_000.0, {"x": 0.2})  # its clock was years behind
    play.reports += play.assembler.advance(1_790_000_000.0 + 300_000_001.0)
    assert [step.signals["progress"] for step in play.steps] == [0.1] * 6 + [0.2] * 2


def test_traits_never_get_old() -> None:
    play = Play(GAPS.replace('"f"', '{ topic = "about", field = "family", stale_s = 5 }'), STEP='trigger = "p"')
    play.say("about", -100.0, {"family": "picking"})
    play.say("p", 0.0, {"x": 0.1})
    assert [step.header.family for step in play.steps] == ["picking"]


def test_what_was_left_out_is_told_key_by_key() -> None:
    play = Play(EVENTS, TIME="receive")
    play.say("r/task", 0.0, STARTED)
    play.say("r/pose", 1.0, {"done": 0.1})
    told = play.assembler.report
    assert told.left_out == {"missing_field": 3}
    assert told.examples == {
        "missing_field of signals.mode": "r/task has no phase",
        "missing_field of navigation.path": "r/task has no metres",
        "missing_field of signals.travel": "r/pose has no at",
    }
