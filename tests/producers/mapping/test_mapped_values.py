"""Values that are not what they seem: what remains, what is not known, shares of another field, state by name."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.producers.errors import MappingError
from springback.producers.mapping.newest import Chain, NewestBoard
from springback.producers.mapping.transforms import plain_transform
from tests.producers.mapping.mapped_play import GAPS, Play


def progress_of(play: Play) -> list[float]:
    return [step.signals["progress"] for step in play.steps]


def played(progress: str, values: list[object]) -> Play:
    play = Play(GAPS.replace('{ topic = "p", field = "x" }', progress), STEP='trigger = "p"')
    for at_s, value in enumerate(values):
        play.say("p", at_s, value if isinstance(value, dict) else {"x": value})
    return play


REMAINING = '{ topic = "p", field = "x", transform = "progress_from_remaining" }'


def test_progress_counts_against_the_largest_that_remained() -> None:
    play = played(REMAINING, [0.1, 10.0, 9.0, 5.0, 10.2, 2.55, 0.0])
    assert progress_of(play) == pytest.approx([0.0, 0.0, 0.1, 0.5, 0.0, 0.75, 1.0])
    # From the tail of an old path to the new one, and from half of the way to a longer one.
    assert play.left_out == {"progress_started_again": 2}
    assert (
        "p has '10.0' as x: what remains has jumped"
        in (play.assembler.report.examples["progress_started_again of signals.progress"])
    )


def test_what_remains_and_grows_by_noise_alone_has_not_jumped() -> None:
    play = played(REMAINING, [10.0, 10.05, 10.1, 10.06])
    assert progress_of(play) == pytest.approx([0.0, 0.0, 0.0, 0.04 / 10.1])
    assert not play.left_out


def test_the_next_episode_does_not_know_how_much_remained_in_the_last() -> None:
    play = Play(GAPS.replace('{ topic = "p", field = "x" }', REMAINING), STEP='trigger = "p"')
    for at_s, left in ((0.0, 100.0), (1.0, 50.0), (30.0, 4.0), (31.0, 1.0)):
        play.say("p", at_s, {"x": left})
    assert progress_of(play) == [0.0, 0.5, 0.0, 0.75]


@given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=30))
def test_progress_from_what_remains_is_a_share_and_ends_at_one(values: list[float]) -> None:
    chain = Chain((plain_transform("progress_from_remaining"),))
    told = [chain.apply(value, NewestBoard()) for value in values]
    for place, share in enumerate(told):
        largest = max(values[: place + 1])
        assert share == (None if largest == 0.0 else pytest.approx(1.0 - values[place] / largest))


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30))
def test_progress_from_a_queue_never_goes_back_and_ends_at_one(lengths: list[int]) -> None:
    chain = Chain((plain_transform("progress_from_queue"),))
    told = [chain.apply(float(length), NewestBoard()) for length in [7, *lengths, 0]]
    assert told == sorted(told)
    assert told[0] == 0.0
    assert told[-1] == 1.0
    added = sum(max(later - earlier, 0) for earlier, later in zip([7, *lengths], [*lengths, 0]))
    done = 7 + added - lengths[-1]
    assert told[-2] >= done / (7 + added) - 1e-12


def test_what_stands_for_not_known_says_nothing() -> None:
    play = played('{ topic = "p", field = "x", unknown = [65535, -1, "n/a"] }', [65535, 0.25, -1, "n/a", 0.5])
    assert progress_of(play) == [0.25, 0.25, 0.25, 0.5]
    assert play.left_out == {"unknown": 3, "no_progress": 1}


def test_what_is_not_known_gets_stale() -> None:
    play = Play(
        GAPS.replace('field = "x"', 'field = "x", unknown = -1').replace("gap_s = 10", "whole = true"),
        STEP='trigger = "p", stale_s = 2',
    )
    for at_s, x in ((0.0, 0.5), (1.0, -1), (3.0, -1), (4.0, 0.6)):
        play.say("p", at_s, {"x": x})
    assert progress_of(play) == [0.5, 0.5, 0.6]


def test_items_that_are_not_known_are_left_out_of_a_list() -> None:
    play = played('{ topic = "p", field = "cells", unknown = 255, transform = "minimum" }',
                  [{"cells": [255, 0.5, 0.75]}, {"cells": [0.25, 255]}])  # fmt: skip
    assert progress_of(play) == [0.5, 0.25]


def test_an_id_that_is_not_known_is_the_one_before() -> None:
    play = Play(GAPS.replace("gap_s = 10", 'id = { topic = "p", field = "job", unknown = "" }'), STEP='trigger = "p"')
    for at_s, job in enumerate(("a", "", "a", "b")):
        play.say("p", at_s, {"x": 0.1, "job": job})
    assert [step.header.episode for step in play.steps] == ["a", "a", "a", "b"]


ITEM = '{ topic = "p", field = "item", transform = { divide_by = "of" } }'


def test_item_i_of_n_is_progress() -> None:
    messages: list[object] = [{"item": item, "of": of} for item, of in ((0, 0), (0, 4), (3, 4), (5, 25), (25, 25))]
    play = played(ITEM, messages)
    assert progress_of(play) == [0.0, 0.75, 0.2, 1.0]
    assert play.left_out == {"no_divisor": 1, "no_progress": 1}  # there is no item of none


def test_a_transform_before_a_division_works_on_what_is_divided() -> None:
    play = played('{ topic = "p", field = "item", transform = [{ offset = 1 }, { divide_by = "of" }] }',
                  [{"item": 0, "of": 4}, {"item": 3, "of": 4}])  # fmt: skip
    assert progress_of(play) == [0.25, 1.0]


def test_n_may_be_told_by_another_topic_and_not_be_known() -> None:
    divisor = '{ topic = "plan", field = "items[*]", transform = "count" }'
    play = played(f'{{ topic = "p", field = "item", transform = {{ divide_by = {divisor} }} }}', [{"item": 1}])
    assert progress_of(play) == []
    play.say("plan", 1.0, {"items": ["a", "b", "c", "d"]}, retained=True)
    play.say("p", 2.0, {"item": 1})
    play.say("plan", 3.0, {"items": ["a", "b", "c", "d", "e"]})
    play.say("p", 4.0, {"item": 2})
    assert progress_of(play) == [0.25, 0.4]


RISK = """risk = { topic = "diag", field = "status[*].level", latest_by = "name", stale_s = 5,
    transform = [{ table = { 0 = 0.0, 1 = 0.5, 2 = 1.0 } }, "maximum"] }, progress""".replace("\n", "")


def diagnosed(*said: tuple[float, list[tuple[str, int]]], risk: str = RISK) -> list[float | None]:
    play = Play(GAPS.replace("progress", risk, 1), STEP='trigger = "p"')
    messages: list[tuple[float, str, dict[str, Any]]] = [
        (at_s, "diag", {"status": [{"name": name, "level": level} for name, level in one]}) for at_s, one in said
    ]
    messages += [(float(second) + 0.5, "p", {"x": 0.1}) for second in range(-1, 10)]
    for at_s, topic, value in sorted(messages, key=lambda one: one[0]):
        play.say(topic, at_s, value)
    return [step.signals.get("risk") for step in play.steps]


def test_the_latest_of_each_name_counts_and_ages() -> None:
    told = diagnosed((0.0, [("lidar", 2)]), (0.1, [("motor", 0)]), (1.2, [("battery", 1)]), (3.0, [("lidar", 0)]))
    # Before anything; the lidar's error; then only the battery's warning, until 6.2; the lidar is well until 8.
    assert told == [None, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.0, 0.0, None, None]


def test_equal_names_in_one_message_all_count() -> None:
    assert diagnosed((0.0, [("", 2), ("", 0)]))[1] == 1.0


def test_an_item_without_a_name_is_counted() -> None:
    play = Play(GAPS.replace("progress", RISK, 1), STEP='trigger = "p"')
    play.say("p", 0.0, {"x": 0.1})
    play.say("diag", 0.5, {"status": [{"level": 2}]})
    play.say("p", 1.0, {"x": 0.1})
    assert [step.signals.get("risk") for step in play.steps] == [None, None]
    assert play.left_out == {"no_name": 1}


def test_names_may_be_fields_of_the_message_or_levels_of_the_topic() -> None:
    for topic, by in (("dev/{device}", '"{device}"'), ("dev/+", '"device"'), ("dev/+", '["device", "port"]')):
        risk = f'risk = {{ topic = "{topic}", field = "level", latest_by = {by}, transform = "maximum" }}, progress'
        play = Play(GAPS.replace("progress", risk, 1), STEP='trigger = "p"')
        play.say("p", 0.0, {"x": 0.1})
        for device, level in (("a", 0.9), ("b", 0.1), ("a", 0.3)):
            play.say(f"dev/{device}", 0.5, {"device": device, "port": 1, "level": level})
        play.say("p", 1.0, {"x": 0.1})
        assert play.steps[-1].signals["risk"] == 0.3


@pytest.mark.parametrize(
    ("progress", "told"),
    [
        (
            '{ field = "x", latest_by = "name", over = "sum" }',
            "latest_by: got 'name', expected no latest_by where over",
        ),
        ('{ field = "x", latest_by = "{robot}" }', "latest_by: got '{robot}', expected a field, or a level that the"),
        ('{ field = "x", latest_by = 3 }', r"latest_by\[0\]: got 3, expected a text"),
        ('{ field = "x", unknown = [[1]] }', r"unknown: got \[\[1\]\], expected a text, a number"),
        ('{ field = "x", transform = { divide_by = 3 } }', r"divide_by: got 3, expected a field of the same message"),
        ('{ field = "x", transform = { divide_by = { topic = "t" } } }', r"divide_by.field is missing"),
    ],
)
def test_what_is_wrong_with_a_value_is_told(progress: str, told: str) -> None:
    with pytest.raises(MappingError, match=told):
        played(progress, [])
