"""What habitat-lab's sensors tell in a spell of noise: the pose has drifted, and depth images are grainy. Ours.

Known are `gps` and the point goals in two and three dimensions, by angles and by coordinates, `compass` and `depth`, as
numpy arrays; whatever else a sensor tells stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Callable

import numpy as np

from springback.producers.perturbations.navigation import NavigationDice, StepDisturbance

_POINT_GOALS = ("pointgoal_with_gps_compass", "pointgoal")


def told_by_noisy_sensors(
    observations: Mapping[str, Any], throw: StepDisturbance, dice: NavigationDice, is_polar: Callable[[str], bool]
) -> dict[str, Any]:
    """What the sensors tell whose pose has drifted and whose depth is noisy; nothing of those that tell no such thing.

    Args:
        observations: what the sensors tell of how it is.
        throw: how far the pose has drifted.
        dice: the depth image's noise.
        is_polar: whether the point goal sensor of a name tells distance and bearing, in place of coordinates.
    """
    seen = {name: value for name, value in observations.items() if isinstance(value, np.ndarray)}
    ahead_m, right_m = throw.drift_m
    gps, compass, depth = (seen.get(name) for name in ("gps", "compass", "depth"))
    told: dict[str, Any] = {}
    if gps is not None and gps.size in (2, 3):  # ahead and to the right; or to the right, up and backwards
        drift = (ahead_m, right_m) if gps.size == 2 else (right_m, 0.0, -ahead_m)
        told["gps"] = gps + np.asarray(drift, dtype=gps.dtype).reshape(gps.shape)
    if compass is not None and compass.size:
        told["compass"] = compass + np.asarray(math.radians(throw.drift_deg), dtype=compass.dtype)
    if depth is not None and depth.size:
        noise = dice.places.standard_normal(np.shape(depth), dtype=np.float32)
        told["depth"] = depth * (1.0 + dice.at.depth_noise * noise)
    for name in _POINT_GOALS:
        goal = seen.get(name)
        if goal is not None and goal.size in (2, 3) and np.isfinite(goal).all():
            parts = [float(part) for part in goal.ravel()]
            apart = _goal_drifted(parts, throw) if is_polar(name) else _goal_drifted_in_coordinates(parts, throw)
            told[name] = np.array(apart, dtype=goal.dtype).reshape(goal.shape)
    return told


def _goal_drifted(goal: Sequence[float], throw: StepDisturbance) -> list[float]:
    """A goal by distance, bearing and, in three dimensions, the angle from the vertical, as it seems to be."""
    down = math.pi / 2 if len(goal) == 2 else goal[2]
    rho, phi = drifted(goal[0] * math.sin(down), goal[1], throw.drift_m, throw.drift_deg)
    if len(goal) == 2:
        return [rho, phi]
    up = goal[0] * math.cos(down)
    return [math.hypot(rho, up), phi, math.atan2(rho, up)]


def _goal_drifted_in_coordinates(goal: Sequence[float], throw: StepDisturbance) -> list[float]:
    """A goal by where it lies ahead and to the right, or to the right, up and backwards, as it seems to be."""
    ahead, right = (goal[0], goal[1]) if len(goal) == 2 else (-goal[2], goal[0])
    rho, phi = drifted(math.hypot(ahead, right), math.atan2(-right, ahead), throw.drift_m, throw.drift_deg)
    ahead, right = rho * math.cos(phi), -rho * math.sin(phi)
    return [ahead, right] if len(goal) == 2 else [right, goal[1], -ahead]


def drifted(rho: float, phi: float, drift_m: tuple[float, float], drift_deg: float) -> tuple[float, float]:
    """Where a goal at distance `rho` and bearing `phi`, rad, seems to be to an agent whose pose has drifted.

    >>> drifted(2.0, 0.0, (0.5, 0.0), 0.0)
    (1.5, 0.0)
    """
    seen = complex(rho * math.cos(phi) - drift_m[0], rho * math.sin(phi) - drift_m[1])
    bearing = math.atan2(seen.imag, seen.real) - math.radians(drift_deg)
    return abs(seen), math.remainder(bearing, 2 * math.pi)
