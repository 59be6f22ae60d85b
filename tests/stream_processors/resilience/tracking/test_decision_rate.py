"""An agent that decides far more, or less, often than its family's references is not scored by them, and it is said."""

from typing import Any

import pytest

from springback.stream_processors.offline.evaluation import evaluate_frames
from springback.stream_processors.resilience.baseline.codec import dump_baseline, load_baseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.readings import EpisodeSummary
from springback.stream_processors.resilience.tracking.decision_rate import RATE_CYCLES
from tests.stream_processors.frame_builders import (
    START_S,
    Row,
    frame_of,
    nominal_baseline,
    nominal_rows,
    nothing_learned,
    ready,
    run_tracker,
)

CONFIG = ResilienceConfig()
BASELINE = ready(nominal_baseline(CONFIG), CONFIG)
"""Its references decide once a second."""


def at_rate(cycle_s: float, steps: int = 60, **more: Any) -> list[Row]:
    """An even episode with so long cycles."""
    rows = nominal_rows(0, steps, total=steps, **more)
    return [{**row, "cycle_time_s": cycle_s, "time_s": START_S + row["step"] * cycle_s} for row in rows]


def summary_of(rows: list[Row], config: ResilienceConfig = CONFIG, batches: list[int] | None = None) -> EpisodeSummary:
    frames = [frame_of([row]) for row in rows[:-1]] + [frame_of(rows[-1:], "success")]
    outputs, _ = run_tracker(frames, config, BASELINE, batches or [], store_between=True)
    [summary] = outputs.summaries
    return summary


@pytest.mark.parametrize(("cycle_s", "off"), [(0.3, True), (0.49, True), (0.5, False), (2.0, False), (2.1, True)])
def test_beyond_a_ratio_of_two_steps_are_unscored_and_the_cost_is_unknown(cycle_s: float, off: bool) -> None:
    summary = summary_of(at_rate(cycle_s))
    assert (summary.off_rate, summary.cycle_s) == (off, cycle_s)
    assert summary.unscored_steps == (60 - RATE_CYCLES if off else 0)
    assert (summary.recovery_cost is None) == off


@pytest.mark.parametrize("batches", [[60], [5, 20, 35], [16, 44], [17, 43], [59, 1]])
def test_batches_change_nothing(batches: list[int]) -> None:
    assert summary_of(at_rate(0.3), batches=batches) == summary_of(at_rate(0.3))


def test_it_is_scored_where_that_is_asked_for() -> None:
    summary = summary_of(at_rate(0.3), ResilienceConfig(rate_ratio="any"))
    assert (summary.off_rate, summary.unscored_steps) == (False, 0)
    with pytest.raises(ValueError, match="rate_ratio is 1, expected a number above 1"):
        ResilienceConfig(rate_ratio=1)


def test_a_pause_or_a_slow_stretch_is_no_other_rate() -> None:
    rows = at_rate(1.0)
    for row in rows[3:9]:
        row["cycle_time_s"] = 30.0
    assert not summary_of(rows).off_rate


def test_a_window_of_the_first_steps_is_censored() -> None:
    rows = at_rate(0.3, travel=5.0, risk=2.0)
    outputs, _ = run_tracker([frame_of(rows, "success")], CONFIG, BASELINE)
    assert [window.state for window in outputs.windows] == ["open", "censored"]
    assert outputs.windows[-1].reentry_step == RATE_CYCLES - 1


def test_without_a_baseline_or_a_known_rate_nothing_is_said() -> None:
    frames = [frame_of(at_rate(0.3), "success")]
    [summary] = run_tracker(frames, CONFIG, nothing_learned(CONFIG))[0].summaries
    assert not summary.off_rate
    learned = nominal_baseline(CONFIG)
    learned.families["navigation"].cycles = []  # one that an older springback has learned
    [summary] = run_tracker(frames, CONFIG, ready(learned, CONFIG))[0].summaries
    assert not summary.off_rate


def test_the_rate_of_the_references_is_exported_and_is_that_of_most_of_them() -> None:
    frames = [
        frame_of(at_rate(0.2 if number < 3 else 1.0), "success", episode=str(number), reference=True)
        for number in range(12)
    ]
    evaluation = evaluate_frames(frames, CONFIG)
    again = load_baseline(dump_baseline(evaluation.baseline))
    assert sorted(again.families["navigation"].cycles) == [0.2] * 3 + [1.0] * 9
    assert {s.key.episode for s in evaluation.summaries if s.off_rate} == {"0", "1", "2"}
