"""What the testbed is for: recovery costs that rise with the severity, as the core measures them."""

from statistics import fmean

import pytest

from springback.producers.babyai_testbed.recording import record
from springback.producers.babyai_testbed.tasks import TASK_FAMILIES
from springback.producers.recordings.step_frames import read_frames
from springback.stream_processors.offline.evaluation import evaluate_frames
from springback.stream_processors.resilience.config import ResilienceConfig

EPISODES = 10


@pytest.mark.parametrize("family", TASK_FAMILIES)
def test_recovery_cost_is_lowest_clean_and_higher_under_more_stress(
    family: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("recording") / f"{family}.jsonl"
    record(path, families=[family], episodes=EPISODES, stresses=(0.0, 0.2, 0.8), seed=3)
    evaluation = evaluate_frames([part.frame for part in read_frames([path])], ResilienceConfig())
    assert evaluation.rejected == []
    assert len(evaluation.summaries) == 3 * EPISODES
    costs: dict[float, list[float]] = {0.0: [], 0.2: [], 0.8: []}
    for summary in evaluation.summaries:
        assert summary.recovery_cost is not None
        costs[summary.traits.declared_stress or 0.0].append(summary.recovery_cost)
    clean, mild, hard = (fmean(values) for values in costs.values())
    assert clean < mild < hard
    assert hard > 4.0 * clean
