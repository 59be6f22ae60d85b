"""The steps that travel with a window's reading, and the trace of an episode's steps."""

import itertools
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.producers.contract.frame import StepFrame
from springback.stream_processors.intake.step_table import ArrivedFrame
from springback.stream_processors.intake.validation import tabulate
from springback.stream_processors.resilience.baseline.estimates import MaterialisedBaseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import EpisodeKey, WindowReading
from springback.stream_processors.resilience.rebound.rebound_window import WindowConfig
from springback.stream_processors.resilience.tracking.bounds import BoundsConfig, fit
from springback.stream_processors.resilience.tracking.episode_tracker import EpisodeTracker
from springback.stream_processors.resilience.tracking.step_trace import StepTrace, TracedStep
from springback.stream_processors.resilience.tracking.tracker_state import TrackerState
from springback.stream_processors.resilience.window_evidence import WindowEvidence
from tests.stream_processors.frame_builders import (
    START_S,
    Row,
    frame_of,
    nominal_baseline,
    nominal_rows,
    nothing_learned,
    only_episode,
    ready,
    run_tracker,
)
from tests.stream_processors.random_episodes import by_seed, random_rows, seeds

CONFIG = ResilienceConfig()
KEY = EpisodeKey("robot-7", "boot", "1")


def upset(rows: list[Row], hard: Sequence[int], **fields: Any) -> list[Row]:
    """The rows with these hard ones, and texts that tell which row they are of."""
    for row in rows:
        row |= {"action": f"act {row['step']}", "feedback": ""}
    for number in hard:
        rows[number] |= {"travel": 5.0, "risk": 2.0, "feedback": "slipped"} | fields
    return rows


def numbers(evidence: WindowEvidence | None) -> list[int]:
    assert evidence is not None
    return [step.step for step in evidence.steps]


def closings(windows: Sequence[WindowReading]) -> list[WindowReading]:
    return [window for window in windows if window.state != "open"]


def traced(frames: Sequence[StepFrame], baseline: MaterialisedBaseline, config: ResilienceConfig) -> list[TracedStep]:
    trace = StepTrace(KEY)
    table = tabulate([ArrivedFrame(frame, START_S + number) for number, frame in enumerate(frames)])
    EpisodeTracker(config).track(table, [TrackerState()] * len(frames), baseline, trace)
    return trace.steps


def by_definition(steps: Sequence[TracedStep], window: WindowReading, closed_after: int) -> dict[str, Any]:
    """The evidence as its definition has it, out of all scored steps of the episode up to the window's closing."""
    scored = [step for step in steps if step.figures is not None and step.step <= closed_after]
    place = {step.step: number for number, step in enumerate(scored)}
    departure, reentry = place[window.departure_step], place[window.reentry_step]
    first, last = max(0, departure - 5), min(len(scored) - 1, reentry + 3 * (window.state == "recovered"))
    kept = [n for n in range(first, last + 1) if n < first + 32 or n > len(scored) - 1 - 32]
    return {
        "steps": [scored[n].step for n in kept],
        "before": departure - first,
        "after": last - reentry,
        "left_out": last + 1 - first - len(kept),
        "left_out_at": 32 if last + 1 - first > len(kept) else 0,
        "figures": [
            (f.intensity, f.cognitive, f.physical, f.debt, f.lost_cycles)
            for f in (scored[n].figures for n in kept)
            if f is not None
        ],
    }


def as_given(evidence: WindowEvidence | None) -> dict[str, Any]:
    assert evidence is not None
    return {
        "steps": numbers(evidence),
        "before": evidence.before,
        "after": evidence.after,
        "left_out": evidence.left_out,
        "left_out_at": evidence.left_out_at,
        "figures": [(s.intensity, s.cognitive, s.physical, s.debt, s.lost_cycles) for s in evidence.steps],
    }


def test_a_window_brings_five_steps_before_it_and_two_that_confirmed_its_re_entry(
    baseline: MaterialisedBaseline,
) -> None:
    # Hard from 8 to 11, so that it departs at 8; 12 is the first calm step, and 13 and 14 confirm it.
    rows = upset(nominal_rows(0, 20), range(8, 12))
    found, _ = run_tracker([frame_of(rows)], CONFIG, baseline)
    opened, closed = found.windows
    assert (closed.departure_step, closed.reentry_step) == (8, 12)
    assert opened.alarm_step == numbers(opened.evidence)[-1]
    assert numbers(opened.evidence)[:6] == [3, 4, 5, 6, 7, 8]
    evidence = closed.evidence
    assert evidence is not None
    assert numbers(evidence) == [*range(3, 15)]
    assert (evidence.before, evidence.after, evidence.left_out) == (5, 2, 0)
    departure = evidence.steps[5]
    assert (departure.mode, departure.action, departure.feedback) == ("navigate", "act 8", "slipped")
    assert (departure.progress, departure.propositions, departure.time_s) == (0.45, 0.45, START_S + 8)
    assert max(step.intensity for step in evidence.steps[5:10]) == closed.peak
    assert sum(step.lost_cycles for step in evidence.steps[6:10]) == pytest.approx(closed.lost_cycles)


@pytest.mark.parametrize(("hard", "expected"), [((0, 1, 2, 3), [*range(7)]), ((2, 3, 4), [*range(8)])])
def test_near_an_episodes_start_there_are_fewer_before(
    hard: Sequence[int], expected: list[int], baseline: MaterialisedBaseline
) -> None:
    [closed] = closings(run_tracker([frame_of(upset(nominal_rows(0, 20), hard))], CONFIG, baseline)[0].windows)
    assert numbers(closed.evidence) == expected
    assert closed.evidence is not None
    assert closed.evidence.before == hard[0]


def test_a_window_that_the_end_closes_has_nothing_behind_it(baseline: MaterialisedBaseline) -> None:
    rows = upset(nominal_rows(0, 20), range(16, 20))
    [closed] = closings(run_tracker([frame_of(rows, "failure")], CONFIG, baseline)[0].windows)
    assert closed.state == "unrecovered"
    assert numbers(closed.evidence) == [*range(11, 20)]
    assert closed.evidence is not None
    assert closed.evidence.after == 0


def test_a_window_that_a_gap_breaks_off_ends_before_it(baseline: MaterialisedBaseline) -> None:
    rows = upset(nominal_rows(0, 20), range(8, 12))
    for row in rows[12:]:
        row["step"] += 100
    for batches in ([1], [1, 1]):
        frames = [frame_of(rows)] if batches == [1] else [frame_of(rows[:12]), frame_of(rows[12:])]
        closed, *_ = closings(run_tracker(frames, CONFIG, baseline, batches)[0].windows)
        assert closed.state == "censored"
        assert numbers(closed.evidence) == [*range(3, 12)]


def test_of_a_long_window_the_first_and_the_last_32_are_kept(baseline: MaterialisedBaseline) -> None:
    rows = nominal_rows(0, 8) + [dict(nominal_rows(7, 8)[0]) for _ in range(100)] + nominal_rows(8, 20)
    for step, row in enumerate(rows):
        row |= {"step": step, "time_s": START_S + step}
    rows = upset(rows, range(8, 108))
    [closed] = closings(run_tracker([frame_of(rows)], CONFIG, baseline)[0].windows)
    evidence = closed.evidence
    assert evidence is not None
    last = closed.reentry_step + 2
    first = closed.departure_step - 5
    assert numbers(evidence) == [*range(first, first + 32), *range(last - 31, last + 1)]
    assert evidence.left_out == last - first + 1 - 64
    assert evidence.left_out_at == 32


def test_what_an_agent_says_is_cut(baseline: MaterialisedBaseline) -> None:
    rows = upset(nominal_rows(0, 20), range(8, 12), action="<script>" * 30)
    [closed] = closings(run_tracker([frame_of(rows)], CONFIG, baseline)[0].windows)
    assert closed.evidence is not None
    assert {len(step.action) for step in closed.evidence.steps[5:9]} == {80}
    assert closed.evidence.steps[5].action == "<script>" * 9 + "<script" + "…"


def test_a_state_that_is_too_large_lets_go_of_it_and_the_window_says_how_much_is_left_out(
    baseline: MaterialisedBaseline,
) -> None:
    rows = upset(nominal_rows(0, 20), range(8, 12))
    _, state = run_tracker([frame_of(rows[:11])], CONFIG, baseline)
    fit(state, msgspec.msgpack.encode, BoundsConfig(state_bytes=1))
    assert only_episode(state).kept.words == []
    found, _ = run_tracker([frame_of(rows[11:])], CONFIG, baseline, state=state)
    [closed] = closings(found.windows)
    assert numbers(closed.evidence) == [11, 12, 13, 14]
    assert closed.evidence is not None
    assert (closed.evidence.before, closed.evidence.left_out, closed.evidence.left_out_at) == (0, 8, 0)


def test_a_state_from_before_there_was_evidence_goes_on(baseline: MaterialisedBaseline) -> None:
    rows = upset(nominal_rows(0, 20), range(8, 12))
    _, state = run_tracker([frame_of(rows[:15])], CONFIG, baseline)
    plain = msgspec.msgpack.decode(msgspec.msgpack.encode(state))
    del plain["agents"]["robot-7"]["open"]["1"]["kept"]
    older = msgspec.msgpack.decode(msgspec.msgpack.encode(plain), type=TrackerState)
    found, _ = run_tracker([frame_of(rows[15:], "success")], CONFIG, baseline, state=older)
    assert [summary.windows for summary in found.summaries] == [1]


def long_rows(seed: int) -> list[Row]:
    """Episodes end to end as one: with gaps in the numbers, and stretches of trouble of 3 to 150 steps."""
    rng = np.random.default_rng(seed)
    rows: list[Row] = []
    for _ in range(int(rng.integers(2, 7))):
        piece = random_rows(rng, disturbed=False)
        if rng.random() < 0.6:
            for row in piece * int(rng.integers(1, 5)):
                row |= {"travel": float(rng.uniform(1, 4)), "risk": float(rng.uniform(0, 2))}
        rows += piece
    step = 0
    for number, row in enumerate(rows):
        row |= {"step": step, "time_s": START_S + number, "action": f"act {step}", "mode": "navigate"}
        step += int(rng.choice([1, 1, 1, 1, 1, 1, 1, 2, 40, 90], p=[0.14] * 7 + [0.01, 0.005, 0.005]))
    return rows


@by_seed(60)
@given(seed=seeds, sizes=st.lists(st.integers(1, 60), min_size=1, max_size=30), calm=st.sampled_from([1, 3, 5, 40]))
def test_however_steps_come_the_evidence_is_that_of_the_definition(seed: int, sizes: list[int], calm: int) -> None:
    config = ResilienceConfig(window=WindowConfig(calm_steps=calm), rate_ratio="any")
    baseline = ready(nominal_baseline(config), config)
    rows = long_rows(seed)
    cuts = [0, *itertools.accumulate(sizes), len(rows)]
    frames = [frame_of(rows[a:b]) for a, b in itertools.pairwise(cuts) if rows[a:b]]
    steps = traced(frames, baseline, config)
    one_by_one, state = run_tracker(frames, config, baseline, store_between=True)
    whole, _ = run_tracker([frame_of(rows)], config, baseline)
    assert one_by_one.windows == whole.windows
    assert len(only_episode(state).kept.words) <= 96
    order = [step.step for step in steps]
    for window in whole.windows:
        confirmed = order[order.index(window.reentry_step) + (calm - 1) * (window.state == "recovered")]
        assert as_given(window.evidence) == by_definition(steps, window, confirmed)


@by_seed(30)
@given(seed=seeds)
def test_a_trace_says_where_the_detectors_stood_after_each_step(seed: int) -> None:
    config = ResilienceConfig(rate_ratio="any")
    baseline = ready(nominal_baseline(config), config)
    rows = long_rows(seed)
    steps = traced([frame_of(rows)], baseline, config)
    assert [step.step for step in steps] == [row["step"] for row in rows]
    state: TrackerState | None = None
    for row, step in zip(rows, steps, strict=True):
        _, state = run_tracker([frame_of([row])], config, baseline, state=state)
        detectors, level = only_episode(state).detectors, only_episode(state).intensity
        if step.figures is None:
            continue
        figures = step.figures
        assert level == (figures.intensity, figures.cognitive, figures.physical, figures.debt)
        if detectors.window is None or detectors.window.alarm_step == row["step"]:
            assert (figures.effort, figures.delay) == (detectors.effort, detectors.delay)
        else:
            assert (figures.effort, figures.delay) == (None, None)
        assert (figures.effort_bound, figures.delay_bound) == (9.0, 10.0)


def test_a_trace_changes_nothing_and_has_the_steps_that_nothing_could_score() -> None:
    steps = traced([frame_of(upset(nominal_rows(0, 5), [2]))], nothing_learned(CONFIG), CONFIG)
    assert [(step.action, step.figures) for step in steps] == [(f"act {n}", None) for n in range(5)]
