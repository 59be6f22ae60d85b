"""The dice of disturbances: how often they fall, and that harsher runs have all that milder ones have."""

import math
from itertools import pairwise
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.producers.perturbations.navigation import DisturbanceName, NavigationDice


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.integers(0, 1000))
def test_the_harsher_run_has_all_drops_and_kicks_of_the_milder(one: float, other: float, seed: int) -> None:
    milder, harsher = (NavigationDice(severity, seed=seed) for severity in sorted((one, other)))
    for _ in range(60):
        mild, harsh = milder.throw(), harsher.throw()
        assert mild.dropped <= harsh.dropped
        assert abs(mild.kick_deg) <= abs(harsh.kick_deg)


def test_the_rates_are_those_that_were_recorded() -> None:
    dice = NavigationDice(1.0, seed=1)
    throws = [dice.throw() for _ in range(20_000)]
    assert fmean(throw.dropped for throw in throws) == pytest.approx(0.18, abs=0.01)
    assert fmean(throw.kick_deg != 0 for throw in throws) == pytest.approx(0.06, abs=0.006)
    kicks = [throw.kick_deg for throw in throws if throw.kick_deg]
    assert math.sqrt(fmean(kick**2 for kick in kicks)) == pytest.approx(60.0, abs=3.0)
    assert sum(throw.goal_moves for throw in throws) == 2


@pytest.mark.parametrize(
    ("kinds", "reworded", "realised"),
    [
        # Of 50 steps 9 dropped are 0.18, as at severity 1; 3 kicks are 0.06; one of two moves; noise on half the steps.
        (["action_drop"], None, 1.0),
        (["heading_kick"], None, 1.0),
        (["goal_move"], None, 0.5),
        (["sensor_noise"], None, 0.8 * 0.5),
        (["paraphrase"], 0.3, 0.3),
        (["paraphrase"], None, 0.0),  # there was no instruction
        (["action_drop", "goal_move", "paraphrase"], 0.3, (1.0 + 0.5 + 0.3) / 3),
        (["action_drop", "goal_move", "paraphrase"], None, (1.0 + 0.5) / 2),
    ],
)
def test_the_magnitude_that_was_realised_by_hand(kinds: Any, reworded: float | None, realised: float) -> None:
    acted: dict[DisturbanceName, int] = {"action_drop": 9, "heading_kick": 3, "goal_move": 1, "sensor_noise": 25}
    assert NavigationDice(0.8, kinds=kinds).realised(acted, 50, reworded) == pytest.approx(realised)
    assert NavigationDice(0.0, kinds=kinds).realised({}, 50, None) is None


def test_the_goal_stays_in_the_first_steps() -> None:
    for seed in range(200):
        dice = NavigationDice(1.0, seed=seed)
        assert not any(dice.throw().goal_moves for _ in range(6))


def test_the_drift_shrinks_now_and_then() -> None:
    dice = NavigationDice(1.0, seed=5, kinds=["sensor_noise"])
    drifts = [np.hypot(*dice.throw().drift_m) for _ in range(20_000)]
    step_m = dice.at.drift_m * math.sqrt(2.0)
    shrunk = [
        after / before for before, after in pairwise(drifts) if before > 20 * step_m and after < before - 5 * step_m
    ]
    assert fmean(shrunk) == pytest.approx(0.3, abs=0.05)
    assert max(drifts) < 60 * step_m  # so it stays bounded
