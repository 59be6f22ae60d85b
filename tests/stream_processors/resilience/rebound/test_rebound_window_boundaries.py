"""The rebound window on its boundaries, each test named for one."""

from itertools import pairwise

import numpy as np
import pytest

from springback.stream_processors.resilience.baseline.estimates import AlarmBounds
from springback.stream_processors.resilience.rebound.rebound_window import (
    DetectorState,
    WalkRows,
    WindowConfig,
    WindowEvent,
    walk,
)

EXACT = WindowConfig(effort_drift=0.5, delay_drift=0.5)
BOUNDS = AlarmBounds(3.0, 3.0)
HIGH = AlarmBounds(1e9, 1e9)


def walked(
    g: list[float],
    c: list[float] | None = None,
    bounds: AlarmBounds = BOUNDS,
    config: WindowConfig = EXACT,
    cuts: tuple[int, ...] = (),
) -> tuple[list[WindowEvent], DetectorState]:
    lost = [0.0] * len(g) if c is None else c
    effort_gain, delay_gain = config.increments(np.array(g), np.array(lost))
    numbers = [float(i) for i in range(len(g))]
    ones = [1.0] * len(g)
    rows = WalkRows(
        list(range(len(g))), numbers, ["run"] * len(g), [0] * len(g), [0] * len(g), [10.0] * len(g), g, lost,
        effort_gain.tolist(), delay_gain.tolist(), g, ones, ones, ones, ones,
    )  # fmt: skip
    state, events = DetectorState(), []
    edges = [0, *cuts, len(g)]
    for start, stop in pairwise(edges):
        events += walk(state, rows, start, stop, bounds, config)
    return events, state


def spans(events: list[WindowEvent]) -> list[tuple[int, int, int]]:
    """Departure, alarm and re-entry of the closed windows."""
    return [(e.tally.departure_step, e.alarm_step, e.tally.last_step) for e in events if e.closed]


def test_effort_sum_exactly_at_its_bound_does_not_alarm() -> None:
    assert walked([2.0, 2.0, 0.0])[0] == []  # 1.5, 3.0: not above 3
    assert len(walked([2.0, 2.125])[0]) == 1


def test_delay_sum_exactly_at_its_bound_does_not_alarm() -> None:
    assert walked([0.0] * 4, [0.0, 2.0, 2.0, 0.0])[0] == []
    assert len(walked([0.0] * 3, [0.0, 2.0, 2.125])[0]) == 1


def test_one_step_adds_no_more_than_the_cap() -> None:
    assert walked([500.0], bounds=AlarmBounds(9.5, 3.0))[0] == []
    assert walked([0.0, 0.0], [0.0, 500.0], bounds=AlarmBounds(3.0, 9.5))[0] == []
    assert len(walked([500.0, 0.625], bounds=AlarmBounds(9.5, 3.0))[0]) == 1


def test_a_sum_of_exactly_zero_ends_the_stretch() -> None:
    # 0.5 up, 0.5 down to 0 exactly, then the alarm: departure is the step after the zero.
    events, _ = walked([1.0, 0.0, 9.0])
    assert [(e.tally.departure_step, e.alarm_step) for e in events] == [(2, 2)]


def test_departure_by_effort_is_the_first_step_after_zero() -> None:
    events, _ = walked([0.0, 0.0, 2.0, 2.0, 2.0])
    assert [(e.tally.departure_step, e.alarm_step, e.cause) for e in events] == [(2, 4, "effort")]


def test_departure_by_delay_is_the_step_before() -> None:
    events, _ = walked([0.0] * 5, [0.0, 0.0, 2.0, 2.0, 2.0])
    assert [(e.tally.departure_step, e.alarm_step, e.cause) for e in events] == [(1, 4, "delay")]


def test_departure_by_delay_at_step_0_when_the_first_cycle_loses() -> None:
    events, _ = walked([0.0] * 3, [0.0, 2.0, 2.0])
    assert events == []
    events, _ = walked([0.0] * 4, [0.0, 2.0, 2.0, 2.0], cuts=(1, 2))
    assert [e.tally.departure_step for e in events] == [0]


def test_departure_by_delay_is_never_before_step_0() -> None:
    # A first row with lost cycles cannot be (they are 0 there); were there one, step 0 is still the first.
    events, _ = walked([0.0], [5.0])
    assert [e.tally.departure_step for e in events] == [0]


def test_both_detectors_at_one_step_take_the_earlier_departure_delay_first() -> None:
    events, _ = walked([0.0, 0.0, 0.0, 9.0], [0.0, 1.5, 1.5, 9.0])
    assert [(e.tally.departure_step, e.alarm_step, e.cause) for e in events] == [(0, 3, "effort+delay")]


def test_both_detectors_at_one_step_take_the_earlier_departure_effort_first() -> None:
    events, _ = walked([1.5, 1.5, 1.5, 9.0], [0.0, 0.0, 0.0, 9.0])
    assert [(e.tally.departure_step, e.alarm_step, e.cause) for e in events] == [(0, 3, "effort+delay")]


def test_the_other_detectors_candidate_does_not_move_the_departure() -> None:
    # The delay sum has run since step 0 but is below its bound: effort alone alarms, at its own departure.
    events, _ = walked([0.0, 0.0, 9.0], [0.0, 1.0, 1.0])
    assert [(e.tally.departure_step, e.cause) for e in events] == [(2, "effort")]


def test_calm_exactly_at_both_limits_is_calm() -> None:
    config = WindowConfig()
    events, _ = walked([10.0, 1.0, 1.0, 1.0], [0.0, 0.4, 0.4, 0.4], config=config)
    assert spans(events) == [(0, 0, 1)]


@pytest.mark.parametrize(("g", "c"), [(np.nextafter(1.0, 2), 0.4), (1.0, np.nextafter(0.4, 1))])
def test_a_hair_above_either_limit_is_not_calm(g: float, c: float) -> None:
    events, state = walked([10.0, 1.0, 1.0, g], [0.0, 0.4, 0.4, c], config=WindowConfig())
    assert spans(events) == []
    assert state.window is not None
    assert state.window.calm == 0


def test_calm_counts_from_the_alarms_own_step_on() -> None:
    # By delay the alarm's step may itself be calm only where its loss is small: sums above the bound by creeping.
    config = WindowConfig(delay_drift=0.125, calm_loss=0.5)
    events, _ = walked([0.0] * 6, [0.0, 2.0, 0.5, 0.5, 0.5, 0.5], AlarmBounds(9.0, 2.0), config)
    # sums 0, 1.875, 2.25 (alarm at step 2, calm), calm 3, calm 4 closes: re-entry is the alarm's own step.
    assert spans(events) == [(0, 2, 2)]


def test_a_calm_streak_before_the_alarm_does_not_count() -> None:
    events, state = walked([1.0] * 7, bounds=AlarmBounds(2.75, 9.0))  # +0.5 each, alarm at step 5, calm all along
    assert [(e.alarm_step, e.closed) for e in events] == [(5, False)]
    assert state.window is not None
    assert state.window.calm == 2


def test_two_calm_steps_do_not_close_and_an_interruption_starts_anew() -> None:
    events, _ = walked([10.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0])
    assert spans(events) == [(0, 0, 4)]


@pytest.mark.parametrize("cut", [1, 2, 3, 4])
def test_a_window_closes_across_batches(cut: int) -> None:
    # Cut at 2 leaves one calm step before the cut, at 3 two.
    events, _ = walked([10.0, 0.0, 0.0, 0.0, 0.0], cuts=(cut,))
    assert spans(events) == [(0, 0, 1)]
    assert [e.tally.total for e in events if e.closed] == [10.0]


def test_a_second_window_starts_right_after_the_first() -> None:
    # Steps 1-3 close the first; step 4 is the next and departs at once.
    events, _ = walked([10.0, 0.0, 0.0, 0.0, 10.0, 0.0, 0.0, 0.0])
    assert spans(events) == [(0, 0, 1), (4, 4, 5)]


def test_a_second_window_by_delay_departs_no_earlier_than_the_step_that_closed_the_first() -> None:
    events, _ = walked([10.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 5.0, 0.0])
    assert [(e.tally.departure_step, e.cause) for e in events if not e.closed] == [(0, "effort"), (3, "delay")]


def test_sums_restart_at_zero_after_a_window() -> None:
    # Without the restart, 2.0 on top of what was left would alarm again.
    events, state = walked([10.0, 1.0, 1.0, 1.0, 2.0])
    assert spans(events) == [(0, 0, 1)]
    assert state.effort == 1.5


def test_lost_cycles_leave_the_departure_out_and_reach_to_the_reentry() -> None:
    events, _ = walked([0.0] * 8, [0.0, 0.25, 2.0, 2.0, 2.0, -1.0, 0.25, 0.25], config=EXACT)
    # sum of c: step 1 falls to 0, departs at 1 by steps 2, 3, alarm at 4; calm at 5, 6, 7; re-entry at 5.
    assert spans(events) == [(1, 4, 5)]
    assert [e.tally.lost for e in events if e.closed] == [2.0 + 2.0 + 2.0 - 1.0]


def test_threshold_detector_alarms_after_so_many_steps_in_a_row_at_or_above() -> None:
    config = WindowConfig(detector="threshold", threshold=3.0, threshold_steps=2)
    bounds = config.alarm_bounds(HIGH)
    events, _ = walked([3.0, 2.9, 3.0, 3.0, 0.0, 0.0, 0.0], bounds=bounds, config=config)
    assert [(e.tally.departure_step, e.alarm_step, e.cause) for e in events if not e.closed] == [(2, 3, "effort")]
    assert spans(events) == [(2, 3, 4)]


def test_threshold_detector_takes_no_notice_of_delay() -> None:
    config = WindowConfig(detector="threshold")
    assert walked([0.0] * 4, [0.0, 50.0, 50.0, 50.0], config.alarm_bounds(HIGH), config)[0] == []


def test_threshold_detector_of_one_step_alarms_at_once_and_across_batches() -> None:
    one = WindowConfig(detector="threshold", threshold_steps=1)
    assert [e.alarm_step for e in walked([0.0, 3.0], bounds=one.alarm_bounds(HIGH), config=one)[0]] == [1]
    three = WindowConfig(detector="threshold", threshold_steps=3)
    events, _ = walked([3.0] * 3, bounds=three.alarm_bounds(HIGH), config=three, cuts=(1, 2))
    assert [(e.tally.departure_step, e.alarm_step) for e in events] == [(0, 2)]


def test_fixed_bounds_take_no_notice_of_calibrated_ones() -> None:
    assert WindowConfig().alarm_bounds(AlarmBounds(5.0, 6.0)) == (5.0, 6.0)
    assert WindowConfig(bounds="fixed").alarm_bounds(AlarmBounds(5.0, 6.0)) == (9.0, 10.0)


def test_an_opening_carries_the_window_as_of_its_alarm() -> None:
    events, _ = walked([2.0, 2.0, 2.0, 5.0, 0.0, 0.0, 0.0])
    opening = events[0]
    assert not opening.closed
    assert (opening.tally.last_step, opening.tally.total) == (2, 6.0)
