"""What the rest of an episode is worth from a state on: shaped rewards, and the models that value states (equation 4).

V(s) is the expected discounted sum of shaped rewards. The default model takes the mean return by anchor, which the
stage baseline learns; any other that can value states may stand in for it.

The shaped reward of a step says what a judge thinks of it, and whether the task came nearer:
r~_t = judge + kappa_W (gamma Phi(a_{t+1}) - Phi(a_t)) with Phi(a) = -W*_rem(a, p) / W*_rem(a_0, 0). Shaping by a
potential (Ng, Harada, Russell 1999) leaves the optimal policy as it is. The paper names judge and W*_rem; the form is
ours.
"""

from typing import NamedTuple, Protocol

import numpy as np

from springback.stream_processors.resilience.anchor import CYCLE, GAINS, Bools, Floats, Ints
from springback.stream_processors.resilience.baseline.estimates import CellEstimates, MaterialisedBaseline
from springback.stream_processors.resilience.columns import join_by_episode
from springback.stream_processors.resilience.rebound.recovery_cost import remaining_work
from springback.stream_processors.resilience.stability.stability_state import StabilityConfig, StabilityState
from springback.stream_processors.resilience.tracking.batch import Batch
from springback.stream_processors.resilience.tracking.scoring import ScoredBatch

EQUAL = (1.0, 1.0, 1.0)
PROGRESS_GAIN, RETRIES = GAINS.start, 3
"""Where the rubric's signals stand in the signal vector."""


class StateFeatures(NamedTuple):
    """The states of n scored steps, as they were before each step.

    Attributes:
        families, modes: the names that `family` and `mode` (n,) are positions in.
        progress, propositions: p and q before the step (n,).
        excess: z of equation 1 (n, 7).
        cell: row of the step's anchor in the baseline's cells (n,).
    """

    families: list[str]
    modes: list[str]
    family: Ints
    mode: Ints
    progress: Floats
    propositions: Floats
    excess: Floats
    cell: Ints


class ValueModel(Protocol):
    """Anything that values states."""

    def values(self, states: StateFeatures) -> Floats:
        """V of each state (n,); NaN where the model has none."""


class AnchorValues:
    """The mean discounted return of the reference episodes at each anchor, with back-off and shrinkage."""

    def __init__(self, baseline: MaterialisedBaseline) -> None:
        self._baseline = baseline

    def values(self, states: StateFeatures) -> Floats:
        """V of each state (n,); NaN in families whose returns have not been learned."""
        known = [name in self._baseline.families and self._baseline.families[name].valued for name in states.families]
        return np.where(np.array(known, dtype=bool)[states.family], self._baseline.cells.value[states.cell], np.nan)


def shaped_rewards(judge: Floats, potential: Floats, last: Ints, success: Bools, config: StabilityConfig) -> Floats:
    """r~ of consecutive scored steps of some episodes. Shape: (n,) in and out.

    The potential after a success is 0; after any other end it is that of the last step.

    Args:
        judge: what a judge thinks of each step.
        potential: Phi of the state before each step.
        last: where the last step of each episode stands (k,).
        success: whether that episode was a success (k,).
        config: discount and weight of the shaping.

    Without discount, two steps that a judge gives 0.5 each bring the task from potential -1 to -0.4 and, by success,
    to 0:

    >>> ends = {"last": np.array([1]), "success": np.array([True])}
    >>> potential, undiscounted = np.array([-1.0, -0.4]), StabilityConfig(discount=1.0)
    >>> shaped_rewards(np.array([0.5, 0.5]), potential, **ends, config=undiscounted).tolist()
    [1.1, 0.9]
    """
    after = np.append(potential[1:], 0.0)
    after[last] = np.where(success, 0.0, potential[last])
    return judge + config.shaping * (config.discount * after - potential)


def judged(
    judge: Floats,
    signals: Floats,
    violation: Floats,
    cell: Ints,
    cells: CellEstimates,
    weights: tuple[float, float, float] = EQUAL,
) -> Floats:
    """A judge's opinion of each step, in [0, 1]: the weighted mean of the scores that are there, else of the rubric's.

    Shape: judge (n, 3) with NaN where there is no score, signals (n, 8), the others (n,); weights (3,). Scores that are
    there but have no weight say nothing.
    """
    there = ~np.isnan(judge)
    given = (there * np.array(weights)).sum(axis=1)
    total = (np.where(there, judge, 0.0) * np.array(weights)).sum(axis=1)
    own = rubric(signals, violation, cell, cells, weights)
    return np.where(given > 0, total / np.where(given > 0, given, 1.0), own)


def rubric(
    signals: Floats,
    violation: Floats,
    cell: Ints,
    cells: CellEstimates,
    weights: tuple[float, float, float] = EQUAL,
) -> Floats:
    """A judge without a language model (ours): mean of goal progress, rationality and efficiency, each in [0, 1].

    Goal is the progress gained, as a share of the nominal gain; rationality is 1 without a retry or a violation, 0.5
    with one of them and 0 with both; efficiency is the nominal cycle time over the step's, at most 1.
    """
    goal = np.clip(signals[:, PROGRESS_GAIN] / cells.denominator[cell, PROGRESS_GAIN], 0.0, 1.0)
    rationality = 1.0 - 0.5 * (signals[:, RETRIES] > 0) - 0.5 * (violation > 0)
    nominal_s, cycle_s = cells.mean[cell, CYCLE], signals[:, CYCLE]
    efficiency = np.where(np.isnan(cycle_s), 1.0, np.minimum(1.0, nominal_s / np.where(cycle_s > 0, cycle_s, 1.0)))
    score: Floats = (weights[0] * goal + weights[1] * rationality + weights[2] * efficiency) / sum(weights)
    return score


class ValuedRows(NamedTuple):
    """What stability needs of scored rows besides their place. Shape: (m,); `value`, `spread` NaN without a value."""

    judged: Floats
    potential: Floats
    value: Floats
    spread: Floats


def value_rows(
    scored: ScoredBatch, baseline: MaterialisedBaseline, model: ValueModel, config: StabilityConfig
) -> ValuedRows:
    """Judge, potential and value of each scored row. Gives episodes that begin here their initial work."""
    rows = scored.rows
    states = [episode.state.stability for episode in rows.episodes]
    _begin(rows, states, baseline)
    initial = np.array([state.initial_work or 1.0 for state in states])
    value = model.values(state_features(scored))
    return ValuedRows(
        judged(rows.judge, rows.signals, rows.violation, scored.cell, baseline.cells, config.judge_weights),
        -scored.remaining / initial[rows.episode],
        value,
        _spread(value, rows.episode, states, config.spread_steps),
    )


def state_features(scored: ScoredBatch) -> StateFeatures:
    """The scored rows' states as a value model sees them."""
    rows = scored.rows
    return StateFeatures(
        rows.families,
        rows.mode_names,
        rows.family,
        rows.mode,
        rows.progress_before,
        rows.propositions_before,
        scored.excess,
        scored.cell,
    )


def _begin(rows: Batch, states: list[StabilityState], baseline: MaterialisedBaseline) -> None:
    """W*_rem(a_0, 0) of the episodes whose first scored row is here: the anchor of its mode with nothing done yet."""
    begun = [place for place in rows.present.tolist() if not states[place].initial_work]
    if not begun:
        return
    nothing = np.zeros(len(begun))
    bins = rows.grid.progress_bin(nothing), rows.grid.residual_bin(nothing)
    mode = rows.mode[rows.starts[begun]]
    cell = baseline.rows_of(rows.families, rows.mode_names, rows.family_of[begun], mode, bins)
    for place, work in zip(begun, remaining_work(nothing, cell, baseline.cells).tolist(), strict=True):
        states[place].initial_work = work


def _spread(value: Floats, place: Ints, states: list[StabilityState], steps: int) -> Floats:
    """Population variance of V over the last `steps` values of the episode, the row's own included. Shape: (m,).

    Steps without a value are passed over. Values of earlier batches come from the states, which are brought up to date.
    """
    valued = np.flatnonzero(~np.isnan(value))
    spread = np.full(len(value), np.nan)
    if not len(valued):
        return spread
    fresh = np.bincount(place[valued], minlength=len(states))
    remembered = [state.values if new else [] for state, new in zip(states, fresh.tolist(), strict=True)]
    earlier = np.array([v for values in remembered for v in values])
    history = join_by_episode(earlier, np.array([len(values) for values in remembered]), value[valued], fresh)
    before = history.since_start[history.later]
    spread[valued] = _window_variance(history.rows, history.later, np.minimum(before + 1, steps), steps)
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
