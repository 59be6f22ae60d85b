"""State and baselines that an older springback has stored: read where they can be, and what is done with them told."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from springback.stream_processors.baseline_file import read_baseline
from springback.stream_processors.errors import StateFormatError
from springback.stream_processors.resilience.anchor import N_SAMPLE
from springback.stream_processors.resilience.baseline.codec import dump_baseline
from springback.stream_processors.resilience.baseline.moments import centred
from springback.stream_processors.resilience.baseline.stage_baseline import (
    BASELINE_SCHEMA_VERSION,
    N_STABILITY,
    FamilyBaseline,
    LargestSums,
    StageBaseline,
    policy_matrix,
    sums_matrix,
)
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.tracking.tracker_state import TRACKER_SCHEMA_VERSION, TrackerState
from springback.stream_processors.stages.learn_baselines import LEARNER_SCHEMA_VERSION, LearnBaselines, LearnerState
from springback.stream_processors.stages.track_steps import TrackSteps
from tests.stream_processors.frame_builders import (
    START_S,
    frame_of,
    nominal_baseline,
    nominal_rows,
    ready,
    run_tracker,
)

CONFIG = ResilienceConfig()
NEW_IN_2 = ("joined", "gap", "interruptions", "provisional", "bound_references")


def as_version_3(state: TrackerState) -> dict[str, Any]:
    """The tracker's state as it was stored while what episodes teach was merged batch by batch."""
    older = msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=TrackerState)
    for agent in older.agents.values():
        for episode in agent.open.values():
            if episode.learning is not None:
                cells, policy = episode.learning.cells, episode.learning.policy
                sums = centred(list(cells.values()), N_SAMPLE).packed()
                stability = centred(list(policy.values()), N_STABILITY).packed()
                stability = np.concatenate([np.zeros((len(policy), 2)), stability], axis=1)
                episode.learning.cells = {cell: row.tobytes() for cell, row in zip(cells, sums, strict=True)}
                episode.learning.policy = {cell: row.tobytes() for cell, row in zip(policy, stability, strict=True)}
    older.schema_version = 3
    plain: dict[str, Any] = msgspec.msgpack.decode(msgspec.msgpack.encode(older))
    return plain


def as_version_2(state: Any) -> dict[str, Any]:
    """The tracker's state as it was stored before it knew which steps it had seen, and what silence had closed."""
    plain = as_version_3(state)
    plain["schema_version"] = 2
    for agent in plain["agents"].values():
        agent["ended"] = list(agent["ended"])
        for name in ("silent", "began_s", "contested_s"):
            del agent[name]
        for episode in agent["open"].values():
            del episode["seen"], episode["revision"]
            episode["highest_progress"] = episode.pop("rise")[0]
    return plain


def as_version_1(state: Any) -> dict[str, Any]:
    """The tracker's state as it was stored before there were gaps, interruptions and learning families."""
    plain = as_version_2(state)
    plain["schema_version"] = 1
    for agent in plain["agents"].values():
        for episode in agent["open"].values():
            for name in NEW_IN_2:
                del episode[name]
            if episode["detectors"]["window"] is not None:
                del episode["detectors"]["window"]["provisional"]
    return plain


@pytest.mark.parametrize("older", [as_version_1, as_version_2])
def test_an_open_window_of_an_older_version_goes_on(older: Callable[[Any], dict[str, Any]]) -> None:
    baseline = ready(nominal_baseline(CONFIG), CONFIG)
    rows = nominal_rows(0, 20)
    for row in rows[8:12]:
        row |= {"travel": 5.0, "risk": 2.0}
    frames = [frame_of(rows[:10]), frame_of(rows[10:], "success")]
    whole, _ = run_tracker(frames, CONFIG, baseline)
    _, state = run_tracker(frames[:1], CONFIG, baseline)
    stage = TrackSteps(CONFIG, baseline)
    restored = stage.decode(msgspec.msgpack.encode(older(state)))
    assert restored.schema_version == TRACKER_SCHEMA_VERSION == 4
    rest, _ = run_tracker(frames[1:], CONFIG, baseline, state=restored, arrivals=[START_S + 1])
    # Nothing in version 1 says whether the alarm was provisional; the episode's end, under six references, is.
    assert [w.provisional for w in rest.windows] == [older is as_version_2]
    assert rest.summaries == whole.summaries


@pytest.mark.parametrize("older", [as_version_2, as_version_3])
def test_an_episode_that_an_older_version_saw_begin_teaches_the_same(
    older: Callable[[Any], dict[str, Any]],
) -> None:
    baseline = nominal_baseline(CONFIG, references=12)
    for family in baseline.families.values():
        family.valued = family.stable = 12
    scored_by = ready(baseline, CONFIG)
    rows = [row | {"planning_s": 0.1 + 0.01 * row["step"] ** 1.5} for row in nominal_rows(0, 100, 100)]
    frames = [frame_of(rows[:90], reference=True), frame_of(rows[90:], "success", reference=True)]
    whole, _ = run_tracker(frames, CONFIG, scored_by)
    _, state = run_tracker(frames[:1], CONFIG, scored_by)
    [agent] = state.agents.values()
    [episode] = agent.open.values()
    assert episode.learning is not None
    assert episode.learning.policy
    restored = TrackSteps(CONFIG, scored_by).decode(msgspec.msgpack.encode(older(state)))
    rest, _ = run_tracker(frames[1:], CONFIG, scored_by, state=restored, arrivals=[START_S + 1])
    [taught], [expected] = rest.contributions, whole.contributions
    assert taught.cells == expected.cells
    np.testing.assert_allclose(sums_matrix(taught.sums), sums_matrix(expected.sums), rtol=1e-12, atol=1e-12)
    assert expected.stable
    np.testing.assert_allclose(policy_matrix(taught.policy), policy_matrix(expected.policy), rtol=1e-12, atol=1e-12)


def test_what_comes_again_of_episodes_of_version_2_are_copies() -> None:
    baseline = ready(nominal_baseline(CONFIG), CONFIG)
    frames = [frame_of(nominal_rows(0, 20), "success"), frame_of(nominal_rows(0, 8), episode="2")]
    _, state = run_tracker(frames, CONFIG, baseline)
    restored = TrackSteps(CONFIG, baseline).decode(msgspec.msgpack.encode(as_version_2(state)))
    _, state = run_tracker(frames, CONFIG, baseline, state=restored)
    counts = state.agents["robot-7"].counts
    assert (counts.steps, counts.duplicate_steps) == (28, 28)


def test_what_version_1_had_learned_is_kept_without_its_sums() -> None:
    family = nominal_baseline(CONFIG).families["navigation"]
    family.largest = [LargestSums(6.0, 7.0, 4)] * 30
    plain = msgspec.msgpack.decode(msgspec.msgpack.encode(LearnerState(families={"navigation": family})))
    plain["schema_version"] = plain["families"]["navigation"]["schema_version"] = 1
    plain["families"]["navigation"]["largest"] = [[6.0, 7.0]] * 30
    learner = LearnBaselines(CONFIG.baseline)
    restored = learner.decode(msgspec.msgpack.encode(plain))
    assert restored.schema_version == LEARNER_SCHEMA_VERSION == 2
    known = restored.families["navigation"]
    assert (known.cells, known.references) == (family.cells, family.references)
    assert known.counting_sums() == []
    again = learner.decode(learner.encode(restored))
    assert again == restored


@pytest.mark.parametrize("version", [0, 5])
def test_state_of_a_version_that_is_not_known_is_refused_with_what_to_do(version: int) -> None:
    data = msgspec.msgpack.encode({"schema_version": version})
    for stage in (LearnBaselines(CONFIG.baseline), TrackSteps(CONFIG, ready(StageBaseline(), CONFIG))):
        with pytest.raises(StateFormatError, match=f"schema_version {version}.*run that version, or start anew"):
            stage.decode(data)


def test_a_baseline_file_of_version_1_is_used_and_its_bounds_are_missed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    learned = nominal_baseline(CONFIG)
    learned.families["navigation"].largest = [LargestSums(6.0, 7.0, 6)] * 6
    learned.families["other"] = FamilyBaseline(references=3)
    new, old = tmp_path / "new.baseline", tmp_path / "old.baseline"
    new.write_bytes(dump_baseline(learned))
    content = msgspec.json.decode(new.read_bytes())
    content["schema_version"] = BASELINE_SCHEMA_VERSION - 1
    content["families"]["navigation"]["largest"] = [[6.0, 7.0]] * 6
    old.write_bytes(msgspec.json.encode(content))
    with caplog.at_level(logging.WARNING):
        assert read_baseline(new, CONFIG.grid, "--baseline").families["navigation"].largest[0].references == 6
    assert caplog.messages == []
    with caplog.at_level(logging.WARNING):
        found = ready(read_baseline(old, CONFIG.grid, "--baseline"), CONFIG).families["navigation"]
    assert (found.bounds, found.bound_references) == ((9.0, 10.0), 0)
    [told] = caplog.messages
    assert told.startswith(f"--baseline {old}: written by an older springback")
    assert "families navigation are learning" in told
    assert "export again" in told
