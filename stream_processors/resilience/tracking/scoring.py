"""Scoring all rows of a batch at once: excess, intensity, lost cycles and cost terms (equations 1 to 3)."""

from dataclasses import dataclass

import numpy as np

from springback.stream_processors.resilience.anchor import CYCLE, Bools, Floats, Ints
from springback.stream_processors.resilience.baseline.estimates import MaterialisedBaseline
from springback.stream_processors.resilience.columns import one_back
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.rebound.rebound_window import WalkRows, WindowConfig
from springback.stream_processors.resilience.rebound.recovery_cost import CostTerms, cost_terms, remaining_work
from springback.stream_processors.resilience.rebound.recovery_intensity import Intensity, excess, intensity
from springback.stream_processors.resilience.tracking.batch import Batch


@dataclass(frozen=True, slots=True)
class ScoredBatch:
    """Those rows of a batch that a baseline exists for, with their scores. Shape: (m,) for m rows.

    Attributes:
        rows: the scored rows alone; the batch's episodes are all there.
        cell: row of each one's anchor in the baseline's cells.
        excess: z of equation 1 (m, 7).
        intensity: g of equation 2.
        remaining: W*_rem, the work left before the step.
        lost: lost cycles since the scored row before it in its episode; 0 at the first, and behind a gap (ours).
        terms: its share of the sum in equation 3.
        gap: so many steps are missing before it that there is no course to judge (see `WindowConfig.gap_steps`).
        with_gap: which episodes have such a gap before any of their rows, scored or not (k,).
        interruptions: how many cycles of each episode reached the cap on their time (k,).
    """

    rows: Batch
    cell: Ints
    excess: Floats
    intensity: Intensity
    remaining: Floats
    lost: Floats
    terms: CostTerms
    gap: Bools
    with_gap: Bools
    interruptions: Ints

    def walk_rows(self, config: WindowConfig) -> WalkRows:
        """The rows as the plain lists that the detectors' walk reads."""
        rows, terms = self.rows, self.terms
        effort_gain, delay_gain = config.increments(self.intensity.total, self.lost)
        return WalkRows(
            step=rows.step.tolist(),
            time_s=rows.time_s.tolist(),
            mode=[rows.mode_names[code] for code in rows.mode.tolist()],
            progress_bin=rows.progress_bin.tolist(),
            residual_bin=rows.residual_bin.tolist(),
            work=self.remaining.tolist(),
            intensity=self.intensity.total.tolist(),
            lost=self.lost.tolist(),
            effort_gain=effort_gain.tolist(),
            delay_gain=delay_gain.tolist(),
            total=terms.total.tolist(),
            cognitive=terms.cognitive.tolist(),
            physical=terms.physical.tolist(),
            debt=terms.debt.tolist(),
            seconds=terms.seconds.tolist(),
        )


def score(
    batch: Batch, baseline: MaterialisedBaseline, config: ResilienceConfig, left_out: Bools | None = None
) -> ScoredBatch:
    """Scores every row whose family has a baseline, but for those left out. Shape: `left_out` (n,)."""
    bins = batch.progress_bin, batch.residual_bin
    cell_of_row = baseline.rows_of(batch.families, batch.mode_names, batch.family, batch.mode, bins)
    at = np.flatnonzero((cell_of_row >= 0) if left_out is None else (cell_of_row >= 0) & ~left_out)
    rows, cell = batch.take(at), cell_of_row[at]
    z = excess(rows.signals, cell, baseline.cells)
    level = intensity(z, cell, baseline.cells)
    remaining = remaining_work(rows.progress_before, cell, baseline.cells)
    lost, work_before = _lost_cycles(rows, remaining, baseline)
    longest = np.full(len(batch), float(config.window.gap_steps))
    longest[at] = np.maximum(longest[at], work_before)
    far = batch.missing > longest
    # What is missing before an episode's first row is its beginning, which is not a gap.
    present = batch.present
    far[batch.starts[present]] &= np.array([batch.episodes[place].state.steps > 0 for place in present], dtype=bool)
    gap = far[at]
    lost[gap] = 0.0
    terms = cost_terms(rows.signals[:, CYCLE], level, cell, baseline.cells, config.cost)
    k = len(batch.episodes)
    with_gap = np.bincount(batch.episode[far], minlength=k) > 0
    interruptions = np.bincount(rows.episode[terms.interrupted], minlength=k)
    return ScoredBatch(rows, cell, z, level, remaining, lost, terms, gap, with_gap, interruptions)


def _lost_cycles(rows: Batch, remaining: Floats, baseline: MaterialisedBaseline) -> tuple[Floats, Floats]:
    """The steps since the scored row before, less what the work left has fallen by meanwhile. Shape: (m,).

    Returns:
        the lost cycles, and the work that was left at the scored row before; 0 where there is none.
    """
    step_before, remaining_before = one_back(rows.step), one_back(remaining)
    present = rows.present
    remembered = np.array([rows.episodes[place].state.scored is not None for place in present.tolist()], dtype=bool)
    resumed = rows.starts[present[remembered]]
    step_before[resumed], remaining_before[resumed] = _where_left(rows, present[remembered], baseline)
    lost = (rows.step - step_before) + remaining - remaining_before
    first = rows.starts[present[~remembered]]
    lost[first] = remaining_before[first] = 0.0
    return lost, remaining_before


def _where_left(batch: Batch, places: Ints, baseline: MaterialisedBaseline) -> tuple[Ints, Floats]:
    """Step and remaining work of the last scored step of the episodes at these places, by the baseline of now.

    While baselines are learned live they change in mid-episode. Work left by an old one, compared with work left by a
    new one, would look like cycles lost or won.
    """
    states = [batch.episodes[place].state for place in places.tolist()]
    last = [state.scored for state in states if state.scored is not None]
    modes = {name: i for i, name in enumerate(dict.fromkeys(step.mode for step in last))}
    mode = np.array([modes[step.mode] for step in last], dtype=np.int64)
    progress = np.array([step.progress_before for step in last])
    propositions = np.array([step.propositions_before for step in last])
    bins = batch.grid.progress_bin(progress), batch.grid.residual_bin(propositions)
    cells = baseline.rows_of(batch.families, list(modes), batch.family_of[places], mode, bins)
    steps = np.array([step.step for step in last], dtype=np.int64)
    return steps, remaining_work(progress, cells, baseline.cells)
