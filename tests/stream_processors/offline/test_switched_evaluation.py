"""Frames scored by the baselines that a stream switched to."""

import pytest

from springback.producers.contract.frame import StepFrame
from springback.stream_processors.offline.evaluation import arrivals, evaluate_frames, learn_baseline
from springback.stream_processors.offline.switched_evaluation import PlacedFrame, evaluate_switched
from springback.stream_processors.resilience.baseline.stage_baseline import StageBaseline
from springback.stream_processors.resilience.config import ResilienceConfig
from tests.stream_processors.random_episodes import cut_into_frames, judged_episodes

CONFIG = ResilienceConfig()


@pytest.fixture(scope="module")
def frames() -> list[StepFrame]:
    return cut_into_frames(judged_episodes(3, references=12), 3)


@pytest.fixture(scope="module")
def baseline(frames: list[StepFrame]) -> StageBaseline:
    return learn_baseline(frames, CONFIG)


def placed(frames: list[StepFrame], first: int = 0) -> list[PlacedFrame]:
    return [PlacedFrame(first + i, arrived) for i, arrived in enumerate(arrivals(frames))]


def test_with_one_baseline_throughout_it_is_the_evaluation_with_the_streams_lag(
    frames: list[StepFrame], baseline: StageBaseline
) -> None:
    found, _ = evaluate_switched({0: placed(frames)}, {0: [(0, baseline)]}, CONFIG)
    expected = evaluate_frames(frames, CONFIG, baseline, lagged=True)
    assert found.windows
    assert (found.windows, found.summaries, found.begun) == (expected.windows, expected.summaries, expected.begun)
    assert found.steps == expected.steps


def test_below_the_first_switch_nothing_is_scored(frames: list[StepFrame], baseline: StageBaseline) -> None:
    middle = len(frames) // 2
    found, _ = evaluate_switched({4: placed(frames, 100)}, {4: [(100 + middle, baseline)]}, CONFIG)
    before, _ = evaluate_switched({4: placed(frames[:middle], 100)}, {}, CONFIG)
    assert sum(one.unscored_steps for one in found.summaries) == before.steps.used
    assert found.windows
    assert not before.windows


def test_batches_and_buckets_change_nothing(frames: list[StepFrame], baseline: StageBaseline) -> None:
    switches = {0: [(5, StageBaseline(grid=CONFIG.grid)), (9, baseline)]}
    whole, taught = evaluate_switched({0: placed(frames)}, switches, CONFIG)
    cut, taught_cut = evaluate_switched({0: placed(frames)}, switches, CONFIG, batch_frames=1, bucket_of=len)
    assert {w.identity: w for w in cut.windows} == {w.identity: w for w in whole.windows}
    assert {s.key: s for s in cut.summaries} == {s.key: s for s in whole.summaries}
    assert {c.key: c for c in taught_cut} == {c.key: c for c in taught}
