"""A house made up from a seed, and the ways to go in it. Pure: no simulator, no files; ours.

Rooms lie in rows and columns, and differ in size. Walls between neighbours have doors so that every room can be
reached, and most rooms have a piece of furniture in the middle, with room to pass on all sides. Everything is a box, so
that habitat-sim can build the house of its own cubes: no scene has to be downloaded. The frame is Habitat's: y is up,
the floor is at y = 0, and heading 0 looks along -z.

>>> plan = plan_house(7)
>>> plan.name, len(plan.rooms), plan == plan_house(7)
('house-7', 6, True)
>>> [task.episode for task in plan.tasks(2)]
['0', '1']
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

ROOM_M = (3.0, 4.5)
"""How wide and deep a room is, m: at least and at most."""
WALL_M = 0.1
WALL_HEIGHT_M = 2.5
DOOR_M = 1.0
DOOR_FROM_CORNER_M = 0.3
FURNITURE_M = (0.25, 0.5)
"""Half the width and depth of a piece of furniture, m: at least and at most."""
FURNITURE_HEIGHT_M = 1.0
FURNISHED = 0.7
"""The share of rooms with furniture."""
FURTHER_DOORS = 0.3
"""The share of walls with a door that is not needed to reach every room."""
CLEAR_M = 0.35
"""How far starts and goals are from all walls and furniture at least, m."""
LEAST_WAY_M = 2.0
_TURN_DEG = 10


class Box(NamedTuple):
    """A box along the axes: its centre, and half its size, x, y and z in m."""

    centre: tuple[float, float, float]
    half: tuple[float, float, float]

    def gap_m(self, x: float, z: float) -> float:
        """How far a place on the floor is from it, m; 0 within."""
        beside = max(0.0, abs(x - self.centre[0]) - self.half[0])
        return math.hypot(beside, max(0.0, abs(z - self.centre[2]) - self.half[2]))


class Room(NamedTuple):
    """A room, between the middles of its walls: the least and the greatest x and z, m."""

    x_low: float
    z_low: float
    x_high: float
    z_high: float


class HouseTask(NamedTuple):
    """A way to go.

    Attributes:
        episode: its number in the house.
        start: where the agent begins, x, y and z in m.
        heading_deg: which way it looks there, to the left of -z.
        goal: where it is to go, x, y and z in m.
    """

    episode: str
    start: tuple[float, float, float]
    heading_deg: float
    goal: tuple[float, float, float]


@dataclass(frozen=True)
class HousePlan:
    """A house.

    Attributes:
        seed: what it was made from.
        rooms: row by row.
        floor: a slab whose upper side is at y = 0.
        obstacles: walls and furniture, which stand on it.
    """

    seed: int
    rooms: tuple[Room, ...]
    floor: Box
    obstacles: tuple[Box, ...]

    @property
    def name(self) -> str:
        """What the scene is called."""
        return f"house-{self.seed}"

    def is_clear(self, x: float, z: float, margin_m: float) -> bool:
        """Whether a place on the floor is at least so far from everything."""
        inside = all(abs(at) <= half - margin_m for at, half in ((x, self.floor.half[0]), (z, self.floor.half[2])))
        return inside and all(box.gap_m(x, z) >= margin_m for box in self.obstacles)

    def tasks(self, count: int, seed: int = 0) -> Iterator[HouseTask]:
        """So many ways from one room to another; the same seed gives the same, and more of them the same first ones."""
        rng = np.random.default_rng([self.seed, seed, 1])
        for number in range(count):
            while True:
                first, second = rng.choice(len(self.rooms), size=2, replace=False)
                start, goal = self._place(rng, self.rooms[first]), self._place(rng, self.rooms[second])
                if math.dist(start, goal) >= LEAST_WAY_M:
                    break
            heading_deg = float(_TURN_DEG * rng.integers(360 // _TURN_DEG))
            yield HouseTask(str(number), start, heading_deg, goal)

    def _place(self, rng: np.random.Generator, room: Room) -> tuple[float, float, float]:
        while True:
            x = float(rng.uniform(room.x_low, room.x_high))
            z = float(rng.uniform(room.z_low, room.z_high))
            if self.is_clear(x, z, CLEAR_M):
                return x, 0.0, z


def plan_house(seed: int, columns: int = 3, rows: int = 2) -> HousePlan:
    """The house of a seed.

    Args:
        seed: the same seed gives the same house.
        columns: how many rooms lie side by side along x.
        rows: how many along z.

    Raises:
        ValueError: there are fewer than two rooms, or the seed is negative.
    """
    if columns < 1 or rows < 1 or columns * rows < 2 or seed < 0:
        message = f"a house needs two rooms and a seed of 0 or more; got {columns} by {rows} rooms and seed {seed}"
        raise ValueError(message)
    rng = np.random.default_rng([seed, 0])
    xs, zs = _edges(rng, columns), _edges(rng, rows)
    rooms = [
        Room(x_low, z_low, x_high, z_high) for z_low, z_high in zip(zs, zs[1:]) for x_low, x_high in zip(xs, xs[1:])
    ]
    half_x, half_z = xs[-1] + WALL_M / 2, zs[-1] + WALL_M / 2
    obstacles = [_wall(x, x, -half_z, half_z) for x in (xs[0], xs[-1])]
    obstacles += [_wall(-half_x, half_x, z, z) for z in (zs[0], zs[-1])]
    doors = _doors(rng, columns, rows)
    for one, other in _neighbours(columns, rows):
        obstacles += _inner_walls(rng, rooms[one], rooms[other], has_door=(one, other) in doors)
    obstacles += [_furniture(rng, room) for room in rooms if rng.random() < FURNISHED]
    return HousePlan(seed, tuple(rooms), Box((0.0, -0.1, 0.0), (half_x, 0.1, half_z)), tuple(obstacles))


def _edges(rng: np.random.Generator, count: int) -> list[float]:
    """The middles of the walls along one axis, m, around 0."""
    edges = np.concatenate([[0.0], np.cumsum(rng.uniform(*ROOM_M, size=count))])
    return [float(edge) for edge in edges - edges[-1] / 2]


def _neighbours(columns: int, rows: int) -> list[tuple[int, int]]:
    beside = [(room, room + 1) for room in range(columns * rows) if (room + 1) % columns]
    return beside + [(room, room + columns) for room in range(columns * (rows - 1))]


def _doors(rng: np.random.Generator, columns: int, rows: int) -> set[tuple[int, int]]:
    """The walls with doors: as many as it takes to reach every room, and some more."""
    walls = _neighbours(columns, rows)
    group = list(range(columns * rows))
    doors = set()
    for place in rng.permutation(len(walls)):
        one, other = walls[place]
        apart = group[one] != group[other]
        if apart or rng.random() < FURTHER_DOORS:
            doors.add((one, other))
        group = [group[one] if own == group[other] else own for own in group]
    return doors


def _inner_walls(rng: np.random.Generator, one: Room, other: Room, *, has_door: bool) -> list[Box]:
    """The wall between two rooms, in two parts where it has a door."""
    along_z = one.x_high == other.x_low
    low, high = (one.z_low, one.z_high) if along_z else (one.x_low, one.x_high)
    parts = [(low, high)]
    if has_door:
        from_corner_m = WALL_M + DOOR_FROM_CORNER_M + DOOR_M / 2
        middle = float(rng.uniform(low + from_corner_m, high - from_corner_m))
        parts = [(low, middle - DOOR_M / 2), (middle + DOOR_M / 2, high)]
    if along_z:
        return [_wall(one.x_high, one.x_high, first, last) for first, last in parts]
    return [_wall(first, last, one.z_high, one.z_high) for first, last in parts]


def _wall(x_low: float, x_high: float, z_low: float, z_high: float) -> Box:
    """A wall whose middle goes from one place to the other."""
    half_x, half_z = max((x_high - x_low) / 2, WALL_M / 2), max((z_high - z_low) / 2, WALL_M / 2)
    return Box(((x_low + x_high) / 2, WALL_HEIGHT_M / 2, (z_low + z_high) / 2), (half_x, WALL_HEIGHT_M / 2, half_z))


def _furniture(rng: np.random.Generator, room: Room) -> Box:
    x, z = (float(rng.uniform(-0.3, 0.3)) for _ in range(2))
    half_x, half_z = (float(rng.uniform(*FURNITURE_M)) for _ in range(2))
    middle = (room.x_low + room.x_high) / 2 + x, FURNITURE_HEIGHT_M / 2, (room.z_low + room.z_high) / 2 + z
    return Box(middle, (half_x, FURNITURE_HEIGHT_M / 2, half_z))
