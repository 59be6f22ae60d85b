"""Houses made up from a seed: whatever the seed, one can go from every start to every goal."""

import math
from collections import deque
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springback.producers.habitat_testbed.house import CLEAR_M, LEAST_WAY_M, WALL_M, Box, HousePlan, plan_house
from tests.examples import examples

CELL_M, AGENT_M = 0.1, 0.1


def cell_of(x: float, z: float) -> tuple[int, int]:
    return round(x / CELL_M), round(z / CELL_M)


def reached_from(plan: HousePlan, x: float, z: float) -> set[tuple[int, int]]:
    """The cells that an agent comes to from a place."""
    found, queue = {cell_of(x, z)}, deque([cell_of(x, z)])
    while queue:
        i, j = queue.popleft()
        for cell in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
            if cell not in found and plan.is_clear(cell[0] * CELL_M, cell[1] * CELL_M, AGENT_M):
                found.add(cell)
                queue.append(cell)
    return found


@settings(max_examples=examples(12), deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(2, 3))
def test_every_goal_can_be_reached_from_its_start(seed: int, columns: int, rows: int) -> None:
    plan = plan_house(seed, columns, rows)
    tasks = list(plan.tasks(4, seed))
    reached = reached_from(plan, tasks[0].start[0], tasks[0].start[2])
    for task in tasks:
        for x, y, z in (task.start, task.goal):
            assert y == 0.0
            assert plan.is_clear(x, z, CLEAR_M)
            assert cell_of(x, z) in reached
        assert math.dist(task.start, task.goal) >= LEAST_WAY_M
        assert not any(room.x_low < task.start[0] < room.x_high and room.x_low < task.goal[0] < room.x_high
                       and room.z_low < task.start[2] < room.z_high and room.z_low < task.goal[2] < room.z_high
                       for room in plan.rooms)  # fmt: skip


def test_walls_surround_the_house_and_stand_on_its_floor() -> None:
    plan = plan_house(7)
    assert plan.floor.centre[1] + plan.floor.half[1] == 0.0
    assert all(math.isclose(box.centre[1], box.half[1]) for box in plan.obstacles)
    x, z = (half - WALL_M / 2 for half in (plan.floor.half[0], plan.floor.half[2]))  # the middle of the outer walls
    for share in range(-10, 11):
        for place in ((-x, share / 10 * z), (x, share / 10 * z), (share / 10 * x, -z), (share / 10 * x, z)):
            assert not plan.is_clear(*place, 0.01)
    assert len({room.x_low for room in plan.rooms}) == 3
    assert len({room.z_low for room in plan.rooms}) == 2


def test_the_gap_to_a_box_is_that_to_its_nearest_side_or_corner() -> None:
    box = Box((1.0, 0.5, 2.0), (0.5, 0.5, 1.0))
    assert box.gap_m(1.2, 2.9) == 0.0
    assert box.gap_m(2.0, 2.5) == pytest.approx(0.5)
    assert box.gap_m(1.5 + 3.0, 3.0 + 4.0) == pytest.approx(5.0)


def test_a_seed_gives_its_house_and_its_first_tasks_however_many_there_are() -> None:
    assert plan_house(3) == plan_house(3) != plan_house(4)
    assert list(plan_house(3).tasks(5)) == list(islice(plan_house(3).tasks(50), 5))
    assert list(plan_house(3).tasks(5, seed=1)) != list(plan_house(3).tasks(5))


@pytest.mark.parametrize(("seed", "columns", "rows"), [(-1, 3, 2), (0, 1, 1), (0, 0, 3)])
def test_a_house_of_one_room_has_no_way_to_go(seed: int, columns: int, rows: int) -> None:
    with pytest.raises(ValueError, match="a house needs two rooms and a seed of 0 or more"):
        plan_house(seed, columns, rows)
