"""The mappings that the README explains the language by do what it says of them."""

import re
from typing import Any

import pytest

from tests.house import ROOT
from tests.producers.mapping.mapped_play import Play

README = (ROOT / "producers" / "README.md").read_text(encoding="utf-8")


def example(agent: str) -> Play:
    """The README's mapping for this agent, at play."""
    (text,) = [one for one in re.findall(r"^```toml\n(.*?)^```$", README, re.MULTILINE | re.DOTALL) if agent in one]
    return Play(text)


def arm(
    done: float, boxes_left: int, *, angle: float = 0.5, order: str = "o1", running_s: float = 0.0
) -> dict[str, Any]:
    joints = [{"angle": angle}, {"angle": 0.0}]
    return {"done": done, "boxes_left": boxes_left, "order": order, "running_s": running_s, "joints": joints}


def test_a_delivery_is_over_when_the_box_is_on_the_shelf_and_the_arm_is_home() -> None:
    play = example("arm-2")
    play.say("arm/state", 0.0, arm(0.2, 1))
    play.say("shelf", 1.0, {"weight_kg": 0.9})
    assert play.ends == []
    play.say("arm/state", 2.0, arm(1.0, 0, angle=0.005))
    assert play.ends == [("o1", "success")]
    play.say("arm/state", 3.0, arm(0.1, 2))  # more was ordered
    assert [step.header.episode for step in play.steps] == ["o1", "o1", "o1#2"]


def test_nothing_is_decided_while_the_door_is_open() -> None:
    play = example("arm-2")
    play.say("arm/state", 0.0, arm(0.2, 1))
    play.say("cell/door", 1.0, {"state": "ajar"})
    play.say("shelf", 1.5, {"weight_kg": 0.9})  # somebody has put it there
    play.say("arm/state", 2.0, arm(1.0, 0, angle=0.0))
    play.say("cell/door", 3.0, {"state": "shut"})
    play.say("arm/state", 4.0, arm(0.4, 0, angle=0.0))
    assert play.ends == []
    assert [step.signals["progress"] for step in play.steps] == [0.2, 0.2, 0.4]


@pytest.mark.parametrize(("spare", "ends"), [(False, [("o1", "failure")]), (True, [])])
def test_a_box_that_breaks_is_a_failure_unless_it_was_spare(spare: bool, ends: list[tuple[str, str]]) -> None:
    play = example("arm-2")
    play.say("arm/state", 0.0, arm(0.2, 1, running_s=9.0))
    play.say("boxes", 1.0, {"boxes": [{"state": "whole"}, {"state": "broken", "spare": spare}]})
    assert play.ends == ends
    assert [step.step for step in play.steps] == [1]  # it had begun before anybody listened


def test_a_patrol_counts_waypoints_and_keeps_the_state_of_each_device() -> None:
    play = example("robot-7")
    play.say("patrol", 0.0, {"round": 3, "waypoint": -1, "waypoints": 4})
    play.say("diagnostics", 0.1, {"status": [{"name": "lidar", "level": 2}]})
    play.say("patrol", 0.2, {"round": 3, "waypoint": 1, "waypoints": 4})
    play.say("diagnostics", 0.3, {"status": [{"name": "motor", "level": 0}]})
    play.say("patrol", 0.9, {"round": 3, "waypoint": 2, "waypoints": 4})
    play.say("patrol", 1.1, {"round": 3, "waypoint": -1, "waypoints": 4})
    assert [(step.signals["progress"], step.signals["risk"]) for step in play.steps] == [(0.25, 1.0), (0.5, 1.0)]
