"""The tracker's whole results against the literal implementation of the definition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.stream_processors.offline.evaluation import evaluate_frames
from springback.stream_processors.resilience.baseline.stage_baseline import BaselineConfig
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.quantiles import quantile
from springback.stream_processors.resilience.readings import EpisodeKey
from springback.stream_processors.resilience.rebound.rebound_window import WindowConfig
from tests.stream_processors.random_episodes import by_seed, cut_into_frames, random_episodes, with_bad_samples
from tests.stream_processors.resilience.literal_metrics import (
    LiteralBaseline,
    LiteralScores,
    folds_of,
    literal_windows_between_gaps,
    sums_by_folds,
)

AT_END = {"success": "recovered", "failure": "unrecovered", "timeout": "unrecovered", "aborted": "censored"}
EARLY = ResilienceConfig(
    window=WindowConfig(effort_bound=6.01, delay_bound=4.01),
    baseline=BaselineConfig(calibration_episodes=5, mature_episodes=5, calibration_floor=2.01, learning_references=5),
)
"""Settings under which the sums of five references calibrate, so that small random inputs reach that part.

Sums often are multiples of 0.2, so a bound is none: rounding must not decide whether they meet it.
"""


@by_seed(10)
@given(seed=st.integers(0, 2**32 - 1))
@pytest.mark.parametrize("references", [4, 9])
def test_windows_costs_and_calibration_agree(references: int, seed: int) -> None:
    parts = with_bad_samples(random_episodes(seed, references=references, others=4), seed)
    evaluation = evaluate_frames(cut_into_frames(parts, seed), EARLY, batch_frames=7)
    summaries = {summary.key: summary for summary in evaluation.summaries}
    assert len(summaries) == len(parts)
    windows_seen = 0
    for family in {header.family for header, _, _ in parts}:
        own = [part for part in parts if part[0].family == family]
        clean = [rows for header, rows, _ in own if header.reference]
        baseline = LiteralBaseline(clean)
        scores = {header.agent: baseline.score(rows) for header, rows, _ in own}
        bounds = (6.01, 4.01)
        folds = folds_of([header.task or "" for header, _, _ in own if header.reference])
        if len(set(folds)) == 1:  # then episode by episode
            marks = [EpisodeKey(header.agent, "boot", "1").mark() for header, _, _ in own if header.reference]
            folds = folds_of([str(mark) for mark in marks])
        tops = sums_by_folds(clean, folds) if len(set(folds)) > 1 else []
        if len(tops) >= 5:
            bounds = (max(2.01, quantile([t[0] for t in tops], 0.95)), max(2.01, quantile([t[1] for t in tops], 0.95)))
            # At the end, where one cycle of work is left by any baseline, a sum can be the same by all of them:
            # rounding must not decide whether that one alarms.
            bounds = (bounds[0] + 1e-9, bounds[1] + 1e-9)
        for header, rows, outcome in own:
            score = scores[header.agent]
            summary = summaries[EpisodeKey(header.agent, "boot", "1")]
            found = [w for w in evaluation.windows if w.key == summary.key]
            expected = literal_windows_between_gaps(score, bounds)
            windows_seen += len(expected)
            assert len(found) == len(expected) == summary.windows
            total = 0.0
            for number, (window, literal) in enumerate(zip(found, expected, strict=True)):
                last = literal.last
                at_gap = "censored" if last + 1 in score.gaps else AT_END[str(outcome)]
                state = at_gap if literal.reentry is None else "recovered"
                assert (window.number, window.state, window.cause) == (number, state, literal.cause)
                assert window.provisional == (len(tops) < 5)
                assert (window.departure_step, window.alarm_step, window.reentry_step) == (
                    score.steps[literal.departure],
                    score.steps[literal.alarm],
                    score.steps[last],
                )
                check_sums(window.recovery_cost, score.cost(literal.departure, last))
                check_sums(window.costs.cognitive, score.channel_cost(0, literal.departure, last))
                check_sums(window.costs.physical, score.channel_cost(1, literal.departure, last))
                check_sums(window.costs.debt, score.channel_cost(2, literal.departure, last))
                check_sums(window.lost_cycles, sum(score.c[literal.departure + 1 : last + 1]))
                check_sums(window.peak, max(score.g[literal.departure : last + 1]))
                seconds = sum(row["cycle_time_s"] for row in rows[literal.departure : last + 1])
                check_sums(window.length_s, seconds)
                assert window.length_steps == window.reentry_step - window.departure_step + 1
                anchor = (window.departure_mode, window.departure_progress_bin, window.departure_residual_bin)
                assert anchor == baseline_anchor(rows, literal.departure)
                total += window.recovery_cost
            assert summary.recovery_cost == pytest.approx(total, rel=1e-12)
            assert summary.steps == len(rows)
            assert summary.unscored_steps == 0
            assert summary.missing_steps == rows[-1]["step"] + 1 - len(rows)
            assert summary.final_progress == rows[-1]["progress"]
            assert summary.outcome == outcome
            assert (summary.gap, summary.interruptions) == (bool(score.gaps), score.interruptions())
            assert (summary.bound_references, summary.provisional) == (len(tops), len(tops) < 5)
    assert windows_seen > 0


def check_sums(ours: float, literal: float) -> None:
    assert ours == pytest.approx(literal, rel=1e-9, abs=1e-9)
    assert ours >= 0 or literal < 0


def baseline_anchor(rows: list[dict[str, float]], position: int) -> tuple[object, int, int]:
    p = rows[position - 1]["progress"] if position else 0.0
    q = rows[position - 1]["propositions"] if position else 0.0
    return rows[position]["mode"], min(int(10 * p), 9), min(int(5 * (1 - q)), 4)


def test_the_literal_sums_run_through_without_a_stop() -> None:
    scores = LiteralScores(g=[12.0, 0.0, 1.8], c=[0.0, 2.4, 0.0])
    assert list(scores.largest_sums()) == pytest.approx([9.4, 2.0])
