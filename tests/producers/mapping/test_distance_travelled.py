"""A jump of the position is no way travelled, and is told; a long way may be one."""

from __future__ import annotations

from typing import Any

import pytest

from springback.producers.mapping.distance import DistanceTravelled
from tests.producers.mapping.mapped_play import EVENTS, Play, pose


def ways(positions: list[Any], at_most: float | None = None) -> tuple[list[float | None], int]:
    """The ways, and how many jumps were told of."""
    distance = DistanceTravelled() if at_most is None else DistanceTravelled(at_most)
    found, jumps = [], 0
    for position in positions:
        found.append(distance(position))
        jumps += distance.remark is not None
    return found, jumps


def line(*xs: float, **more: Any) -> list[dict[str, Any]]:
    return [{"x": x, "y": 0.0, **more} for x in xs]


def test_odometry_that_starts_again_at_zero_has_not_driven_back() -> None:
    assert ways(line(40.0, 40.5, 41.0, 0.0, 0.5)) == ([0.0, 0.5, 0.5, 0.0, 0.5], 1)


def test_a_robot_may_drive_through_the_origin() -> None:
    assert ways(line(1.5, 0.75, 0.0, -0.75)) == ([0.0, 0.75, 0.75, 0.75], 0)


def test_a_pose_at_the_origin_until_it_is_known_makes_no_way_to_where_it_is() -> None:
    assert ways(line(0.0, 0.0, 0.0, 53.0, 53.5)) == ([0.0, 0.0, 0.0, 0.0, 0.5], 1)
    assert ways(line(0.0, 0.0, 0.5, 1.0)) == ([0.0, 0.0, 0.5, 0.5], 0)
    # One message alone does not tell an unknown pose from a robot that begins there.
    assert ways(line(0.0, 5.0)) == ([0.0, 5.0], 0)


def test_a_position_of_another_map_or_not_initialised_is_no_way() -> None:
    first, second = line(1.0, 2.0, mapId="hall"), line(50.0, 51.0, mapId="yard")
    assert ways([*first, *second]) == ([0.0, 1.0, 0.0, 1.0], 1)
    lost = line(0.0, positionInitialized=False)
    assert ways([*line(7.0, 8.0), *lost, *line(9.0, 9.5)]) == ([0.0, 1.0, 0.0, 0.0, 0.5], 0)


def test_a_robot_that_is_put_elsewhere_has_not_driven_there() -> None:
    slow = [0.1 * n for n in range(8)]
    assert ways([[x, 0.0] for x in (*slow, 90.0, 90.1)])[1] == 1
    assert ways([[x, 0.0] for x in (*slow, 3.0)])[1] == 0  # a few messages were lost
    assert ways([[x, 0.0] for x in (0.1, 0.2, 90.0)])[1] == 0  # nothing is usual yet


def test_a_mapping_may_say_how_long_a_way_can_be() -> None:
    assert ways(line(1.0, 2.0, 4.5), 2.0) == ([0.0, 1.0, 0.0], 1)


@pytest.mark.parametrize("transform", ['"distance_travelled"', "{ distance_travelled = 2.0 }"])
def test_a_jump_is_counted_and_left_out_of_the_step(transform: str) -> None:
    play = Play(EVENTS.replace('"distance_travelled"', transform), TIME="receive")
    play.say("r/task", 0.0, {"id": "t", "state": "started"})
    for second, x in enumerate((7.0, 7.5, 8.0, 0.0, 0.5)):
        play.say("r/pose", second, pose(second / 10, x))
    assert [step.signals["travel"] for step in play.steps] == [0.0, 0.5, 0.5, 0.0, 0.5]
    assert play.left_out["position_jump"] == 1
