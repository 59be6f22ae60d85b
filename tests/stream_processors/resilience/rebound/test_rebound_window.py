"""The window machine against a literal one that keeps whole lists, however the rows are cut into batches."""

from itertools import pairwise

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springback.stream_processors.resilience.baseline.estimates import AlarmBounds
from springback.stream_processors.resilience.rebound.rebound_window import (
    DetectorState,
    UninterruptedSums,
    WalkRows,
    WindowConfig,
    WindowEvent,
    walk,
)
from tests.examples import examples
from tests.stream_processors.resilience.literal_metrics import literal_windows

EXACT = WindowConfig(effort_drift=0.5, delay_drift=0.5)
"""Drifts that binary floats hold exactly, so that a sum of eighths can lie on its bound."""

eighths = st.integers(0, 24).map(lambda k: k / 8)
calm_or_not = st.one_of(st.just(0.25), eighths, st.sampled_from([1.0, 1.125, 12.0]))
losses = st.one_of(st.just(0.0), st.integers(-16, 24).map(lambda k: k / 8), st.sampled_from([0.4, 15.0]))
episodes = st.lists(st.tuples(calm_or_not, losses), min_size=1, max_size=60)
cuts_of = st.lists(st.integers(0, 60), max_size=8)


def columns(steps: list[tuple[float, float]], config: WindowConfig) -> WalkRows:
    """Rows with every cost term told apart by a prime factor, so that a sum over the wrong rows shows."""
    g, c = [s[0] for s in steps], [0.0, *(s[1] for s in steps[1:])]
    effort_gain, delay_gain = config.increments(np.array(g), np.array(c))
    n = len(g)
    return WalkRows(
        step=list(range(n)),
        time_s=[100.0 + i for i in range(n)],
        mode=[f"mode-{i}" for i in range(n)],
        progress_bin=[i % 10 for i in range(n)],
        residual_bin=[i % 5 for i in range(n)],
        work=[float(n - i) for i in range(n)],
        intensity=g,
        lost=c,
        effort_gain=effort_gain.tolist(),
        delay_gain=delay_gain.tolist(),
        total=[(i + 1) / 7 for i in range(n)],
        cognitive=[(i + 1) / 11 for i in range(n)],
        physical=[(i + 1) / 13 for i in range(n)],
        debt=[(i + 1) / 17 for i in range(n)],
        seconds=[(i + 1) / 19 for i in range(n)],
    )


def walked(
    rows: WalkRows, bounds: AlarmBounds, config: WindowConfig, cuts: list[int]
) -> tuple[list[WindowEvent], DetectorState]:
    """Walk the rows in stretches, with the state stored and read back between them."""
    state, events = DetectorState(), []
    edges = [0, *sorted(min(cut, len(rows.step)) for cut in cuts), len(rows.step)]
    for start, stop in pairwise(edges):
        state = msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=DetectorState)
        events += walk(state, rows, start, stop, bounds, config)
    return events, state


@settings(max_examples=examples(200), deadline=None)
@given(steps=episodes, cuts=cuts_of, bounds=st.tuples(st.sampled_from([3.0, 9.0]), st.sampled_from([4.0, 10.0])))
@pytest.mark.parametrize("config", [WindowConfig(), EXACT])
def test_finds_the_windows_that_the_literal_machine_finds(
    config: WindowConfig,
    steps: list[tuple[float, float]],
    cuts: list[int],
    bounds: tuple[float, float],
) -> None:
    rows = columns(steps, config)
    expected = literal_windows(rows.intensity, rows.lost, bounds, (config.effort_drift, config.delay_drift))
    events, state = walked(rows, AlarmBounds(*bounds), config, cuts)
    opened = [event for event in events if not event.closed]
    closed = [event for event in events if event.closed]
    assert [(e.tally.departure_step, e.alarm_step, e.cause) for e in opened] == [
        (w.departure, w.alarm, w.cause) for w in expected
    ]
    whole = [w for w in expected if w.reentry is not None]
    assert [(e.tally.departure_step, e.tally.last_step) for e in closed] == [(w.departure, w.reentry) for w in whole]
    assert (state.window is not None) == (len(whole) < len(expected))
    for event, window in zip(closed, whole, strict=True):
        inside = range(window.departure, (window.reentry or 0) + 1)
        tally = event.tally
        assert tally.total == pytest.approx(sum((i + 1) / 7 for i in inside), rel=1e-12)
        assert tally.cognitive == pytest.approx(sum((i + 1) / 11 for i in inside), rel=1e-12)
        assert tally.physical == pytest.approx(sum((i + 1) / 13 for i in inside), rel=1e-12)
        assert tally.debt == pytest.approx(sum((i + 1) / 17 for i in inside), rel=1e-12)
        assert tally.seconds == pytest.approx(sum((i + 1) / 19 for i in inside), rel=1e-12)
        assert tally.lost == pytest.approx(sum(rows.lost[i] for i in inside[1:]), abs=1e-9)
        assert tally.peak == max(rows.intensity[i] for i in inside)
        assert tally.work == len(steps) - window.departure
        assert tally.departure_mode == f"mode-{window.departure}"
        assert (tally.departure_time_s, tally.last_time_s) == (100.0 + inside[0], 100.0 + inside[-1])
        assert tally.length_steps == len(inside)


@settings(max_examples=examples(150), deadline=None)
@given(steps=episodes, cuts=cuts_of)
def test_cuts_into_batches_change_no_bit(steps: list[tuple[float, float]], cuts: list[int]) -> None:
    rows = columns(steps, WindowConfig())
    bounds = AlarmBounds(3.0, 4.0)
    events, state = walked(rows, bounds, WindowConfig(), cuts)
    events_at_once, state_at_once = walked(rows, bounds, WindowConfig(), [])
    assert [event[1:] for event in events] == [event[1:] for event in events_at_once]
    assert state == state_at_once


@settings(max_examples=examples(100), deadline=None)
@given(steps=episodes, cuts=cuts_of)
def test_largest_sums_are_those_of_a_run_without_a_stop(steps: list[tuple[float, float]], cuts: list[int]) -> None:
    rows = columns(steps, WindowConfig())
    effort = delay = 0.0
    top_effort = top_delay = 0.0
    for g, c in zip(rows.intensity, rows.lost, strict=True):
        effort, delay = max(0.0, effort + (min(g, 10.0) - 0.8)), max(0.0, delay + (min(c, 10.0) - 0.4))
        top_effort, top_delay = max(top_effort, effort), max(top_delay, delay)
    sums = UninterruptedSums()
    edges = [0, *sorted(min(cut, len(steps)) for cut in cuts), len(steps)]
    for start, stop in pairwise(edges):
        sums.run(rows, start, stop)
    assert (sums.largest_effort, sums.largest_delay) == (top_effort, top_delay)
    # A bound set to an episode's own largest sums raises no alarm in it: the arithmetic is the same to the last bit.
    events, _ = walked(rows, AlarmBounds(top_effort, top_delay), WindowConfig(), cuts)
    assert events == []
