"""Turns a vector of Gymnasium environments into a producer of step events: one frame for each vector step.

>>> import gymnasium
>>> from springback import MemoryPublisher, SignalHooks, StepEmitter, VectorWrapper
>>> publisher = MemoryPublisher()
>>> with StepEmitter(publisher, producer="trainer-1") as emitter:
...     envs = gymnasium.make_vec("CartPole-v1", num_envs=4, vectorization_mode="sync", max_episode_steps=3)
...     balanced = SignalHooks(progress=lambda step: (step.step + 1) / 3)
...     envs = VectorWrapper(envs, emitter, family="balancing", hooks=balanced)
...     _ = envs.reset(seed=1)
...     for _ in range(3):
...         _ = envs.step(envs.action_space.sample())
...     envs.close()
>>> [(frame.n_steps, len(frame.ends)) for frame in publisher.frames]
[(4, 0), (4, 0), (4, 4)]
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from springback.producers.emitter.signal_checks import rows_of
from springback.producers.emitter.step_emitter import EndTogether, EpisodeHandle, StepEmitter
from springback.producers.environments.own_vector import as_vector
from springback.producers.environments.signal_hooks import (
    ABORT_REASON,
    ABORTED,
    SignalHooks,
    StepContext,
    as_arrays,
    check_signal_names,
    plain_value,
)
from springback.producers.environments.vector_signals import (
    DISABLED,
    FINAL_OBSERVATIONS,
    NEXT_STEP,
    SAME_STEP,
    BoolArray,
    VectorInfo,
    broken_numbers,
    info_of_slot,
    read_columns,
    slots_apart,
    told_successes,
    with_finals,
)
from springback.producers.install_hints import MissingExtraError

try:
    import gymnasium.vector
    from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv
    from gymnasium.vector.utils import iterate
except ImportError as error:
    raise MissingExtraError(extra="gymnasium", cause=error) from error

# Gymnasium 1.1, the newest that Python 3.9 gets, has no generic one.
if TYPE_CHECKING:
    AnyVectorWrapper = gymnasium.vector.VectorWrapper[Any, Any, Any, Any, Any]
else:
    AnyVectorWrapper = gymnasium.vector.VectorWrapper

log = logging.getLogger(__name__)


class VectorWrapper(AnyVectorWrapper):
    """A vector wrapper that reports each step of each slot to an emitter and changes nothing of what the slots do.

    A slot is an agent with episodes of its own, which begin and end as those of `Wrapper`. Where the
    environment resets slots by itself, the mode is read from its `metadata["autoreset_mode"]`: a step that only resets
    is not reported, and an episode's last info is taken from `final_info`.

    A slot that is broken ends its episode as aborted and is left out until it is reset, while the others go on. When
    a step raises, the error is passed on; the episodes that can take no more steps end as aborted. Put `isolated`
    around the sub-environments, so that an exception in one does not end the step of all.

    The hooks of `SignalHooks` get arrays over the slots and give one value for each of them, or one for all; those of
    an episode (`success`, `navigation`, `realised_magnitude`, `traits`, `stress`) are asked of one slot alone. Put it
    inside of wrappers that change the infos.

    Args:
        envs: the vector environment. A `gymnasium.Env` that is a vector by itself will do (Isaac Lab's are), and its
            tensors stay: the hooks alone see arrays. It counts as one of the same-step mode if it does not say.
        emitter: where the steps go; it stays open when the environments are closed.
        family: the task family of the episodes.
        agents: id of the agent of each slot; by default the producer's with the slot's number, `trainer-1-0`, or
            `trainer-1-0#2` for that of a second wrapper on one emitter.
        hooks: how the signals are read; see `SignalHooks`.
        broken: says of each slot whether it is broken; by default one with a NaN in its observation, or a reward that
            is not finite. Where NaN is a fair observation, say `lambda step: False`.
        clock: gives the instant of a step, s UTC epoch; the emitter's own clock by default.
        **traits: other fields of `EpisodeHeader` that hold for every episode, such as `method` or `version`.

    Attributes:
        deaths: how often each slot was found broken. Shape: (slots,).

    Raises:
        TypeError: `envs` is no vector environment; the message says what to use for what it is.
        ValueError: there is not one agent for each slot.
    """

    def __init__(
        self,
        envs: VectorEnv[Any, Any, Any] | gymnasium.Env[Any, Any],
        emitter: StepEmitter,
        *,
        family: str,
        agents: Sequence[str] | None = None,
        hooks: SignalHooks | None = None,
        broken: Callable[[StepContext], Any] = broken_numbers,
        clock: Callable[[], float] | None = None,
        **traits: Any,
    ) -> None:
        envs = as_vector(envs)
        slots = envs.num_envs
        names = [f"{emitter.producer}-{slot}" for slot in range(slots)]
        self._agents = [emitter.lend_agent(name, self) for name in names] if agents is None else list(agents)
        if len(set(self._agents)) != slots:
            message = f"{slots} slots need an agent each, all different; got {agents!r}"
            raise ValueError(message)
        super().__init__(envs)  # from here on Gymnasium 1.1 closes the environments with a wrapper that is thrown away
        self._emitter = emitter
        self._hooks = SignalHooks() if hooks is None else hooks
        self._broken = broken
        self._clock = emitter.now_s if clock is None else clock
        self._traits = {"family": family, **traits}
        self._next_traits: list[dict[str, Any]] = [{} for _ in range(slots)]
        self._reported: dict[str, Any] = {}
        self._mode = _autoreset_mode(envs)
        self._episodes: list[EpisodeHandle | None] = [None] * slots
        self._told_of_finals = False
        self._latched = np.zeros(slots, dtype=np.bool_)
        self._steps = np.zeros(slots, dtype=np.int64)
        self._running = np.zeros(slots, dtype=np.bool_)
        self._resets_next = np.zeros(slots, dtype=np.bool_)
        self.deaths = np.zeros(slots, dtype=np.int64)

    def describe_next_episode(self, slot: int, **traits: Any) -> None:
        """Says what the next episode of a slot is: fields of `EpisodeHeader`; see `Wrapper`."""
        self._next_traits[slot] = traits

    def report(self, **signals: Any) -> None:
        """Adds what the agents know of the step that they are about to take; it overrides the hooks.

        A signal is an array with a value for each slot, or one value for all.

        Raises:
            SignalError: a signal is not known.
        """
        check_signal_names(signals)
        self._reported.update(signals)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets all slots, or those of `options["reset_mask"]`; episodes that run in them end as aborted."""
        mask = np.ones(len(self._running), dtype=np.bool_)
        if options is not None and options.get("reset_mask") is not None:
            mask = np.array(options["reset_mask"], dtype=np.bool_)  # the environment takes it out of the options
        self._abort(mask & self._running)
        observations, infos = super().reset(seed=seed, options=options)
        self._resets_next &= ~mask
        self._reported.clear()
        self._begin(mask, as_arrays(_checked_infos(infos)))
        return observations, infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Takes a step in every slot and reports it.

        Raises:
            SignalError: a hook has no progress, or gives a value of a wrong type or shape.
        """
        try:
            result = super().step(actions)
        except Exception as error:
            self._lose(error)
            raise
        observations, rewards, terminations, truncations, infos = as_arrays(result)
        slots = len(self._running)  # some have a dimension more
        terminated, truncated = (np.asarray(each, np.bool_).reshape(slots) for each in (terminations, truncations))
        rewards = np.asarray(rewards).reshape(slots)
        ended = terminated | truncated
        of_next = ended if self._mode == SAME_STEP else np.zeros_like(ended)
        info = VectorInfo(_checked_infos(infos), of_next)
        if of_next.any():
            observations = self._with_finals(observations, infos, of_next)
        context = StepContext(
            self.env, as_arrays(actions), observations, rewards, terminated, truncated, info, self._steps
        )
        begin = self._resets_next | of_next
        self._resets_next = ended if self._mode == NEXT_STEP else np.zeros_like(ended)
        try:
            self._report_step(context, info)
        except Exception:
            self._abort(ended & self._running)  # they must not go on in the episodes that follow them
            raise
        finally:
            self._begin(begin, infos)
        return result

    def close(self, **kwargs: Any) -> None:
        """Closes the environments; episodes that are running end as aborted."""
        self._abort(self._running)
        self._emitter.return_agents(self)
        super().close(**kwargs)

    def _with_finals(self, observations: Any, infos: Mapping[str, Any], ended: BoolArray) -> Any:
        finals = next((infos[key] for key in FINAL_OBSERVATIONS if key in infos), None)
        if finals is not None:
            return with_finals(observations, finals, ended)
        if not self._told_of_finals:
            self._told_of_finals = True
            log.warning(
                "this environment resets in the step that ends an episode, and tells no final_obs: hooks that read the "
                "observation of such a step see the next episode's; read from info what must be right at the end"
            )
        return observations

    def _report_step(self, context: StepContext, info: VectorInfo) -> None:
        slots = len(self._running)
        if not self._running.any():
            return
        broken = np.broadcast_to(np.asarray(self._broken(context), dtype=np.bool_), (slots,)) & self._running
        # The last info says whether a sub-environment has died (see `isolated`): that is no step of the task.
        if ABORTED in info:
            dead = info[ABORTED]
            broken = broken | (context.truncated & np.ma.filled(dead, False).astype(np.bool_) & self._running)
        self._bury(broken, info)
        rows = np.flatnonzero(self._running)
        reported, self._reported = self._reported, {}
        if not len(rows):
            return
        columns = {name: rows_of(c, rows) for name, c in read_columns(self._hooks, context, reported, slots).items()}
        ended = self._running & (context.terminated | context.truncated)
        told = told_successes(self._hooks, info, slots) if self._hooks.latch else None
        each_is_asked = self._hooks.latch and told is None
        asked = self._running if each_is_asked else ended
        alone = self._alone(context, info, asked) if asked.any() else {}
        if told is not None:
            self._latched |= told & self._running
        elif each_is_asked:
            self._latch(alone)
        episodes = [episode for episode in self._episodes if episode is not None]
        ends = self._ends(alone, rows, ended, columns["progress"]) if ended.any() else []
        self._emitter.step_together(episodes, self._steps[rows], columns, ends, self._clock())
        self._steps = self._steps + self._running
        self._let_go(ended)

    def _alone(self, context: StepContext, info: VectorInfo, asked: BoolArray) -> dict[int, StepContext]:
        """The step of each slot that is asked for, as its own environment would give it."""
        # The hooks for an end are those of a single environment, so each slot is given to them as one.
        if isinstance(self.env.unwrapped, VectorEnv):
            actions = list(iterate(self.action_space, context.action))
            observations = list(iterate(self.observation_space, context.observation))
        else:  # the spaces of those that are vectors by themselves need not be what Gymnasium makes of many
            slots = len(self._running)
            actions, observations = slots_apart(context.action, slots), slots_apart(context.observation, slots)
        return {
            slot: StepContext(
                context.env,
                actions[slot],
                observations[slot],
                context.reward[slot],
                bool(context.terminated[slot]),
                bool(context.truncated[slot]),
                info.of_slot(slot),
                int(self._steps[slot]),
            )
            for slot in np.flatnonzero(asked).tolist()
        }

    def _latch(self, alone: Mapping[int, StepContext]) -> None:
        for slot, context in alone.items():
            if not self._latched[slot]:
                self._latched[slot] = bool(self._hooks.succeeded(context))

    def _ends(
        self, alone: Mapping[int, StepContext], rows: npt.NDArray[Any], ended: BoolArray, progress: Any
    ) -> list[EndTogether]:
        ends = []
        for place, slot in enumerate(rows.tolist()):
            if ended[slot]:
                outcome = self._hooks.outcome(alone[slot], float(progress[place]), latched=bool(self._latched[slot]))
                magnitude = plain_value(self._hooks.read("realised_magnitude", alone[slot]))
                ends.append(EndTogether(place, outcome, self._hooks.read("navigation", alone[slot]), magnitude))
        return ends

    def _begin(self, mask: BoolArray, infos: Mapping[str, Any]) -> None:
        for slot in np.flatnonzero(mask).tolist():
            told = self._hooks.episode_traits(info_of_slot(infos, slot))
            traits = {**self._traits, **told, **self._next_traits[slot]}
            self._next_traits[slot] = {}
            self._episodes[slot] = self._emitter.begin_episode(self._agents[slot], **traits)
            self._running[slot] = True
            self._latched[slot] = False
            self._steps[slot] = 0

    def _bury(self, broken: BoolArray, info: VectorInfo) -> None:
        for slot in np.flatnonzero(broken).tolist():
            reason = info.of_slot(slot).get(ABORT_REASON, "its observation or reward is broken")
            log.warning("the episode of slot %d (%s) is aborted: %s", slot, self._agents[slot], reason)
        self.deaths += broken
        self._abort(broken)

    def _lose(self, error: Exception) -> None:
        """A step has raised: ends the episodes of the slots that can take no more steps."""
        dead = _dead_slots(self.env.unwrapped, error)
        names = ", ".join(self._agents[slot] for slot in np.flatnonzero(dead).tolist()) or "a slot"
        log.error("%s died: %s: %s", names, type(error).__name__, error)
        self.deaths += dead
        # The pipes of an AsyncVectorEnv are out of step from here on: none of its slots can go on.
        stuck = isinstance(self.env.unwrapped, AsyncVectorEnv)
        self._abort(self._running if stuck else dead & self._running)

    def _abort(self, mask: BoolArray) -> None:
        for slot in np.flatnonzero(mask).tolist():
            episode = self._episodes[slot]
            if episode is not None:
                episode.abort(self._clock())
        self._let_go(mask)

    def _let_go(self, mask: BoolArray) -> None:
        for slot in np.flatnonzero(mask).tolist():
            self._episodes[slot] = None
        self._running = self._running & ~mask


def _autoreset_mode(envs: VectorEnv[Any, Any, Any]) -> str:
    # Like Gymnasium's own wrappers, takes an environment that does not say for one that resets at the next step.
    mode = envs.metadata.get("autoreset_mode", NEXT_STEP)
    name = getattr(mode, "value", mode)
    if name not in (NEXT_STEP, SAME_STEP, DISABLED):
        message = f"metadata['autoreset_mode'] must be one of {NEXT_STEP}, {SAME_STEP}, {DISABLED}; got {mode!r}"
        raise ValueError(message)
    return str(name)


def _checked_infos(infos: Any) -> Mapping[str, Any]:
    if isinstance(infos, Mapping):
        return infos
    message = f"infos must be a dict of arrays, got {type(infos).__name__}; put DictInfoToList and the like outside"
    raise TypeError(message)


def _dead_slots(envs: Any, error: Exception) -> BoolArray:
    """The slots that a step's error came from, as far as Gymnasium lets us see it."""
    dead = np.zeros(envs.num_envs, dtype=np.bool_)
    if isinstance(envs, AsyncVectorEnv):
        for slot, (pipe, process) in enumerate(zip(envs.parent_pipes, envs.processes)):
            dead[slot] = pipe is None or not process.is_alive()
    elif isinstance(envs, SyncVectorEnv):
        trace = error.__traceback__
        while trace is not None:
            # The only record of whose turn it was is its loop's variable.
            if trace.tb_frame.f_code is SyncVectorEnv.step.__code__ and trace.tb_next is not None:
                dead[trace.tb_frame.f_locals["i"]] = True
            trace = trace.tb_next
    return dead
