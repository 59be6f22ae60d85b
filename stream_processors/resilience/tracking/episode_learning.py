"""What an open episode would teach the stage baseline, gathered batch by batch and handed over at its end."""

import itertools
from typing import Any

import numpy as np

from springback.stream_processors.resilience.anchor import (
    CYCLE,
    N_SAMPLE,
    N_SIGNALS,
    PROGRESS_BEFORE,
    WORK_LEFT,
    AnchorGrid,
    Floats,
    Ints,
)
from springback.stream_processors.resilience.baseline.moments import Moments, merge_groups
from springback.stream_processors.resilience.baseline.stage_baseline import (
    CellKey,
    EpisodeContribution,
    LargestSums,
    merge_into_cells,
    policy_rows,
    sums_matrix,
)
from springback.stream_processors.resilience.columns import run_begins
from springback.stream_processors.resilience.rebound.rebound_window import DetectorState, WindowEvent
from springback.stream_processors.resilience.rebound.recovery_cost import Tally
from springback.stream_processors.resilience.tracking.admission import Admission
from springback.stream_processors.resilience.tracking.scoring import BatchRows
from springback.stream_processors.resilience.tracking.tracker_state import LearningState, OpenEpisode


def learn(
    rows: BatchRows,
    mode_names: list[str],
    admission: Admission,
    events: list[list[WindowEvent]],
    grid: AnchorGrid,
    outside_windows: bool,
) -> None:
    """Take a batch's rows into what the learning episodes would teach. Mutates their states.

    Args:
        rows: the accepted rows.
        mode_names: what the rows' mode codes stand for.
        admission: the episodes that the rows belong to.
        events: the windows that opened and closed in each of them.
        grid: the bins of the rows' anchors.
        outside_windows: leave out the steps inside rebound windows.
    """
    taught = [slot.episode.learning for slot in admission.slots]
    learns = np.array([learning is not None for learning in taught], dtype=bool)[rows.slot]
    at = np.flatnonzero(learns & ~np.isnan(rows.signals[:, CYCLE]))  # an unknown cycle time teaches nothing
    if outside_windows:
        cells = [cell_key(code, mode_names, grid) for code in cell_codes(rows, at, grid).tolist()]
        samples, slot = samples_of(rows, at), rows.slot[at]
        for number, learning in enumerate(taught):
            if learning is not None:
                start, stop = np.searchsorted(slot, [number, number + 1])
                closed = [event.tally for event in events[number] if event.closed]
                detectors = admission.slots[number].episode.detectors
                absorb_outside_windows(learning, detectors, closed, cells[start:stop], samples[start:stop])
        return
    for number, (visited, sums) in gather(rows, at, mode_names, grid).items():
        learning = taught[number]
        if learning is not None:
            absorb(learning, visited, sums)


def gather(
    rows: BatchRows, at: Ints, mode_names: list[str], grid: AnchorGrid
) -> dict[int, tuple[list[CellKey], Floats]]:
    """Sums of the cells that each episode passed through, from the rows at these positions.

    Returns:
        By slot: the cells, and their sums (k, SUMS_WIDTH). Work left counts down from 0 at step 0.
    """
    if not len(at):
        return {}
    n_cells = len(mode_names) * grid.progress_bins * grid.residual_bins
    codes = rows.slot[at] * n_cells + cell_codes(rows, at, grid)
    merged_codes, merged = merge_groups(codes, Moments.of_samples(samples_of(rows, at)))
    packed, slots = merged.packed(), merged_codes // n_cells
    cells = [cell_key(code, mode_names, grid) for code in (merged_codes % n_cells).tolist()]
    bounds = [*np.flatnonzero(run_begins(slots)).tolist(), len(slots)]
    return {int(slots[start]): (cells[start:stop], packed[start:stop]) for start, stop in itertools.pairwise(bounds)}


def cell_codes(rows: BatchRows, at: Ints, grid: AnchorGrid) -> Ints:
    """The cell of each row as one number; `cell_key` is its inverse."""
    by_mode = rows.mode[at] * grid.progress_bins + rows.progress_bin[at]
    return by_mode * grid.residual_bins + rows.residual_bin[at]


def samples_of(rows: BatchRows, at: Ints) -> Floats:
    """The vectors that cells learn, for the rows at these positions. Shape: (len(at), 10)."""
    samples = np.empty((len(at), N_SAMPLE))
    samples[:, :N_SIGNALS] = rows.signals[at]
    samples[:, PROGRESS_BEFORE] = rows.progress_before[at]
    samples[:, WORK_LEFT] = -rows.step[at]
    return samples


def cell_key(code: int, mode_names: list[str], grid: AnchorGrid) -> CellKey:
    """The cell that a code stands for."""
    rest, residual_bin = divmod(code, grid.residual_bins)
    mode, progress_bin = divmod(rest, grid.progress_bins)
    return mode_names[mode], progress_bin, residual_bin


def absorb(learning: LearningState, cells: list[CellKey], sums: Floats) -> None:
    """Merge a batch's sums into those of the episode."""
    learning.cells.update(merge_into_cells(learning.cells, cells, sums))


def absorb_outside_windows(
    learning: LearningState, detectors: DetectorState, closed: list[Tally], cells: list[CellKey], samples: Floats
) -> None:
    """Merge the samples that no rebound window claims; hold back those that one may yet claim.

    Shape: one cell per sample, samples (n, 10). `closed` are the windows that closed in this batch.
    """
    waiting = [*learning.pending, *((cell, row.tobytes()) for cell, row in zip(cells, samples, strict=True))]
    learning.pending = []
    if not waiting:
        return
    held = np.frombuffer(b"".join(sample for _, sample in waiting)).reshape(-1, N_SAMPLE)
    step = -held[:, WORK_LEFT]
    claimed = np.zeros(len(step), dtype=bool)
    for tally in closed:
        claimed |= (tally.departure_step <= step) & (step <= tally.last_step)
    candidates = [c.departure_step for c in (detectors.effort_candidate, detectors.delay_candidate) if c is not None]
    undecided = step >= min(candidates, default=np.inf)
    window = detectors.window
    if window is not None:
        # The calm steps after a re-entry lie outside the window if it stands, and inside if the calm is broken.
        undecided = step > (np.inf if window.calm == 0 or window.reentry is None else window.reentry.last_step)
        claimed |= (step >= window.tally.departure_step) & ~undecided
    learning.pending = [waiting[i] for i in np.flatnonzero(undecided & ~claimed)]
    free = np.flatnonzero(~undecided & ~claimed)
    if len(free):
        absorb(learning, [waiting[i][0] for i in free], Moments.of_samples(held[free]).packed())


def contribution(episode: OpenEpisode, last_window: Tally | None, calibrates: bool) -> EpisodeContribution | None:
    """What the episode teaches, now that its last step is known; None if it has nothing to teach.

    An episode of which more steps are missing than came says nothing of the work of its task: a step number that jumps
    would spoil its family's remaining work for good.

    Work left at a step is last step - step + 1: it counts the step itself. Shifting a mean leaves co-moments alone.

    Args:
        episode: one that ended well.
        last_window: the window that its end has closed, if it did.
        calibrates: whether the detectors' sums are those that alarm bounds are calibrated by.
    """
    learning = episode.learning
    if learning is None or episode.missing > episode.steps:
        return None
    if learning.pending:
        closed = [] if last_window is None else [last_window]
        absorb_outside_windows(learning, DetectorState(), closed, [], np.empty((0, N_SAMPLE)))
    if not learning.cells:
        return None
    sums = sums_matrix(b"".join(learning.cells.values())).copy()
    sums[:, 1 + WORK_LEFT] += episode.last_step + 1
    largest = LargestSums(learning.sums.largest_effort, learning.sums.largest_delay)
    return EpisodeContribution(
        family=episode.traits.family,
        key=episode.key,
        cells=tuple(learning.cells),
        sums=sums.tobytes(),
        largest=largest if calibrates and episode.unscored == 0 else None,
        **_policy_part(episode, learning),
    )


def _policy_part(episode: OpenEpisode, learning: LearningState) -> dict[str, Any]:
    """Returns and stability vectors of an episode that was scored from end to end, for the cells that it teaches."""
    if episode.unscored or not learning.returns.cells:
        return {}
    rows = policy_rows(learning.policy, learning.cells).copy()
    stable = episode.stability.whole
    if not stable:
        rows[:, 2:] = 0.0
    number = {cell: i for i, cell in enumerate(learning.cells)}
    returns = learning.returns
    for cell, visits, total in zip(returns.cells, returns.visits, returns.sums, strict=True):
        if cell in number:
            rows[number[cell], :2] = visits, total
    return {"policy": rows.tobytes(), "valued": True, "stable": stable}
