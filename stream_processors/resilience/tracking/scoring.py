"""Scoring all rows of a batch at once: signals, anchors, intensity, lost cycles and cost terms (equations 1 to 3)."""

from dataclasses import dataclass

import numpy as np

from springback.stream_processors.intake.step_table import StepTable
from springback.stream_processors.resilience.anchor import N_SIGNALS, Bools, Floats, Ints, cycle_times
from springback.stream_processors.resilience.baseline.estimates import MaterialisedBaseline
from springback.stream_processors.resilience.columns import one_back, run_begins
from springback.stream_processors.resilience.rebound.rebound_window import WalkRows, WindowConfig
from springback.stream_processors.resilience.rebound.recovery_cost import CostTerms, cost_terms, remaining_work
from springback.stream_processors.resilience.rebound.recovery_intensity import Intensity, excess, intensity
from springback.stream_processors.resilience.tracking.admission import Admission
from springback.stream_processors.resilience.tracking.tracker_state import OpenEpisode


@dataclass(frozen=True, slots=True)
class BatchRows:
    """The accepted rows of a batch, episode by episode. Shape: (n,) each, signals (n, 8).

    Attributes:
        slot: position of the row's episode in the admission's slots.
        starts: first row of each episode present; `stops` the row after its last.
        missing: steps that never came before this one.
        signals: the vector x; its cycle time is NaN where unknown.
        progress_before, propositions_before: p and q that the step started from; the bins are those of the anchor.
        clock_reset: the producer's clock ran backwards here.
        judge: scores of goal, rationality and efficiency, NaN where there is none (n, 3).
    """

    slot: Ints
    starts: Ints
    stops: Ints
    step: Ints
    time_s: Floats
    clocked: Bools
    mode: Ints
    missing: Ints
    progress: Floats
    propositions: Floats
    violation: Floats
    signals: Floats
    progress_before: Floats
    propositions_before: Floats
    progress_bin: Ints
    residual_bin: Ints
    clock_reset: Bools
    judge: Floats


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """Those rows that a baseline exists for. `at` are their positions in the batch rows; shape (m,) each.

    `starts`/`stops` bound each slot's rows, by slot number (an empty range where it has none). `cell` is each row's in
    the baseline's cells, `excess` its z (m, 7).
    """

    at: Ints
    starts: Ints
    stops: Ints
    intensity: Intensity
    remaining: Floats
    lost: Floats
    terms: CostTerms
    cell: Ints
    excess: Floats


def batch_rows(table: StepTable, admission: Admission, baseline: MaterialisedBaseline) -> BatchRows:
    """Gather the accepted rows, with what stood before each step."""
    order, slot = admission.order, admission.slot
    starts = np.flatnonzero(run_begins(slot))
    episodes = [s.episode for s in admission.slots]

    def before(column: np.ndarray, remembered: list[float]) -> np.ndarray:
        shifted = one_back(column)
        shifted[starts] = np.array(remembered, dtype=column.dtype)[slot[starts]]
        return shifted

    step, time_s, clocked = table.step[order], table.time_s[order], table.clocked[order]
    progress, propositions = table.progress[order], table.propositions[order]
    progress_before = before(progress, [e.progress for e in episodes])
    propositions_before = before(propositions, [e.propositions for e in episodes])
    missing = step - before(step, [e.last_step for e in episodes]) - 1
    clocked_before = before(clocked, [e.last_clocked for e in episodes])
    time_before = before(time_s, [e.last_time_s for e in episodes])
    cycle_s, clock_reset = cycle_times(
        table.cycle_time_s[order], time_s, time_before, clocked & clocked_before & (missing == 0)
    )
    signals = np.empty((len(order), N_SIGNALS))
    columns = (
        table.planning_s[order],
        table.perception_s[order],
        table.travel[order],
        table.retries[order],
        progress - progress_before,
        propositions - propositions_before,
        table.risk[order],
        cycle_s,
    )
    for position, column in enumerate(columns):
        signals[:, position] = column
    return BatchRows(
        slot=slot,
        starts=starts,
        stops=np.append(starts, len(slot))[1:],
        step=step,
        time_s=time_s,
        clocked=clocked,
        mode=table.mode[order],
        missing=missing,
        progress=progress,
        propositions=propositions,
        violation=table.violation[order],
        signals=signals,
        progress_before=progress_before,
        propositions_before=propositions_before,
        progress_bin=baseline.grid.progress_bin(progress_before),
        residual_bin=baseline.grid.residual_bin(propositions_before),
        clock_reset=clock_reset,
        judge=np.column_stack([table.judge_goal, table.judge_rationality, table.judge_efficiency])[order],
    )


def score(rows: BatchRows, mode_names: list[str], admission: Admission, baseline: MaterialisedBaseline) -> ScoredRows:
    """Score every row whose family has a baseline.

    Lost cycles of a row compare it with the scored row before it in its episode; they are 0 at the first (ours).
    """
    episodes = [s.episode for s in admission.slots]
    families = list(dict.fromkeys(e.traits.family for e in episodes))
    number = {name: i for i, name in enumerate(families)}
    family = np.array([number[e.traits.family] for e in episodes], dtype=np.int64)[rows.slot]
    cell_of_row = baseline.rows_of(families, mode_names, family, rows.mode, (rows.progress_bin, rows.residual_bin))
    at = np.flatnonzero(cell_of_row >= 0)
    cell, slot, step = cell_of_row[at], rows.slot[at], rows.step[at]
    signals = rows.signals[at]
    z = excess(signals, cell, baseline.cells)
    level = intensity(z, cell, baseline.cells)
    remaining = remaining_work(rows.progress_before[at], cell, baseline.cells)
    numbers = np.arange(len(episodes))
    starts, stops = np.searchsorted(slot, numbers, "left"), np.searchsorted(slot, numbers, "right")
    begun = starts[starts < stops]
    step_before, remaining_before = one_back(step), one_back(remaining)
    remembered = np.array([episodes[i].scored is not None for i in slot[begun].tolist()], dtype=bool)
    resumed = begun[remembered]
    step_before[resumed], remaining_before[resumed] = _where_left([episodes[i] for i in slot[resumed]], baseline)
    lost = (step - step_before) + remaining - remaining_before
    lost[begun[~remembered]] = 0.0
    terms = cost_terms(signals[:, -1], level, cell, baseline.cells)
    return ScoredRows(at, starts, stops, level, remaining, lost, terms, cell, z)


def _where_left(episodes: list[OpenEpisode], baseline: MaterialisedBaseline) -> tuple[Ints, Floats]:
    """Step and remaining work of each episode's last scored step, by the baseline of now.

    While baselines are learned live they change in mid-episode. Work left by an old one, compared with work left by a
    new one, would look like cycles lost or won.
    """
    last = [(e.traits.family, e.scored) for e in episodes if e.scored is not None]
    families = {name: i for i, name in enumerate(dict.fromkeys(family for family, _ in last))}
    modes = {name: i for i, name in enumerate(dict.fromkeys(step.mode for _, step in last))}
    family = np.array([families[name] for name, _ in last], dtype=np.int64)
    mode = np.array([modes[step.mode] for _, step in last], dtype=np.int64)
    progress = np.array([step.progress_before for _, step in last])
    propositions = np.array([step.propositions_before for _, step in last])
    bins = baseline.grid.progress_bin(progress), baseline.grid.residual_bin(propositions)
    rows = baseline.rows_of(list(families), list(modes), family, mode, bins)
    steps = np.array([step.step for _, step in last], dtype=np.int64)
    return steps, remaining_work(progress, rows, baseline.cells)


def walk_rows(rows: BatchRows, scored: ScoredRows, mode_names: list[str], config: WindowConfig) -> WalkRows:
    """The scored rows as the plain lists that the walk reads."""
    effort_gain, delay_gain = config.increments(scored.intensity.total, scored.lost)
    at, terms = scored.at, scored.terms
    return WalkRows(
        step=rows.step[at].tolist(),
        time_s=rows.time_s[at].tolist(),
        mode=[mode_names[code] for code in rows.mode[at].tolist()],
        progress_bin=rows.progress_bin[at].tolist(),
        residual_bin=rows.residual_bin[at].tolist(),
        work=scored.remaining.tolist(),
        intensity=scored.intensity.total.tolist(),
        lost=scored.lost.tolist(),
        effort_gain=effort_gain.tolist(),
        delay_gain=delay_gain.tolist(),
        total=terms.total.tolist(),
        cognitive=terms.cognitive.tolist(),
        physical=terms.physical.tolist(),
        debt=terms.debt.tolist(),
        seconds=terms.seconds.tolist(),
    )
