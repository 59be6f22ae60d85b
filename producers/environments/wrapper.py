"""Turns any single Gymnasium environment into a producer of step events, in two lines.

>>> import gymnasium
>>> from springback import MemoryPublisher, SignalHooks, StepEmitter, Wrapper
>>> publisher = MemoryPublisher()
>>> with StepEmitter(publisher, producer="trainer-1") as emitter:
...     env = gymnasium.make("CartPole-v1", max_episode_steps=3)
...     balanced = SignalHooks(progress=lambda step: (step.step + 1) / 3)
...     env = Wrapper(env, emitter, family="balancing", hooks=balanced)
...     _ = env.reset(seed=1)
...     for _ in range(3):
...         _ = env.step(0)
...     env.close()
>>> [frame.ends[0].outcome for frame in publisher.frames]
['timeout']
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsFloat

import numpy as np

from springback.producers.emitter.step_emitter import EpisodeHandle, StepEmitter
from springback.producers.environments.signal_hooks import (
    ABORTED,
    SignalHooks,
    StepContext,
    as_arrays,
    check_signal_names,
    plain_value,
)
from springback.producers.errors import SignalError
from springback.producers.install_hints import MissingExtraError

try:
    import gymnasium
    import gymnasium.vector
    from gymnasium.error import ResetNeeded
    from gymnasium.wrappers import Autoreset
except ImportError as error:
    raise MissingExtraError(extra="gymnasium", cause=error) from error


class Wrapper(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A Gymnasium wrapper that reports each step to an emitter and changes nothing of what the environment does.

    A reset begins an episode. It ends as a success where the success hook says so (see `SignalHooks`), also where it is
    only cut off; else termination ends it as failure, and truncation as timeout. A reset or a close in the middle of it
    ends it as aborted, and so does the death of an `isolated` environment. Around Gymnasium's `Autoreset` the step that
    only resets is not reported. Put it outside of the wrappers that change rewards, actions or the episode's end.

    Args:
        env: the environment; one, not a vector of them.
        emitter: where the steps go; it stays open when the environment is closed.
        family: the task family of the episodes.
        agent: id of the agent; the producer's by default, and `trainer-1#2` for a second wrapper on one emitter.
        hooks: how the signals are read; see `SignalHooks`.
        clock: gives the instant of a step, s UTC epoch; the emitter's own clock by default.
        **traits: other fields of `EpisodeHeader` that hold for every episode, such as `method` or `version`.

    Raises:
        TypeError: `env` is no single Gymnasium environment; the message says what to use for what it is.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        emitter: StepEmitter,
        *,
        family: str,
        agent: str | None = None,
        hooks: SignalHooks | None = None,
        clock: Callable[[], float] | None = None,
        **traits: Any,
    ) -> None:
        check_single(env)
        super().__init__(env)
        self._emitter = emitter
        self._clock = clock
        self._hooks = SignalHooks() if hooks is None else hooks
        self._agent = emitter.lend_agent(emitter.producer, self) if agent is None else agent
        self._traits = {"family": family, **traits}
        self._next_traits: dict[str, Any] = {}
        self._reported: dict[str, Any] = {}
        self._episodes = 0
        self._steps = 0
        self._latched = False
        self._episode: EpisodeHandle | None = None
        self._resets_itself = _has_autoreset(env)

    def describe_next_episode(self, **traits: Any) -> None:
        """Says what the next episode is: fields of `EpisodeHeader`, such as `task`, `stress`, `reference`.

        They hold for one episode and override those given to the wrapper. An `episode` id given here must be unique
        for its agent in this session; by default the emitter numbers an agent's episodes from 0.
        """
        self._next_traits = traits

    def report(self, **signals: Any) -> None:
        """Adds what the agent itself knows of the step that it is about to take; it overrides the hooks.

        Most environments do not know its planning and perception time, its mode or its retries.

        Raises:
            SignalError: a signal is not known.
        """
        check_signal_names(signals)
        self._reported.update(signals)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets the environment and begins an episode; one that is running ends as aborted."""
        self._abort()
        observation, info = super().reset(seed=seed, options=options)
        self._begin(info)
        return observation, info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Takes a step and reports it.

        Raises:
            ResetNeeded: no episode is running.
            SignalError: a hook has no progress, or gives a value of a wrong type; or the environment is a vector.
        """
        if self._episode is None and not (self._resets_itself and self._episodes):
            message = "no episode is running: call reset() before step(), also after an episode's end"
            raise ResetNeeded(message)
        observation, reward, terminated, truncated, info = super().step(action)
        if (values := np.size(as_arrays(terminated))) != 1:
            message = f"the step gives {values} values of terminated: {told_of_vector(self.env)}"
            raise SignalError(message)
        if self._episode is None:
            self._begin(info)
            return observation, reward, terminated, truncated, info
        if truncated and info.get(ABORTED):
            self._abort()
            return observation, reward, terminated, truncated, info
        context = StepContext(self.env, action, observation, reward, terminated, truncated, info, self._steps)
        signals = self._hooks.signals(context)
        if self._reported:
            signals.update({name: plain_value(value) for name, value in self._reported.items()})
            self._reported.clear()
        self._episode.step(step=self._steps, time_s=self._now_s(), **signals)
        self._steps += 1
        self._latched = self._latched or (self._hooks.latch and bool(self._hooks.succeeded(context)))
        if terminated or truncated:
            outcome = self._hooks.outcome(context, signals["progress"], latched=self._latched)
            self._episode.end(
                outcome,
                self._hooks.read("navigation", context),
                self._now_s(),
                realised_magnitude=plain_value(self._hooks.read("realised_magnitude", context)),
            )
            self._episode = None
        return observation, reward, terminated, truncated, info

    def close(self) -> None:
        """Closes the environment; an episode that is running ends as aborted."""
        self._abort()
        self._emitter.return_agents(self)
        super().close()

    def _begin(self, info: dict[str, Any]) -> None:
        traits = {**self._traits, **self._hooks.episode_traits(info), **self._next_traits}
        self._next_traits = {}
        self._reported.clear()
        self._episode = self._emitter.begin_episode(self._agent, **traits)
        self._episodes += 1
        self._steps = 0
        self._latched = False

    def _abort(self) -> None:
        episode, self._episode = self._episode, None
        if episode is not None:
            episode.abort(self._now_s())

    def _now_s(self) -> float | None:
        return None if self._clock is None else self._clock()


def _has_autoreset(env: Any) -> bool:
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, Autoreset):
            return True
        env = env.env
    return False


def check_single(env: Any) -> None:
    """Raises `TypeError` where this is not one Gymnasium environment; it says what to use for what it is."""
    is_vector = isinstance(env, gymnasium.vector.VectorEnv)
    if is_vector or (isinstance(env, gymnasium.Env) and slots_of(env) > 1):
        raise TypeError(told_of_vector(env))
    if isinstance(env, gymnasium.Env):
        return
    advice = advice_for(env) or "one of the older Gym has to be converted first, by shimmy for instance"
    message = f"springback.Wrapper takes a gymnasium.Env, got {type(env).__name__}; {advice}"
    raise TypeError(message)


def advice_for(env: Any) -> str | None:
    """What to do with an environment that is not Gymnasium's; None where it is not known either."""
    if hasattr(env, "async_step_at") or hasattr(env, "episode_over"):
        return "Habitat's are for springback.watch"
    if hasattr(env, "step_wait"):
        wrapped = "make_vec_env(…, wrapper_class=springback.Wrapper, wrapper_kwargs=…)"
        return f"{wrapped} puts a Wrapper around each environment"
    return None


def slots_of(env: Any) -> int:
    """How many environments step as one here: those of Isaac Lab and ManiSkill are vectors that do not say so."""
    number = getattr(getattr(env, "unwrapped", env), "num_envs", 1)
    return number if isinstance(number, int) else 1


def told_of_vector(env: Any) -> str:
    """What to do about a vector where one environment was expected."""
    name = type(getattr(env, "unwrapped", env)).__name__
    return f"{name} is a vector of environments: use springback.VectorWrapper"
