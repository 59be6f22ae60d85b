"""Recovery cost (equation 3), summed row by row as a window runs.

C_rec = 1 / (W*_rem(a_td, p) + eps) * sum over t_d..t_r of dtau_t / (tau*(a_t) + eps) * g^rec_t, both ends included.
Sums are taken one row after the other, never from a difference of prefix sums, so that they do not depend on how the
rows were cut into batches.
"""

from typing import NamedTuple

import msgspec
import numpy as np

from springback.stream_processors.resilience.anchor import CYCLE, Floats, Ints
from springback.stream_processors.resilience.baseline.estimates import CellEstimates
from springback.stream_processors.resilience.readings import ChannelCosts
from springback.stream_processors.resilience.rebound.recovery_intensity import CHANNELS, Intensity

COST_EPSILON = 1e-9


class CostTerms(NamedTuple):
    """One row's share of the sum in equation 3, whole and by channel (g^u / sqrt(3) in place of g^rec)."""

    total: Floats
    cognitive: Floats
    physical: Floats
    debt: Floats
    seconds: Floats


def cost_terms(cycle_s: Floats, intensity: Intensity, rows: Ints, cells: CellEstimates) -> CostTerms:
    """The terms of n rows. A row whose cycle time is unknown (NaN) counts as one nominal cycle (ours)."""
    nominal = cells.mean[rows, CYCLE]
    seconds = np.where(np.isnan(cycle_s), nominal, cycle_s)
    ratio = seconds / (nominal + COST_EPSILON)
    by_channel = ratio / np.sqrt(CHANNELS)
    return CostTerms(
        ratio * intensity.total,
        by_channel * intensity.cognitive,
        by_channel * intensity.physical,
        by_channel * intensity.debt,
        seconds,
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
