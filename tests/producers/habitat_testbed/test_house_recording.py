"""What a recording of the house comes to when it is evaluated."""

from pathlib import Path

import numpy as np
import pytest

from springback.producers.habitat_testbed.house_play import BETWEEN_EPISODES_S, KINDS, record_house
from springback.producers.recordings.step_frames import read_frames
from springback.stream_processors.offline.evaluation import evaluate


@pytest.mark.usefixtures("habitat_sim")
def test_a_recording_holds_twins_that_are_found_and_cost_more_where_they_are_disturbed(tmp_path: Path) -> None:
    path = tmp_path / "house.frames.jsonl.gz"
    made = record_house(path, episodes=6, stresses=[0.0, 1.0], seed=7)
    evaluation = evaluate(path)
    assert (made.episodes, made.steps) == (12, evaluation.steps.sent)
    assert evaluation.steps.used == made.steps
    assert not evaluation.rejected
    clean = {s.traits.task: s for s in evaluation.summaries if s.traits.stress == 0.0}
    hard = {s.traits.task: s for s in evaluation.summaries if s.traits.stress == 1.0}
    assert clean.keys() == hard.keys() == {f"house-7/{number}" for number in range(6)}
    assert all(summary.traits.reference and summary.outcome == "success" for summary in clean.values())
    assert sum(summary.steps for summary in hard.values()) > 1.1 * sum(summary.steps for summary in clean.values())
    assert {summary.traits.perturbation_name for summary in hard.values()} == set(KINDS)
    assert {summary.traits.method for summary in hard.values()} == {"greedy-geodesic"}
    frames = [recorded.frame for recorded in read_frames([path]) if recorded.frame.n_steps]
    times = [np.asarray(frame.steps["time_s"]) for frame in frames]
    ended = [bool(frame.ends) for frame in frames]
    between = [after[0] - before[-1] for before, after, over in zip(times, times[1:], ended) if over]
    assert len(between) == 11
    assert min(between) >= BETWEEN_EPISODES_S
