"""Fitting a value network: gradients, targets, and what it learns."""

from itertools import pairwise

import numpy as np
import pytest

from springback.stream_processors.offline.value_fitting import (
    FittingConfig,
    RewardTrajectory,
    ValueFittingError,
    fit_value,
    lambda_returns,
    loss_and_gradients,
)
from springback.stream_processors.resilience.stability.network_value import (
    Layer,
    NetworkValues,
    dump_network,
    input_width,
)
from tests.stream_processors.value_states import known_value, random_states, walks

CONFIG = FittingConfig(discount=0.9, epochs=60, hidden=(16,), learning_rate=0.01, batch=64)


@pytest.mark.parametrize("hidden", [(4,), (5, 3)])
def test_gradients_are_those_of_finite_differences_of_the_values(hidden: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    families, modes = ("manipulation", "navigation"), ("explore", "navigate", "plan")
    widths = [input_width(families, modes), *hidden, 1]
    layers = tuple(
        Layer(rng.normal(scale=0.4, size=(below, above)), rng.normal(scale=0.4, size=above))
        for below, above in pairwise(widths)
    )
    network = NetworkValues(families, modes, layers, mean=0.0, scale=1.0)
    states, targets = random_states(rng, 30), rng.normal(size=30)

    def loss() -> float:
        return 0.5 * float(((network.values(states) - targets) ** 2).mean())

    found, gradients = loss_and_gradients(layers, network.inputs(states), targets)
    assert found == pytest.approx(loss())
    arrays = [array for layer in layers for array in layer]
    assert [gradient.shape for gradient in gradients] == [array.shape for array in arrays]
    for array, gradient in zip(arrays, gradients, strict=True):
        for place in np.ndindex(array.shape):
            kept, nudge = array[place], 1e-5
            array[place] = kept + nudge
            above = loss()
            array[place] = kept - nudge
            below = loss()
            array[place] = kept
            assert gradient[place] == pytest.approx((above - below) / (2 * nudge), rel=1e-5, abs=1e-8)


def test_lambda_returns_against_the_definition() -> None:
    """G_t = (1 - lambda) sum over n of lambda^(n-1) G_t^(n), the last with all the weight that is left."""
    rng = np.random.default_rng(1)
    rewards, values, discount, trace = rng.normal(size=6), rng.normal(size=6), 0.9, 0.7
    bounds = ((0, 4), (4, 6))
    last = np.array([False, False, False, True, False, True])
    found = lambda_returns(rewards, values, last, discount, trace)
    for start, stop in bounds:
        for t in range(start, stop):
            expected = 0.0
            for n in range(1, stop - t + 1):
                ends = t + n == stop
                steps = sum(discount**k * rewards[t + k] for k in range(n))
                after = 0.0 if ends else discount**n * values[t + n]
                expected += (trace ** (n - 1) if ends else (1 - trace) * trace ** (n - 1)) * (steps + after)
            assert found[t] == pytest.approx(expected)


def test_a_known_value_function_is_learned() -> None:
    fitted = fit_value(walks(0), CONFIG)
    assert (fitted.train_episodes, fitted.held_out_episodes) == (48, 12)
    assert fitted.best.held_out < 0.15 * fitted.spread
    fresh = walks(99, 2)
    for family, trajectory in enumerate(fresh):
        expected = known_value(trajectory.states.progress, family)
        error = fitted.network.values(trajectory.states) - expected
        assert np.sqrt((error**2).mean()) < 0.1 * float(expected.max())
    assert min(errors.held_out for errors in fitted.errors) == fitted.best.held_out


def test_the_seed_decides() -> None:
    first, again, other = (fit_value(walks(1), FittingConfig(discount=0.9, epochs=5, seed=seed)) for seed in (3, 3, 4))
    assert dump_network(first.network) == dump_network(again.network)
    assert first.errors == again.errors
    assert dump_network(first.network) != dump_network(other.network)


def test_it_stops_when_held_out_episodes_gain_no_more() -> None:
    told: list[int] = []
    config = FittingConfig(discount=0.9, epochs=400, patience=5, learning_rate=0.05)
    fitted = fit_value(walks(2, 20), config, lambda errors: told.append(errors.epoch))
    assert told == [errors.epoch for errors in fitted.errors] == list(range(len(told)))
    assert len(told) < 400
    assert told[-1] - fitted.best.epoch == 5


def test_a_family_with_one_episode_is_learned_all_the_same() -> None:
    every = walks(3, 20)
    one = every[0]._replace(states=every[0].states._replace(families=["cooking", "manipulation"]))
    fitted = fit_value([*every[1::2], one], CONFIG)
    assert set(fitted.network.families) == {"cooking", "manipulation"}
    assert not np.isnan(fitted.network.values(one.states)).any()


def test_too_few_episodes_are_refused() -> None:
    empty = walks(0, 1)[0]
    none = RewardTrajectory(random_states(np.random.default_rng(0), 0), empty.rewards[:0], success=True)
    with pytest.raises(ValueFittingError, match=r"there are 4 episodes .* at least 5"):
        fit_value([*walks(0, 4), none], CONFIG)
