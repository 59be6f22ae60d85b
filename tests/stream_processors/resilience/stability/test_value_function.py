"""The judge's part and the potential's part of a reward, each on its own."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.stream_processors.offline.evaluation import learn_baseline
from springback.stream_processors.offline.value_fitting import reward_trajectories
from springback.stream_processors.resilience.anchor import Floats
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.stability.stability_state import StabilityConfig
from springback.stream_processors.resilience.stability.value_function import judged, rubric, shaped_rewards
from tests.stream_processors.frame_builders import frame_of, nominal_baseline, nominal_rows, ready

CONFIG = ResilienceConfig()
NAN = math.nan
# Nominal: a gain of 0.05 in a cycle of 1 s; the denominator of the gain is 0.05 + max(0.001, 0.0025) = 0.0525.
NOMINAL_GOAL = 0.05 / 0.0525


def judge_one(
    judge: list[float],
    gain: float = 0.05,
    retries: float = 0,
    violation: float = 0,
    cycle: float = 1,
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0),
) -> float:
    baseline = ready(nominal_baseline(CONFIG), CONFIG)
    signals = np.array([[0, 0, 0, retries, gain, 0, 0, cycle]], dtype=np.float64)
    cell = baseline.families["navigation"].rows[[0], 0, 4]
    violations = np.array([violation], dtype=np.float64)
    return float(judged(np.array([judge]), signals, violations, cell, baseline.cells, weights)[0])


@pytest.mark.parametrize(
    ("judge", "score"),
    [([0.25, 0.5, 1.0], 1.75 / 3), ([NAN, 0.5, 1.0], 0.75), ([0.25, NAN, NAN], 0.25), ([0.0, NAN, 0.0], 0.0)],
)
def test_the_scores_that_are_there_count_and_no_rubric(judge: list[float], score: float) -> None:
    assert judge_one(judge, gain=-1, retries=3, violation=1, cycle=9) == pytest.approx(score, rel=1e-12)


@pytest.mark.parametrize(
    ("step", "goal", "rationality", "efficiency"),
    [
        ({}, NOMINAL_GOAL, 1, 1),
        ({"gain": 0.0525}, 1, 1, 1),
        ({"gain": 0.5}, 1, 1, 1),
        ({"gain": 0.0}, 0, 1, 1),
        ({"gain": -0.2}, 0, 1, 1),
        ({"retries": 2}, NOMINAL_GOAL, 0.5, 1),
        ({"violation": 0.1}, NOMINAL_GOAL, 0.5, 1),
        ({"retries": 1, "violation": 1}, NOMINAL_GOAL, 0, 1),
        ({"cycle": 4}, NOMINAL_GOAL, 1, 0.25),
        ({"cycle": 0.25}, NOMINAL_GOAL, 1, 1),
        ({"cycle": NAN}, NOMINAL_GOAL, 1, 1),
    ],
)
def test_the_rubric(step: dict[str, Any], goal: float, rationality: float, efficiency: float) -> None:
    assert judge_one([NAN] * 3, **step) == pytest.approx((goal + rationality + efficiency) / 3, rel=1e-12)


@pytest.mark.parametrize(
    ("scores", "weights", "score"),
    [
        ([0.2, 0.5, 1.0], (1.0, 1.0, 1.0), 1.7 / 3),
        ([0.2, 0.5, 1.0], (2.0, 1.0, 1.0), 1.9 / 4),  # (0.4 + 0.5 + 1) / 4
        ([0.2, NAN, 1.0], (2.0, 5.0, 1.0), 1.4 / 3),  # (0.4 + 1) / 3: what is not there has no weight
        ([NAN, 0.5, NAN], (0.0, 3.0, 0.0), 0.5),
    ],
)
def test_the_weights_of_the_scores_are_a_setting(
    scores: list[float], weights: tuple[float, float, float], score: float
) -> None:
    assert judge_one(scores, weights=weights) == pytest.approx(score, rel=1e-12)


def test_the_rubric_is_weighted_alike_and_stands_in_where_no_score_has_a_weight() -> None:
    # Rationality 0.5 by the violation, with all the weight; a goal alone says nothing then.
    assert judge_one([NAN] * 3, violation=1.0, weights=(0.0, 1.0, 0.0)) == 0.5
    assert judge_one([0.9, NAN, NAN], violation=1.0, weights=(0.0, 1.0, 0.0)) == 0.5


@pytest.mark.parametrize("weights", [(0.0, 0.0, 0.0), (1.0, -1.0, 1.0), (math.nan, 1.0, 1.0), (math.inf, 1.0, 1.0)])
def test_weights_that_weigh_nothing_are_refused(weights: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match=r"judge_weights: got .* expected three numbers of 0 or more"):
        StabilityConfig(judge_weights=weights)


@given(st.lists(st.floats(-1e12, 1e12), min_size=4, max_size=4), st.floats(1e-300, 1e12))
def test_the_rubric_stays_between_nothing_and_one(numbers: list[float], cycle: float) -> None:
    baseline = BASELINE
    signals = np.array([[0, 0, 0, abs(numbers[0]), numbers[1], numbers[2], 0, cycle]])
    cell = baseline.families["navigation"].rows[[0], 0, 4]
    assert 0 <= rubric(signals, np.array([abs(numbers[3])]), cell, baseline.cells)[0] <= 1


BASELINE = ready(nominal_baseline(CONFIG), CONFIG)
potentials = st.lists(st.floats(-5, 0), min_size=1, max_size=30)


@given(st.lists(st.tuples(potentials, st.booleans()), min_size=1, max_size=4))
def test_shaping_adds_up_to_the_difference_of_the_ends_potentials(episodes: list[tuple[list[float], bool]]) -> None:
    config = StabilityConfig(shaping=0.5)
    potential: Floats = np.array([phi for own, _ in episodes for phi in own])
    stops = np.cumsum([len(own) for own, _ in episodes])
    success = np.array([won for _, won in episodes])
    reward = shaped_rewards(np.zeros(len(potential)), potential, stops - 1, success, config)
    for stop, (own, won) in zip(stops.tolist(), episodes, strict=True):
        total = sum(0.99**t * r for t, r in enumerate(reward[stop - len(own) : stop].tolist()))
        after = 0.0 if won else own[-1]
        assert total == pytest.approx(0.5 * (0.99 ** len(own) * after - own[0]), rel=1e-9, abs=1e-9)


def test_trajectories_are_the_references_that_were_seen_to_end() -> None:
    rows = nominal_rows(0, 20)
    recording = [
        frame_of(rows, "success", episode="won", reference=True),
        frame_of(rows, "failure", episode="lost", reference=True),
        frame_of(rows, "aborted", episode="aborted", reference=True),
        frame_of(rows, episode="open", reference=True),
        frame_of(rows, "success", episode="other", family="unknown", reference=True),
        frame_of(rows, "success", episode="stressed"),
    ]
    baseline = learn_baseline(recording[:1], CONFIG)
    found = reward_trajectories(recording, CONFIG, baseline)
    assert [(t.success, len(t.rewards), len(t.states.progress)) for t in found] == [(True, 20, 20), (False, 20, 20)]
    # The same steps: only the potential after the last differs.
    assert found[0].rewards[:-1].tolist() == found[1].rewards[:-1].tolist()
    assert found[0].rewards[-1] > found[1].rewards[-1]
    assert len(reward_trajectories(recording, CONFIG, baseline, references_only=False)) == 3
