"""One bad sample does not decide a cost: a pause, a clock that is set, odometry that starts anew.

The working, by hand. Nominal references take 20 steps of 1 s; every channel's covariance is 0, so Sigma + eta I is
0.05 I, and an excess z in one signal alone gives g^u = z/sqrt(0.05) and g^rec = z/sqrt(0.15). Planning is 0.125 s with
epsilon 0.05 * 0.125 = 0.00625: planning for 0.125 + 4 sqrt(0.15) 0.13125 s makes g^rec 4.

The episode is nominal but for steps 8 to 13, whose g^rec is 4. The sum of effort rises by 4 - 0.8 = 3.2 a step: 3.2,
6.4, 9.6 > 9, so the alarm is at step 10 and the departure at step 8. Steps 14 to 16 are calm, and the re-entry is step
14. At step 8 twelve cycles are left (11.997, since the line of the remaining work has a small ridge), so

    C_rec = (6 * 1 * 4 + 1 * 0) / 12 = 2.

One bad sample, at step 10, then changes one term out of 24 cycles' worth:

    pause of 301 s        min(301, 10) * 4 = 40 for 4    (24 - 4 + 40)/12 = 5      bare  (20 + 1204)/12  = 102
    clock set by an hour  min(3601, 10) * 4 = 40         5                         bare  (20 + 14404)/12 = 1202
    odometry: travel 1e6  1 * min(3e7, 10) = 10          (24 - 4 + 10)/12 = 2.5    bare  more than 100,000
"""

from math import sqrt

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import EpisodeSummary
from springback.stream_processors.resilience.rebound.recovery_cost import CostConfig
from tests.stream_processors.frame_builders import (
    START_S,
    Row,
    frame_of,
    nominal_baseline,
    nominal_rows,
    ready,
    run_tracker,
)

CONFIG = ResilienceConfig()
BARE = msgspec.structs.replace(CONFIG, cost=CostConfig(cycle_cap="none", intensity_cap="none"))
BASELINE = ready(nominal_baseline(CONFIG), CONFIG)
HARD = 0.125 + 4 * sqrt(0.15) * 0.13125
CLOCKS_LEAD_S = 4000.0
"""The broker's time of the frame: late enough for an agent's clock that jumps by an hour to be believed."""


def hard_rows() -> list[Row]:
    rows = nominal_rows(0, 20)
    for row in rows[8:14]:
        row["planning_s"] = HARD
    return rows


def tracked(rows: list[Row], config: ResilienceConfig = CONFIG) -> EpisodeSummary:
    outputs, _ = run_tracker([frame_of(rows, "success")], config, BASELINE, arrivals=[START_S + CLOCKS_LEAD_S])
    [summary] = outputs.summaries
    return summary


def paused() -> list[Row]:
    rows = hard_rows()
    rows[10]["cycle_time_s"] = 301.0
    return rows


def clock_set() -> list[Row]:
    """No cycle times: they are what lies between two stamps."""
    rows = [{key: value for key, value in row.items() if key != "cycle_time_s"} for row in hard_rows()]
    for row in rows[10:]:
        row["time_s"] += 3600.0
    return rows


def odometry_reset() -> list[Row]:
    rows = hard_rows()
    rows[10]["travel"] = 1e6
    return rows


def test_without_a_bad_sample_the_cost_is_two() -> None:
    assert tracked(hard_rows()).recovery_cost == pytest.approx(2.0, rel=1e-3)
    assert tracked(hard_rows(), BARE).recovery_cost == pytest.approx(2.0, rel=1e-3)
    assert tracked(hard_rows()).interruptions == 0


@pytest.mark.parametrize(
    ("rows", "cost", "bare_cost", "interruptions"),
    [(paused(), 5.0, 102.0, 1), (clock_set(), 5.0, 14424 / 12, 1)],
    ids=["a pause of five minutes", "a clock set by an hour"],
)
def test_a_long_cycle_counts_for_ten_and_is_an_interruption(
    rows: list[Row], cost: float, bare_cost: float, interruptions: int
) -> None:
    summary = tracked(rows)
    assert summary.recovery_cost == pytest.approx(cost, rel=1e-3)
    assert summary.interruptions == interruptions
    assert summary.windows == 1
    assert tracked(rows, BARE).recovery_cost == pytest.approx(bare_cost, rel=1e-3)
    assert tracked(rows, BARE).interruptions == 0  # no cap, so nothing reaches it


def test_odometry_that_starts_anew_counts_for_ten() -> None:
    summary = tracked(odometry_reset())
    assert summary.recovery_cost == pytest.approx(2.5, rel=1e-3)
    assert (summary.interruptions, summary.windows) == (0, 1)
    # The channels keep their shares of that step: all but nothing of it is cognitive now.
    assert summary.costs.physical == pytest.approx(10 / 12, rel=1e-3)
    assert summary.costs.cognitive == pytest.approx(20 / 12, rel=1e-3)
    bare = tracked(odometry_reset(), BARE).recovery_cost
    assert bare is not None
    assert bare > 1e5


def test_a_pause_in_a_calm_episode_costs_nothing() -> None:
    rows = nominal_rows(0, 20)
    rows[10]["cycle_time_s"] = 301.0
    summary = tracked(rows)
    assert (summary.recovery_cost, summary.windows, summary.interruptions) == (0.0, 0, 1)


@given(
    step=st.integers(8, 13),
    signals=st.fixed_dictionaries(
        {},
        optional={
            **{name: st.floats(0, 1e12) for name in ("planning_s", "perception_s", "travel", "retries", "risk")},
            "cycle_time_s": st.floats(1e-3, 1e12),
        },
    ),
)
def test_no_sample_whatever_it_holds_adds_more_than_a_hundred_over_the_work_left(
    step: int, signals: dict[str, float]
) -> None:
    # Inside the window a sample changes no other step's term, and its own is 10 * 10 at most. It may raise the alarm
    # sooner or later, or close and open windows: never with more than the steps' own terms, over at least the six
    # cycles that are left at step 14.
    rows = hard_rows()
    rows[step] |= signals
    cost = tracked(rows).recovery_cost
    assert cost is not None
    assert cost <= (24 + 100) / 6
