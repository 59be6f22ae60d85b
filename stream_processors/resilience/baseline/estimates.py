"""A stage baseline made ready for scoring: back-off, shrinkage and inverses worked out once per version.

Back-off goes root first: (f,*,*,*) -> (f,*,*,m) -> (f,b^p,*,m) -> (f,b^p,b^q,m). A level without data is skipped;
each level with data is shrunk to the estimate above it:

mu = (n x + kappa mu') / (n + kappa),
S = (M2 + kappa S' + n (x - mu)(x - mu)' + kappa (mu' - mu)(mu' - mu)') / (n + kappa),

with mu' and S' the estimate above. The outcome is dense float64 arrays with one row per cell that exists at any level,
and an index from every anchor to its finest row, so that scoring a batch is a look-up and a gather. Source: N(a) of the
paper; levels, shrinkage and the remaining-work line are ours.

An example with kappa = 20. A family has two cells of 20 steps each; planning took 3 s in one and 1 s in the other, so
its root says 2 s. Each of the three levels below the root has 20 steps of its own against 20 pseudo-counts, and so goes
half of the way that is left: 2.5, 2.75, 2.875. A mode that was never seen has the root's mean:

>>> samples = np.zeros((40, N_SAMPLE))
>>> samples[:, 0] = [3.0] * 20 + [1.0] * 20
>>> _, sums = merge_groups(np.repeat([0, 1], 20), Moments.of_samples(samples))
>>> family = FamilyBaseline()
>>> family.merge_cells([("navigate", 0, 4), ("plan", 0, 4)], sums.packed())
>>> learned = StageBaseline(families={"f": family})
>>> ready = materialise(learned, BaselineConfig(), fixed=AlarmBounds(effort=9.0, delay=10.0))
>>> bins = np.array([0, 0]), np.array([4, 4])
>>> rows = ready.rows_of(["f"], ["navigate", "wait"], np.array([0, 0]), np.array([0, 1]), bins)
>>> ready.cells.mean[rows, 0].tolist()
[2.875, 2.0]
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from springback.stream_processors.resilience.anchor import (
    COGNITIVE,
    DEBT,
    EPSILON_ABSOLUTE,
    N_EXCESS,
    N_SAMPLE,
    N_SIGNALS,
    PHYSICAL,
    PROGRESS_BEFORE,
    WORK_LEFT,
    AnchorGrid,
    Floats,
    Ints,
)
from springback.stream_processors.resilience.baseline.moments import Moments, merge_groups
from springback.stream_processors.resilience.baseline.stage_baseline import (
    BaselineConfig,
    FamilyBaseline,
    PolicySums,
    StageBaseline,
    policy_rows,
    sums_matrix,
)
from springback.stream_processors.resilience.quantiles import quantile

EPSILON_RELATIVE = 0.05
"""Smallest meaningful amount of a signal, as a share of its family mean (ours)."""
REGULARISER = 0.05
"""eta of equation 2."""
MIN_LINE_SAMPLES = 5
"""More samples than these give the remaining-work line a slope (ours)."""
LINE_RIDGE = 1e-5


class AlarmBounds(NamedTuple):
    """What the sums of the two detectors must exceed to raise an alarm."""

    effort: float
    delay: float


@dataclass(frozen=True, slots=True)
class CellEstimates:
    """Estimates of k cells. Shape: mean (k, 8), denominator (k, 7), inverses (k, d, d), line (k,) each.

    Attributes:
        mean: nominal signals.
        denominator: max(mean, 0) + epsilon of the excess signals.
        inverse_cognitive, inverse_physical, inverse_debt: (Sigma_u + eta I)^-1 of equation 2.
        work_at_zero, work_slope: the line w(p) = work_at_zero + work_slope p, in cycles.
        value: V of equation 4 by anchor (k,).
        inverse_stability: (Sigma + eta I)^-1 of equation 5 (k, 3, 3).
    """

    mean: Floats
    denominator: Floats
    inverse_cognitive: Floats
    inverse_physical: Floats
    inverse_debt: Floats
    work_at_zero: Floats
    work_slope: Floats
    value: Floats
    inverse_stability: Floats


@dataclass(frozen=True, slots=True)
class FamilyIndex:
    """Where a family's anchors find their row, and its alarm bounds.

    `rows` has shape (modes + 1, P, Q); the last mode stands for unknown ones. `valued` and `stable` say whether returns
    and stability vectors have been learned. The baseline holds `references` episodes; the largest sums of
    `bound_references` of them count for its alarm bounds. `cycle_s` is the median of its episodes' median cycle times,
    None where none is known.
    """

    modes: dict[str, int]
    rows: Ints
    bounds: AlarmBounds
    references: int
    bound_references: int
    valued: bool
    stable: bool
    cycle_s: float | None = None


@dataclass(frozen=True, slots=True)
class MaterialisedBaseline:
    """Every family's estimates in one set of arrays, and how to find a row in them."""

    grid: AnchorGrid
    cells: CellEstimates
    families: dict[str, FamilyIndex] = field(default_factory=dict)

    def rows_of(self, families: list[str], modes: list[str], family: Ints, mode: Ints, bins: tuple[Ints, Ints]) -> Ints:
        """The finest row of each anchor, -1 where its family has no baseline.

        Shape: `family` and `mode` (n,) are positions in the two lists of names; bins are (n,) each.
        """
        found = np.full(len(family), -1, dtype=np.int64)
        for position, name in enumerate(families):
            index = self.families.get(name)
            if index is None:
                continue
            here = np.flatnonzero(family == position)
            unknown = len(index.modes)
            row_of_mode = np.array([index.modes.get(m, unknown) for m in modes], dtype=np.int64)
            found[here] = index.rows[row_of_mode[mode[here]], bins[0][here], bins[1][here]]
        return found


def materialise(baseline: StageBaseline, config: BaselineConfig, fixed: AlarmBounds) -> MaterialisedBaseline:
    """Works out the estimates of every cell at every level, and every anchor's row.

    Args:
        baseline: what has been learned.
        config: shrinkage and calibration.
        fixed: alarm bounds of families with too few reference episodes.
    """
    levels, families, start = [], {}, 0
    for name, family in baseline.families.items():
        if family.cells:
            estimates, index = _materialise_family(family, baseline.grid, config, fixed, start)
            levels.append(estimates)
            families[name] = index
            start += len(estimates.work_slope)
    return MaterialisedBaseline(baseline.grid, _stacked(levels), families)


def calibrated_bounds(family: FamilyBaseline, config: BaselineConfig, fixed: AlarmBounds) -> AlarmBounds:
    """The alarm bounds that the family's reference episodes ask for (ours): a quantile of their largest sums.

    Each episode's sums are by references that it is not among: sums by a baseline that the episode itself has taught
    are too small, and every other clean episode would raise an alarm.
    """
    counting = family.counting_sums()
    if len(counting) < config.calibration_episodes:
        return fixed
    effort = quantile([sums.effort for sums in counting], config.calibration_rank)
    delay = quantile([sums.delay for sums in counting], config.calibration_rank)
    return AlarmBounds(max(config.calibration_floor, effort), max(config.calibration_floor, delay))


class Shrunk(NamedTuple):
    """Estimates of k cells of one level.

    Attributes:
        mean: of the sample vector (k, 10); `covariance` of it (k, 10, 10).
        work_at_zero, work_slope: the remaining-work line (k,) each.
        value: mean discounted return (k,); 0 where none is known.
        stability_mean, stability_covariance: of x^stab (k, 3) and (k, 3, 3).
    """

    mean: Floats
    covariance: Floats
    work_at_zero: Floats
    work_slope: Floats
    value: Floats
    stability_mean: Floats
    stability_covariance: Floats

    def take(self, index: Ints) -> "Shrunk":
        """The cells at these positions."""
        return Shrunk(*(array[index] for array in self))


def _materialise_family(
    family: FamilyBaseline, grid: AnchorGrid, config: BaselineConfig, fixed: AlarmBounds, start: int
) -> tuple[CellEstimates, FamilyIndex]:
    n_p, n_q = grid.progress_bins, grid.residual_bins
    modes = {mode: i for i, mode in enumerate(sorted({mode for mode, _, _ in family.cells}))}
    # In sorted order: sums do not depend, to the last bit, on the order in which the cells were learned or read.
    cells = sorted(family.cells)
    leaves = np.array([(modes[m] * n_p + p) * n_q + q for m, p, q in cells], dtype=np.int64)
    sums = Moments.unpacked(sums_matrix(b"".join(family.cells[cell] for cell in cells)), N_SAMPLE)

    rows = np.zeros((len(modes) + 1) * n_p * n_q, dtype=np.int64)
    policy = PolicySums.unpacked(policy_rows(family.policy, cells))
    shrunk: Shrunk | None = None
    parts = []
    first_row = start
    # Codes of a level are leaf codes divided by how many leaves share a cell: all, a mode's, a mode and bin's, one.
    for span in (len(rows), n_p * n_q, n_q, 1):
        codes, moments = merge_groups(leaves // span, sums)
        _, returns_and_stability = policy.merged(leaves // span)
        above = None if shrunk is None else shrunk.take(rows[codes * span] - (first_row - len(shrunk.mean)))
        level = _shrink(moments, returns_and_stability, above, config.pseudo_counts)
        here = np.repeat(codes * span, span) + np.tile(np.arange(span), len(codes))
        rows[here] = np.repeat(first_row + np.arange(len(codes)), span)
        first_row += len(codes)
        parts.append(level)
        shrunk = level
    every = Shrunk(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    index = FamilyIndex(
        modes,
        rows.reshape(len(modes) + 1, n_p, n_q),
        calibrated_bounds(family, config, fixed),
        references=family.references,
        bound_references=len(family.counting_sums()),
        valued=family.valued > 0,
        stable=family.stable > 0,
        cycle_s=float(np.median(family.cycles)) if family.cycles else None,
    )
    return _estimates(every, family_mean=every.mean[0]), index


def _shrink(sums: Moments, policy: PolicySums, above: Shrunk | None, pseudo_counts: float) -> Shrunk:
    """Estimates of a level's cells, each shrunk to the row of `above` at its position; the root's are its own."""
    n, m2 = sums.n, sums.covariance_sums()
    ridge = m2[:, PROGRESS_BEFORE, PROGRESS_BEFORE] + LINE_RIDGE * n
    slope = np.where(n > MIN_LINE_SAMPLES, np.minimum(0.0, m2[:, PROGRESS_BEFORE, WORK_LEFT] / ridge), 0.0)
    at_zero = sums.mean[:, WORK_LEFT] - slope * sums.mean[:, PROGRESS_BEFORE]
    n_returns = policy.returns[:, 0]
    mean_return = policy.returns[:, 1] / np.where(n_returns > 0, n_returns, 1.0)
    if above is None:
        return Shrunk(
            sums.mean,
            _covariance(sums),
            at_zero,
            slope,
            mean_return,
            policy.stability.mean,
            _covariance(policy.stability),
        )
    own, prior = n / (n + pseudo_counts), pseudo_counts / (n + pseudo_counts)
    own_return = n_returns / (n_returns + pseudo_counts)
    return Shrunk(
        *_shrunk_moments(sums, above.mean, above.covariance, pseudo_counts),
        own * at_zero + prior * above.work_at_zero,
        own * slope + prior * above.work_slope,
        own_return * mean_return + (1.0 - own_return) * above.value,
        *_shrunk_moments(policy.stability, above.stability_mean, above.stability_covariance, pseudo_counts),
    )


def _covariance(sums: Moments) -> Floats:
    return sums.covariance_sums() / np.maximum(sums.n - 1, 1)[:, None, None]


def _shrunk_moments(
    sums: Moments, above_mean: Floats, above_covariance: Floats, pseudo_counts: float
) -> tuple[Floats, Floats]:
    n = sums.n
    own = n / (n + pseudo_counts)
    prior = pseudo_counts / (n + pseudo_counts)
    mean = own[:, None] * sums.mean + prior[:, None] * above_mean
    within, apart = sums.mean - mean, above_mean - mean
    scatter = (
        sums.covariance_sums()
        + pseudo_counts * above_covariance
        + n[:, None, None] * within[:, :, None] * within[:, None, :]
        + pseudo_counts * apart[:, :, None] * apart[:, None, :]
    )
    return mean, scatter / (n + pseudo_counts)[:, None, None]


def _estimates(shrunk: Shrunk, family_mean: Floats) -> CellEstimates:
    epsilon = np.maximum(EPSILON_ABSOLUTE, EPSILON_RELATIVE * np.abs(family_mean[:N_EXCESS]))
    denominator = np.maximum(shrunk.mean[:, :N_EXCESS], 0.0) + epsilon

    def inverse(block: slice) -> Floats:
        scale = denominator[:, block]
        scaled = shrunk.covariance[:, block, block] / (scale[:, :, None] * scale[:, None, :])
        return _regularised_inverse(scaled)

    return CellEstimates(
        shrunk.mean[:, :N_SIGNALS],
        denominator,
        inverse(COGNITIVE),
        inverse(PHYSICAL),
        inverse(DEBT),
        shrunk.work_at_zero,
        shrunk.work_slope,
        shrunk.value,
        _regularised_inverse(shrunk.stability_covariance),
    )


def _regularised_inverse(covariance: Floats) -> Floats:
    """(Sigma + eta I)^-1 of each cell. Shape: (k, d, d)."""
    return np.asarray(np.linalg.inv(covariance + REGULARISER * np.eye(covariance.shape[-1])), dtype=np.float64)


def _stacked(parts: list[CellEstimates]) -> CellEstimates:
    if not parts:
        nothing = np.zeros(0)
        pair, triple = np.zeros((0, 2, 2)), np.zeros((0, 3, 3))
        return CellEstimates(
            np.zeros((0, N_SIGNALS)), np.zeros((0, N_EXCESS)), pair, pair, triple, nothing, nothing, nothing, triple
        )
    names = CellEstimates.__slots__
    return CellEstimates(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
