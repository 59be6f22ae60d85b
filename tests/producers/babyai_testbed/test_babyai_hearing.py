"""What the agent makes of words that it does not know: it tries, rules out, reads again, and gets there in the end."""

from typing import Any

import numpy as np
import pytest
from minigrid.core.actions import Actions

from springback.producers.babyai_testbed.agent import Decision, RecoveringAgent
from springback.producers.babyai_testbed.hearing import Hearing
from springback.producers.babyai_testbed.mission import MissionBeliefs, cell_of
from springback.producers.babyai_testbed.simulated_time import CostModel
from springback.producers.perturbations.paraphrase import Edit, Paraphrase
from tests.producers.babyai_testbed.babyai_rooms import (
    ball_of,
    go_to,
    open_room,
    pick_up,
    things_of_minigrid,
    verifier,
)

COLOUR = Edit("colour", "red", "crimson", thing=0)
THING = Edit("thing", "ball", "sphere", thing=0)


def told(*edits: Edit) -> Paraphrase:
    return Paraphrase("in other words", edits, possible=10)


def box_of(colour: str) -> Any:
    return things_of_minigrid.Box(colour)


def door_of(colour: str) -> Any:
    return things_of_minigrid.Door(colour)


def meant_by(level: Any, *edits: Edit) -> list[Any]:
    """The things that the agent takes for the first that its mission names."""
    beliefs = MissionBeliefs(level)
    Hearing(level, beliefs, told(*edits))
    action, name = beliefs.named_things()[0]
    return list(getattr(action, name).obj_set)


def play(level: Any, *edits: Edit, limit: int = 80) -> tuple[list[Decision], list[Any]]:
    """Has a mission played that is told so: the decisions, and what the agent stood before at each new plan."""
    agent = RecoveringAgent(level, CostModel(), np.random.default_rng(0))
    agent.hear(told(*edits))
    decisions: list[Decision] = []
    stood_before = []
    for _ in range(limit):
        before = level.grid.get(*level.front_pos)
        decisions.append(agent.decide())
        if decisions[-1].remark:
            stood_before.append(before)
        if level.step(decisions[-1].action)[2]:
            return decisions, stood_before
    pytest.fail(f"not done after {limit} steps")


def test_a_word_that_it_does_not_know_narrows_nothing_down() -> None:
    red, blue, box, door = ball_of("red"), ball_of("blue"), box_of("red"), door_of("red")
    level = open_room(go_to("ball", "red"), (red, 6, 1), (blue, 1, 6), (box, 6, 6), (door, 7, 3))
    assert meant_by(level) == [red]
    assert set(map(id, meant_by(level, COLOUR))) == {id(red), id(blue)}  # any ball
    assert set(map(id, meant_by(level, THING))) == {id(red), id(box), id(door)}  # anything red
    assert len(meant_by(level, COLOUR, THING)) == 4


def test_a_place_that_it_does_not_know_is_anywhere() -> None:
    left, right = ball_of("red"), ball_of("red")
    mission = verifier.GoToInstr(verifier.ObjDesc("ball", "red", "front"))
    level = open_room(mission, (left, 1, 6), (right, 5, 1))
    assert meant_by(level) == [right]  # the agent stands at (1, 1) and looks along the row
    assert len(meant_by(level, Edit("place", "in front of you", "ahead of you", thing=0))) == 2


def test_it_knows_what_an_act_can_be_done_to() -> None:
    red, door, other = ball_of("red"), door_of("red"), door_of("blue")
    things = [(red, 6, 1), (door, 7, 3), (other, 3, 7)]
    assert meant_by(open_room(pick_up("ball", "red"), *things), COLOUR, THING) == [red]  # doors cannot be carried
    opened = open_room(verifier.OpenInstr(verifier.ObjDesc("door", "red")), *things)
    assert set(map(id, meant_by(opened, COLOUR, THING))) == {id(door), id(other)}  # and they alone can be opened


def test_the_nearest_is_tried_first_and_ruled_out() -> None:
    near, far, red = ball_of("blue"), ball_of("green"), ball_of("red")
    things = (far, 6, 1), (near, 1, 3), (red, 6, 6)
    level = open_room(go_to("ball", "red"), *things)
    decisions, tried = play(level, COLOUR)
    assert tried == [near, far]  # each looked like what was meant, and nothing came of it
    assert cell_of(level.front_pos) == (6, 6)
    assert len(play(open_room(go_to("ball", "red"), *things))[0]) < len(decisions)


def test_where_it_may_be_wrong_it_does_one_act_at_a_time() -> None:
    blue, red, box = ball_of("blue"), ball_of("red"), box_of("blue")
    mission = verifier.BeforeInstr(go_to("ball", "red"), go_to("box", "blue"))
    _, tried = play(open_room(mission, (blue, 3, 1), (red, 6, 3), (box, 1, 6)), COLOUR)
    assert tried == [blue]  # it does not go on to the box before it has found out


def test_a_wrong_thing_that_was_picked_up_is_put_down_again() -> None:
    blue, red = ball_of("blue"), ball_of("red")
    level = open_room(pick_up("ball", "red"), (blue, 3, 1), (red, 6, 6))
    decisions, _ = play(level, COLOUR)
    assert level.carrying is red
    assert [decision.action for decision in decisions].count(int(Actions.pickup)) == 2


def test_of_two_things_it_cannot_say_which_was_wrong_and_is_told() -> None:
    blue, red, box, grey = ball_of("blue"), ball_of("red"), box_of("grey"), ball_of("grey")
    mission = verifier.PutNextInstr(verifier.ObjDesc("ball", "red"), verifier.ObjDesc("box", "grey"))
    level = open_room(mission, (blue, 3, 1), (red, 6, 3), (box, 1, 6), (grey, 6, 6))
    beliefs = MissionBeliefs(level)
    hearing = Hearing(level, beliefs, told(COLOUR, Edit("thing", "box", "crate", thing=1)))
    (act,) = beliefs.remaining()
    # Any ball, and anything that is grey.
    assert (act.desc_move.obj_set, act.desc_fixed.obj_set) == ([blue, red, grey], [box, grey])
    hearing.reconsider(hearing.todo(beliefs.remaining()))
    assert (act.desc_move.obj_set, act.desc_fixed.obj_set) == ([red], [box])
    decisions, _ = play(level, COLOUR)
    assert sum(bool(decision.remark) for decision in decisions) == 1


@pytest.mark.parametrize("kind", ["before", "after"])
def test_an_order_that_it_does_not_know_is_the_one_in_which_it_was_said(kind: str) -> None:
    red, blue = ball_of("red"), ball_of("blue")
    first, later = go_to("ball", "red"), go_to("ball", "blue")
    mission = verifier.BeforeInstr(first, later) if kind == "before" else verifier.AfterInstr(later, first)
    things = ((red, 6, 1), (blue, 6, 6))
    beliefs = MissionBeliefs(open_room(mission, *things))
    assert [action.desc.color for action in beliefs.remaining()] == ["red", "blue"]
    assert [action.desc.color for action in beliefs.as_told(beliefs.remaining())] == ["blue", "red"]
    understood, _ = play(open_room(mission, *things))
    decisions, tried = play(open_room(mission, *things), Edit("order"))
    assert tried == [red]  # blue counted for nothing: only after red is it seen that it must be done again
    assert len(decisions) > len(understood)


def test_other_words_are_read_again_one_a_cycle() -> None:
    level = open_room(go_to("ball", "red"), (ball_of("red"), 5, 1))
    decisions, _ = play(
        level, Edit("act", "go to", "head for"), Edit("courtesy", said="please"), Edit("aside", said="…")
    )
    assert [(decision.action, decision.mode) for decision in decisions[:3]] == [(int(Actions.done), "plan")] * 3
    assert [decision.action for decision in decisions[3:]] == [int(Actions.forward)] * 3
    assert decisions[0].perception_s == CostModel().read_s


def test_what_it_understands_costs_nothing() -> None:
    things = (ball_of("red"), 6, 1), (box_of("blue"), 3, 4)
    understood, again = play(open_room(go_to("ball", "red"), *things)), play(open_room(go_to("ball", "red"), *things))
    assert understood == again
    assert not any(decision.remark for decision in understood[0])
    # The only ball there is: its colour is not needed.
    assert len(play(open_room(go_to("ball", "red"), *things), COLOUR)[0]) == len(understood[0])
