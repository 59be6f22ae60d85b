"""Fitting a value network to recorded episodes by TD(lambda).

In each epoch the lambda-returns of all steps are worked out backwards from the network's own values,
G_t = r_t + gamma ((1 - lambda) V(s_{t+1}) + lambda G_{t+1}), nothing after an episode's end, and are the targets of one
pass of least squares by Adam. Episodes held out say when to stop. Everything is a function of the seed.

Recorded episodes as a value model learns from them: states and shaped rewards, step by step.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np

from springback.producers.contract.frame import StepFrame
from springback.stream_processors.errors import StreamError
from springback.stream_processors.intake.validation import tabulate
from springback.stream_processors.offline.evaluation import arrivals
from springback.stream_processors.resilience.anchor import Bools, Floats, Ints
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


class RewardTrajectory(NamedTuple):
    """One episode: the states of its scored steps and the rewards of these steps (n,), and how it ended."""

    states: StateFeatures
    rewards: Floats
    success: bool


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
    scored = score(batch, ready)
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


def _part(states: StateFeatures, own: slice) -> StateFeatures:
    return states._replace(
        family=states.family[own],
        mode=states.mode[own],
        progress=states.progress[own],
        propositions=states.propositions[own],
        excess=states.excess[own],
        cell=states.cell[own],
    )


_ADAM_MEAN, _ADAM_SQUARE, _ADAM_EPSILON = 0.9, 0.999, 1e-8
LEAST_EPISODES = 5


class ValueFittingError(StreamError, ValueError):
    """There is too little to fit a network to."""


class FittingConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the fit (ours).

    Attributes:
        hidden: width of each hidden layer; one or two of them.
        discount: gamma.
        trace: lambda.
        epochs: at most so many passes.
        patience: epochs without a better held-out error after which it stops.
        batch: steps per step of Adam.
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
    """Root mean square difference of values and discounted returns after an epoch; `epoch` 0 is before the first."""

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


@dataclass(slots=True)
class _Adam:
    """Adam's running moments of each parameter."""

    parameters: list[Floats]
    rate: float
    steps: int = 0
    means: list[Floats] = field(default_factory=list)
    squares: list[Floats] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.means = [np.zeros_like(parameter) for parameter in self.parameters]
        self.squares = [np.zeros_like(parameter) for parameter in self.parameters]

    def step(self, gradients: list[Floats]) -> None:
        """Move every parameter, in place."""
        self.steps += 1
        unbias = np.sqrt(1.0 - _ADAM_SQUARE**self.steps) / (1.0 - _ADAM_MEAN**self.steps)
        for parameter, gradient, mean, square in zip(self.parameters, gradients, self.means, self.squares, strict=True):
            mean += (1.0 - _ADAM_MEAN) * (gradient - mean)
            square += (1.0 - _ADAM_SQUARE) * (gradient * gradient - square)
            parameter -= self.rate * unbias * mean / (np.sqrt(square) + _ADAM_EPSILON)


def fit_value(
    trajectories: Sequence[RewardTrajectory],
    config: FittingConfig,
    on_epoch: Callable[[EpochErrors], None] | None = None,
) -> FittedValue:
    """Fit a network to the trajectories.

    Args:
        trajectories: recorded episodes; `reward_trajectories` gives the clean ones.
        config: settings.
        on_epoch: told the errors after each epoch.

    Raises:
        ValueFittingError: there are too few episodes.
    """
    whole = [trajectory for trajectory in trajectories if len(trajectory.rewards)]
    if len(whole) < LEAST_EPISODES:
        message = f"there are {len(whole)} episodes to fit a value network to, expected at least {LEAST_EPISODES}"
        raise ValueFittingError(message)
    rng = np.random.default_rng(config.seed)
    held = _held_out(whole, config.held_out, rng)
    train = [trajectory for i, trajectory in enumerate(whole) if i not in held]
    network = _first_network(train, config, rng)
    learned, checked = _Steps(train, network), _Steps([whole[i] for i in sorted(held)], network)
    returns = learned.lambda_returns(learned.rewards, config.discount, 1.0)
    checked_returns = checked.lambda_returns(checked.rewards, config.discount, 1.0)
    adam = _Adam([array for layer in network.layers for array in layer], config.learning_rate)
    errors: list[EpochErrors] = []
    best, kept = EpochErrors(0, np.inf, np.inf), network.layers
    for epoch in range(config.epochs + 1):
        values = learned.values(network)
        errors.append(EpochErrors(epoch, _rms(values - returns), _rms(checked.values(network) - checked_returns)))
        if on_epoch is not None:
            on_epoch(errors[-1])
        if errors[-1].held_out < best.held_out:
            best, kept = errors[-1], tuple(Layer(layer.weights.copy(), layer.bias.copy()) for layer in network.layers)
        if epoch - best.epoch >= config.patience:
            break
        targets = learned.lambda_returns(values, config.discount, config.trace)
        _pass(network, adam, learned.inputs, targets, rng.permutation(len(targets)), config.batch)
    fitted = NetworkValues(network.families, network.modes, kept, network.mean, network.scale)
    return FittedValue(fitted, errors, best, _rms(checked_returns - returns.mean()), len(train), len(held))


def loss_and_gradients(layers: Sequence[Layer], inputs: Floats, targets: Floats) -> tuple[float, list[Floats]]:
    """Half the mean squared error of a network's output, and its gradient by each weight and bias, layer by layer.

    Shape: inputs (n, width), targets (n,) in the units of the bare output.
    """
    activations = [inputs]
    for layer in layers[:-1]:
        activations.append(np.tanh(activations[-1] @ layer.weights + layer.bias))
    off = activations[-1] @ layers[-1].weights + layers[-1].bias - targets[:, None]
    gradients: list[Floats] = []
    back = off / len(targets)
    for number in range(len(layers) - 1, -1, -1):
        gradients[:0] = [activations[number].T @ back, back.sum(axis=0)]
        if number:
            back = (back @ layers[number].weights.T) * (1.0 - activations[number] ** 2)
    return 0.5 * float((off**2).mean()), gradients


class _Steps:
    """The steps of several trajectories, one after the other."""

    def __init__(self, trajectories: Sequence[RewardTrajectory], network: NetworkValues) -> None:
        self.inputs = np.concatenate([network.inputs(trajectory.states) for trajectory in trajectories])
        self.rewards = np.concatenate([trajectory.rewards for trajectory in trajectories])
        self.last = np.zeros(len(self.rewards), dtype=bool)
        self.last[np.cumsum([len(trajectory.rewards) for trajectory in trajectories]) - 1] = True

    def values(self, network: NetworkValues) -> Floats:
        below = self.inputs
        for layer in network.layers[:-1]:
            below = np.tanh(below @ layer.weights + layer.bias)
        output = below @ network.layers[-1].weights + network.layers[-1].bias
        return np.asarray(network.mean + network.scale * output[:, 0])

    def lambda_returns(self, values: Floats, discount: float, trace: float) -> Floats:
        return lambda_returns(self.rewards, values, self.last, discount, trace)


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


def _held_out(whole: Sequence[RewardTrajectory], share: float, rng: np.random.Generator) -> set[int]:
    """Places of the episodes that are not learned from: of each family its share, but never all."""
    of_family: dict[str, list[int]] = {}
    for i in rng.permutation(len(whole)).tolist():
        states = whole[i].states
        of_family.setdefault(states.families[states.family[0]], []).append(i)
    return {i for own in of_family.values() for i in own[: min(max(1, round(share * len(own))), len(own) - 1)]}


def _first_network(train: Sequence[RewardTrajectory], config: FittingConfig, rng: np.random.Generator) -> NetworkValues:
    families = tuple(sorted({t.states.families[code] for t in train for code in np.unique(t.states.family)}))
    modes = tuple(sorted({t.states.modes[code] for t in train for code in np.unique(t.states.mode)}))
    widths = (input_width(families, modes), *config.hidden, 1)
    layers = tuple(
        Layer(rng.normal(scale=np.sqrt(1.0 / below), size=(below, above)), np.zeros(above))
        for below, above in pairwise(widths)
    )
    steps = _Steps(train, NetworkValues(families, modes, layers, 0.0, 1.0))
    returns = steps.lambda_returns(steps.rewards, config.discount, 1.0)
    return NetworkValues(families, modes, layers, float(returns.mean()), float(returns.std()) or 1.0)


def _pass(network: NetworkValues, adam: _Adam, inputs: Floats, targets: Floats, order: Ints, batch: int) -> None:
    scaled = (targets - network.mean) / network.scale
    for start in range(0, len(order), batch):
        chosen = order[start : start + batch]
        adam.step(loss_and_gradients(network.layers, inputs[chosen], scaled[chosen])[1])


def _rms(differences: Floats) -> float:
    return float(np.sqrt((differences**2).mean()))
