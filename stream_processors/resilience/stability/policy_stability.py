"""Policy stability: temporal-difference residuals, advantages, and the loss l(pi, z) (equations 4 and 5).

A step's reward needs the state that it led to, and its advantage the steps after it. So steps wait here, fewer than
`lag` of them in an episode, until what they need is known. Unscored steps have no reward and are passed over.

All slots of a batch are worked on together, and every sum goes step by step: where batches are cut changes no bit.
"""

from typing import NamedTuple

import numpy as np

from springback.stream_processors.resilience.anchor import Bools, Floats, Ints
from springback.stream_processors.resilience.baseline.estimates import MaterialisedBaseline
from springback.stream_processors.resilience.baseline.moments import Moments
from springback.stream_processors.resilience.baseline.stage_baseline import (
    N_STABILITY,
    CellKey,
    PolicySums,
    merge_policy,
)
from springback.stream_processors.resilience.columns import SlotRows, join_by_slot, run_begins
from springback.stream_processors.resilience.stability.advantage import exact_advantages, lagged_advantages
from springback.stream_processors.resilience.stability.stability_state import (
    WAITING_COLUMNS,
    LastStep,
    StabilityConfig,
    StabilityState,
)
from springback.stream_processors.resilience.stability.value_function import (
    ValuedRows,
    ValueModel,
    shaped_rewards,
    value_rows,
)
from springback.stream_processors.resilience.tracking.admission import Admission, Slot
from springback.stream_processors.resilience.tracking.scoring import BatchRows, ScoredRows

_JUDGED, _POTENTIAL, _VALUE, _SPREAD = range(4)
_PLACE = slice(4, 7)
"""Mode (a position in the state's modes) and bins of a step, behind the four above."""
_STEP_COLUMNS = 7


class KnownSteps(NamedTuple):
    """Steps whose advantage is known. Shape: counts one per slot, vector (k, 3) is x^stab, place (k, 3) their cells."""

    counts: Ints
    vector: Floats
    place: Ints


def advance_stability(
    rows: BatchRows,
    scored: ScoredRows,
    mode_names: list[str],
    admission: Admission,
    baseline: MaterialisedBaseline,
    model: ValueModel,
    config: StabilityConfig,
) -> None:
    """Bring every episode's stability up to the end of the batch, or to its own end. Mutates the states.

    An aborted episode's last steps never get an advantage: their end was not seen.
    """
    valued = value_rows(rows, scored, mode_names, admission, baseline, model, config)
    come = (scored.stops - scored.starts).tolist()
    numbers = [
        number
        for number, slot in enumerate(admission.slots)
        if come[number] or (_ended(slot) and slot.episode.stability.last is not None)
    ]
    if not numbers:
        return
    slots = [admission.slots[number] for number in numbers]
    ended = np.array([_ended(slot) for slot in slots], dtype=bool)
    steps = _steps(valued, np.array([come[number] for number in numbers]), slots, mode_names)
    waiting = _complete(steps, slots, ended, config)
    known = _let_go(waiting, slots, ended, config)
    _take_known(known, slots, baseline)
    for slot in slots:
        slot.episode.stability.forget_modes()


def _ended(slot: Slot) -> bool:
    return slot.outcome not in (None, "aborted")


def _steps(valued: ValuedRows, come: Ints, slots: list[Slot], mode_names: list[str]) -> SlotRows:
    """Each slot's step that still waited for a next one, and its rows of this batch. Shape: rows (n, 7)."""
    states = [slot.episode.stability for slot in slots]
    lasts = [state.last for state in states]
    earlier = [(s.judged, s.potential, s.value, s.spread, s.mode, s.progress_bin, s.residual_bin) for s in lasts if s]
    later: Floats = np.column_stack(valued).astype(np.float64, copy=False)
    later[:, _PLACE.start] = _positions(valued.mode, np.repeat(np.arange(len(slots)), come), states, mode_names)
    n_earlier = np.array([last is not None for last in lasts], dtype=np.int64)
    return join_by_slot(np.array(earlier).reshape(-1, _STEP_COLUMNS), n_earlier, later, come)


def _positions(mode: Ints, slot: Ints, states: list[StabilityState], mode_names: list[str]) -> Ints:
    """Where each row's mode stands in the modes of its slot's state, which learns those it does not know."""
    begins = run_begins(slot) | run_begins(mode)
    found = [
        states[number].mode_number(mode_names[code])
        for number, code in zip(slot[begins].tolist(), mode[begins].tolist(), strict=True)
    ]
    return np.repeat(np.array(found, dtype=np.int64), np.diff([*np.flatnonzero(begins), len(mode)]))


def _complete(steps: SlotRows, slots: list[Slot], ended: Bools, config: StabilityConfig) -> SlotRows:
    """Residuals of the steps that now have a next one, or an end, behind those whose advantage is not known yet.

    Returns:
        Rows (delta, spread, mode, b^p, b^q) by slot.
    """
    table, last = steps.rows, steps.stops - 1
    success = np.array([slot.outcome == "success" for slot in slots], dtype=bool)
    reward = shaped_rewards(table[:, _JUDGED], table[:, _POTENTIAL], last, success, config)
    value_after = np.append(table[1:, _VALUE], 0.0)
    value_after[last] = 0.0  # nothing is to be had after any end
    residual = reward + config.discount * value_after - table[:, _VALUE]
    complete = np.ones(len(table), dtype=bool)
    complete[last] = ended
    n_complete = np.add.reduceat(complete, steps.starts, dtype=np.int64)
    has_value = complete & ~np.isnan(residual)
    fresh = np.add.reduceat(has_value, steps.starts, dtype=np.int64)
    fields = zip(slots, ended.tolist(), steps.starts.tolist(), n_complete.tolist(), table[last].tolist(), strict=True)
    for slot, is_over, start, count, step in fields:
        state, learning = slot.episode.stability, slot.episode.learning
        state.last = None if is_over else LastStep(*step[:4], *map(int, step[_PLACE]))
        if learning is not None and count:
            own = slice(start, start + count)
            learning.returns.add(_cells(state, table[own, _PLACE].astype(np.int64)), reward[own], config.discount)
    for number in np.flatnonzero(fresh < n_complete).tolist():
        slots[number].episode.stability.whole = False
    stored = [slot.episode.stability.waiting for slot in slots]
    n_stored = np.array([len(rows) for rows in stored]) // (8 * WAITING_COLUMNS)
    earlier = np.frombuffer(b"".join(stored), dtype="<f8").reshape(-1, WAITING_COLUMNS)
    later = np.column_stack([residual, table[:, _SPREAD], table[:, _PLACE]])[has_value]
    return join_by_slot(earlier, n_stored, later, fresh)


def _let_go(waiting: SlotRows, slots: list[Slot], ended: Bools, config: StabilityConfig) -> KnownSteps:
    """The steps whose advantage is known; the others stay in the states."""
    residual, counts = waiting.rows[:, 0], waiting.stops - waiting.starts
    lagged = np.maximum(0, counts - config.lag + 1) if config.lag else np.zeros(len(slots), dtype=np.int64)
    n_known = np.where(ended, counts, lagged)
    is_known = waiting.since_start < np.repeat(n_known, counts)
    advantage = np.zeros(len(residual))
    at = np.flatnonzero(waiting.since_start < np.repeat(lagged, counts))
    advantage[at] = lagged_advantages(residual, at, config.decay, config.lag)
    for number in np.flatnonzero(ended).tolist():
        tail = slice(int(waiting.starts[number] + lagged[number]), int(waiting.stops[number]))
        advantage[tail] = exact_advantages(residual[tail], config.decay)
    rest = (waiting.starts + n_known).tolist()
    for slot, start, stop in zip(slots, rest, waiting.stops.tolist(), strict=True):
        slot.episode.stability.waiting = waiting.rows[start:stop].tobytes()
    vector = np.column_stack([np.abs(residual), np.abs(advantage), waiting.rows[:, 1]])
    return KnownSteps(n_known, vector[is_known], waiting.rows[is_known, 2:].astype(np.int64))


def _take_known(known: KnownSteps, slots: list[Slot], baseline: MaterialisedBaseline) -> None:
    """Distances of all known steps at once, and what reference episodes learn of them."""
    if not len(known.vector):
        return
    squared = np.zeros(len(known.vector))
    cell = _rows_of(known, slots, baseline)
    here = np.flatnonzero(cell >= 0)
    inverse, vector = baseline.cells.inverse_stability[cell[here]], known.vector[here]
    for i in range(N_STABILITY):
        for j in range(N_STABILITY):
            squared[here] += inverse[:, i, j] * vector[:, i] * vector[:, j]
    distance = np.sqrt(np.maximum(squared, 0.0)).tolist()
    stops = np.cumsum(known.counts).tolist()
    for slot, stop, count in zip(slots, stops, known.counts.tolist(), strict=True):
        if not count:
            continue
        state, learning = slot.episode.stability, slot.episode.learning
        own = slice(stop - count, stop)
        family = baseline.families.get(slot.episode.traits.family)
        if family is not None and family.stable:
            state.add_distances(distance[own])
        if learning is not None:
            sums = PolicySums(np.zeros((count, 2)), Moments.of_samples(known.vector[own]))
            learning.policy.update(merge_policy(learning.policy, _cells(state, known.place[own]), sums.packed()))


def _rows_of(known: KnownSteps, slots: list[Slot], baseline: MaterialisedBaseline) -> Ints:
    """Row of each known step's cell; -1 where the family's baseline is gone since the step was scored."""
    names: dict[str, int] = {}
    modes = [[names.setdefault(name, len(names)) for name in slot.episode.stability.modes] for slot in slots]
    before = np.cumsum([0, *(len(own) for own in modes[:-1])])
    mode = np.array([code for own in modes for code in own])[np.repeat(before, known.counts) + known.place[:, 0]]
    families = {name: i for i, name in enumerate(dict.fromkeys(slot.episode.traits.family for slot in slots))}
    family = np.repeat([families[slot.episode.traits.family] for slot in slots], known.counts)
    return baseline.rows_of(list(families), list(names), family, mode, (known.place[:, 1], known.place[:, 2]))


def _cells(state: StabilityState, places: Ints) -> list[CellKey]:
    return [(state.modes[mode], progress_bin, residual_bin) for mode, progress_bin, residual_bin in places.tolist()]
