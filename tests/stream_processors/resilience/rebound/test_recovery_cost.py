"""Cost terms of single rows, and what a stretch of them comes to."""

import math

import numpy as np
import pytest

from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.rebound.recovery_cost import Tally, cost_terms
from springback.stream_processors.resilience.rebound.recovery_intensity import Intensity
from tests.stream_processors.frame_builders import frame_of, nominal_baseline, nominal_rows, ready, run_tracker

CONFIG = ResilienceConfig()


def test_an_unknown_cycle_time_counts_as_one_nominal_cycle() -> None:
    cells = ready(nominal_baseline(CONFIG, cycle_time_s=2.5), CONFIG).cells
    level = Intensity(*(np.full(3, g) for g in (math.sqrt(3.0), 3.0, 0.0, 0.0)))
    terms = cost_terms(np.array([math.nan, 2.5, 5.0]), level, np.zeros(3, dtype=np.int64), cells)
    assert terms.seconds.tolist() == [2.5, 2.5, 5.0]
    assert terms.total.tolist() == pytest.approx([math.sqrt(3), math.sqrt(3), 2 * math.sqrt(3)], rel=1e-9)
    assert terms.cognitive.tolist() == pytest.approx(terms.total.tolist())  # a channel that is alone bears it all
    assert terms.physical.tolist() == terms.debt.tolist() == [0.0, 0.0, 0.0]


def test_a_window_whose_cycle_times_are_unknown_costs_what_nominal_ones_would() -> None:
    baseline = ready(nominal_baseline(CONFIG, cycle_time_s=2.5), CONFIG)
    rows = nominal_rows(0, 6, cycle_time_s=2.5) + nominal_rows(6, 9, travel=5.0, cycle_time_s=2.5)
    known, _ = run_tracker([frame_of(rows, "failure")], CONFIG, baseline)
    # One row a frame without any time: no cycle time is given or derived.
    bare = [{key: value for key, value in row.items() if not key.endswith("time_s")} for row in rows]
    frames = [*[frame_of([row]) for row in bare], frame_of([], "failure")]
    unknown, _ = run_tracker(frames, CONFIG, baseline)
    assert unknown.windows[-1].recovery_cost == pytest.approx(known.windows[-1].recovery_cost, rel=1e-12)
    assert unknown.windows[-1].length_s == 7.5


def test_a_tally_divides_by_the_work_at_its_departure() -> None:
    tally = Tally(3, 0.0, "run", 0, 4, work=8.0, last_step=5, last_time_s=2.0, total=4.0, cognitive=2.0, debt=1.0)
    assert tally.cost() == pytest.approx(0.5, rel=1e-9)
    costs = tally.channel_costs()
    assert (costs.cognitive, costs.physical, costs.debt) == pytest.approx((0.25, 0.0, 0.125), rel=1e-9)
    assert tally.length_steps == 3
