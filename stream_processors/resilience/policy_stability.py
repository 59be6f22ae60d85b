"""Policy stability: temporal-difference residuals, advantages, and the loss l(pi, z) (equations 4 and 5).

A step's reward needs the state that it led to, and its advantage the steps after it. So steps wait here, at most `lag`
of them in an episode, until what they need is known. Unscored steps have no reward and are passed over.
"""

from typing import NamedTuple

import numpy as np

from stream_processors.resilience.admission import Admission, Slot
from stream_processors.resilience.advantage import exact_advantages, lagged_advantages
from stream_processors.resilience.batch_scoring import BatchRows, ScoredRows
from stream_processors.resilience.materialised_baseline import MaterialisedBaseline
from stream_processors.resilience.policy_state import LastStep, StabilityConfig, StabilityState
from stream_processors.resilience.policy_sums import N_STABILITY, PolicySums, merge_policy
from stream_processors.resilience.recovery_cost import remaining_work
from stream_processors.resilience.running_moments import Moments
from stream_processors.resilience.shaped_reward import judged
from stream_processors.resilience.signals import Floats, Ints
from stream_processors.resilience.stage_baseline import CellKey
from stream_processors.resilience.value_model import StateFeatures, ValueModel

_WAITING_COLUMNS = 5


class ValuedRows(NamedTuple):
    """The scored rows of a batch with what stability needs of them (m,) each; `modes` are mode names."""

    judged: Floats
    potential: Floats
    value: Floats
    spread: Floats
    mode: Ints
    progress_bin: Ints
    residual_bin: Ints
    modes: list[str]


class KnownSteps(NamedTuple):
    """Steps of one episode whose advantage is known. Shape: vector (k, 3) is x^stab, places are their cells."""

    slot: int
    vector: Floats
    mode: Ints
    progress_bin: Ints
    residual_bin: Ints


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
    known = []
    for number, slot in enumerate(admission.slots):
        start, stop = int(scored.starts[number]), int(scored.stops[number])
        ended = slot.outcome not in (None, "aborted")
        if start < stop or (ended and slot.episode.stability.last is not None):
            known.append(_advance_episode(number, slot, valued, start, stop, ended, config))
    _take_known([steps for steps in known if len(steps.vector)], admission, baseline)


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
    _begin(rows, scored, mode_names, admission, baseline)
    slot = rows.slot[at]
    initial = np.array([state.initial_work or 1.0 for state in states])
    value = model.values(state_features(rows, scored, mode_names, admission))
    return ValuedRows(
        judged(rows.judge[at], rows.signals[at], rows.violation[at], scored.cell, baseline.cells),
        -scored.remaining / initial[slot],
        value,
        _spread(value, scored, states, config.spread_steps),
        rows.mode[at],
        rows.progress_bin[at],
        rows.residual_bin[at],
        mode_names,
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
    rows: BatchRows, scored: ScoredRows, mode_names: list[str], admission: Admission, baseline: MaterialisedBaseline
) -> None:
    """W*_rem(a_0, 0) of the episodes whose first scored row is here: the anchor of its mode with nothing done yet."""
    for number, slot in enumerate(admission.slots):
        start, state = int(scored.starts[number]), slot.episode.stability
        if start < int(scored.stops[number]) and not state.initial_work:
            index = baseline.families[slot.episode.traits.family]
            mode = index.modes.get(mode_names[rows.mode[scored.at[start]]], len(index.modes))
            nothing = np.zeros(1)
            bins = baseline.grid.progress_bin(nothing)[0], baseline.grid.residual_bin(nothing)[0]
            cell = index.rows[mode, bins[0], bins[1]]
            state.initial_work = float(remaining_work(nothing, np.array([cell]), baseline.cells)[0])


def _spread(value: Floats, scored: ScoredRows, states: list[StabilityState], steps: int) -> Floats:
    """Population variance of V over the last `steps` values of the episode, the row's own included. Shape: (m,).

    Values of earlier batches come from the states, which are brought up to date.
    """
    kept = steps - 1
    spread = np.empty(len(value))
    for start, stop, state in zip(scored.starts.tolist(), scored.stops.tolist(), states, strict=True):
        if start == stop:
            continue
        history = np.array([*[np.nan] * (kept - len(state.values)), *state.values, *value[start:stop].tolist()])
        windows = np.lib.stride_tricks.sliding_window_view(history, steps)
        there = ~np.isnan(windows)
        count = np.maximum(there.sum(axis=1), 1)
        mean = np.where(there, windows, 0.0).sum(axis=1) / count
        spread[start:stop] = np.where(there, (windows - mean[:, None]) ** 2, 0.0).sum(axis=1) / count
        state.values = [v for v in history[-kept:].tolist() if v == v] if kept else []
    return spread


def _advance_episode(
    number: int, slot: Slot, valued: ValuedRows, start: int, stop: int, ended: bool, config: StabilityConfig
) -> KnownSteps:
    """Complete the steps that now have a next one, or an end, and let go of those whose advantage is known."""
    episode, state = slot.episode, slot.episode.stability
    codes = valued.mode[start:stop].tolist()
    own_mode = {code: state.mode_number(valued.modes[code]) for code in dict.fromkeys(codes)}
    steps = [] if state.last is None else [state.last]
    steps += [
        LastStep(judge, potential, value, spread, own_mode[code], p, q)
        for judge, potential, value, spread, code, p, q in zip(
            *(column[start:stop].tolist() for column in valued[:-1]), strict=True
        )
    ]
    state.last = None if ended else steps[-1]
    table = np.array([(s.judged, s.potential, s.value) for s in steps])
    complete = len(steps) if ended else len(steps) - 1
    reward = shaped_rewards(table[:, 0], table[:, 1], slot.outcome == "success", config)[:complete]
    value_after = np.append(table[1:, 2], 0.0)  # nothing is to be had after any end
    residual = reward + (config.discount * value_after - table[:, 2])[:complete]
    if episode.learning is not None and complete:
        places: list[CellKey] = [(state.modes[s.mode], s.progress_bin, s.residual_bin) for s in steps[:complete]]
        episode.learning.returns.add(places, reward, config.discount)
    has_value = ~np.isnan(residual)
    state.whole = state.whole and bool(has_value.all())
    fresh = np.array(
        [(d, s.spread, s.mode, s.progress_bin, s.residual_bin) for d, s in zip(residual, steps, strict=False)]
    ).reshape(-1, _WAITING_COLUMNS)[has_value]
    waiting = np.concatenate([np.frombuffer(state.waiting).reshape(-1, _WAITING_COLUMNS), fresh])
    advantage = _known_advantages(waiting[:, 0], ended, config)
    known, rest = waiting[: len(advantage)], waiting[len(advantage) :]
    state.waiting = rest.tobytes()
    vector = np.column_stack([np.abs(known[:, 0]), np.abs(advantage), known[:, 1]])
    places_known = known[:, 2:].astype(np.int64)
    return KnownSteps(number, vector, places_known[:, 0], places_known[:, 1], places_known[:, 2])


def shaped_rewards(judge: Floats, potential: Floats, success: bool, config: StabilityConfig) -> Floats:
    """r~ of consecutive scored steps of an episode, the last of them as if it were the episode's. Shape: (n,) each.

    The potential after a success is 0; after any other end it is that of the last step.
    """
    after = np.append(potential[1:], 0.0 if success else potential[-1])
    return judge + config.shaping * (config.discount * after - potential)


def _known_advantages(residual: Floats, ended: bool, config: StabilityConfig) -> Floats:
    lagged = lagged_advantages(residual, config.decay, config.lag) if config.lag else np.zeros(0)
    if not ended:
        return lagged
    return np.concatenate([lagged, exact_advantages(residual[len(lagged) :], config.decay)])


def _take_known(known: list[KnownSteps], admission: Admission, baseline: MaterialisedBaseline) -> None:
    """Distances of all known steps at once, and what reference episodes learn of them."""
    if not known:
        return
    slots = [admission.slots[steps.slot] for steps in known]
    names = {name: i for i, name in enumerate(dict.fromkeys(m for s in slots for m in s.episode.stability.modes))}
    families = {name: i for i, name in enumerate(dict.fromkeys(s.episode.traits.family for s in slots))}
    counts = [len(steps.vector) for steps in known]
    family = np.repeat([families[s.episode.traits.family] for s in slots], counts)
    mode = np.concatenate(
        [np.array([names[m] for m in s.episode.stability.modes])[k.mode] for s, k in zip(slots, known, strict=True)]
    )
    bins = np.concatenate([k.progress_bin for k in known]), np.concatenate([k.residual_bin for k in known])
    cell = baseline.rows_of(list(families), list(names), family, mode, bins)
    vector = np.concatenate([k.vector for k in known])
    inverse = baseline.cells.inverse_stability[cell]
    squared = np.zeros(len(vector))
    for i in range(N_STABILITY):
        for j in range(N_STABILITY):
            squared += inverse[:, i, j] * vector[:, i] * vector[:, j]
    distance = np.sqrt(np.maximum(squared, 0.0))
    begin = 0
    for slot, steps, count in zip(slots, known, counts, strict=True):
        episode = slot.episode
        if baseline.families[episode.traits.family].stable:
            episode.stability.add_distances(distance[begin : begin + count])
        if episode.learning is not None:
            places: list[CellKey] = [
                (episode.stability.modes[m], p, q)
                for m, p, q in zip(
                    steps.mode.tolist(), steps.progress_bin.tolist(), steps.residual_bin.tolist(), strict=True
                )
            ]
            sums = PolicySums(np.zeros((count, 2)), Moments.of_samples(steps.vector))
            episode.learning.policy.update(merge_policy(episode.learning.policy, places, sums.packed()))
        begin += count
