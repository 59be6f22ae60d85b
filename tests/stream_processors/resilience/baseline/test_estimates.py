"""Back-off, shrinkage, inverses and the remaining-work line against a literal, cell-by-cell computation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springback.stream_processors.resilience.anchor import DEBT
from springback.stream_processors.resilience.baseline.estimates import (
    AlarmBounds,
    MaterialisedBaseline,
    calibrated_bounds,
    materialise,
)
from springback.stream_processors.resilience.baseline.stage_baseline import (
    BaselineConfig,
    FamilyBaseline,
    LargestSums,
    StageBaseline,
)
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.rebound.recovery_cost import remaining_work
from tests.stream_processors.frame_builders import (
    frame_of,
    nominal_baseline,
    nominal_rows,
    nothing_learned,
    ready,
    run_tracker,
)
from tests.stream_processors.random_episodes import by_seed, cut_into_frames, random_episodes
from tests.stream_processors.resilience.literal_metrics import ABSOLUTE, CHANNELS, ETA, LiteralBaseline

CONFIG = ResilienceConfig()
FIXED = AlarmBounds(9.0, 10.0)


def learned_and_literal(seed: int, references: int = 4) -> tuple[StageBaseline, dict[str, LiteralBaseline]]:
    parts = random_episodes(seed, references=references, others=0)
    baseline = StageBaseline(grid=CONFIG.grid)
    for contribution in run_tracker(cut_into_frames(parts, seed), CONFIG, nothing_learned(CONFIG))[0].contributions:
        baseline.add(contribution, CONFIG.baseline)
    families = {header.family for header, _, _ in parts}
    return baseline, {f: LiteralBaseline([rows for header, rows, _ in parts if header.family == f]) for f in families}


def row_of(baseline: MaterialisedBaseline, family: str, anchor: tuple[str, int, int]) -> int:
    mode, p, q = anchor
    zero = np.zeros(1, dtype=np.int64)
    return int(baseline.rows_of([family], [mode], zero, zero, (zero + p, zero + q))[0])


@by_seed(12)
@given(seed=st.integers(0, 2**32 - 1))
def test_every_anchor_agrees_with_the_literal_cell(seed: int) -> None:
    learned, literal = learned_and_literal(seed)
    baseline = ready(learned, CONFIG)
    cells = baseline.cells
    for family, slow in literal.items():
        met = list(dict.fromkeys(slow.anchors))
        # Anchors met, and ones whose leaf, bin or mode has no data: they fall back to the level above.
        anchors = [*met[:6], ("navigate", 0, 0), ("navigate", 9, 4), ("perceive", 0, 3), ("never seen", 5, 2)]
        root = slow.samples.mean(axis=0)
        for anchor in anchors:
            row = row_of(baseline, family, anchor)
            mu, s = slow.cell(anchor)
            np.testing.assert_allclose(cells.mean[row], mu[:8], rtol=1e-10, atol=1e-12)
            scale = [max(mu[k], 0) + max(ABSOLUTE[k], 0.05 * abs(root[k])) for k in range(7)]
            np.testing.assert_allclose(cells.denominator[row], scale, rtol=1e-10)
            inverses = (cells.inverse_cognitive[row], cells.inverse_physical[row], cells.inverse_debt[row])
            for block, inverse in zip(CHANNELS, inverses, strict=True):
                d = np.diag([1 / scale[k] for k in block])
                sigma = d @ s[np.ix_(block, block)] @ d + ETA * np.eye(len(block))
                np.testing.assert_allclose(inverse @ sigma, np.eye(len(block)), atol=1e-8)
            for p in (0.0, 0.37, anchor[1] / 10, 1.0):
                w = remaining_work(np.array([p]), np.array([row]), cells)[0]
                assert w == pytest.approx(slow.remaining(anchor, p), rel=1e-9)


@by_seed(10)
@given(seed=st.integers(0, 2**32 - 1))
def test_regularised_covariances_are_symmetric_and_positive_definite(seed: int) -> None:
    cells = ready(learned_and_literal(seed, references=2)[0], CONFIG).cells
    for inverses in (cells.inverse_cognitive, cells.inverse_physical, cells.inverse_debt):
        np.testing.assert_allclose(inverses, inverses.transpose(0, 2, 1), rtol=1e-9, atol=1e-9)
        # Sigma + eta I >= eta I, so no eigenvalue of the inverse is above 1 / eta.
        eigenvalues = np.linalg.eigvalsh(inverses)
        assert (eigenvalues > 0).all()
        assert (eigenvalues <= 1 / ETA * (1 + 1e-9)).all()


@by_seed(10)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_order_of_contributions_and_cells_does_not_matter(seed: int) -> None:
    learned, _ = learned_and_literal(seed)
    shuffled = StageBaseline(grid=CONFIG.grid)
    rng = np.random.default_rng(seed)
    for name in reversed(learned.families):
        cells = list(learned.families[name].cells.items())
        order = rng.permutation(len(cells))
        shuffled.families[name] = FamilyBaseline(cells=dict(cells[i] for i in order), references=4)
    one, other = ready(learned, CONFIG), ready(shuffled, CONFIG)
    for family in learned.families:
        for mode, p, q in [*learned.families[family].cells, ("never seen", 0, 0)]:
            here, there = row_of(one, family, (mode, p, q)), row_of(other, family, (mode, p, q))
            np.testing.assert_array_equal(one.cells.mean[here], other.cells.mean[there])
            np.testing.assert_array_equal(one.cells.inverse_debt[here], other.cells.inverse_debt[there])


def test_a_family_without_baseline_has_no_rows() -> None:
    baseline = ready(nominal_baseline(CONFIG), CONFIG)
    assert row_of(baseline, "unknown", ("navigate", 0, 4)) == -1
    assert row_of(nothing_learned(CONFIG), "navigation", ("navigate", 0, 4)) == -1
    assert "unknown" not in baseline.families


def test_a_family_with_a_record_but_no_cells_has_no_baseline() -> None:
    baseline = StageBaseline(families={"navigation": FamilyBaseline(references=3)})
    assert materialise(baseline, CONFIG.baseline, FIXED).families == {}


def test_remaining_work_is_never_below_one_cycle() -> None:
    cells = ready(nominal_baseline(CONFIG), CONFIG).cells
    assert remaining_work(np.array([1e3]), np.array([0]), cells).tolist() == [1.0]


def test_a_slope_that_would_rise_is_taken_as_flat() -> None:
    # Work left that grows with progress (a task that is undone while it runs): the line may not reward going back.
    learned = nominal_baseline(CONFIG)
    mirrored = StageBaseline(grid=CONFIG.grid)
    for name, family in learned.families.items():
        cells = {}
        for cell, sums in family.cells.items():
            row = np.frombuffer(sums).copy()
            row[1 + 10 + 53] = -row[1 + 10 + 53]  # C_pw: row 8, column 9 of the triangle
            cells[cell] = row.tobytes()
        mirrored.families[name] = FamilyBaseline(cells=cells, references=1)
    leaves = ready(mirrored, CONFIG).cells.work_slope[-20:]
    assert (leaves <= 0).all()


@pytest.mark.parametrize(("references", "slope_is_used"), [(2, False), (3, True)])
def test_the_line_has_a_slope_from_more_than_five_samples(references: int, slope_is_used: bool) -> None:
    # Two steps of each episode fall into a progress bin. A leaf of 4 samples is flat, one of 6 is not; the root, with
    # all of them, always has a slope, which the leaf is shrunk to.
    cells = ready(nominal_baseline(CONFIG, references), CONFIG).cells
    root, leaf = cells.work_slope[0], cells.work_slope[-1]
    n = 2 * references
    own = -1.0 * n * 0.0125 / (n * (0.025**2 + 1e-5)) if slope_is_used else 0.0
    above = (n * own + 20 * (20 * references * root + 20 * root) / (20 * references + 20)) / (n + 20)
    assert leaf == pytest.approx((n * own + 20 * above) / (n + 20), rel=1e-9)


def test_the_denominator_of_a_negative_mean_is_epsilon_alone() -> None:
    # Steps that undo: their mean gain is below zero, and so is what the shrinkage leaves of it.
    gains = np.where(np.arange(200) % 2, -0.1, 0.11)
    rows = nominal_rows(0, 200)
    for row, gain, progress in zip(rows, gains, np.cumsum(gains) % 1.0, strict=True):
        row |= {"progress": float(progress), "mode": "undo" if gain < 0 else "do"}
    learned = StageBaseline(grid=CONFIG.grid)
    frames = [frame_of(rows, "success", reference=True)]
    for contribution in run_tracker(frames, CONFIG, nothing_learned(CONFIG))[0].contributions:
        learned.add(contribution, CONFIG.baseline)
    baseline = ready(learned, CONFIG)
    row_number = row_of(baseline, "navigation", ("undo", 9, 0))
    assert baseline.cells.mean[row_number, 4] < -0.05
    epsilon = max(1e-3, 0.05 * abs(baseline.cells.mean[0, 4]))
    assert baseline.cells.denominator[row_number, 4] == pytest.approx(epsilon)


def with_sums(n: int, behind: int = 100) -> FamilyBaseline:
    """A hundred references, of which n have sums: effort 1..n and twice that of delay."""
    sums = [LargestSums(effort=float(i), delay=2.0 * i, references=behind) for i in range(1, n + 1)]
    return FamilyBaseline(references=100, largest=sums)


def test_bounds_are_fixed_with_9_reference_sums_and_calibrated_with_10() -> None:
    config = BaselineConfig()
    assert calibrated_bounds(with_sums(9), config, FIXED) == FIXED
    # Rank 0.95 of 1..10 is reached by the 10th smallest, of 1..20 by the 19th.
    assert calibrated_bounds(with_sums(10), config, FIXED) == (10.0, 20.0)
    assert calibrated_bounds(with_sums(20), config, FIXED) == (19.0, 38.0)


def test_calibrated_bounds_have_a_floor() -> None:
    calm = FamilyBaseline(references=20, largest=[LargestSums(0.5, 7.0, 16)] * 20)
    assert calibrated_bounds(calm, BaselineConfig(), FIXED) == (5.0, 7.0)


@pytest.mark.parametrize(("behind", "bounds"), [(1, (10.0, 20.0)), (0, FIXED)])
def test_sums_of_which_nobody_knows_what_scored_them_count_for_nothing(
    behind: int, bounds: tuple[float, float]
) -> None:
    family = with_sums(10, behind)
    assert calibrated_bounds(family, BaselineConfig(), FIXED) == bounds
    assert len(family.counting_sums()) == (10 if behind else 0)


def test_the_debt_block_is_gains_and_risk() -> None:
    assert list(range(DEBT.start, DEBT.stop)) == CHANNELS[2]
