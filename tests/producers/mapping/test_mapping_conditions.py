"""What a mapping can say of when something is over: and, or, not, unless, for any and for all, over several topics."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springback.producers.errors import MappingError
from springback.producers.mapping.conditions import Conditions
from springback.producers.mapping.newest import NewestBoard
from springback.producers.mapping.signal_mapping import parse_mapping
from springback.producers.mapping.toml_section import TomlSection
from tests.examples import examples
from tests.producers.mapping.mapped_play import Play

DONE = {"field": "done", "equals": True}
HELD = {"field": "held", "equals": True}
PARTS = {"field": "parts", "for_all": {"field": "state", "equals": ["ok", "skipped"]}}


def holds(condition: dict[str, Any], *messages: Any, **named: Any) -> bool:
    read = Conditions(named, "mine.toml").read(TomlSection(condition, "mine.toml"), None)
    board = NewestBoard()
    for message in messages:
        board.hear(read.looks(), message)
    return read.holds(board)


@pytest.mark.parametrize(
    ("condition", "message", "expected"),
    [
        (DONE, {"done": True}, True),
        (DONE, {"done": "true"}, True),
        (DONE, {"done": False}, False),
        (DONE, {}, False),
        ({"field": "done"}, {"done": {"any": "thing"}}, True),
        ({"field": "done"}, {"other": 1}, False),
        ({"all": [DONE, HELD]}, {"done": True, "held": True}, True),
        ({"all": [DONE, HELD]}, {"done": True}, False),
        ({"any": [DONE, HELD]}, {"held": True}, True),
        ({"any": [DONE, HELD]}, {}, False),
        ({"not": DONE}, {}, True),
        ({"not": DONE}, {"done": True}, False),
        ({"not": [DONE, HELD]}, {"held": True}, False),  # of a list, any
        ({**DONE, "not": HELD}, {"done": True, "held": True}, False),  # all that one table says
        ({**DONE, "not": HELD}, {"done": True}, True),
        ({"field": "left", "at_most": 2}, {"left": 2}, True),
        ({"field": "left", "at_least": 1, "at_most": 2}, {"left": 0}, False),
        ({"field": "left", "at_least": 1}, {"left": "many"}, False),
        ({"field": "left", "transform": "count", "equals": 0}, {"left": []}, True),
        (PARTS, {"parts": [{"state": "ok"}, {"state": "skipped"}]}, True),
        (PARTS, {"parts": [{"state": "ok"}, {"state": "running"}]}, False),
        (PARTS, {"parts": [{"state": "ok"}, {}]}, False),
        (PARTS, {"parts": []}, True),
        (PARTS, {}, False),
        ({"field": "marks", "for_any": [4, 5]}, {"marks": [1, 5]}, True),
        ({"field": "marks", "for_any": [4, 5]}, {"marks": [1, 2]}, False),
        ({"field": "marks", "for_any": 4}, {"marks": 4}, True),
        ({"field": "item", "transform": {"divide_by": "of"}, "at_least": 0.5}, {"item": 3, "of": 5}, True),
        ({"field": "item", "transform": {"divide_by": "of"}, "at_least": 0.5}, {"item": 3, "of": 7}, False),
    ],
)
def test_conditions_on_one_message(condition: dict[str, Any], message: Any, expected: bool) -> None:
    assert holds(condition, message) == expected


def test_conditions_have_names_and_are_about_items_too() -> None:
    named = {"broken": {"all": [{"field": "state", "equals": "failed"}, {"not": {"field": "spare", "equals": True}}]}}
    condition = {"not": {"field": "parts", "for_any": "broken"}}
    assert holds(condition, {"parts": [{"state": "failed", "spare": True}, {"state": "ok"}]}, **named)
    assert not holds(condition, {"parts": [{"state": "ok"}, {"state": "failed"}]}, **named)


@pytest.mark.parametrize(
    ("condition", "named", "told"),
    [
        ({}, {}, r"mine.toml: the file: got {}, expected a field, or one of all, any, not"),
        (
            {"all": ["over"]},
            {"ended": DONE},
            r"all\[0\]: got 'over', expected a condition: .* \[conditions\] \(ended\)",
        ),
        ({"all": [3]}, {}, r"all\[0\]: got 3, expected a condition: a table, or .* \(it has none\)"),
        ({"not": {"feld": "x"}}, {}, r"not.feld is not known; did you mean field\?"),
        ({"field": "x", "equals": [[1]]}, {}, r"equals: got \[\[1\]\], expected a text, a number"),
        ({"field": "x", "at_least": "1"}, {}, r"at_least: got '1', expected a number"),
        ({"field": "x", "for_all": {"topic": "t", "field": "y"}}, {}, r"for_all.topic is not known"),
        ({"all": "a"}, {"a": {"any": ["b"]}, "b": {"not": "a"}}, r"conditions.a: it is part of itself: a > b"),
    ],
)
def test_what_is_no_condition_is_told(condition: dict[str, Any], named: dict[str, Any], told: str) -> None:
    with pytest.raises(MappingError, match=told):
        holds(condition, {}, **named)


ARM = """
agent = "arm"
header = { family = "assembly" }
step = { trigger = "arm/state" }
signals = { progress = { topic = "arm/state", field = "done" } }
[conditions]
stopped = { topic = "cell/guard", field = "open", equals = true }
[episode]
id = { topic = "arm/state", field = "job" }
END
"""

TOGETHER = """[[episode.end]]
all = [{ topic = "arm/state", field = "done", at_least = 1 }, { topic = "camera", field = "seated", equals = true }]
unless = "stopped"
outcome = "success"
[[episode.end]]
any = [{ topic = "camera", field = "dropped", equals = true }, { topic = "arm/state", field = "fault" }]
outcome = "failure"
"""


def arm(end: str = TOGETHER) -> Play:
    return Play(ARM, END=end)


def state(job: str, done: float, **more: Any) -> dict[str, Any]:
    return {"job": job, "done": done, **more}


@pytest.mark.parametrize("camera_first", [True, False])
def test_an_end_that_two_topics_say_together(camera_first: bool) -> None:
    play = arm()
    play.say("arm/state", 0.0, state("a", 0.5))
    if camera_first:
        play.say("camera", 0.5, {"seated": True})
        play.say("arm/state", 1.0, state("a", 1.0))
    else:
        play.say("arm/state", 1.0, state("a", 1.0))
        assert play.ends == []
        play.say("camera", 1.5, {"seated": True})
    assert play.ends == [("a", "success")]
    assert [step.signals["progress"] for step in play.steps] == [0.5, 1.0]


@pytest.mark.parametrize(("topic", "value"), [("camera", {"dropped": True}), ("arm/state", state("a", 0.6, fault="x"))])
def test_an_end_that_either_topic_says(topic: str, value: dict[str, Any]) -> None:
    play = arm()
    play.say("arm/state", 0.0, state("a", 0.5))
    play.say(topic, 1.0, value)
    assert play.ends == [("a", "failure")]


def test_what_becomes_true_while_the_guard_is_open_is_passed_over() -> None:
    play = arm()
    play.say("arm/state", 0.0, state("a", 0.5))
    play.say("cell/guard", 0.5, {"open": True})
    play.say("camera", 0.6, {"seated": True})
    play.say("arm/state", 1.0, state("a", 1.0))
    play.say("cell/guard", 1.5, {"open": False})
    play.say("arm/state", 2.0, state("a", 1.0))
    assert play.ends == []
    play.say("arm/state", 3.0, state("a", 0.2))
    play.say("arm/state", 4.0, state("a", 1.0))
    assert play.ends == [("a", "success")]


def test_what_must_not_hold_is_waited_for_where_it_is_a_condition() -> None:
    play = arm(TOGETHER.replace('unless = "stopped"', 'not = "stopped"'))
    play.say("arm/state", 0.0, state("a", 0.5))
    play.say("cell/guard", 0.5, {"open": True}, retained=True)  # what a broker kept is the present state
    play.say("camera", 0.6, {"seated": True})
    play.say("arm/state", 1.0, state("a", 1.0))
    assert play.ends == []
    play.say("cell/guard", 1.5, {"open": False})
    assert play.ends == [("a", "success")]


def test_what_held_before_an_episode_does_not_end_it() -> None:
    play = arm()
    play.say("camera", -1.0, {"seated": True})
    play.say("arm/state", 0.0, state("a", 1.0))
    play.say("arm/state", 1.0, state("b", 0.1))
    play.say("camera", 1.5, {"seated": True})
    play.say("arm/state", 2.0, state("b", 0.9))
    assert play.ends == [("a", "success")]
    play.say("arm/state", 3.0, state("b", 1.0))
    assert play.ends == [("a", "success"), ("b", "success")]


SEATED = """[episode.end]
all = [{ topic = "camera", field = "seated", equals = true }]
unless = "stopped"
outcome = "success"
"""


def test_what_was_passed_over_in_one_episode_does_not_end_the_next() -> None:
    play = arm(SEATED)
    play.say("arm/state", 0.0, state("a", 0.5))
    play.say("cell/guard", 0.5, {"open": True})
    play.say("camera", 0.6, {"seated": True})
    play.say("arm/state", 1.0, state("b", 0.1))
    play.say("cell/guard", 1.5, {"open": False})
    assert play.ends == [("a", "aborted")]
    for seated in (False, True):
        play.say("camera", 2.0, {"seated": seated})
    assert play.ends == [("a", "aborted"), ("b", "success")]


def test_what_conditions_have_heard_outlives_a_session() -> None:
    play = Play('session_end = { topic = "arm/off" }\n' + ARM, END=SEATED)
    play.say("cell/guard", 0.0, {"open": True})
    play.say("arm/state", 0.5, state("a", 0.5))
    play.say("arm/off", 1.0, {})
    play.say("arm/state", 2.0, state("b", 0.5))
    play.say("camera", 2.5, {"seated": True})
    assert play.ends == [("a", "aborted")]  # the guard is open still


def test_a_goodbye_that_two_topics_said_together_is_not_said_again_by_one_of_them() -> None:
    off, shut = (f'{{ topic = "{topic}", field = "said", equals = true }}' for topic in ("power", "lid"))
    play = Play(f"session_end = {{ all = [{off}, {shut}] }}\n" + ARM, END="gap_s = 60")
    play.say("arm/state", 0.0, state("a", 0.5))
    for topic in ("power", "lid"):
        play.say(topic, 0.5, {"said": True})
    assert play.ends == [("a", "aborted")]
    for at_s, job in ((1.0, "b"), (2.0, "c")):
        play.say("arm/state", at_s, state(job, 0.5))
    play.say("lid", 2.5, {"said": True})
    play.say("arm/state", 3.0, state("c", 0.6))
    assert play.ends == [("a", "aborted"), ("b", "aborted")]
    assert [step.header.episode for step in play.steps] == ["a", "b", "c", "c"]


GUARDED = """[episode.end]
topic = "verdict"
field = "word"
outcomes = { good = "success", bad = "failure" }
all = [{ topic = "arm/state", field = "done", at_least = 1 }]
"""


def test_a_word_counts_once_what_it_waits_for_holds() -> None:
    play = arm(GUARDED)
    play.say("arm/state", 0.0, state("a", 0.5))
    play.say("verdict", 0.5, {"word": "good"})
    assert play.ends == []
    play.say("arm/state", 1.0, state("a", 1.0))
    assert play.ends == [("a", "success")]
    play.say("arm/state", 2.0, state("b", 0.5))
    play.say("arm/state", 3.0, state("b", 1.0))
    assert play.ends == [("a", "success")]  # the word was of the episode before
    play.say("verdict", 3.5, {"word": "bad"})
    assert play.ends == [("a", "success"), ("b", "failure")]


def test_a_message_is_an_event_where_its_conditions_are_of_other_topics() -> None:
    play = arm('[episode.end]\ntopic = "button"\nall = ["stopped"]\noutcome = "aborted"')
    play.say("arm/state", 0.0, state("a", 0.5))
    play.say("button", 0.5, {})
    play.say("cell/guard", 1.0, {"open": True})
    assert play.ends == []
    play.say("button", 1.5, {})
    assert play.ends == [("a", "aborted")]


ROWS = """
agent = "r"
header = { family = "f" }
step = { trigger = "#" }
signals = { progress = { field = "done" } }
[episode]
id = { field = "run" }
end = { all = [{ field = "done", at_least = 1 }, { field = "checks", for_all = ["passed"] }], outcome = "success" }
"""
EACH_ROW = ROWS.replace('outcome = "success"', 'outcome = "success", each = true')


def test_conditions_become_true_again_in_the_next_episode() -> None:
    play = Play(ROWS, recorded=True)
    for run in range(3):
        play.say("", 2.0 * run, {"run": run, "done": 0.5, "checks": ["passed"]})
        play.say("", 2.0 * run + 1.0, {"run": run, "done": 1, "checks": ["passed", "passed"]})
    play.finish()
    assert play.ends == [("0", "success"), ("1", "success"), ("2", "success")]


def test_rows_that_are_episodes_of_their_own_all_count() -> None:
    play = Play(EACH_ROW, recorded=True)
    for run in range(3):
        play.say("", float(run), {"run": run, "done": 1, "checks": ["passed", "passed"]})
    play.finish()
    assert play.ends == [("0", "success"), ("1", "success"), ("2", "success")]


@pytest.mark.parametrize("test", ["at_least = 1", 'for_any = ["1", 1]', "for_all = { at_least = 1 }"])
def test_an_event_may_test_a_number_or_a_list(test: str) -> None:
    play = arm(f'[episode.end]\ntopic = "arm/state"\nfield = "done"\n{test}\noutcome = "success"')
    for at_s, done in ((0.0, 0.5), (1.0, 1.0)):
        play.say("arm/state", at_s, state("a", done))
    assert play.ends == [("a", "success")]


def test_an_episode_whose_beginning_was_not_seen_is_joined() -> None:
    play = arm('gap_s = 60\njoined = [{ topic = "arm/state", field = "age_s", at_least = 5 }, "stopped"]')
    for at_s, job, age_s in ((0.0, "a", 30.0), (1.0, "a", 31.0), (2.0, "b", 1.0), (3.0, "b", 9.0)):
        play.say("arm/state", at_s, state(job, 0.5, age_s=age_s))
    assert [(step.header.episode, step.step) for step in play.steps] == [("a", 1), ("a", 2), ("b", 0), ("b", 1)]
    assert play.left_out["joined"] == 1


@pytest.mark.parametrize(
    ("recorded", "first", "steps"), [(False, "a", [1, 0]), (False, "", [0, 0]), (True, "a", [0, 0])]
)
def test_a_state_that_names_an_episode_when_it_is_first_heard_is_of_its_midst(
    recorded: bool, first: str, steps: list[int]
) -> None:
    text = ARM.replace("END", 'begin = { topic = "arm/state", field = "job", unknown = "" }')
    play = Play(text.replace('field = "job" }', 'field = "job", unknown = "" }', 1), recorded=recorded)
    for at_s, job in enumerate((first, "a", "b")):
        play.say("arm/state", 2.0 * at_s, state(job, 0.1))
    play.finish()
    begun = {step.header.episode: step.step for step in reversed(play.steps)}
    assert [begun["a"], begun["b"]] == steps
    assert play.left_out.get("joined", 0) == steps[0]


def test_an_event_that_tests_a_number_has_one_outcome() -> None:
    end = '[episode.end]\nfield = "done"\nat_least = 1\noutcomes = { 1 = "success" }'
    with pytest.raises(MappingError, match=r"episode.end: got .* expected neither unknown nor outcomes beside a test"):
        parse_mapping(ARM.replace("END", end), "mine.toml")


def test_values_are_guarded_too() -> None:
    signals = 'progress = { topic = "p", field = "x", unless = { topic = "mode", field = "m", equals = "manual" } }'
    play = Play(ARM.replace('progress = { topic = "arm/state", field = "done" }', signals), END="gap_s = 60")
    for at_s, mode, x in ((0.0, "auto", 0.1), (1.0, "manual", 0.9), (2.0, "auto", 0.2)):
        play.say("mode", at_s, {"m": mode})
        play.say("p", at_s + 0.1, {"x": x})
        play.say("arm/state", at_s + 0.2, state("a", 0.0))
    assert [step.signals["progress"] for step in play.steps] == [0.1, 0.1, 0.2]


def test_a_mapping_subscribes_to_what_its_conditions_look_at() -> None:
    mapping = parse_mapping(ARM.replace("END", TOGETHER), "mine.toml")
    assert set(mapping.topics) == {"arm/state", "camera", "cell/guard"}
    assert mapping.columns == frozenset({"header", "done", "job", "seated", "open", "dropped", "fault"})


def test_a_named_condition_that_nobody_uses_is_checked_too() -> None:
    with pytest.raises(MappingError, match=re.escape("mine.toml: conditions.stopped.equal is not known")):
        parse_mapping(ARM.replace("END", "whole = true").replace("equals = true", "equal = true"), "mine.toml")


SAID = st.tuples(st.sampled_from(["arm/state", "camera", "cell/guard"]), st.booleans(), st.booleans())


@settings(max_examples=examples(200), deadline=None)
@given(said=st.lists(SAID, max_size=25), unless=st.booleans())
def test_an_event_happens_when_all_of_it_becomes_true(said: list[tuple[str, bool, bool]], unless: bool) -> None:
    word = "unless" if unless else "not"
    end = (
        '[episode.end]\nall = [{ topic = "arm/state", field = "a", equals = true }, '
        f'{{ topic = "camera", field = "b", equals = true }}]\n{word} = "stopped"\noutcome = "success"'
    )
    play = arm(end.replace("[episode.end]", 'begin = { topic = "begin" }\n[episode.end]'))
    newest = {"a": False, "b": False, "open": False}
    expected, before = 0, False
    for at_s, (topic, value, both) in enumerate(said):
        play.say("begin", at_s, {"job": "x"})
        field = {"arm/state": "a", "camera": "b", "cell/guard": "open"}[topic]
        play.say(topic, at_s + 0.5, {"job": "x", "done": 0.5, field: value} if both or value else {"job": "x"})
        newest[field] = value
        holds = newest["a"] and newest["b"] and (unless or not newest["open"])
        happens = holds and not before and not (unless and newest["open"])
        expected += happens and topic == "arm/state"  # the others make no step, so that there is nothing to end
        before = holds
    assert len([outcome for _, outcome in play.ends if outcome == "success"]) == expected
