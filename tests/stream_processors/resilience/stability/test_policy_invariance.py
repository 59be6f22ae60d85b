"""Stability loss in the stream: what batches, restarts, copies, order and lags may not change."""

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.stream_processors.offline.evaluation import evaluate_frames
from springback.stream_processors.resilience.baseline.stage_baseline import policy_matrix
from springback.stream_processors.resilience.tracking.tracker_state import TrackerState
from tests.stream_processors.frame_builders import frame_of, frame_of_parts, nominal_rows, ready, run_tracker
from tests.stream_processors.random_episodes import by_seed, cut_into_frames, judged_episodes
from tests.stream_processors.resilience.stability.literal_stability import LiteralStability
from tests.stream_processors.resilience.stability.stability_in_stream import (
    CONFIG,
    baseline_of,
    by_key,
    open_episodes,
    with_lag,
)

seeds = st.integers(0, 2**32 - 1)
sizes = st.lists(st.integers(1, 30), max_size=12)


@by_seed(8)
@given(seed=seeds, batches=sizes)
@pytest.mark.parametrize("lag", [1, 7, 64])
def test_batches_cuts_and_restarts_change_no_bit(lag: int, seed: int, batches: list[int]) -> None:
    parts = judged_episodes(seed, references=3, others=3, families=1)
    config, baseline = with_lag(lag), ready(baseline_of(parts), CONFIG)
    frames = cut_into_frames(parts, seed)
    at_once, state = run_tracker(frames, config, baseline, [len(frames)])
    cut, state_cut = run_tracker(frames, config, baseline, batches, store_between=True)
    recut, _ = run_tracker(cut_into_frames(parts, seed + 1, longest=4), config, baseline, [5] * 200)
    found = by_key(at_once.summaries)
    assert by_key(cut.summaries) == found == by_key(recut.summaries)
    assert len({loss for loss, _ in found.values()}) > 3
    for agent in [*state.agents.values(), *state_cut.agents.values()]:
        agent.reported_s, agent.changed = 0.0, False
    assert state == state_cut


@by_seed(10)
@given(seed=seeds, stop=st.floats(0, 1))
def test_a_snapshot_holds_all_of_the_stability_and_no_more_than_the_lag(seed: int, stop: float) -> None:
    parts = judged_episodes(seed, references=3, others=3, families=1)
    config, baseline = with_lag(7), ready(baseline_of(parts), CONFIG)
    frames = cut_into_frames(parts, seed)
    at = round(stop * len(frames))
    whole, _ = run_tracker(frames, config, baseline)
    first, state = run_tracker(frames[:at], config, baseline, [at])
    for episode in open_episodes(state):
        assert len(episode.stability.waiting) < 7 * 5 * 8
        assert len(episode.stability.values) <= 7
    restored = msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=TrackerState)
    rest, _ = run_tracker(frames[at:], config, baseline, [len(frames)], state=restored)
    assert by_key(first.summaries + rest.summaries) == by_key(whole.summaries)


@by_seed(10)
@given(seed=seeds, data=st.data())
def test_copies_change_nothing(seed: int, data: st.DataObject) -> None:
    parts = judged_episodes(seed, references=3, others=3, families=1)
    config, baseline = with_lag(5), ready(baseline_of(parts), CONFIG)
    frames = cut_into_frames(parts, seed)
    again = list(frames)
    for _ in range(data.draw(st.integers(1, 15))):
        original = data.draw(st.integers(0, len(frames) - 1))
        earliest = max(i for i, frame in enumerate(again) if frame is frames[original]) + 1
        again.insert(data.draw(st.integers(earliest, len(again))), frames[original])
    once, twice = (run_tracker(sent, config, baseline, [6] * 100)[0] for sent in (frames, again))
    assert by_key(twice.summaries) == by_key(once.summaries)
    lessons = {c.key: dict(zip(c.cells, policy_matrix(c.policy), strict=True)) for c in once.contributions}
    assert len(lessons) == len(twice.contributions) == 3
    for contribution in twice.contributions:
        for cell, row in zip(contribution.cells, policy_matrix(contribution.policy), strict=True):
            np.testing.assert_allclose(row, lessons[contribution.key][cell], rtol=1e-12, atol=1e-12)


@by_seed(8)
@given(seed=seeds, shuffle=seeds)
def test_the_order_of_episodes_and_of_contributions_plays_no_part(seed: int, shuffle: int) -> None:
    parts = judged_episodes(seed, families=1)
    rng = np.random.default_rng(shuffle)
    frames = [frame_of_parts([part]) for part in parts]
    mixed = [frames[i] for i in rng.permutation(len(frames))]
    one, other = by_key(evaluate_frames(frames, CONFIG).summaries), by_key(evaluate_frames(mixed, CONFIG).summaries)
    assert one.keys() == other.keys()
    for key, (loss, beta_step) in one.items():
        if loss is None:
            assert other[key] == (None, None)
        else:
            assert list(other[key]) == pytest.approx([loss, beta_step], rel=1e-9)


@by_seed(5)
@given(seed=seeds)
@pytest.mark.parametrize("lag", [4, 16, 64])
def test_the_stream_is_offline_but_for_the_lag(lag: int, seed: int) -> None:
    parts = judged_episodes(seed, families=1)
    frames = cut_into_frames(parts, seed)
    offline = evaluate_frames(frames, CONFIG)
    streamed, _ = run_tracker(frames, with_lag(lag), ready(offline.baseline, CONFIG), [4] * 200)
    literal = LiteralStability([rows for header, rows, _ in parts if header.reference])
    exact = by_key(offline.summaries)
    cut_off = 0
    for summary in streamed.summaries:
        loss, beta_step = exact[summary.key]
        [(rows, outcome)] = [(rows, outcome) for header, rows, outcome in parts if header.agent == summary.key.agent]
        if outcome == "aborted" or len(rows) <= lag:
            assert (summary.stability_loss, summary.beta_step) == (loss, beta_step)  # to the last bit
            continue
        cut_off += 1
        assert loss is not None
        assert beta_step is not None
        assert summary.stability_loss is not None
        # A is off by decay^lag A_{t+lag}, and the distance by at most 1/sqrt(eta) of that: Sigma + eta I >= eta I.
        largest = max(abs(a) for a in literal.advantages(rows, outcome == "success"))
        bound = 0.9405**lag * largest / math.sqrt(0.05)
        assert abs(summary.stability_loss - loss) <= bound + 1e-9
        assert abs((summary.beta_step or 0.0) - beta_step) <= 2 * bound + 1e-9
        if lag == 4:
            assert summary.stability_loss != loss
    assert cut_off == 0 if lag == 64 else cut_off > 0


def long_episode(steps: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(5)
    rows = nominal_rows(0, steps, total=steps)
    for row in rows:
        row["retries"] = float(rng.poisson(0.3))
        row["cycle_time_s"] = float(rng.lognormal(0, 0.4))
    return rows


def test_beyond_the_default_lag_the_stream_still_keeps_its_bound() -> None:
    rows = long_episode(200)
    frames = [frame_of(rows, "success", reference=True)]
    offline = evaluate_frames(frames, CONFIG)
    pieces = [frame_of(rows[i : i + 9], "success" if i >= 191 else None, reference=True) for i in range(0, 200, 9)]
    streamed, _ = run_tracker(pieces, CONFIG, ready(offline.baseline, CONFIG))
    [loss], [exact] = by_key(streamed.summaries).values(), by_key(offline.summaries).values()
    assert loss != exact
    literal = LiteralStability([rows])
    largest = max(abs(a) for a in literal.advantages(rows, True))
    assert abs((loss[0] or 0.0) - (exact[0] or 0.0)) <= 0.0198 * largest / math.sqrt(0.05)
    literal.lag = 64
    assert loss[0] == pytest.approx(literal.loss(rows, True), rel=1e-9)
