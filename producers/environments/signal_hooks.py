"""How the signals of a step are read from a Gymnasium environment: one hook each, with sensible defaults.

A hook is a callable of a `StepContext`. None as a result leaves the signal out. By default a signal is read from the
key of its name in `info`, and is left out where there is none; only `progress` must come from somewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from springback.producers.contract.columns import SHARE_ROUNDING
from springback.producers.errors import SignalError

INFO_SUCCESS_KEYS = ("success", "is_success")
ABORTED = "aborted"
"""True in the info of a last step that is no step of the task: the environment died of it (see `isolated`)."""
ABORT_REASON = "abort_reason"


@dataclass(frozen=True)
class StepContext:
    """A step that has just been taken, as the hooks see it.

    In a vector environment everything but `env` is an array over the slots when a step's signals are asked for, and the
    value of one slot when an episode's outcome is.

    Attributes:
        env: the wrapped environment.
        action: the action that was asked for.
        observation: the observation after the step.
        reward: the reward of the step.
        terminated: whether the task has ended by itself.
        truncated: whether the episode was cut off, by a step limit for instance.
        info: the step's info; at the episode's end the final one.
        step: number of the step in its episode, from 0.
    """

    env: Any
    action: Any
    observation: Any
    reward: Any
    terminated: Any
    truncated: Any
    info: Mapping[str, Any]
    step: Any


Hook = Callable[[StepContext], Any]


def _progress_from_info(context: StepContext) -> Any:
    if "progress" in context.info:
        return context.info["progress"]
    keys = ", ".join(sorted(map(str, context.info))) or "none"
    message = (
        f"no progress at step {context.step}: info has no key 'progress' (its keys: {keys}); "
        "say how to read it, for instance SignalHooks(progress=lambda step: step.info['distance_done']), "
        "a number in [0, 1] that is 1 when the task is done"
    )
    raise SignalError(message)


def action_text(context: StepContext) -> str | None:
    """The action where it is a text or a whole number, the default of `SignalHooks.action`."""
    action = context.action
    if isinstance(action, str):
        return action
    if isinstance(action, (int, np.integer)):
        return str(int(action))
    return None


def _traits_from_info(info: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"instruction": info["instruction"]} if "instruction" in info else {}


def success_from_info(context: StepContext) -> Any:
    """The success that the info tells, the default of `SignalHooks.success`; None where it tells none."""
    return next((said for key in INFO_SUCCESS_KEYS if (said := context.info.get(key)) is not None), None)


class SignalHooks(msgspec.Struct, frozen=True, kw_only=True):
    """Where each signal of a step comes from; None is the key of that name in `info`. Units are the step columns'.

    `success` is asked at an episode's end, however it ends, before anything else decides: yes is a success; no is a
    failure where the episode has terminated, and a timeout where it was only cut off; so is None, but that an episode
    that has terminated with its progress at 1 is a success. With `latch` it is asked at every step, and a yes holds
    until the episode's end, for tasks that may be solved and undone (Meta-World, Fetch). `navigation` is asked at an
    episode's end (a mapping of the fields of `NavigationOutcome`, or None), and so is `realised_magnitude` (the size of
    the perturbation as it really was).
    `traits` is asked at a reset, of the reset's info: fields of `EpisodeHeader` that hold for this episode. So is
    `stress`, which gives λ of it, from something measured say (`MeasuredStress`); None leaves it undeclared.

    >>> hooks = SignalHooks(progress=lambda step: step.info["x"] / 8.0)
    >>> hooks.signals(StepContext(None, 1, None, 0.0, False, False, {"x": 2.0, "risk": np.float32(0.5)}, 0))
    {'progress': 0.25, 'risk': 0.5, 'action': '1'}
    """

    progress: Hook = _progress_from_info
    propositions: Hook | None = None
    mode: Hook | None = None
    cycle_time_s: Hook | None = None
    planning_s: Hook | None = None
    perception_s: Hook | None = None
    travel: Hook | None = None
    retries: Hook | None = None
    risk: Hook | None = None
    violation: Hook | None = None
    action: Hook = action_text
    feedback: Hook | None = None
    success: Hook = success_from_info
    latch: bool = False
    navigation: Hook | None = None
    realised_magnitude: Hook | None = None
    traits: Callable[[Mapping[str, Any]], Mapping[str, Any]] = _traits_from_info
    stress: Callable[[Mapping[str, Any]], float | None] | None = None

    def episode_traits(self, info: Mapping[str, Any]) -> dict[str, Any]:
        """The header's fields that hold for the episode that a reset with this info has begun."""
        told = None if self.stress is None else self.stress(info)
        return {**self.traits(info), **({} if told is None else {"stress": told})}

    def signals(self, context: StepContext) -> dict[str, Any]:
        """The signals of a step as plain values, without those that are left out."""
        read = {name: plain_value(self.read(name, context)) for name in SIGNAL_NAMES}
        return {name: value for name, value in read.items() if value is not None}

    def succeeded(self, context: StepContext) -> bool | None:
        """What the success hook says of a step; None where it does not say, or says NaN.

        Raises:
            SignalError: it gives more than one value.
        """
        said = plain_value(self.read("success", context))
        if said is None or (isinstance(said, float) and math.isnan(said)):
            return None
        if np.size(said) != 1:
            message = (
                f"success is of one episode, got {np.size(said)} values: {said!r}; a vector of environments needs "
                "springback.VectorWrapper"
            )
            raise SignalError(message)
        return bool(said)

    def outcome(self, context: StepContext, progress: float, *, latched: bool = False) -> str:
        """The outcome of an episode that ends with this step.

        Args:
            context: its last step.
            progress: the progress after it.
            latched: whether it has succeeded at an earlier step, and that holds.
        """
        success = True if latched else self.succeeded(context)
        if success is None:
            success = bool(context.terminated) and progress >= 1.0 - SHARE_ROUNDING  # sums of float32 need not reach 1
        return "success" if success else "failure" if context.terminated else "timeout"

    def read(self, name: str, context: StepContext) -> Any:
        """What the hook of this name says of a step; None where there is nothing to say."""
        hook: Hook | None = getattr(self, name)
        return context.info.get(name) if hook is None else hook(context)


_EPISODE_HOOKS = ("success", "latch", "navigation", "realised_magnitude", "traits", "stress")
SIGNAL_NAMES = tuple(name for name in SignalHooks.__struct_fields__ if name not in _EPISODE_HOOKS)


def check_signal_names(names: Iterable[str]) -> None:
    """Raises `SignalError` where a name is no signal's."""
    for name in names:
        if name not in SIGNAL_NAMES:
            message = f"there is no signal {name!r}; the signals are {', '.join(SIGNAL_NAMES)}"
            raise SignalError(message)


def plain_value(value: Any) -> Any:
    """The value without numpy or tensors: a scalar, or an array of one element, becomes a plain number; others stay.

    >>> plain_value(np.array([0.25])), plain_value(np.bool_(True)), plain_value("navigate")
    (0.25, 1.0, 'navigate')
    """
    if type(value) is float or value is None:
        return value
    value = as_arrays(value)
    if isinstance(value, (np.ndarray, np.generic)) and value.size == 1:
        value = value.item()
    return float(value) if isinstance(value, bool) else value


def as_arrays(values: Any) -> Any:
    """The values with numpy's arrays in place of tensors (PyTorch's, JAX's), in mappings, tuples and lists too."""
    if isinstance(values, (np.ndarray, np.generic, str, int, float)) or values is None:
        return values
    if isinstance(values, Mapping):
        return {key: as_arrays(value) for key, value in values.items()}
    if isinstance(values, (tuple, list)):
        return type(values)(map(as_arrays, values)) if type(values) in (tuple, list) else values
    if hasattr(values, "detach") and hasattr(values, "cpu"):  # a tensor of PyTorch says no otherwise on another device
        values = values.detach().cpu()
    return np.asarray(values) if hasattr(values, "__array__") else values
