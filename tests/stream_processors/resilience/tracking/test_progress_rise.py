"""When progress last rose: one false value is no rise, swinging to and fro is none, and batches change nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.tracking.progress_rise import KEPT_STEPS, ProgressRise
from tests.stream_processors.frame_builders import START_S, frame_of, nominal_rows, nothing_learned, run_tracker

CONFIG = ResilienceConfig()


def rise_after(progress: list[float]) -> ProgressRise:
    """The rise after steps that arrive a second after another."""
    rise = ProgressRise()
    rise.follow(progress, [float(second) for second in range(len(progress))])
    return rise


@pytest.mark.parametrize("false", [[1.0], [1.0, 1.0, 1.0, 1.0], [0.9, 1.0]])
def test_after_a_false_value_progress_goes_on_rising(false: list[float]) -> None:
    before = [step / 100 for step in range(10)]
    after = [step / 100 for step in range(10, 40)]
    rise = rise_after([*before, *false, *after])
    # Two steps late, since what lies below a level that was taken back must be kept.
    assert (rise.highest, rise.risen_s) == (0.37, len(before) + len(false) + len(after) - 1)


def test_an_agent_with_one_false_value_is_not_stalled_for_the_rest_of_its_episode() -> None:
    rows = nominal_rows(0, 40, total=50)
    rows[5]["progress"] = 1.0
    outputs, _ = run_tracker([frame_of([row]) for row in rows], CONFIG, nothing_learned(CONFIG))
    assert outputs.statuses[-1].progress_s == START_S + 39
    whole, _ = run_tracker([frame_of(rows)], CONFIG, nothing_learned(CONFIG), arrivals=[START_S + 39])
    assert whole.statuses[-1].progress_s == START_S + 39


def test_a_rise_that_lasts_counts_from_when_it_came() -> None:
    assert rise_after([0.1, 0.1, 0.5] + [0.5] * 100).risen_s == 2.0
    long_kept = rise_after([0.1, 0.1, 0.5] + [0.5] * 2 * KEPT_STEPS + [0.1] * 50)
    assert (long_kept.highest, long_kept.risen_s) == (0.5, 2.0)


def test_swinging_to_and_fro_is_no_progress() -> None:
    # The first rise counts; the ones after it are not kept for three steps, or not above what was kept for long.
    assert rise_after([0.4, 0.4, *[0.5, 0.4] * 50]).risen_s == 2.0
    assert rise_after([0.4, 0.4, *[0.5, 0.5, 0.4] * 50]).risen_s == 2.0
    assert rise_after([0.4, 0.4, *([0.5] * 8 + [0.4] * 8) * 20]).risen_s == 20.0


def test_noise_on_a_rising_line_rises() -> None:
    assert rise_after([step / 100 + 0.02 * (step % 3 == 0) for step in range(60)]).risen_s >= 57


@given(st.lists(st.floats(0, 1), max_size=60), st.integers(0, 60))
def test_batches_change_nothing(progress: list[float], cut: int) -> None:
    times = [float(second) for second in range(len(progress))]
    whole = rise_after(progress)
    parts = ProgressRise()
    parts.follow(progress[:cut], times[:cut])
    parts.follow(progress[cut:], times[cut:])
    assert parts == whole
