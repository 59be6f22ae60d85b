"""What an episode teaches: by references whole, by successes without the steps inside rebound windows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.stream_processors.resilience.anchor import N_SAMPLE, WORK_LEFT
from springback.stream_processors.resilience.baseline.moments import Moments
from springback.stream_processors.resilience.baseline.stage_baseline import (
    BaselineConfig,
    EpisodeContribution,
    sums_matrix,
)
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.rebound.rebound_window import WindowConfig
from tests.stream_processors.frame_builders import (
    Row,
    frame_of,
    nominal_baseline,
    nominal_rows,
    nothing_learned,
    ready,
    run_tracker,
)
from tests.stream_processors.random_episodes import by_seed, cut_into_frames, random_episodes, seeds
from tests.stream_processors.resilience.literal_metrics import literal_steps

CONFIG = ResilienceConfig()
BY_SUCCESS = ResilienceConfig(learn_from="success", window=WindowConfig(effort_bound=4.0, delay_bound=3.0))


def samples_taught(lesson: EpisodeContribution) -> int:
    return int(sums_matrix(lesson.sums)[:, 0].sum())


def assert_teaches(lesson: EpisodeContribution, rows: list[Row], left_out: set[int]) -> None:
    """The lesson's cells hold the literal samples of these rows, without the steps left out."""
    steps = literal_steps(rows)
    cells: dict[tuple[str, int, int], list[list[float]]] = {}
    for step in steps:
        if step.step not in left_out:
            cells.setdefault(step.anchor, []).append([*step.x, step.p, steps[-1].step - step.step + 1])
    assert set(lesson.cells) == set(cells)
    for cell, row in zip(lesson.cells, sums_matrix(lesson.sums), strict=True):
        own = np.array(cells[cell])
        sums = Moments.unpacked(row[None], N_SAMPLE)
        assert sums.n[0] == len(own)
        np.testing.assert_allclose(sums.mean[0], own.mean(axis=0), rtol=1e-10, atol=1e-12)
        apart = own - own.mean(axis=0)
        np.testing.assert_allclose(sums.covariance_sums()[0], apart.T @ apart, rtol=1e-8, atol=1e-9)


@by_seed(8)
@given(seed=seeds, batches=st.lists(st.integers(1, 20), max_size=8))
def test_a_reference_teaches_all_its_steps(seed: int, batches: list[int]) -> None:
    parts = random_episodes(seed, references=2, others=1)
    outputs, _ = run_tracker(cut_into_frames(parts, seed), CONFIG, nothing_learned(CONFIG), batches, store_between=True)
    lessons = {lesson.key.agent: lesson for lesson in outputs.contributions}
    assert set(lessons) == {header.agent for header, _, _ in parts if header.reference}
    for header, rows, _ in parts:
        if header.reference:
            assert_teaches(lessons[header.agent], rows, left_out=set())
            assert lessons[header.agent].largest is None  # there was nothing to score it by


@by_seed(12)
@given(seed=seeds, batches=st.lists(st.integers(1, 20), max_size=12))
def test_with_learn_from_success_every_success_teaches_what_lies_outside_its_windows(
    seed: int, batches: list[int]
) -> None:
    parts = [(header, rows, "success") for header, rows, _ in random_episodes(seed, references=3, others=3)]
    frames = cut_into_frames(parts, seed, longest=6)  # type: ignore[arg-type]
    first, _ = run_tracker(frames, CONFIG, nothing_learned(CONFIG))
    learned = nominal_baseline(CONFIG)
    for lesson in first.contributions:
        learned.add(lesson, CONFIG.baseline)
    outputs, _ = run_tracker(frames, BY_SUCCESS, ready(learned, BY_SUCCESS), batches, store_between=True)
    lessons = {lesson.key.agent: lesson for lesson in outputs.contributions}
    closed = [window for window in outputs.windows if window.state != "open"]
    assert closed
    for header, rows, _ in parts:
        inside = {
            step
            for window in closed
            if window.key.agent == header.agent
            for step in range(window.departure_step, window.reentry_step + 1)
        }
        if inside.issuperset(row["step"] for row in rows):
            assert header.agent not in lessons
        else:
            assert_teaches(lessons[header.agent], rows, left_out=inside)


@pytest.mark.parametrize("cut", range(8, 14))
def test_the_calm_steps_that_close_a_window_teach_wherever_the_batch_ends(cut: int) -> None:
    # Steps 8 is the trouble, 9 the re-entry; 10 and 11 confirm it and lie outside.
    config = ResilienceConfig(learn_from="success")
    rows = nominal_rows(0, 20)
    rows[8] |= {"travel": 5.0, "risk": 2.0}
    frames = [frame_of(rows[:cut]), frame_of(rows[cut:], "success")]
    outputs, _ = run_tracker(frames, config, ready(nominal_baseline(config), config))
    [lesson] = outputs.contributions
    [_, window] = outputs.windows
    assert (window.departure_step, window.reentry_step) == (8, 9)
    assert_teaches(lesson, rows, left_out={8, 9})


def test_a_success_inside_a_window_leaves_out_its_calm_steps_too() -> None:
    config = ResilienceConfig(learn_from="success")
    rows = nominal_rows(0, 20)
    rows[17] |= {"travel": 5.0, "risk": 2.0}
    frames = [frame_of(rows[:19]), frame_of(rows[19:], "success")]
    outputs, _ = run_tracker(frames, config, ready(nominal_baseline(config), config))
    assert outputs.windows[-1].reentry_step == 19
    assert_teaches(outputs.contributions[0], rows, left_out={17, 18, 19})


def test_work_left_counts_the_step_itself_and_missing_steps() -> None:
    rows = [row for row in nominal_rows(0, 20) if row["step"] != 18]
    outputs, _ = run_tracker([frame_of(rows, "success", reference=True)], CONFIG, nothing_learned(CONFIG))
    [lesson] = outputs.contributions
    left = {cell: row[1 + WORK_LEFT] for cell, row in zip(lesson.cells, sums_matrix(lesson.sums), strict=True)}
    assert left["navigate", 0, 4] == 19.5  # steps 0 and 1 of 0..19
    assert left["navigate", 9, 0] == 1.0  # step 19 alone


def test_largest_sums_come_with_an_episode_that_was_scored_from_its_first_step() -> None:
    baseline = ready(nominal_baseline(CONFIG), CONFIG)
    rows = nominal_rows(0, 20)
    rows[8] |= {"travel": 5.0, "risk": 2.0}
    whole, _ = run_tracker([frame_of(rows, "success", reference=True)], CONFIG, baseline)
    largest = whole.contributions[0].largest
    assert largest is not None
    assert largest.effort >= 9.2
    assert samples_taught(whole.contributions[0]) == 20  # a reference's windows are left in
    _, state = run_tracker([frame_of(rows[:1], reference=True)], CONFIG, nothing_learned(CONFIG))
    late, _ = run_tracker([frame_of(rows[1:], "success", reference=True)], CONFIG, baseline, state=state)
    assert late.contributions[0].largest is None


def test_the_threshold_detectors_counts_calibrate_nothing() -> None:
    config = ResilienceConfig(window=WindowConfig(detector="threshold"))
    baseline = ready(nominal_baseline(config), config)
    outputs, _ = run_tracker([frame_of(nominal_rows(0, 20), "success", reference=True)], config, baseline)
    assert outputs.contributions[0].largest is None


@pytest.mark.parametrize(("modes", "teaches"), [(5, True), (6, False)])
def test_an_episode_with_too_many_modes_teaches_nothing(modes: int, teaches: bool) -> None:
    config = ResilienceConfig(baseline=BaselineConfig(largest_family=5))
    rows = nominal_rows(0, modes, total=1000)
    for row in rows:
        row["mode"] = f"thinking about step {row['step']}"
    frames = [frame_of(rows[:2], reference=True), frame_of(rows[2:], "success", reference=True)]
    outputs, _ = run_tracker(frames, config, nothing_learned(config))
    assert len(outputs.contributions) == teaches
    assert outputs.summaries[0].steps == modes


@pytest.mark.parametrize(("jump", "teaches"), [(20, True), (21, False), (2**52, False)])
def test_an_episode_of_which_more_is_missing_than_came_teaches_nothing(jump: int, teaches: bool) -> None:
    rows = nominal_rows(0, 20)
    for row in rows[10:]:
        row["step"] += jump
    outputs, _ = run_tracker([frame_of(rows, "success", reference=True)], CONFIG, nothing_learned(CONFIG))
    assert len(outputs.contributions) == teaches
    assert outputs.summaries[0].missing_steps == jump
