"""What a vector environment's step says, as arrays over its slots and slot by slot; without Gymnasium itself.

Gymnasium gives the infos of all slots as one dict: for each key an array over the slots, and under `_key` which of them
have it. In the same-step autoreset mode the slots whose episode has ended have its last info under `final_info`, and
the info of the next episode in its place. Environments that are not Gymnasium's own give a list of dicts there. What
`RecordEpisodeStatistics` adds under `episode` is the ended episode's, though it stands beside the next one's info.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from springback.producers.contract.frame import StepColumn
from springback.producers.emitter.signal_checks import checked_columns
from springback.producers.environments.signal_hooks import (
    INFO_SUCCESS_KEYS,
    SIGNAL_NAMES,
    SignalHooks,
    StepContext,
    action_text,
    success_from_info,
)

BoolArray = npt.NDArray[np.bool_]
NEXT_STEP, SAME_STEP, DISABLED = "NextStep", "SameStep", "Disabled"
FINAL_INFO, STATISTICS = "final_info", "episode"
FINAL_OBSERVATIONS = ("final_obs", "final_observation")
"""Gymnasium's key from version 1 on, and the one before it."""


class VectorInfo(Mapping[str, Any]):
    """The infos of the step that was taken, the last ones of episodes that have ended put back in their place.

    The value of a key is an array over the slots, masked where some of them do not have it; nested dicts are of the
    same kind; a value that is not one for each slot stays as it is.

    >>> infos = {"x": np.array([7.0, 2.0]), "final_info": {"x": np.array([1.0, 0.0])}}
    >>> VectorInfo(infos, np.array([True, False]))["x"].tolist()
    [1.0, 2.0]

    Args:
        infos: as the vector environment gave them.
        ended: the slots whose episode has ended and whose own info is the next episode's. Shape: (slots,).
    """

    def __init__(self, infos: Mapping[str, Any], ended: BoolArray) -> None:
        final = infos.get(FINAL_INFO) if ended.any() else None
        if final is not None:
            final = final if isinstance(final, Mapping) else gathered(final)
            final = {**{key: infos[key] for key in (STATISTICS, f"_{STATISTICS}") if key in infos}, **final}
        self._now = {key: value for key, value in infos.items() if not _is_extra(key, infos)}
        self._final: Mapping[str, Any] | None = final
        self._infos = infos
        self._ended = ended

    def __getitem__(self, key: str) -> Any:
        """The values of a key."""
        if self._final is None:
            return self._masked(self._now[key], _has(self._infos, key, len(self._ended)))
        if key not in self._final or _is_extra(key, self._final):
            present = _has(self._infos, key, len(self._ended)) & ~self._ended
            return self._masked(self._now[key], present)
        final, here = self._final[key], _has(self._final, key, len(self._ended)) & self._ended
        if key not in self._now:
            return self._masked(final, here)
        now, there = self._now[key], _has(self._infos, key, len(self._ended)) & ~self._ended
        if isinstance(now, Mapping) and isinstance(final, Mapping):
            return VectorInfo({**now, FINAL_INFO: final}, self._ended)
        if not _is_column(now, len(self._ended)) or not _is_column(final, len(self._ended)):
            return now
        ended = self._ended.reshape(-1, *[1] * (now.ndim - 1))
        return self._masked(np.where(ended, final, now), here | there)

    def __iter__(self) -> Iterator[str]:
        """The keys that any slot has."""
        own = [] if self._final is None else [key for key in self._final if not _is_extra(key, self._final)]
        return iter(dict.fromkeys([*self._now, *own]))

    def __len__(self) -> int:
        """How many keys there are."""
        return sum(1 for _ in self)

    def of_slot(self, slot: int) -> dict[str, Any]:
        """The info of the step of one slot, as its own environment gave it."""
        return info_of_slot(self._infos if self._final is None or not self._ended[slot] else self._final, slot)

    def _masked(self, values: Any, present: BoolArray) -> Any:
        if isinstance(values, Mapping):
            return VectorInfo(values, np.zeros_like(self._ended))
        if present.all() or not _is_column(values, len(self._ended)):
            return values
        absent = np.broadcast_to(~present.reshape(-1, *[1] * (values.ndim - 1)), values.shape)
        return np.ma.MaskedArray(values, mask=absent)


def info_of_slot(infos: Mapping[str, Any], slot: int) -> dict[str, Any]:
    """One slot's part of the infos of all.

    >>> info_of_slot({"x": np.array([0.0, 2.0]), "_x": np.array([False, True])}, 1) == {"x": 2.0}
    True
    """
    found = {}
    for key, value in infos.items():
        mask = infos.get(f"_{key}")
        if _is_extra(key, infos) or (isinstance(mask, np.ndarray) and not mask[slot]):
            continue
        if isinstance(value, Mapping):
            found[key] = info_of_slot(value, slot)
        else:
            found[key] = value[slot] if isinstance(value, np.ndarray) and value.ndim and slot < len(value) else value
    return found


def slots_apart(values: Any, slots: int) -> list[Any]:
    """The part of each slot of batched values: arrays, and mappings and tuples of them. What is not batched is each's.

    >>> slots_apart({"policy": np.array([[1.0], [2.0]])}, 2)
    [{'policy': array([1.])}, {'policy': array([2.])}]
    """
    if isinstance(values, Mapping):
        parts = {key: slots_apart(value, slots) for key, value in values.items()}
        return [{key: part[slot] for key, part in parts.items()} for slot in range(slots)]
    if isinstance(values, tuple):
        return list(zip(*(slots_apart(value, slots) for value in values)))
    return list(values) if _is_column(values, slots) else [values] * slots


def gathered(infos: Sequence[Mapping[str, Any] | None]) -> dict[str, Any]:
    """The infos of slots one by one, None where a slot has none, as Gymnasium gives those of all of them.

    >>> gathered([None, {"x": 2.0}])
    {'x': array([2., 2.]), '_x': array([False,  True])}
    """
    own: list[Mapping[str, Any]] = [info if isinstance(info, Mapping) else {} for info in infos]
    found: dict[str, Any] = {}
    for key in dict.fromkeys(key for info in own for key in info):
        cells = [info[key] for info in own if key in info]
        if isinstance(cells[0], Mapping):
            found[key] = gathered([info.get(key) for info in own])
        else:
            found[key] = _stacked([info.get(key, cells[0]) for info in own])
        found[f"_{key}"] = np.array([key in info for info in own])
    return found


def with_finals(observations: Any, finals: Any, ended: BoolArray) -> Any:
    """The observations, with the last ones of episodes that have ended in place of those of the next episodes."""
    slots = np.flatnonzero(ended).tolist()
    if isinstance(observations, Mapping):
        if not isinstance(finals, Mapping):
            finals = {key: [None if final is None else final[key] for final in finals] for key in observations}
        return {key: with_finals(value, finals[key], ended) for key, value in observations.items()}
    if isinstance(observations, tuple) and observations and isinstance(observations[0], np.ndarray):
        split = [[None if final is None else final[place] for final in finals] for place in range(len(observations))]
        return tuple(with_finals(value, part, ended) for value, part in zip(observations, split))
    mended: Any = observations.copy() if isinstance(observations, np.ndarray) else list(observations)
    for slot in slots:
        mended[slot] = finals[slot]
    return mended if isinstance(mended, np.ndarray) else tuple(mended)


def has_nan(values: Any, slots: int) -> BoolArray:
    """Which slots have a NaN anywhere in their part of the values. Shape: (slots,)."""
    found = np.zeros(slots, dtype=np.bool_)
    parts = values.values() if isinstance(values, Mapping) else values if isinstance(values, tuple) else ()
    for part in parts:
        found |= has_nan(part, slots)
    if isinstance(values, np.ndarray) and values.dtype.kind in "fc" and values.shape[:1] == (slots,):
        found |= np.isnan(values).reshape(slots, -1).any(axis=1)
    return found


def broken_numbers(context: StepContext) -> BoolArray:
    """Which slots are broken by default: those with a NaN in their observation, or a reward that is not finite."""
    rewards = np.asarray(context.reward, dtype=np.float64)
    return ~np.isfinite(rewards) | has_nan(context.observation, len(rewards))


def told_successes(hooks: SignalHooks, info: VectorInfo, slots: int) -> BoolArray | None:
    """Which slots' infos say success, without a loop over them; None where each has to be asked. Shape: (slots,)."""
    keys = [key for key in INFO_SUCCESS_KEYS if key in info]
    if hooks.success is not success_from_info or len(keys) > 1:
        return None
    if not keys:
        return np.zeros(slots, dtype=np.bool_)
    said = np.ma.filled(info[keys[0]], 0) if isinstance(info[keys[0]], np.ndarray) else np.empty(0, dtype=object)
    if said.dtype.kind not in "biuf" or said.size != slots:
        return None
    said = said.reshape(slots)
    successes: BoolArray = (said != 0) & (said == said)  # NaN says nothing
    return successes


def read_columns(
    hooks: SignalHooks, context: StepContext, reported: Mapping[str, Any], slots: int
) -> dict[str, StepColumn]:
    """The signals of all slots: what the agent reported, else what the hooks say."""
    signals = {name: hooks.read(name, context) for name in SIGNAL_NAMES if name not in reported}
    if hooks.action is action_text and "action" not in reported:
        action = np.asarray(context.action)
        signals["action"] = action if action.dtype.kind in "iu" and action.shape == (slots,) else None
    return checked_columns({**signals, **reported}, slots)


def _stacked(cells: list[Any]) -> npt.NDArray[Any]:
    if all(isinstance(cell, (float, int, np.number, np.bool_)) for cell in cells):
        return np.array(cells)
    if all(isinstance(cell, np.ndarray) and cell.shape == np.shape(cells[0]) for cell in cells):
        return np.stack(cells)
    return np.fromiter(cells, dtype=object, count=len(cells))


def _has(infos: Mapping[str, Any], key: str, slots: int) -> BoolArray:
    if key not in infos:
        return np.zeros(slots, dtype=np.bool_)
    mask = infos.get(f"_{key}")
    return np.ones(slots, dtype=np.bool_) if mask is None else np.asarray(mask, dtype=np.bool_)


def _is_extra(key: str, infos: Mapping[str, Any]) -> bool:
    return key in (FINAL_INFO, *FINAL_OBSERVATIONS) or (key.startswith("_") and key[1:] in infos)


def _is_column(values: Any, slots: int) -> bool:
    return isinstance(values, np.ndarray) and values.ndim > 0 and len(values) == slots
