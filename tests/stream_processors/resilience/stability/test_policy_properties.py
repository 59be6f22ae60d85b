"""What advantages, returns and policy sums keep whatever the episodes: bounds, cuts, order, and what is refused."""

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.stream_processors.offline.evaluation import evaluate_frames, learn_baseline
from springback.stream_processors.resilience.baseline.codec import (
    BaselineFormatError,
    apply_record,
    baseline_records,
    dump_baseline,
    load_baseline,
)
from springback.stream_processors.resilience.baseline.stage_baseline import (
    POLICY_WIDTH,
    CellKey,
    StageBaseline,
    merge_policy,
)
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.stability.advantage import exact_advantages, lagged_advantages
from springback.stream_processors.resilience.stability.stability_state import ReturnTraces, StabilityConfig
from tests.stream_processors.random_episodes import by_seed, cut_into_frames, random_episodes

residuals = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=150).map(np.array)
places = st.tuples(st.sampled_from(["navigate", "plan"]), st.integers(0, 9), st.integers(0, 4))


@given(residuals, st.integers(1, 80), st.floats(0.1, 0.99))
def test_a_lag_leaves_out_the_fading_advantage_beyond_it(delta: np.ndarray, lag: int, decay: float) -> None:
    at = np.arange(max(0, len(delta) - lag + 1))
    lagged, exact = lagged_advantages(delta, at, decay, lag), exact_advantages(delta, decay)
    beyond = np.append(exact, 0.0)[at + lag]
    assert exact[at] == pytest.approx(lagged + decay**lag * beyond, rel=1e-9, abs=1e-9)


def test_the_default_lag_leaves_out_less_than_two_percent() -> None:
    config = StabilityConfig()
    assert config.decay**config.lag < 0.02


@given(st.lists(st.tuples(places, st.floats(-5, 5)), min_size=1, max_size=60), st.integers(1, 60))
def test_traces_are_the_discounted_sums_however_the_steps_come(steps: list[tuple[CellKey, float]], cut: int) -> None:
    traces = ReturnTraces()
    for part in (steps[:cut], steps[cut:]):
        traces.add([cell for cell, _ in part], np.array([reward for _, reward in part]), 0.99)
        traces = msgspec.msgpack.decode(msgspec.msgpack.encode(traces), type=ReturnTraces)
    returns = [sum(0.99 ** (u - t) * steps[u][1] for u in range(t, len(steps))) for t in range(len(steps))]
    for cell, visits, total in zip(traces.cells, traces.visits, traces.sums, strict=True):
        own = [value for (place, _), value in zip(steps, returns, strict=True) if place == cell]
        assert visits == len(own)
        assert total == pytest.approx(math.fsum(own), rel=1e-9, abs=1e-9)


@by_seed(5)
@given(seed=st.integers(0, 2**32 - 1))
def test_cuts_into_batches_change_no_loss(seed: int) -> None:
    frames = cut_into_frames(random_episodes(seed, references=5, others=3), seed)
    whole = {s.key: s for s in evaluate_frames(frames, ResilienceConfig()).summaries}
    pieces = {s.key: s for s in evaluate_frames(frames, ResilienceConfig(), batch_frames=1).summaries}
    for key, summary in whole.items():
        for one, other in (
            (summary.stability_loss, pieces[key].stability_loss),
            (summary.beta_step, pieces[key].beta_step),
        ):
            assert (one is None) == (other is None)
            assert one is None or one == pytest.approx(other, rel=1e-9)


@by_seed(5)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_file_and_the_topic_bring_policy_sums_back_exactly(seed: int) -> None:
    frames = cut_into_frames(random_episodes(seed, references=5, others=0), seed)
    learned = learn_baseline(frames, ResilienceConfig())
    loaded = load_baseline(dump_baseline(learned))
    from_topic = StageBaseline(grid=learned.grid)
    for family, baseline in learned.families.items():
        assert baseline.valued == baseline.stable == baseline.references
        for key, value in baseline_records(family, baseline, baseline.cells):
            apply_record(from_topic, key, value)
    for copy in (loaded, from_topic):
        for family, baseline in learned.families.items():
            assert copy.families[family].policy == baseline.policy
            assert (copy.families[family].valued, copy.families[family].stable) == (baseline.valued, baseline.stable)


@pytest.mark.parametrize("spoilt", [[1.0], [np.nan] * POLICY_WIDTH, [-1.0] * POLICY_WIDTH])
def test_malformed_policy_sums_are_refused(spoilt: list[float]) -> None:
    frames = cut_into_frames(random_episodes(7, references=5, others=0), 7)
    learned = learn_baseline(frames, ResilienceConfig())
    family, baseline = next(iter(learned.families.items()))
    cell = next(iter(baseline.cells))
    baseline.policy[cell] = np.array(spoilt).tobytes()
    key, value = next(iter(baseline_records(family, baseline, [cell])))
    with pytest.raises(BaselineFormatError):
        apply_record(StageBaseline(), key, value)


@given(st.lists(st.tuples(places, st.lists(st.floats(0, 10), min_size=3, max_size=3)), min_size=1, max_size=30))
def test_policy_sums_merge_in_any_order(steps: list[tuple[CellKey, list[float]]]) -> None:
    def merged(order: list[tuple[CellKey, list[float]]]) -> dict[CellKey, bytes]:
        known: dict[CellKey, bytes] = {}
        for cell, vector in order:
            row = np.array([[1.0, vector[0], 1.0, *vector, *[0.0] * 6]])
            known |= merge_policy(known, [cell], row)
        return known

    forward, backward = merged(steps), merged(steps[::-1])
    assert forward.keys() == backward.keys()
    for cell, sums in forward.items():
        assert np.frombuffer(sums) == pytest.approx(np.frombuffer(backward[cell]), rel=1e-9, abs=1e-9)
