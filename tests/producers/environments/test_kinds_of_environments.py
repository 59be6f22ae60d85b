"""An environment given to a wrapper that is not for it is told which one is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest

from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.environments.vector_wrapper import VectorWrapper
from springback.producers.environments.wrapper import Wrapper
from springback.producers.errors import SignalError
from springback.producers.habitat.watch import watch


class Lift(gymnasium.Env[Any, Any]):
    """Two slots that call themselves one environment, as in Isaac Lab."""

    num_envs = 2
    observation_space = gymnasium.spaces.Box(-1, 1, (2, 3))
    action_space = gymnasium.spaces.Box(-1, 1, (2, 2))


class Silent(Lift):
    """The same, but it does not say how many there are."""

    num_envs: Any = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros((2, 3)), {}

    def step(self, action: Any) -> Any:
        return np.zeros((2, 3)), np.zeros(2), np.zeros(2, bool), np.zeros(2, bool), {"progress": np.ones(2)}


class TrainerVector:
    """What Stable-Baselines makes of many environments."""

    num_envs = 2

    def reset(self) -> Any: ...
    def step(self, actions: Any) -> Any: ...
    def step_wait(self) -> Any: ...


class HabitatVector:
    """The vector of habitat-lab."""

    num_envs = 2

    def reset(self) -> Any: ...
    def step(self, actions: Any) -> Any: ...
    def step_wait(self) -> Any: ...
    def async_step_at(self, index_env: int, action: Any) -> None: ...


class HabitatEnv:
    """A single environment of habitat-lab."""

    episode_over = False


@pytest.fixture
def emitter() -> Iterator[StepEmitter]:
    with StepEmitter(MemoryPublisher(), producer="trainer-1", session="s", clock=lambda: 1.8e9) as emitter:
        yield emitter


def sync_vector() -> Any:
    return gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync")


@pytest.mark.parametrize(
    ("env", "named"),
    [
        (sync_vector, r"SyncVectorEnv is a vector of environments: use springback\.VectorWrapper"),
        (Lift, r"Lift is a vector of environments: use springback\.VectorWrapper"),
        (lambda: gymnasium.wrappers.OrderEnforcing(Lift()), r"Lift is a vector of .* springback\.VectorWrapper"),
        (TrainerVector, r"got TrainerVector; make_vec_env\(…, wrapper_class=springback\.Wrapper"),
        (HabitatVector, r"got HabitatVector; .* springback\.watch"),
        (HabitatEnv, r"got HabitatEnv; .* springback\.watch"),
        (object, r"takes a gymnasium\.Env, got object"),
    ],
)
def test_what_is_not_for_the_single_wrapper(emitter: StepEmitter, env: Any, named: str) -> None:
    with pytest.raises(TypeError, match=named):
        Wrapper(env(), emitter, family="f")


@pytest.mark.parametrize(
    ("env", "named"),
    [
        (lambda: gymnasium.make("CartPole-v1"), r"got .*; use springback\.Wrapper for a single environment"),
        (TrainerVector, r"got TrainerVector; make_vec_env\(…, wrapper_class=springback\.Wrapper"),
        (HabitatVector, r"got HabitatVector; .* springback\.watch"),
        (HabitatEnv, r"got HabitatEnv; .* springback\.watch"),
        (object, r"takes a gymnasium\.vector\.VectorEnv, got object"),
    ],
)
def test_what_is_not_for_the_vector_wrapper(emitter: StepEmitter, env: Any, named: str) -> None:
    with pytest.raises(TypeError, match=named):
        VectorWrapper(env(), emitter, family="f")


@pytest.mark.parametrize("env", [sync_vector, Lift, TrainerVector])
def test_a_vector_that_is_not_habitats_is_not_watched(emitter: StepEmitter, env: Any) -> None:
    with pytest.raises(TypeError, match=r"a vector of Gymnasium environments: use springback\.VectorWrapper"):
        watch(env(), emitter, family="f")


def test_a_vector_that_does_not_say_so_is_known_by_its_first_step(emitter: StepEmitter) -> None:
    env = Wrapper(Silent(), emitter, family="f")
    env.reset()
    with pytest.raises(SignalError, match=r"2 values of terminated: Silent is a vector .*springback\.VectorWrapper"):
        env.step(np.zeros((2, 2)))
