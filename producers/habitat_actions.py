"""What an action of Habitat is called, and which mode of execution it stands for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

NAVIGATION_ACTIONS = ("stop", "move_forward", "turn_left", "turn_right", "look_up", "look_down")
"""The order in which habitat-lab's own navigation tasks number their actions."""

_MODE_OF_WORD = {
    **dict.fromkeys(("stop", "done"), "stop"),
    **dict.fromkeys(
        ("pick", "place", "arm", "grip", "grasp", "open", "close", "pour", "clean", "fill", "power"), "manipulate"
    ),
    **dict.fromkeys(("look", "find", "perceive"), "perceive"),
    **dict.fromkeys(("talk", "say", "communicate"), "communicate"),
    **dict.fromkeys(("wait", "empty", "noop"), "wait"),
    **dict.fromkeys(("turn", "left", "right", "rotate"), "turn"),
    **dict.fromkeys(("move", "forward", "backward", "navigate", "nav", "base", "velocity", "explore"), "navigate"),
}
_ORDER = tuple(dict.fromkeys(_MODE_OF_WORD.values()))


@dataclass(frozen=True, slots=True)
class ActionWord:
    """An action in words.

    Attributes:
        name: its name; empty where it has none, as a vector of joint speeds.
        mode: its mode; None where it is not known.
        must_move: whether it is one of those that change the pose whenever they succeed.
    """

    name: str
    mode: str | None
    must_move: bool


def action_word(
    action: Any,
    name_of: Callable[[int], str | None] | None = None,
    mode: Callable[[str], str] | None = None,
) -> ActionWord:
    """The action in words.

    Args:
        action: what was given to `step`: a name, an index, or habitat-lab's mapping with `action` and `action_args`.
        name_of: the name of an action's index; None where it has none.
        mode: the mode of a name; None takes `mode_of`.

    >>> action_word("turn_left"), action_word(np.int64(1), NAVIGATION_ACTIONS.__getitem__).name
    (ActionWord(name='turn_left', mode='turn', must_move=True), 'move_forward')
    >>> action_word({"action": ("arm_action", "base_velocity"), "action_args": {}})
    ActionWord(name='arm_action+base_velocity', mode='manipulate', must_move=False)
    """
    discrete = not isinstance(action, Mapping) or not action.get("action_args")
    name = _name(action.get("action") if isinstance(action, Mapping) else action, name_of)
    if not name:
        return ActionWord("", None, False)
    said = mode_of(name) if mode is None else mode(name)
    return ActionWord(name, said, discrete and "+" not in name and mode_of(name) in ("turn", "navigate"))


def mode_of(name: str) -> str | None:
    """The mode of an action's name; of several words the one that says most; None where no word is known.

    >>> [mode_of(name) for name in ("move_forward", "rearrange_stop", "pick_object", "look_up", "dance")]
    ['navigate', 'stop', 'manipulate', 'perceive', None]
    """
    words = name.lower().replace("+", "_").split("_")
    modes = {_MODE_OF_WORD[word] for word in words if word in _MODE_OF_WORD}
    return next((mode for mode in _ORDER if mode in modes), None)


def names_in_order(names: Sequence[str]) -> Callable[[int], str | None]:
    """Looks an index up in a list of names; None where it lies outside."""
    return lambda index: names[index] if 0 <= index < len(names) else None


def _name(action: Any, name_of: Callable[[int], str | None] | None) -> str:
    if isinstance(action, str):
        return action
    if isinstance(action, tuple | list) and all(isinstance(part, str) for part in action):
        return "+".join(action)
    if isinstance(action, np.ndarray) and action.size == 1 and np.issubdtype(action.dtype, np.integer):
        action = action.item()
    if isinstance(action, int | np.integer) and not isinstance(action, bool):
        return (None if name_of is None else name_of(int(action))) or str(int(action))
    return ""
