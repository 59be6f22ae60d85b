"""What must hold of the tracker whatever arrives: batches, restarts, copies, units and bad numbers change nothing."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.stream_processors.intake.step_table import ArrivedFrame
from springback.stream_processors.intake.validation import tabulate
from springback.stream_processors.offline.evaluation import evaluate_frames, learn_baseline
from springback.stream_processors.resilience.baseline.stage_baseline import (
    EpisodeContribution,
    StageBaseline,
    sums_matrix,
)
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import EpisodeKey, EpisodeSummary, WindowReading
from springback.stream_processors.resilience.tracking.episode_tracker import EpisodeTracker, TrackerOutputs
from springback.stream_processors.resilience.tracking.tracker_state import TrackerState
from tests.stream_processors.frame_builders import START_S, Part, frame_of_parts, ready, run_tracker
from tests.stream_processors.random_episodes import by_seed, cut_into_frames, random_episodes

CONFIG = ResilienceConfig()
seeds = st.integers(0, 2**32 - 1)
sizes = st.lists(st.integers(1, 40), max_size=12)


def by_episode(outputs: TrackerOutputs) -> tuple[dict[EpisodeKey, list[WindowReading]], dict[EpisodeKey, Any]]:
    """Windows in order, and the summary, of each episode."""
    windows: dict[EpisodeKey, list[WindowReading]] = {}
    for window in outputs.windows:
        windows.setdefault(window.key, []).append(window)
    summaries: dict[EpisodeKey, EpisodeSummary] = {summary.key: summary for summary in outputs.summaries}
    assert len(summaries) == len(outputs.summaries)
    return windows, summaries


def learned_from(parts: list[Part], seed: int) -> StageBaseline:
    return learn_baseline(cut_into_frames(parts, seed), CONFIG)


def lessons(contributions: list[EpisodeContribution]) -> dict[EpisodeKey, EpisodeContribution]:
    """What each episode taught, to the last bit."""
    found = {contribution.key: contribution for contribution in contributions}
    assert len(found) == len(contributions)
    return found


@by_seed(12)
@given(seed=seeds, batches=sizes)
def test_batch_boundaries_and_restarts_change_no_bit(seed: int, batches: list[int]) -> None:
    parts = random_episodes(seed)
    frames = cut_into_frames(parts, seed)
    baseline = ready(learned_from(parts, seed), CONFIG)
    at_once, state_at_once = run_tracker(frames, CONFIG, baseline, [len(frames)])
    cut, state = run_tracker(frames, CONFIG, baseline, batches, store_between=True)
    assert by_episode(cut) == by_episode(at_once)
    assert at_once.windows
    assert lessons(cut.contributions) == lessons(at_once.contributions)
    for agent in [*state.agents.values(), *state_at_once.agents.values()]:
        agent.reported_s, agent.changed = 0.0, False  # how often a status is due depends on the batches
    assert state == state_at_once


@by_seed(8)
@given(seed=seeds, other_seed=seeds)
def test_cuts_into_frames_change_no_bit(seed: int, other_seed: int) -> None:
    parts = random_episodes(seed)
    baseline = ready(learned_from(parts, seed), CONFIG)
    one, _ = run_tracker(cut_into_frames(parts, seed), CONFIG, baseline, [5, 5, 5])
    windows, summaries = by_episode(one)
    for frames in (cut_into_frames(parts, other_seed, longest=5), [frame_of_parts([part]) for part in parts]):
        other, _ = run_tracker(frames, CONFIG, baseline, [7] * 100)
        other_windows, other_summaries = by_episode(other)
        assert other_windows == windows
        assert {k: msgspec.structs.replace(s, ended_s=0.0) for k, s in other_summaries.items()} == {
            k: msgspec.structs.replace(s, ended_s=0.0) for k, s in summaries.items()
        }


@by_seed(10)
@given(seed=seeds, data=st.data())
def test_interrupted_at_any_frame_equals_uninterrupted(seed: int, data: st.DataObject) -> None:
    parts = random_episodes(seed, references=3, others=2, families=1)
    frames = cut_into_frames(parts, seed)
    baseline = ready(learned_from(parts, seed), CONFIG)
    whole, state_whole = run_tracker(frames, CONFIG, baseline)
    stop = data.draw(st.integers(0, len(frames)))
    first, state = run_tracker(frames[:stop], CONFIG, baseline)
    restored = msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=TrackerState)
    arrivals = [START_S + i for i in range(stop, len(frames))]
    rest, state = run_tracker(frames[stop:], CONFIG, baseline, state=restored, arrivals=arrivals)
    for name in ("windows", "summaries", "statuses", "contributions"):
        assert getattr(first, name) + getattr(rest, name) == getattr(whole, name)
    assert msgspec.msgpack.encode(state) == msgspec.msgpack.encode(state_whole)


@by_seed(10)
@given(seed=seeds, batches=sizes, data=st.data())
def test_copies_of_frames_change_nothing_but_their_count(seed: int, batches: list[int], data: st.DataObject) -> None:
    parts = random_episodes(seed)
    frames = cut_into_frames(parts, seed)
    baseline = ready(learned_from(parts, seed), CONFIG)
    once, state_once = run_tracker(frames, CONFIG, baseline, batches)
    again = list(frames)
    for _ in range(data.draw(st.integers(1, 20))):
        original = data.draw(st.integers(0, len(frames) - 1))
        earliest = max(i for i, frame in enumerate(again) if frame is frames[original]) + 1
        again.insert(data.draw(st.integers(earliest, len(again))), frames[original])
    twice, state_twice = run_tracker(again, CONFIG, baseline, batches)
    windows, summaries = by_episode(twice)
    windows_once, summaries_once = by_episode(once)
    assert windows == windows_once
    assert {k: msgspec.structs.replace(s, ended_s=0.0) for k, s in summaries.items()} == {
        k: msgspec.structs.replace(s, ended_s=0.0) for k, s in summaries_once.items()
    }
    assert lessons(twice.contributions) == lessons(once.contributions)
    dropped = sum(agent.counts.duplicate_steps for agent in state_twice.agents.values())
    assert dropped == sum(frame.n_steps for frame in again) - sum(frame.n_steps for frame in frames)
    for name, agent in state_twice.agents.items():
        same = msgspec.structs.replace(agent.counts, duplicate_steps=0)
        assert same == state_once.agents[name].counts
        assert agent.time_s == state_once.agents[name].time_s


@by_seed(10)
@given(seed=seeds)
def test_recovery_costs_are_not_negative(seed: int) -> None:
    evaluation = evaluate_frames(cut_into_frames(random_episodes(seed), seed), CONFIG)
    for window in evaluation.windows:
        costs = window.costs
        assert min(window.recovery_cost, costs.cognitive, costs.physical, costs.debt, window.peak) >= 0
        # The channels' squares add up inside the root, so the whole lies between the largest and the sum of them.
        largest = max(costs.cognitive, costs.physical, costs.debt)
        assert largest <= window.recovery_cost * (1 + 1e-9)
        assert window.recovery_cost <= (costs.cognitive + costs.physical + costs.debt) * (1 + 1e-9)
    for summary in evaluation.summaries:
        assert summary.recovery_cost is not None
        assert summary.recovery_cost >= 0


@by_seed(10)
@given(seed=seeds, shuffle=seeds)
def test_order_of_contributions_does_not_matter(seed: int, shuffle: int) -> None:
    parts = random_episodes(seed, others=0, families=1)
    frames = [frame_of_parts([part]) for part in parts]
    one = learn_baseline(frames, CONFIG)
    other = learn_baseline([frames[i] for i in np.random.default_rng(shuffle).permutation(len(frames))], CONFIG)
    assert one.families.keys() == other.families.keys()
    for name, family in one.families.items():
        assert family.cells.keys() == other.families[name].cells.keys()
        for cell, sums in family.cells.items():
            mine, yours = sums_matrix(sums), sums_matrix(other.families[name].cells[cell])
            np.testing.assert_allclose(mine, yours, rtol=1e-12, atol=1e-12 * float(np.abs(mine).max()))


@pytest.mark.parametrize("factor", [1000.0, 1e-3])
@pytest.mark.parametrize("signal", ["planning_s", "perception_s", "travel", "retries", "risk", "cycle_time_s"])
def test_the_unit_of_a_signal_plays_no_part_but_for_epsilon(
    signal: str, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With the absolute epsilons in the signal's own unit nothing else knows of units: costs agree to rounding.
    # (The 1e-9 s beside tau* shifts a cost by less than 1e-9/tau*, 2e-6 of it in kiloseconds.)
    parts = random_episodes(5)
    plain = evaluate_frames([frame_of_parts([part]) for part in parts], CONFIG)
    scaled_parts = [
        (header, [{**row, signal: row[signal] * factor} for row in rows], outcome) for header, rows, outcome in parts
    ]
    epsilon = np.array([1e-3, 1e-3, 1e-2, 0.1, 1e-3, 1e-3, 1e-2])
    place = ["planning_s", "perception_s", "travel", "retries", "-", "-", "risk"]
    if signal in place:
        epsilon[place.index(signal)] *= factor
    monkeypatch.setattr("springback.stream_processors.resilience.baseline.estimates.EPSILON_ABSOLUTE", epsilon)
    scaled = evaluate_frames([frame_of_parts([part]) for part in scaled_parts], CONFIG)
    assert plain.windows
    assert [w.alarm_step for w in scaled.windows] == [w.alarm_step for w in plain.windows]
    for one, other in zip(plain.windows, scaled.windows, strict=True):
        assert other.recovery_cost == pytest.approx(one.recovery_cost, rel=1e-5 if signal == "cycle_time_s" else 1e-9)


NUMBERS = ["planning_s", "perception_s", "travel", "retries", "risk", "violation", "cycle_time_s", "time_s", "progress"]
worst = st.sampled_from([np.nan, np.inf, -np.inf, 1e308, -1e308, 1.7e308, 1e200, 1e13, 1e12, 5e-324, -1.0])


@by_seed(25)
@given(seed=seeds, faults=st.lists(st.tuples(st.integers(0, 200), st.sampled_from(NUMBERS), worst), max_size=10))
def test_no_number_however_bad_makes_state_or_readings_not_finite(
    seed: int, faults: list[tuple[int, str, float]]
) -> None:
    parts = random_episodes(seed, references=3, others=1, families=1)
    every = [row for _, rows, _ in parts for row in rows]
    for place, name, value in faults:
        every[place % len(every)][name] = value
    frames = cut_into_frames(parts, seed)
    with np.errstate(all="raise", under="ignore"):
        learned = learn_baseline(frames, CONFIG)
        tracker, state, outputs = EpisodeTracker(CONFIG), TrackerState(), []
        for frame in frames:
            table = tabulate([ArrivedFrame(frame, START_S)])
            outputs.append(tracker.track(table, [state], ready(learned, CONFIG)))
            assert_finite(msgspec.to_builtins(state))
    for found in outputs:
        assert_finite(msgspec.to_builtins([found.windows, found.summaries, found.statuses]))
    for family in learned.families.values():
        for sums in family.cells.values():
            assert np.isfinite(sums_matrix(sums)).all()


def assert_finite(value: Any) -> None:
    if isinstance(value, float):
        assert np.isfinite(value)
    elif isinstance(value, dict):
        for key, part in value.items():
            if key == "cells":
                continue
            assert_finite(part)
    elif isinstance(value, list | tuple):
        for part in value:
            assert_finite(part)
