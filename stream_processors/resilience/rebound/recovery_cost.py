"""Recovery cost (equation 3), summed row by row as a window runs.

C_rec = 1 / (W*_rem(a_td, p) + eps) * sum over t_d..t_r of min(dtau_t / (tau*(a_t) + eps), 10) * min(g^rec_t, 10), both
ends included. The two caps are ours: without them one bad sample (a pause, a clock that is set, odometry that starts
anew) decides what an episode costs. Sums are taken one row after the other, never from a difference of prefix sums, so
that they do not depend on how the rows were cut into batches.

An example: half way through the task, where 10 - 8 * 0.5 = 6 cycles are left, two steps of 1 s each at an anchor whose
nominal cycle is 0.5 s. Their intensities are 1 and 0.5, so the terms are 2 * 1 and 2 * 0.5, and a window of these two
steps costs (2 + 1) / 6 = 0.5:

>>> nominal, nothing = np.full((1, 8), 0.5), np.zeros(1)
>>> pair, triple = np.eye(2)[None], np.eye(3)[None]
>>> work_at_zero, work_slope = np.array([10.0]), np.array([-8.0])
>>> cells = CellEstimates(
...     nominal, np.ones((1, 7)), pair, pair, triple, work_at_zero, work_slope, nothing, triple
... )
>>> here, g = np.array([0, 0]), np.array([1.0, 0.5])
>>> remaining_work(np.array([0.5, 0.5]), here, cells).tolist()
[6.0, 6.0]
>>> terms = cost_terms(np.array([1.0, 1.0]), Intensity(g, g, g, g), here, cells, CostConfig())
>>> terms.total.round(6).tolist()
[2.0, 1.0]
>>> window = Tally(4, 20.0, "navigate", 5, 2, work=6.0, last_step=5, last_time_s=21.0, total=2.0 + 1.0)
>>> round(window.cost(), 6), window.length_steps
(0.5, 2)
"""

import math
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from springback.stream_processors.resilience.anchor import CYCLE, Bools, Floats, Ints
from springback.stream_processors.resilience.baseline.estimates import CellEstimates
from springback.stream_processors.resilience.readings import ChannelCosts
from springback.stream_processors.resilience.rebound.recovery_intensity import CHANNEL_COUNT, Intensity

COST_EPSILON = 1e-9


class CostConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much one step can add to a recovery cost (ours).

    Attributes:
        cycle_cap: the largest cycle time that counts, in nominal cycles; a cycle that reaches it is an interruption.
        intensity_cap: the largest g^rec that counts.

    `none` leaves equation 3 as the paper has it.
    """

    cycle_cap: float | Literal["none"] = 10.0
    intensity_cap: float | Literal["none"] = 10.0

    def __post_init__(self) -> None:
        """Checks the ranges."""
        for name in ("cycle_cap", "intensity_cap"):
            value = getattr(self, name)
            if value != "none" and not 1 <= value < math.inf:
                message = f'{name} is {value}, expected a number of 1 or more, or "none"'
                raise ValueError(message)


class CostTerms(NamedTuple):
    """One row's share of the sum in equation 3, whole and by channel (g^u / sqrt(3) in place of g^rec).

    `seconds` is the cycle time as it was; `interrupted` marks the cycles that reached the cap.
    """

    total: Floats
    cognitive: Floats
    physical: Floats
    debt: Floats
    seconds: Floats
    interrupted: Bools


def cost_terms(
    cycle_s: Floats, intensity: Intensity, rows: Ints, cells: CellEstimates, config: CostConfig
) -> CostTerms:
    """The terms of n rows. A row whose cycle time is unknown (NaN) counts as one nominal cycle (ours).

    Where g^rec is capped its channels shrink by the same factor, so that they keep their shares of the cost.
    """
    nominal = cells.mean[rows, CYCLE]
    unknown = np.isnan(cycle_s)
    seconds = np.where(unknown, nominal, cycle_s)
    ratio = seconds / (nominal + COST_EPSILON)
    interrupted = np.zeros(len(ratio), dtype=bool)
    if config.cycle_cap != "none":
        interrupted = ~unknown & (ratio >= config.cycle_cap)
        ratio = np.minimum(ratio, config.cycle_cap)
    total, by_channel = intensity.total, ratio / np.sqrt(CHANNEL_COUNT)
    if config.intensity_cap != "none":
        by_channel = by_channel * (config.intensity_cap / np.maximum(total, config.intensity_cap))
        total = np.minimum(total, config.intensity_cap)
    return CostTerms(
        ratio * total,
        by_channel * intensity.cognitive,
        by_channel * intensity.physical,
        by_channel * intensity.debt,
        seconds,
        interrupted,
    )


def remaining_work(progress: Floats, rows: Ints, cells: CellEstimates) -> Floats:
    """W*_rem(a, p): nominal cycles to the end of the task, at least 1. Shape: (n,)."""
    return np.maximum(1.0, cells.work_at_zero[rows] + cells.work_slope[rows] * progress)


class Tally(msgspec.Struct, array_like=True):
    """The running sums of a stretch of rows, from its first row on.

    `departure_*` describe the first row; `work` is the remaining work there. `lost` leaves the first row out: it sums
    over t_d + 1 ... t_r.
    """

    departure_step: int
    departure_time_s: float
    departure_mode: str
    departure_progress_bin: int
    departure_residual_bin: int
    work: float
    last_step: int
    last_time_s: float
    total: float = 0.0
    cognitive: float = 0.0
    physical: float = 0.0
    debt: float = 0.0
    seconds: float = 0.0
    lost: float = 0.0
    peak: float = 0.0

    @property
    def length_steps(self) -> int:
        """Steps from the first to the last, both included, and those that went missing between them."""
        return self.last_step - self.departure_step + 1

    def cost(self) -> float:
        """C_rec of the stretch."""
        return self.total / (self.work + COST_EPSILON)

    def channel_costs(self) -> ChannelCosts:
        """C_rec of the stretch by channel."""
        scale = 1.0 / (self.work + COST_EPSILON)
        return ChannelCosts(cognitive=self.cognitive * scale, physical=self.physical * scale, debt=self.debt * scale)
