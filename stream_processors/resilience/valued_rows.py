"""The scored rows of a batch as policy stability reads them: what a judge thinks of each, its potential and value."""

from typing import NamedTuple

import numpy as np
from springback.stream_processors.resilience.admission import Admission
from springback.stream_processors.resilience.batch_scoring import BatchRows, ScoredRows
from springback.stream_processors.resilience.materialised_baseline import MaterialisedBaseline
from springback.stream_processors.resilience.policy_state import StabilityConfig, StabilityState
from springback.stream_processors.resilience.recovery_cost import remaining_work
from springback.stream_processors.resilience.runs import join_by_slot
from springback.stream_processors.resilience.shaped_reward import judged
from springback.stream_processors.resilience.signals import Floats, Ints
from springback.stream_processors.resilience.value_model import StateFeatures, ValueModel


class ValuedRows(NamedTuple):
    """What stability needs of a batch's scored rows. Shape: (m,) each; `value` and `spread` are NaN without a value."""

    judged: Floats
    potential: Floats
    value: Floats
    spread: Floats
    mode: Ints
    progress_bin: Ints
    residual_bin: Ints


def value_rows(
    rows: BatchRows,
    scored: ScoredRows,
    mode_names: list[str],
    admission: Admission,
    baseline: MaterialisedBaseline,
    model: ValueModel,
    config: StabilityConfig,
) -> ValuedRows:
    """Judge, potential and value of each scored row. Gives episodes that begin here their initial work."""
    at, states = scored.at, [slot.episode.stability for slot in admission.slots]
    features = state_features(rows, scored, mode_names, admission)
    _begin(features, scored, states, baseline)
    initial = np.array([state.initial_work or 1.0 for state in states])
    value = model.values(features)
    return ValuedRows(
        judged(rows.judge[at], rows.signals[at], rows.violation[at], scored.cell, baseline.cells),
        -scored.remaining / initial[rows.slot[at]],
        value,
        _spread(value, rows.slot[at], states, config.spread_steps),
        rows.mode[at],
        rows.progress_bin[at],
        rows.residual_bin[at],
    )


def state_features(rows: BatchRows, scored: ScoredRows, mode_names: list[str], admission: Admission) -> StateFeatures:
    """The scored rows' states as a value model sees them."""
    at = scored.at
    families = list(dict.fromkeys(slot.episode.traits.family for slot in admission.slots))
    number = {name: i for i, name in enumerate(families)}
    family = np.array([number[slot.episode.traits.family] for slot in admission.slots], dtype=np.int64)
    return StateFeatures(
        families,
        mode_names,
        family[rows.slot[at]],
        rows.mode[at],
        rows.progress_before[at],
        rows.propositions_before[at],
        scored.excess,
        scored.cell,
    )


def _begin(
    features: StateFeatures, scored: ScoredRows, states: list[StabilityState], baseline: MaterialisedBaseline
) -> None:
    """W*_rem(a_0, 0) of the episodes whose first scored row is here: the anchor of its mode with nothing done yet."""
    present = np.flatnonzero(scored.starts < scored.stops).tolist()
    begun = [number for number in present if not states[number].initial_work]
    if not begun:
        return
    first, nothing = scored.starts[begun], np.zeros(len(begun))
    bins = baseline.grid.progress_bin(nothing), baseline.grid.residual_bin(nothing)
    cell = baseline.rows_of(features.families, features.modes, features.family[first], features.mode[first], bins)
    for number, work in zip(begun, remaining_work(nothing, cell, baseline.cells).tolist(), strict=True):
        states[number].initial_work = work


def _spread(value: Floats, slot: Ints, states: list[StabilityState], steps: int) -> Floats:
    """Population variance of V over the last `steps` values of the episode, the row's own included. Shape: (m,).

    Steps without a value are passed over. Values of earlier batches come from the states, which are brought up to date.
    """
    valued = np.flatnonzero(~np.isnan(value))
    spread = np.full(len(value), np.nan)
    if not len(valued):
        return spread
    fresh = np.bincount(slot[valued], minlength=len(states))
    remembered = [state.values if new else [] for state, new in zip(states, fresh.tolist(), strict=True)]
    earlier = np.array([v for values in remembered for v in values])
    history = join_by_slot(earlier, np.array([len(values) for values in remembered]), value[valued], fresh)
    place, here = history.later, history.since_start[history.later]
    spread[valued] = _window_variance(history.rows, place, np.minimum(here + 1, steps), steps)
    every, kept = history.rows.tolist(), steps - 1
    for number in np.flatnonzero(fresh).tolist():
        start, stop = int(history.starts[number]), int(history.stops[number])
        states[number].values = every[max(start, stop - kept) : stop]
    return spread


def _window_variance(values: Floats, place: Ints, width: Ints, widest: int) -> Floats:
    """Population variance of the `width` values that end at each place, added up in one order. Shape: (k,)."""
    there = [width > back for back in range(widest)]
    windows = [values[np.where(inside, place - back, place)] for back, inside in enumerate(there)]
    total, squares = np.zeros(len(place)), np.zeros(len(place))
    for window, inside in zip(windows, there, strict=True):
        total += np.where(inside, window, 0.0)
    mean = total / width
    for window, inside in zip(windows, there, strict=True):
        squares += np.where(inside, (window - mean) ** 2, 0.0)
    return squares / width
