"""Cost terms of single rows, and what a stretch of them comes to."""

import math
from typing import Literal

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.rebound.recovery_cost import CostConfig, CostTerms, Tally, cost_terms
from springback.stream_processors.resilience.rebound.recovery_intensity import Intensity
from tests.stream_processors.frame_builders import frame_of, nominal_baseline, nominal_rows, ready, run_tracker

CONFIG = ResilienceConfig()
CELLS = ready(nominal_baseline(CONFIG, cycle_time_s=2.5), CONFIG).cells


def terms_of(cycle_s: float, channels: tuple[float, float, float], config: CostConfig) -> CostTerms:
    """The terms of one row at an anchor whose nominal cycle is 2.5 s."""
    total = math.sqrt(sum(g * g for g in channels) / 3)
    level = Intensity(*(np.array([g]) for g in (total, *channels)))
    return cost_terms(np.array([cycle_s]), level, np.zeros(1, dtype=np.int64), CELLS, config)


def test_an_unknown_cycle_time_counts_as_one_nominal_cycle() -> None:
    level = Intensity(*(np.full(3, g) for g in (math.sqrt(3.0), 3.0, 0.0, 0.0)))
    terms = cost_terms(np.array([math.nan, 2.5, 5.0]), level, np.zeros(3, dtype=np.int64), CELLS, CONFIG.cost)
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


@pytest.mark.parametrize(
    ("cycle_s", "counts", "interrupted"),
    [(24.9, 9.96, False), (25.0 + 1e-6, 10.0, True), (300.0, 10.0, True), (3600.0, 10.0, True), (math.nan, 1.0, False)],
)
def test_a_cycle_counts_for_ten_nominal_ones_at_most_and_is_then_an_interruption(
    cycle_s: float, counts: float, interrupted: bool
) -> None:
    terms = terms_of(cycle_s, (math.sqrt(3.0), 0.0, 0.0), CostConfig())  # g^rec is 1
    assert terms.total.tolist() == pytest.approx([counts], rel=1e-6)
    assert terms.interrupted.tolist() == [interrupted]
    assert terms.seconds.tolist() == pytest.approx([2.5 if math.isnan(cycle_s) else cycle_s])  # as it was


def test_an_intensity_counts_for_ten_at_most_and_its_channels_shrink_with_it() -> None:
    # Channels 60, 30, 60: g^rec = sqrt((3600 + 900 + 3600)/3) = sqrt(2700) = 51.96. It counts as 10, so a channel's
    # share, g^u/sqrt(3), by 10/51.96: 60/sqrt(3) becomes 6.667, and 30/sqrt(3) becomes 3.333.
    terms = terms_of(2.5, (60.0, 30.0, 60.0), CostConfig())
    assert terms.total.tolist() == pytest.approx([10.0], rel=1e-6)
    channels = [terms.cognitive[0], terms.physical[0], terms.debt[0]]
    assert channels == pytest.approx([20 / 3, 10 / 3, 20 / 3], rel=1e-6)


def test_without_caps_equation_3_is_as_the_paper_has_it() -> None:
    bare = CostConfig(cycle_cap="none", intensity_cap="none")
    terms = terms_of(750.0, (60.0, 30.0, 60.0), bare)
    assert terms.total.tolist() == pytest.approx([300 * math.sqrt(2700)], rel=1e-6)
    assert terms.interrupted.tolist() == [False]
    assert terms_of(750.0, (60.0, 30.0, 60.0), CostConfig(intensity_cap="none")).total.tolist() == pytest.approx(
        [10 * math.sqrt(2700)], rel=1e-6
    )


@given(
    cycle_s=st.floats(1e-3, 1e12),
    channels=st.tuples(*[st.floats(0, 1e12)] * 3),
    cycle_cap=st.one_of(st.just("none"), st.floats(1, 1e6)),
    intensity_cap=st.one_of(st.just("none"), st.floats(1, 1e6)),
)
def test_no_step_adds_more_than_the_caps_allow_and_the_channels_squares_add_up(
    cycle_s: float,
    channels: tuple[float, float, float],
    cycle_cap: float | Literal["none"],
    intensity_cap: float | Literal["none"],
) -> None:
    terms = terms_of(cycle_s, channels, CostConfig(cycle_cap, intensity_cap))
    limit = math.prod(math.inf if cap == "none" else cap for cap in (cycle_cap, intensity_cap))
    assert 0 <= terms.total[0] <= limit * (1 + 1e-12)
    together = math.hypot(terms.cognitive[0], terms.physical[0], terms.debt[0])
    assert together == pytest.approx(terms.total[0], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("value", [0.5, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("name", ["cycle_cap", "intensity_cap"])
def test_a_cap_that_would_hide_nominal_steps_is_refused(name: str, value: float) -> None:
    with pytest.raises(msgspec.ValidationError, match=f'{name} is .*expected a number of 1 or more, or "none"'):
        msgspec.convert({name: value}, CostConfig)


def test_caps_may_be_set_as_text() -> None:
    assert msgspec.convert({"cycle_cap": "none", "intensity_cap": "25"}, CostConfig, strict=False) == CostConfig(
        "none", 25.0
    )


def test_a_tally_divides_by_the_work_at_its_departure() -> None:
    tally = Tally(3, 0.0, "run", 0, 4, work=8.0, last_step=5, last_time_s=2.0, total=4.0, cognitive=2.0, debt=1.0)
    assert tally.cost() == pytest.approx(0.5, rel=1e-9)
    costs = tally.channel_costs()
    assert (costs.cognitive, costs.physical, costs.debt) == pytest.approx((0.25, 0.0, 0.125), rel=1e-9)
    assert tally.length_steps == 3
