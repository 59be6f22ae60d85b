"""Fitting a value network to recorded episodes by TD(lambda).

In each epoch the lambda-returns of all steps are worked out backwards from the values so far,
G_t = r_t + gamma ((1 - lambda) V(s_{t+1}) + lambda G_{t+1}), nothing after an episode's end, and are the targets of one
pass of least squares by Adam, in scikit-learn's MLPRegressor. The first values are the mean return. Episodes held out
say when to stop. Everything is a function of the seed. The paper leaves the value function open; this fit is ours.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np
from sklearn.neural_network import MLPRegressor  # type: ignore[import-untyped]

from springback.producers.contract.frame import StepFrame
from springback.stream_processors.errors import StreamError
from springback.stream_processors.intake.validation import tabulate
from springback.stream_processors.offline.evaluation import arrivals
from springback.stream_processors.resilience.anchor import Bools, Floats
from springback.stream_processors.resilience.baseline.estimates import materialise
from springback.stream_processors.resilience.baseline.stage_baseline import StageBaseline
from springback.stream_processors.resilience.config import ResilienceConfig
from springback.stream_processors.resilience.stability.network_value import Layer, NetworkValues, input_width
from springback.stream_processors.resilience.stability.value_function import (
    AnchorValues,
    StateFeatures,
    shaped_rewards,
    state_features,
    value_rows,
)
from springback.stream_processors.resilience.tracking.admission import admit_rows
from springback.stream_processors.resilience.tracking.scoring import score
from springback.stream_processors.resilience.tracking.tracker_state import TrackerState

LEAST_EPISODES = 5


class ValueFittingError(StreamError, ValueError):
    """There is too little to fit a network to."""


class RewardTrajectory(NamedTuple):
    """One episode: the states of its scored steps and the rewards of these steps (n,), and how it ended."""

    states: StateFeatures
    rewards: Floats
    success: bool


class FittingConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the fit (ours).

    Attributes:
        hidden: width of each hidden layer; one or two of them.
        discount: gamma.
        trace: lambda.
        epochs: at most so many passes.
        patience: epochs without a better held-out error after which it stops.
        batch: recorded steps per step of Adam.
        learning_rate: of Adam.
        held_out: share of the episodes that are not learned from.
        seed: of the first weights, of what is held out and of the order of steps.
    """

    hidden: tuple[int, ...] = (32, 32)
    discount: float = 0.99
    trace: float = 0.95
    epochs: int = 200
    patience: int = 20
    batch: int = 256
    learning_rate: float = 3e-3
    held_out: float = 0.2
    seed: int = 0


class EpochErrors(NamedTuple):
    """Root mean square difference of values and discounted returns after an epoch; `epoch` 0 is the mean return."""

    epoch: int
    train: float
    held_out: float


@dataclass(frozen=True, slots=True)
class FittedValue:
    """A fitted network, that of the epoch with the least held-out error.

    Attributes:
        network: the network.
        errors: after each epoch.
        best: the epoch that the network is of.
        spread: the held-out error of a constant, to see the others by.
        train_episodes, held_out_episodes: how many there were of each.
    """

    network: NetworkValues
    errors: list[EpochErrors]
    best: EpochErrors
    spread: float
    train_episodes: int
    held_out_episodes: int


def reward_trajectories(
    frames: Iterable[StepFrame], config: ResilienceConfig, baseline: StageBaseline, *, references_only: bool = True
) -> list[RewardTrajectory]:
    """The recorded episodes that were seen to end, scored by the baseline; all are held in memory at once.

    Args:
        frames: the recording.
        config: settings of the core.
        baseline: what rewards are shaped and steps judged by.
        references_only: leave out episodes that are not marked as reference.
    """
    arrived = list(arrivals(frames))
    table = tabulate(arrived)
    ready = materialise(baseline, config.baseline, config.window.fixed_bounds())
    batch = admit_rows(table, [TrackerState()] * len(arrived), config, ready.grid)
    scored = score(batch, ready, config)
    valued = value_rows(scored, ready, AnchorValues(ready), config.stability)
    states = state_features(scored)
    found = []
    for episode, start, stop in zip(batch.episodes, scored.rows.starts, scored.rows.stops, strict=True):
        own = slice(int(start), int(stop))
        wanted = episode.state.traits.reference or not references_only
        if wanted and episode.ended and own.start < own.stop:
            success = episode.outcome == "success"
            last = np.array([own.stop - own.start - 1])
            rewards = shaped_rewards(
                valued.judged[own], valued.potential[own], last, np.array([success]), config.stability
            )
            found.append(RewardTrajectory(_part(states, own), rewards, success))
    return found


def fit_value(
    trajectories: Sequence[RewardTrajectory],
    config: FittingConfig,
    on_epoch: Callable[[EpochErrors], None] | None = None,
) -> FittedValue:
    """Fits a network to the trajectories.

    Args:
        trajectories: recorded episodes; `reward_trajectories` gives the clean ones.
        config: settings.
        on_epoch: called with the errors after each epoch.

    Raises:
        ValueFittingError: there are too few episodes, or none can be held out.
    """
    whole = [trajectory for trajectory in trajectories if len(trajectory.rewards)]
    if len(whole) < LEAST_EPISODES:
        message = f"there are {len(whole)} episodes to fit a value network to, expected at least {LEAST_EPISODES}"
        raise ValueFittingError(message)
    rng = np.random.default_rng(config.seed)
    held = _held_out(whole, config.held_out, rng)
    if not held:
        message = "each family has one episode, expected two of at least one: one to learn from, one to hold out"
        raise ValueFittingError(message)
    train = [trajectory for i, trajectory in enumerate(whole) if i not in held]
    blank = _blank_network(train, config.hidden)
    learned, checked = _Steps(train, blank), _Steps([whole[i] for i in sorted(held)], blank)
    returns = learned.returns(learned.rewards, config.discount, 1.0)
    checked_returns = checked.returns(checked.rewards, config.discount, 1.0)
    mean, scale = float(returns.mean()), float(returns.std()) or 1.0
    regressor = MLPRegressor(
        hidden_layer_sizes=config.hidden,
        activation="tanh",
        solver="adam",
        alpha=0.0,
        batch_size=min(config.batch, len(returns)),
        learning_rate_init=config.learning_rate,
        # A generator and no number, or every pass would take the steps in one and the same order.
        random_state=np.random.RandomState(rng.integers(2**32)),
    )
    values, checked_values = np.full_like(returns, mean), np.full_like(checked_returns, mean)
    errors: list[EpochErrors] = []
    best, kept = EpochErrors(0, np.inf, np.inf), blank.layers
    for epoch in range(config.epochs + 1):
        if epoch:
            targets = learned.returns(values, config.discount, config.trace)
            _pass(regressor, learned.inputs, (targets - mean) / scale)
            values = mean + scale * regressor.predict(learned.inputs)
            checked_values = mean + scale * regressor.predict(checked.inputs)
        errors.append(EpochErrors(epoch, _rms(values - returns), _rms(checked_values - checked_returns)))
        if on_epoch is not None:
            on_epoch(errors[-1])
        if errors[-1].held_out < best.held_out:
            best, kept = errors[-1], _layers(regressor) if epoch else blank.layers
        if epoch - best.epoch >= config.patience:
            break
    fitted = NetworkValues(blank.families, blank.modes, kept, mean, scale)
    return FittedValue(fitted, errors, best, errors[0].held_out, len(train), len(held))


def lambda_returns(rewards: Floats, values: Floats, last: Bools, discount: float, trace: float) -> Floats:
    """The lambda-return of each step, of episodes one after the other; `last` marks their last steps. Shape: (n,).

    With a trace of 1 it is the discounted return, whatever the values.

    >>> lambda_returns(np.array([1.0, 2.0]), np.array([9.0, 4.0]), np.array([False, True]), 0.5, 0.25).tolist()
    [2.75, 2.0]
    """
    result = np.empty(len(rewards))
    after = value_after = 0.0
    steps = zip(rewards[::-1].tolist(), values[::-1].tolist(), last[::-1].tolist(), strict=True)
    for back, (reward, value, ends) in enumerate(steps, start=1):
        if ends:
            after = value_after = 0.0
        after = reward + discount * ((1.0 - trace) * value_after + trace * after)
        value_after = value
        result[-back] = after
    return result


class _Steps:
    """The steps of several trajectories, one after the other."""

    def __init__(self, trajectories: Sequence[RewardTrajectory], network: NetworkValues) -> None:
        self.inputs = np.concatenate([network.inputs(trajectory.states) for trajectory in trajectories])
        self.rewards = np.concatenate([trajectory.rewards for trajectory in trajectories])
        self.last = np.zeros(len(self.rewards), dtype=bool)
        self.last[np.cumsum([len(trajectory.rewards) for trajectory in trajectories]) - 1] = True

    def returns(self, values: Floats, discount: float, trace: float) -> Floats:
        return lambda_returns(self.rewards, values, self.last, discount, trace)


def _part(states: StateFeatures, own: slice) -> StateFeatures:
    return states._replace(
        family=states.family[own],
        mode=states.mode[own],
        progress=states.progress[own],
        propositions=states.propositions[own],
        excess=states.excess[own],
        cell=states.cell[own],
    )


def _held_out(whole: Sequence[RewardTrajectory], share: float, rng: np.random.Generator) -> set[int]:
    """Places of the episodes that are not learned from: of each family its share, but never all."""
    of_family: dict[str, list[int]] = {}
    for i in rng.permutation(len(whole)).tolist():
        states = whole[i].states
        of_family.setdefault(states.families[states.family[0]], []).append(i)
    return {i for own in of_family.values() for i in own[: min(max(1, round(share * len(own))), len(own) - 1)]}


def _blank_network(train: Sequence[RewardTrajectory], hidden: Sequence[int]) -> NetworkValues:
    """A network of the right shape for these families and modes, that gives 0."""
    families = tuple(sorted({t.states.families[code] for t in train for code in np.unique(t.states.family)}))
    modes = tuple(sorted({t.states.modes[code] for t in train for code in np.unique(t.states.mode)}))
    widths = (input_width(families, modes), *hidden, 1)
    layers = tuple(Layer(np.zeros((below, above)), np.zeros(above)) for below, above in pairwise(widths))
    return NetworkValues(families, modes, layers, 0.0, 1.0)


def _pass(regressor: MLPRegressor, inputs: Floats, targets: Floats) -> None:
    """Learns once from all steps, in a random order.

    Raises:
        KeyboardInterrupt: the user has stopped it, of which scikit-learn only warns.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Training interrupted by user")
        regressor.partial_fit(inputs, targets)
    if not regressor.n_iter_:
        raise KeyboardInterrupt


def _layers(regressor: MLPRegressor) -> tuple[Layer, ...]:
    """A copy of its weights, which the next pass changes in place."""
    pairs = zip(regressor.coefs_, regressor.intercepts_, strict=True)
    return tuple(Layer(weights.copy(), bias.copy()) for weights, bias in pairs)


def _rms(differences: Floats) -> float:
    return float(np.sqrt((differences**2).mean()))
