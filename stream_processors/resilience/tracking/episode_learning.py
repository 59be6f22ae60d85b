"""What an open episode would teach the stage baseline, gathered batch by batch and handed over at its end."""

from typing import Any

import numpy as np

from springback.stream_processors.resilience.anchor import (
    CYCLE,
    N_SAMPLE,
    N_SIGNALS,
    PROGRESS_BEFORE,
    WORK_LEFT,
    Floats,
    Ints,
)
from springback.stream_processors.resilience.baseline.moments import centred, sums_in_order
from springback.stream_processors.resilience.baseline.stage_baseline import (
    N_STABILITY,
    POLICY_WIDTH,
    CellKey,
    EpisodeContribution,
    LargestSums,
)
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.rebound.rebound_window import DetectorState, WindowEvent
from springback.stream_processors.resilience.rebound.recovery_cost import Tally
from springback.stream_processors.resilience.tracking.batch import Batch
from springback.stream_processors.resilience.tracking.tracker_state import LearningState, OpenEpisode

MOST_PENDING = 8192
"""Steps of an episode that wait for a window to claim them or not; one with more stops learning (ours).

Looked at after each batch, so whether such an episode teaches may depend on batches; what it teaches does not."""


def learn(batch: Batch, events: list[list[WindowEvent]], config: ResilienceConfig) -> None:
    """Takes a batch's rows into what the learning episodes would teach. Mutates their states.

    An episode that passes through more cells than a family may have stops learning, and so does one of which very
    many steps wait for what becomes of a window.

    Args:
        batch: the admitted rows.
        events: the windows that opened and closed in each of its episodes.
        config: settings of the core.
    """
    taught = [episode.state.learning for episode in batch.episodes]
    learns = np.array([learning is not None for learning in taught], dtype=bool)[batch.episode]
    # A row whose cycle time is unknown teaches nothing.
    rows = batch.take(np.flatnonzero(learns & ~np.isnan(batch.signals[:, CYCLE])))
    if config.learn_from == "success":
        _learn_outside_windows(rows, events)
    else:
        _learn_everything(rows)
    for episode in batch.episodes:
        learning = episode.state.learning
        if learning is None:
            continue
        if len(learning.cells) > config.baseline.largest_family or len(learning.pending) > MOST_PENDING:
            episode.state.learning = None


def _learn_everything(rows: Batch) -> None:
    if not len(rows):
        return
    n_cells = len(rows.mode_names) * rows.grid.progress_bins * rows.grid.residual_bins
    codes = rows.episode * n_cells + _cell_codes(rows)
    places = {}
    for code in np.unique(codes).tolist():
        learning = rows.episodes[code // n_cells].state.learning
        if learning is not None:
            places[code] = learning, _cell_key(code % n_cells, rows)
    known = {code: learning.cells[cell] for code, (learning, cell) in places.items() if cell in learning.cells}
    for code, sums in sums_in_order(known, codes.tolist(), _samples(rows)).items():
        learning, cell = places[code]
        learning.cells[cell] = sums


def _learn_outside_windows(rows: Batch, events: list[list[WindowEvent]]) -> None:
    cells = [_cell_key(code, rows) for code in _cell_codes(rows).tolist()]
    samples = _samples(rows)
    ranges = zip(rows.starts.tolist(), rows.stops.tolist(), strict=True)
    for episode, happened, (start, stop) in zip(rows.episodes, events, ranges, strict=True):
        learning = episode.state.learning
        if learning is not None:
            closed = [event.tally for event in happened if event.closed]
            absorb_outside_windows(learning, episode.state.detectors, closed, cells[start:stop], samples[start:stop])


def _cell_codes(rows: Batch) -> Ints:
    """The cell of each row as one number; `_cell_key` is its inverse."""
    by_mode = rows.mode * rows.grid.progress_bins + rows.progress_bin
    return by_mode * rows.grid.residual_bins + rows.residual_bin


def _cell_key(code: int, rows: Batch) -> CellKey:
    rest, residual_bin = divmod(code, rows.grid.residual_bins)
    mode, progress_bin = divmod(rest, rows.grid.progress_bins)
    return rows.mode_names[mode], progress_bin, residual_bin


def _samples(rows: Batch) -> Floats:
    """The vectors that cells learn. Work left counts down from 0 at step 0 (n, 10)."""
    samples = np.empty((len(rows), N_SAMPLE))
    samples[:, :N_SIGNALS] = rows.signals
    samples[:, PROGRESS_BEFORE] = rows.progress_before
    samples[:, WORK_LEFT] = -rows.step
    return samples


def absorb_outside_windows(
    learning: LearningState, detectors: DetectorState, closed: list[Tally], cells: list[CellKey], samples: Floats
) -> None:
    """Merges the samples that no rebound window claims; holds back those that one may yet claim.

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
        learning.cells.update(sums_in_order(learning.cells, [waiting[i][0] for i in free], held[free]))


def contribution(episode: OpenEpisode, last_window: Tally | None, scored_by: int | None) -> EpisodeContribution | None:
    """What the episode teaches, now that its last step is known; None if it has nothing to teach.

    An episode of which more steps are missing than came says nothing of the work of its task: a step number that jumps
    would spoil its family's remaining work for good.

    Work left at a step is last step - step + 1: it counts the step itself. Shifting a mean leaves co-moments alone.

    Args:
        episode: one that ended well.
        last_window: the window that its end has closed, if it did.
        scored_by: how many references the baseline held that it was scored by, None where the detectors' sums are not
            those that alarm bounds are calibrated by.
    """
    learning = episode.learning
    if learning is None or episode.missing > episode.steps:
        return None
    if learning.pending:
        closed = [] if last_window is None else [last_window]
        absorb_outside_windows(learning, DetectorState(), closed, [], np.empty((0, N_SAMPLE)))
    if not learning.cells:
        return None
    cells = sorted(learning.cells)  # in an order that does not depend on the batches
    sums = centred([learning.cells[cell] for cell in cells], N_SAMPLE).packed()
    sums[:, 1 + WORK_LEFT] += episode.last_step + 1
    largest = None
    if scored_by is not None and episode.unscored == 0 and not episode.gap:
        largest = LargestSums(learning.sums.largest_effort, learning.sums.largest_delay, scored_by)
    return EpisodeContribution(
        family=episode.traits.family,
        key=episode.key,
        cells=tuple(cells),
        sums=sums.tobytes(),
        largest=largest,
        cycle_s=episode.cycle_s(),
        **_policy_part(episode, learning, cells),
    )


def _policy_part(episode: OpenEpisode, learning: LearningState, cells: list[CellKey]) -> dict[str, Any]:
    """Returns and stability vectors of an episode scored from end to end, for the cells that it teaches."""
    if episode.unscored or not learning.returns.cells:
        return {}
    rows = np.zeros((len(cells), POLICY_WIDTH))
    number = {cell: i for i, cell in enumerate(cells)}
    stable = episode.stability.whole
    taught = [cell for cell in cells if cell in learning.policy] if stable else []
    if taught:
        stability = centred([learning.policy[cell] for cell in taught], N_STABILITY).packed()
        rows[[number[cell] for cell in taught], 2:] = stability
    returns = learning.returns
    for cell, visits, total in zip(returns.cells, returns.visits, returns.sums, strict=True):
        if cell in number:
            rows[number[cell], :2] = visits, total
    return {"policy": rows.tobytes(), "valued": True, "stable": stable}
