"""The dice of disturbances: how often they fall, and that harsher runs have all that milder ones have."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import groupby
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.producers.perturbations.navigation import DisturbanceName, NavigationDice


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.integers(0, 1000))
def test_the_harsher_run_has_all_drops_kicks_and_spells_of_the_milder(one: float, other: float, seed: int) -> None:
    milder, harsher = (NavigationDice(severity, seed=seed) for severity in sorted((one, other)))
    for _ in range(60):
        mild, harsh = milder.throw(), harsher.throw()
        assert mild.dropped <= harsh.dropped
        assert abs(mild.kick_deg) <= abs(harsh.kick_deg)
        assert ("sensor_noise" in mild.acting) <= ("sensor_noise" in harsh.acting)


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
        # Of 50 steps 9 dropped are 0.18, as at severity 1; 3 kicks are 0.06; one of two moves; noise on half the steps,
        # where at severity 1 it is on 55.4 %: a spell of 40 steps begins at 2 % of them, and 0.98**40 is 0.4457.
        (["action_drop"], None, 1.0),
        (["heading_kick"], None, 1.0),
        (["goal_move"], None, 0.5),
        (["sensor_noise"], None, 0.5 / (1.0 - 0.98**40)),
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
    dice.at = replace(dice.at, noise=1.0)  # one spell that never ends
    drifts = [np.hypot(*dice.throw().drift_m) for _ in range(20_000)]
    step_m = dice.at.drift_m * math.sqrt(2.0)
    shrunk = [
        after / before
        for before, after in zip(drifts, drifts[1:])
        if before > 20 * step_m and after < before - 5 * step_m
    ]
    assert fmean(shrunk) == pytest.approx(0.3, abs=0.05)
    assert max(drifts) < 60 * step_m  # so it stays bounded


def noisy_spells(severity: float, seed: int, steps: int = 400) -> list[tuple[int, int]]:
    """The first step of each spell of noise, and its length."""
    dice = NavigationDice(severity, seed=seed, kinds=["sensor_noise"])
    runs = groupby(enumerate(dice.throw() for _ in range(steps)), key=lambda step: bool(step[1].acting))
    return [(run[0][0], len(run)) for acts, found in runs if acts and (run := list(found))]


def test_noise_has_an_onset_and_a_length() -> None:
    spells = [noisy_spells(0.3, seed) for seed in range(100)]
    onsets = [found[0][0] for found in spells if found]
    # At 0.6 % of the steps: the mean of the first is 166, of those before step 400 about 120; 9 % have none by then.
    assert 70 < fmean(onsets) < 170
    assert 0 < sum(not found for found in spells) < 25
    lengths = [length for found in spells for step, length in found if step + length < 400]
    assert min(lengths) == 40  # longer where another one begins meanwhile
    assert fmean(lengths) < 60


def test_the_share_of_noisy_steps_is_that_by_which_it_is_counted() -> None:
    for severity in (0.2, 1.0):
        dice = NavigationDice(severity, seed=9, kinds=["sensor_noise"])
        share = fmean(bool(dice.throw().acting) for _ in range(50_000))
        assert share == pytest.approx(dice.at.noisy, abs=0.02)


def test_sensors_are_right_again_after_a_spell() -> None:
    dice = NavigationDice(1.0, seed=3, kinds=["sensor_noise"])
    throws = [dice.throw() for _ in range(1000)]
    calm = [throw for throw in throws if not throw.acting]
    assert calm
    assert {(throw.drift_m, throw.drift_deg) for throw in calm} == {((0.0, 0.0), 0.0)}
    assert all(throw.drift_m != (0.0, 0.0) for throw in throws if throw.acting)
