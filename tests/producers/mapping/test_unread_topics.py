"""What is said of topics that are there and are not read, though the mapping reads one of the kind."""

from __future__ import annotations

import importlib.resources

import pytest

from springback.producers.mapping.paths import TopicPattern
from springback.producers.mapping.signal_mapping import load_mapping, parse_mapping
from springback.producers.mapping.unread_topics import MOST_NAMED, unread_topics
from tests.producers.mapping.mapped_play import Play

NAV2 = load_mapping("nav2").patterns


def test_the_other_action_is_named_with_what_to_map() -> None:
    action = "/navigate_through_poses/_action/"
    told = unread_topics(NAV2, ["/odom", action + "status", action + "feedback", "/scan"], "nav2.toml")
    assert told == [
        "'/navigate_through_poses/_action/status', '/navigate_through_poses/_action/feedback' are not read: nav2.toml "
        "reads 'navigate_to_pose' there; a copy of it with 'navigate_through_poses' in place of 'navigate_to_pose' "
        "reads them"
    ]


def test_what_is_said_of_the_other_action_is_true() -> None:
    shipped = importlib.resources.files("springback.producers").joinpath("mappings", "nav2.toml").read_text()
    text = shipped.replace("navigate_to_pose", "navigate_through_poses")
    mine, play = parse_mapping(text, "mine.toml"), Play(text)
    for at_s, status in ((0.0, 2), (5.0, 4)):
        told = [{"goal_info": {"goal_id": {"uuid": [9] * 16}}, "status": status}]
        play.say("/navigate_through_poses/_action/status", at_s, {"status_list": told})
        for tick in range(1, 4):
            feedback = {"feedback": {"distance_remaining": 10.0 - tick, "number_of_recoveries": 0}}
            play.say("/navigate_through_poses/_action/feedback", at_s + tick, feedback)
    assert play.ends == [("09" * 16, "success")]
    assert unread_topics(mine.patterns, ["/navigate_through_poses/_action/status"], "mine.toml") == []


def test_the_nearest_come_first_and_few_are_named() -> None:
    actions = [*"abcdef", "navigate_through_poses", "spin"]
    told = unread_topics(NAV2, [f"/{action}/_action/status" for action in actions], "nav2.toml")
    assert len(told) == MOST_NAMED
    assert "'navigate_through_poses' in place of" in told[0]


@pytest.mark.parametrize(
    ("pattern", "topic", "said"),
    [
        ("odom", "/r7/odom", "reads it without 'r7' in front; in a copy of it, put 'r7/' or `{robot}/` there"),
        ("move_base/status", "/fleet/r7/move_base/status", "without 'fleet/r7' in front"),
        ("uagv/v2/{maker}/{serial}/state", "uagv/v3/acme/agv-3/state", "with 'v3' in place of 'v2' reads it"),
        ("move_base/status", "/move_base_flex/status", "with 'move_base_flex' in place of 'move_base'"),
        ("move_base/status", "/dock/status", None),  # of two levels the last alone says little
        ("task/status", "/task/feedback", None),
        ("fleet/{robot}/pose", "fleet/7/map/pose", None),
        ("fleet/+/pose", "fleet/7/pose", None),  # it is read
        ("#", "a/b", None),
        ("odom", "/scan", None),
    ],
)
def test_what_is_like_what_is_read(pattern: str, topic: str, said: str | None) -> None:
    told = unread_topics([TopicPattern(pattern)], [topic], "mine.toml")
    assert len(told) == (said is not None)
    assert said is None or said in told[0]
