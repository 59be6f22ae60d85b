"""Fitting a value network: targets, and what it learns."""

import numpy as np
import pytest

from springback.stream_processors.offline.value_fitting import (
    FittingConfig,
    RewardTrajectory,
    ValueFittingError,
    fit_value,
    lambda_returns,
)
from springback.stream_processors.resilience.stability.network_value import dump_network
from tests.stream_processors.value_states import known_value, random_states, walks

CONFIG = FittingConfig(discount=0.9, epochs=60, hidden=(16,), learning_rate=0.01, batch=64)


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
    assert fitted.errors[0].held_out == fitted.spread


@pytest.mark.parametrize("hidden", [(4,), (5, 3)])
def test_the_network_gives_what_was_fitted(hidden: tuple[int, ...]) -> None:
    """The errors are taken of the library's values; those of the network that is kept must be the same."""
    recorded = walks(4, 20)
    fitted = fit_value(recorded, FittingConfig(discount=0.9, epochs=30, hidden=hidden, learning_rate=0.01))
    assert [layer.weights.shape[1] for layer in fitted.network.layers] == [*hidden, 1]
    assert fitted.best.epoch > 0
    off = []
    for trajectory in recorded:
        last = np.arange(len(trajectory.rewards)) == len(trajectory.rewards) - 1
        returns = lambda_returns(trajectory.rewards, trajectory.rewards, last, 0.9, 1.0)
        off += (fitted.network.values(trajectory.states) - returns).tolist()
    steps = len(off)
    share = sum(len(t.rewards) for t in recorded[: fitted.train_episodes]) / steps  # all walks are of one length
    expected = share * fitted.best.train**2 + (1 - share) * fitted.best.held_out**2
    assert np.mean(np.square(off)) == pytest.approx(expected)


def test_what_nothing_can_be_learned_of_keeps_the_mean_return() -> None:
    rng = np.random.default_rng(5)
    noise = [
        RewardTrajectory(t.states, np.array([0.0] * (len(t.rewards) - 1) + [float(rng.normal())]), success=True)
        for t in walks(5, 5)
    ]
    fitted = fit_value(noise, FittingConfig(epochs=3, learning_rate=1.0))
    assert fitted.best.epoch == 0
    values = fitted.network.values(noise[0].states)
    assert np.ptp(values) == 0.0


def test_ctrl_c_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """scikit-learn makes a warning of it, and would go on with the next epoch."""

    def interrupted(self: object, *_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sklearn.neural_network.MLPRegressor._backprop", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit_value(walks(0), CONFIG)


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
    alone = [
        one._replace(states=one.states._replace(families=[f"family-{i}"] * 2)) for i, one in enumerate(walks(0, 5))
    ]
    with pytest.raises(ValueFittingError, match="each family has one episode, expected two of at least one"):
        fit_value(alone, CONFIG)
