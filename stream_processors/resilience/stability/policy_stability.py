"""Policy stability: temporal-difference residuals, advantages, and the loss l(pi, z) (equations 4 and 5).

A step's reward needs the state that it led to, and its advantage the steps after it. So steps wait here, fewer than
`lag` of them in an episode, until what they need is known. Unscored steps have no reward and are passed over.

All episodes of a batch are worked on together, and every sum goes step by step: where batches are cut changes no bit.
"""

from typing import NamedTuple

import numpy as np

from springback.stream_processors.resilience.anchor import Bools, Floats, Ints
from springback.stream_processors.resilience.baseline.estimates import MaterialisedBaseline
from springback.stream_processors.resilience.baseline.moments import sums_in_order
from springback.stream_processors.resilience.baseline.stage_baseline import (
    N_STABILITY,
    CellKey,
)
from springback.stream_processors.resilience.columns import EpisodeRows, join_by_episode, run_begins
from springback.stream_processors.resilience.stability.advantage import exact_advantages, lagged_advantages
from springback.stream_processors.resilience.stability.stability_state import (
    MOST_RETURN_CELLS,
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
from springback.stream_processors.resilience.tracking.batch import Batch, TouchedEpisode
from springback.stream_processors.resilience.tracking.scoring import ScoredBatch

_JUDGED, _POTENTIAL, _VALUE, _SPREAD = range(4)
_PLACE = slice(4, 7)
"""Mode (a position in the state's modes) and bins of a step, behind the four above."""
_STEP_COLUMNS = 7


class KnownSteps(NamedTuple):
    """Steps whose advantage is known.

    Shape: counts one per episode, vector (k, 3) is x^stab, place (k, 3) their cells.
    """

    counts: Ints
    vector: Floats
    place: Ints


def advance_stability(
    scored: ScoredBatch, baseline: MaterialisedBaseline, model: ValueModel, config: StabilityConfig
) -> None:
    """Brings every episode's stability up to the end of the batch, or to its own end. Mutates the states.

    An aborted episode's last steps never get an advantage: their end was not seen.
    """
    rows, valued = scored.rows, value_rows(scored, baseline, model, config)
    n_rows = rows.stops - rows.starts
    places = np.array(
        [
            place
            for place, (episode, count) in enumerate(zip(rows.episodes, n_rows.tolist(), strict=True))
            if count or (episode.ended and episode.state.stability.last is not None)
        ],
        dtype=np.int64,
    )
    if not len(places):
        return
    episodes = [rows.episodes[place] for place in places.tolist()]
    ended = np.array([episode.ended for episode in episodes], dtype=bool)
    steps = _steps(rows, valued, n_rows[places], episodes)
    waiting = _complete(steps, episodes, ended, config)
    known = _let_go(waiting, episodes, ended, config)
    _take_known(known, episodes, rows.families, rows.family_of[places], baseline)
    for episode in episodes:
        episode.state.stability.forget_modes()


def _steps(rows: Batch, valued: ValuedRows, n_rows: Ints, episodes: list[TouchedEpisode]) -> EpisodeRows:
    """Each episode's step that still waited for a next one, and its rows of this batch. Shape: rows (n, 7)."""
    states = [episode.state.stability for episode in episodes]
    lasts = [state.last for state in states]
    earlier = [(s.judged, s.potential, s.value, s.spread, s.mode, s.progress_bin, s.residual_bin) for s in lasts if s]
    mode = _positions(rows.mode, np.repeat(np.arange(len(episodes)), n_rows), states, rows.mode_names)
    later: Floats = np.column_stack([*valued, mode, rows.progress_bin, rows.residual_bin])
    n_earlier = np.array([last is not None for last in lasts], dtype=np.int64)
    return join_by_episode(np.array(earlier).reshape(-1, _STEP_COLUMNS), n_earlier, later, n_rows)


def _positions(mode: Ints, place: Ints, states: list[StabilityState], mode_names: list[str]) -> Ints:
    """Where each row's mode stands in the modes of its episode's state, which learns those it does not know."""
    begins = run_begins(place) | run_begins(mode)
    # By a mapping, since a frame may bring more modes than can be searched for one by one.
    positions: dict[int, dict[str, int]] = {}
    found: list[int] = []
    for number, code in zip(place[begins].tolist(), mode[begins].tolist(), strict=True):
        modes, name = states[number].modes, mode_names[code]
        known = positions.get(number)
        if known is None:
            known = positions[number] = {each: position for position, each in enumerate(modes)}
        position = known.setdefault(name, len(modes))
        if position == len(modes):
            modes.append(name)
        found.append(position)
    return np.repeat(np.array(found, dtype=np.int64), np.diff([*np.flatnonzero(begins), len(mode)]))


def _complete(steps: EpisodeRows, episodes: list[TouchedEpisode], ended: Bools, config: StabilityConfig) -> EpisodeRows:
    """Residuals of the steps that now have a next one, or an end, behind those whose advantage is not known yet.

    Returns:
        rows (delta, spread, mode, b^p, b^q) by episode.
    """
    table, last = steps.rows, steps.stops - 1
    success = np.array([episode.outcome == "success" for episode in episodes], dtype=bool)
    reward = shaped_rewards(table[:, _JUDGED], table[:, _POTENTIAL], last, success, config)
    value_after = np.append(table[1:, _VALUE], 0.0)
    value_after[last] = 0.0  # the value after any end
    residual = reward + config.discount * value_after - table[:, _VALUE]
    complete = np.ones(len(table), dtype=bool)
    complete[last] = ended
    n_complete = np.add.reduceat(complete, steps.starts, dtype=np.int64)
    has_value = complete & ~np.isnan(residual)
    fresh = np.add.reduceat(has_value, steps.starts, dtype=np.int64)
    starts, counts = steps.starts.tolist(), n_complete.tolist()
    fields = zip(episodes, ended.tolist(), starts, counts, table[last].tolist(), strict=True)
    for episode, is_over, start, count, step in fields:
        state, learning = episode.state.stability, episode.state.learning
        state.last = None if is_over else LastStep(*step[:4], *map(int, step[_PLACE]))
        if learning is not None and count:
            own = slice(start, start + count)
            cells = _cells(state, table[own, _PLACE].astype(np.int64))
            if len({*learning.returns.cells, *cells}) > MOST_RETURN_CELLS:
                episode.state.learning = None
                continue
            learning.returns.add(cells, reward[own], config.discount)
    for number in np.flatnonzero(fresh < n_complete).tolist():
        episodes[number].state.stability.whole = False
    stored = [episode.state.stability.waiting for episode in episodes]
    n_stored = np.array([len(rows) for rows in stored]) // (8 * WAITING_COLUMNS)
    earlier = np.frombuffer(b"".join(stored), dtype="<f8").reshape(-1, WAITING_COLUMNS)
    later = np.column_stack([residual, table[:, _SPREAD], table[:, _PLACE]])[has_value]
    return join_by_episode(earlier, n_stored, later, fresh)


def _let_go(waiting: EpisodeRows, episodes: list[TouchedEpisode], ended: Bools, config: StabilityConfig) -> KnownSteps:
    """The steps whose advantage is known; the others stay in the states."""
    residual, counts = waiting.rows[:, 0], waiting.stops - waiting.starts
    lagged = np.maximum(0, counts - config.lag + 1) if config.lag else np.zeros(len(episodes), dtype=np.int64)
    n_known = np.where(ended, counts, lagged)
    is_known = waiting.since_start < np.repeat(n_known, counts)
    advantage = np.zeros(len(residual))
    at = np.flatnonzero(waiting.since_start < np.repeat(lagged, counts))
    advantage[at] = lagged_advantages(residual, at, config.decay, config.lag)
    for number in np.flatnonzero(ended).tolist():
        tail = slice(int(waiting.starts[number] + lagged[number]), int(waiting.stops[number]))
        advantage[tail] = exact_advantages(residual[tail], config.decay)
    rest = (waiting.starts + n_known).tolist()
    for episode, start, stop in zip(episodes, rest, waiting.stops.tolist(), strict=True):
        episode.state.stability.waiting = waiting.rows[start:stop].tobytes()
    vector = np.column_stack([np.abs(residual), np.abs(advantage), waiting.rows[:, 1]])
    return KnownSteps(n_known, vector[is_known], waiting.rows[is_known, 2:].astype(np.int64))


def _take_known(
    known: KnownSteps,
    episodes: list[TouchedEpisode],
    families: list[str],
    family_of: Ints,
    baseline: MaterialisedBaseline,
) -> None:
    """Distances of all known steps at once, and what reference episodes learn of them."""
    if not len(known.vector):
        return
    # -1 where the family's baseline is gone since the step was scored.
    mode, mode_names = _common_modes(known, episodes)
    bins = known.place[:, 1], known.place[:, 2]
    cell = baseline.rows_of(families, mode_names, np.repeat(family_of, known.counts), mode, bins)
    here = np.flatnonzero(cell >= 0)
    distance = np.zeros(len(known.vector))
    distance[here] = distances(known.vector[here], baseline.cells.inverse_stability[cell[here]])
    stops = np.cumsum(known.counts).tolist()
    for episode, stop, count in zip(episodes, stops, known.counts.tolist(), strict=True):
        if not count:
            continue
        state, learning = episode.state.stability, episode.state.learning
        own = slice(stop - count, stop)
        family = baseline.families.get(episode.state.traits.family)
        if family is not None and family.stable:
            state.add_distances(distance[own].tolist())
        if learning is not None:
            cells = _cells(state, known.place[own])
            learning.policy.update(sums_in_order(learning.policy, cells, known.vector[own]))


def distances(vector: Floats, inverse: Floats) -> Floats:
    """The terms of equation 5: sqrt(x' (Sigma + eta I)^-1 x) of each step. Shape: x^stab (k, 3), inverse (k, 3, 3).

    A residual of 3 and an advantage of 4, where clean runs vary by 1 in each, are 5 away from calm; where they vary by
    2 in each, so that the inverse is a quarter of that, they are half as far:

    >>> distances(np.array([[3.0, 4.0, 0.0]] * 2), np.array([np.eye(3), np.eye(3) / 4])).tolist()
    [5.0, 2.5]
    """
    squared = np.zeros(len(vector))
    for i in range(N_STABILITY):
        for j in range(N_STABILITY):
            squared += inverse[:, i, j] * vector[:, i] * vector[:, j]
    return np.sqrt(np.maximum(squared, 0.0))


def _common_modes(known: KnownSteps, episodes: list[TouchedEpisode]) -> tuple[Ints, list[str]]:
    """Each known step's mode as a position in one list of names; in `known` it is one in its own state's modes."""
    number: dict[str, int] = {}
    modes = [[number.setdefault(name, len(number)) for name in episode.state.stability.modes] for episode in episodes]
    before = np.cumsum([0, *(len(own) for own in modes[:-1])])
    codes = np.array([code for own in modes for code in own])
    return codes[np.repeat(before, known.counts) + known.place[:, 0]], list(number)


def _cells(state: StabilityState, places: Ints) -> list[CellKey]:
    return [(state.modes[mode], progress_bin, residual_bin) for mode, progress_bin, residual_bin in places.tolist()]
