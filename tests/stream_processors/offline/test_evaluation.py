"""Offline evaluation: against independent expectations on real Habitat episodes, and whatever the order or batches."""

import gzip
import json
from typing import Any

import msgspec
import numpy as np
import pytest

from springback.producers.contract.frame import StepFrame
from springback.producers.recordings.step_frames import read_frames
from springback.stream_processors.offline.evaluation import Evaluation, evaluate_frames, learn_baseline
from springback.stream_processors.offline.tables import evaluation_json
from springback.stream_processors.resilience.baseline.codec import dump_baseline, load_baseline
from springback.stream_processors.resilience.baseline.stage_baseline import StageBaseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.stability.stability_state import StabilityConfig
from tests.house import DATA
from tests.stream_processors.frame_builders import frame_of, nominal_rows

CONFIG = ResilienceConfig()
EXACT_KEYS = ("agent", "session", "episode", "family", "stress", "outcome", "steps")
EXACT_WINDOW_KEYS = ("state", "cause", "departure_step", "reentry_step", "alarm_step")
COST_KEYS = ("recovery_cost", "peak", "lost_cycles", "cost_cognitive", "cost_physical", "cost_debt")


@pytest.fixture(scope="module")
def frames() -> list[StepFrame]:
    return [recorded.frame for recorded in read_frames([DATA / "habitat_lab_pointnav.frames.jsonl.gz"])]


@pytest.fixture(scope="module")
def evaluation(frames: list[StepFrame]) -> Evaluation:
    return evaluate_frames(frames, CONFIG)


# Eight references of the first recording leave its bounds fixed; the 36 of the second calibrate them by folds.
@pytest.mark.parametrize(
    ("recording", "references", "behind"), [("lab_pointnav", 8, 8), ("sim_nav_depth.whole", 36, 36)]
)
def test_agrees_with_the_independent_expectations_of_real_episodes(
    recording: str, references: int, behind: int
) -> None:
    found_frames = read_frames([DATA / f"habitat_{recording}.frames.jsonl.gz"])
    evaluation = evaluate_frames([recorded.frame for recorded in found_frames], CONFIG)
    learned = evaluation.baseline.families["navigation"]
    assert (learned.references, len(learned.counting_sums())) == (references, behind)
    assert {(s.bound_references, s.provisional) for s in evaluation.summaries} == {(behind, behind < 20)}
    with gzip.open(DATA / f"habitat_{recording}.expected.json.gz") as file:
        expected: list[dict[str, Any]] = json.load(file)["episodes"]
    found = json.loads(msgspec_json(evaluation))["episodes"]
    assert len(found) == len(expected) > 40
    by_name = {(e["agent"], e["session"], e["episode"]): e for e in found}
    windows = 0
    for want in expected:
        have = by_name[want["agent"], want["session"], want["episode"]]
        assert {key: have[key] for key in EXACT_KEYS} == {key: want[key] for key in EXACT_KEYS}
        assert have["recovery_cost"] == pytest.approx(want["recovery_cost"], rel=1e-9, abs=1e-9)
        assert len(have["windows"]) == len(want["windows"])
        for mine, theirs in zip(have["windows"], want["windows"], strict=True):
            windows += 1
            assert {key: mine[key] for key in EXACT_WINDOW_KEYS} == {key: theirs[key] for key in EXACT_WINDOW_KEYS}
            assert [mine[key] for key in COST_KEYS] == pytest.approx(
                [theirs[key] for key in COST_KEYS], rel=1e-9, abs=1e-9
            )
    assert windows > 20


def msgspec_json(evaluation: Evaluation) -> bytes:
    return msgspec.json.encode(evaluation_json(evaluation.summaries, evaluation.windows))


@pytest.mark.parametrize("batch_frames", [1, 7])
def test_the_batch_size_changes_no_bit(frames: list[StepFrame], evaluation: Evaluation, batch_frames: int) -> None:
    # With the same baseline. One that is learned in other batches differs in its last digits.
    again = evaluate_frames(frames, CONFIG, evaluation.baseline, batch_frames=batch_frames)
    assert sorted(again.windows, key=by_identity) == sorted(evaluation.windows, key=by_identity)
    assert sorted(again.summaries, key=by_identity) == sorted(evaluation.summaries, key=by_identity)
    relearned = evaluate_frames(frames, CONFIG, batch_frames=batch_frames)
    costs = [s.recovery_cost for s in sorted(relearned.summaries, key=by_identity)]
    assert costs == pytest.approx([s.recovery_cost for s in sorted(evaluation.summaries, key=by_identity)], rel=1e-9)


def by_identity(reading: Any) -> str:
    return repr(reading.identity)


def test_a_baseline_out_of_a_file_gives_the_same_to_the_last_bit(
    frames: list[StepFrame], evaluation: Evaluation
) -> None:
    stored = load_baseline(dump_baseline(evaluation.baseline))
    again = evaluate_frames(frames, CONFIG, stored)
    assert again.windows == evaluation.windows
    assert again.summaries == evaluation.summaries


def test_the_order_of_episodes_plays_no_part() -> None:
    rng = np.random.default_rng(11)
    recording = []
    for number in range(24):
        rows = nominal_rows(0, 20)
        for row in rows:
            row["travel"] *= float(rng.uniform(0.5, 1.5))
            row["progress"] = float(np.clip(row["progress"] + rng.normal(0, 0.02), 0, 1))
        if number >= 20:
            rows[7] |= {"travel": 9.0, "risk": 1.0}
        recording.append(frame_of(rows, "success", episode=str(number), reference=number < 20))
    one = evaluate_frames(recording, CONFIG)
    other = evaluate_frames(recording[::-1], CONFIG)
    assert len(one.baseline.families["navigation"].largest) == 20
    assert one.windows
    mine, yours = (sorted(e.windows, key=by_identity) for e in (one, other))
    assert [w.identity for w in mine] == [w.identity for w in yours]
    assert [w.recovery_cost for w in mine] == pytest.approx([w.recovery_cost for w in yours], rel=1e-9)


def test_what_the_recording_leaves_open_is_aborted_at_its_end() -> None:
    rows = nominal_rows(0, 8) + nominal_rows(8, 11, travel=5.0, risk=2.0)
    recording = [
        *[frame_of(nominal_rows(0, 20), "success", episode=f"r{i}", reference=True) for i in range(3)],
        frame_of(rows, episode="open"),
    ]
    evaluation = evaluate_frames(recording, CONFIG)
    [summary] = [s for s in evaluation.summaries if s.key.episode == "open"]
    assert (summary.outcome, summary.censored) == ("aborted", True)
    assert [w.state for w in evaluation.windows] == ["censored"]


def test_without_references_nothing_is_scored() -> None:
    evaluation = evaluate_frames([frame_of(nominal_rows(0, 20), "success")], CONFIG)
    assert evaluation.baseline.families == {}
    assert [(s.recovery_cost, s.unscored_steps) for s in evaluation.summaries] == [(None, 20)]
    assert evaluate_frames([], CONFIG).summaries == []


def test_a_given_baseline_is_used_as_it_is_and_teaches_nothing() -> None:
    recording = [frame_of(nominal_rows(0, 20), "success", reference=True)]
    blank = StageBaseline(grid=CONFIG.grid)
    evaluation = evaluate_frames(recording, CONFIG, blank)
    assert evaluation.baseline is blank
    assert blank.families == {}
    assert evaluation.summaries[0].recovery_cost is None


def test_rejected_rows_are_kept_with_their_reason() -> None:
    rows = nominal_rows(0, 4)
    rows[2]["travel"] = float("inf")
    evaluation = evaluate_frames([frame_of(rows, "failure")], CONFIG)
    assert [rejected.reason for rejected in evaluation.rejected] == ["not_finite"]
    assert evaluation.summaries[0].missing_steps == 1


def test_an_iterator_that_would_run_out_is_refused() -> None:
    recording = [frame_of(nominal_rows(0, 20), "success", reference=True)]
    with pytest.raises(TypeError, match="more than once"):
        learn_baseline(iter(recording), CONFIG)
    with pytest.raises(TypeError, match="more than once"):
        evaluate_frames(iter(recording), CONFIG)
    # With a baseline once through is enough.
    assert len(evaluate_frames(iter(recording), CONFIG, StageBaseline(grid=CONFIG.grid)).summaries) == 1


@pytest.mark.parametrize("factor", [1e3, 1e9])
def test_times_in_milliseconds_are_replaced_as_in_the_stream(factor: float) -> None:
    # The stream's broker has a clock of its own; offline there is none, and a wild time may not stand for it.
    rows = nominal_rows(0, 6)
    for row in rows:
        row["time_s"] *= factor
    evaluation = evaluate_frames([frame_of(rows)], CONFIG)
    assert evaluation.statuses[-1].counts.replaced_times == 6


def test_references_teach_cells_and_sums_then_returns_then_the_covariance_of_stability(
    frames: list[StepFrame], evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    taught = []
    for passes in (1, 2, 3, 4):
        monkeypatch.setattr("springback.stream_processors.offline.evaluation.LEARNING_PASSES", passes)
        taught.append(learn_baseline(frames, CONFIG))
    families = [baseline.families["navigation"] for baseline in taught]
    references = families[0].references
    assert references == 8
    assert [(f.valued, f.stable, len(f.largest)) for f in families] == [
        (0, 0, references),
        (references, 0, references),
        *[(references, references, references)] * 2,
    ]
    assert all(f.cells == families[0].cells for f in families)
    assert families[3] == families[2] == evaluation.baseline.families["navigation"]  # three are enough


def test_a_baseline_is_learned_with_exact_advantages_whatever_the_lag(frames: list[StepFrame]) -> None:
    short = msgspec.structs.replace(CONFIG, stability=StabilityConfig(lag=3))
    assert learn_baseline(frames[:60], short) == learn_baseline(frames[:60], CONFIG)
    summaries = [evaluate_frames(frames[:60], c, lagged=True).summaries for c in (short, CONFIG)]
    assert summaries[0] != summaries[1]
    assert evaluate_frames(frames[:60], short).summaries == evaluate_frames(frames[:60], CONFIG).summaries
