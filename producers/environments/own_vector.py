"""Environments that are vectors by themselves though they call themselves `gymnasium.Env`, as Isaac Lab's do.

Their `step` gives tensors over thousands of slots, and resets a slot in the step that ends its episode. There is no
`final_obs` or `final_info`: the infos are those of the step that was taken, the observation of a slot that has ended is
the next episode's.
"""

from __future__ import annotations

from typing import Any

from springback.producers.environments.vector_signals import SAME_STEP
from springback.producers.environments.wrapper import advice_for, slots_of
from springback.producers.install_hints import MissingExtraError

try:
    import gymnasium
    from gymnasium.vector import VectorEnv
except ImportError as error:
    raise MissingExtraError(extra="gymnasium", cause=error) from error


class OwnVector(VectorEnv[Any, Any, Any]):
    """Such an environment as a `VectorEnv`. All that is not Gymnasium's is asked of the environment itself.

    Args:
        env: the environment; its `unwrapped` has `num_envs`.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        self.own = env
        self.num_envs = slots_of(env)
        # Gymnasium 1.1 writes the mode of its own vectors into the metadata that all environments without any share.
        said = {} if env.metadata is gymnasium.Env.metadata else env.metadata or {}
        self.metadata = {"autoreset_mode": SAME_STEP, **said}
        self.render_mode = env.render_mode
        self.observation_space, self.action_space = env.observation_space, env.action_space

    @property
    def unwrapped(self) -> Any:
        """The environment itself, without wrappers."""
        return self.own.unwrapped

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets all slots."""
        return self.own.reset(seed=seed, options=options)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Takes a step in every slot."""
        result: tuple[Any, Any, Any, Any, dict[str, Any]] = self.own.step(
            actions
        )  # arrays for what Gymnasium has one of
        return result

    def render(self) -> Any:
        """What the environment shows."""
        return self.own.render()

    def close(self, **kwargs: Any) -> None:
        """Closes the environment."""
        self.own.close()

    def __getattr__(self, name: str) -> Any:
        """An attribute of the environment itself."""
        if name == "own":  # not there yet
            raise AttributeError(name)
        return self.own.get_wrapper_attr(name)


def as_vector(envs: Any) -> VectorEnv[Any, Any, Any]:
    """The vector environment, made of one that does not call itself so where that is needed.

    Raises:
        TypeError: it is no vector; the message says what to use for what it is.
    """
    if isinstance(envs, VectorEnv):
        return envs
    if isinstance(envs, gymnasium.Env):
        if hasattr(envs.unwrapped, "num_envs"):
            return OwnVector(envs)
        advice = "use springback.Wrapper for a single environment"
    else:
        outside = "an adapter for a training library goes outside of it, around VectorWrapper(the environment)"
        advice = advice_for(envs) or outside
    message = f"springback.VectorWrapper takes a gymnasium.vector.VectorEnv, got {type(envs).__name__}; {advice}"
    raise TypeError(message)
