"""Environments that are vectors by themselves, as Isaac Lab's: tensors, resets in the step, no final info."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest

from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.environments.signal_hooks import SignalHooks, StepContext
from springback.producers.environments.vector_signals import VectorInfo, told_successes
from springback.producers.environments.vector_wrapper import VectorWrapper


class Tensor:
    """A tensor on another device: numpy gets nothing out of it until it was detached and copied."""

    def __init__(self, values: Any, where: str = "cuda") -> None:
        self.values, self.where = np.asarray(values), where

    def detach(self) -> Tensor:
        return Tensor(self.values, self.where)

    def cpu(self) -> Tensor:
        return Tensor(self.values, "cpu")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if self.where != "cpu":
            message = "can't convert cuda device type tensor to numpy"
            raise TypeError(message)
        return self.values.astype(dtype) if dtype is not None else self.values


class Lift(gymnasium.Env[Any, Any]):
    """Three arms that lift in 4 steps; the limit is 4 steps too, and nothing ever terminates but arm 2, which drops.

    Arm 0 has lifted at the end, arm 1 never, arm 2 at its second step before it drops at the third.
    """

    num_envs = 3
    shape: tuple[int, ...] = (3,)
    single_observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    single_action_space = gymnasium.spaces.Box(-1, 1, (2,))
    observation_space = gymnasium.spaces.Dict({"policy": gymnasium.spaces.Box(-1, 1, (3, 1))})
    action_space = gymnasium.spaces.Box(-1, 1, (3, 2))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.taken = np.zeros(3, dtype=int)
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        self.taken += 1
        terminated = np.array([False, False, self.taken[2] == 3])
        truncated = self.taken == 4
        success = np.array([self.taken[0] == 4, False, self.taken[2] == 2])
        extras = {"success": Tensor(success), "progress": Tensor(self.taken / 4.0), "log": {"reward/lift": Tensor(0.5)}}
        self.taken[terminated | truncated] = 0
        rewards, *ends = (Tensor(values.reshape(self.shape)) for values in (np.zeros(3), terminated, truncated))
        return self._seen(), rewards, *ends, extras

    def _seen(self) -> Any:
        return {"policy": Tensor(self.taken.reshape(3, 1) / 4.0)}


@pytest.fixture
def publisher() -> MemoryPublisher:
    return MemoryPublisher()


@pytest.fixture
def emitter(publisher: MemoryPublisher) -> Iterator[StepEmitter]:
    with StepEmitter(publisher, producer="isaac", session="s", clock=lambda: 1.8e9) as emitter:
        yield emitter


def ends(publisher: MemoryPublisher) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for frame in publisher.frames:
        for end in frame.ends:
            found.setdefault(frame.episodes[end.episode].agent, []).append(end.outcome)
    return found


@pytest.mark.parametrize(
    ("latch", "arm_2"), [(False, ["failure", "failure"]), (True, ["success", "success"])], ids=["last", "latched"]
)
def test_each_slot_has_its_own_success(
    emitter: StepEmitter, publisher: MemoryPublisher, latch: bool, arm_2: list[str]
) -> None:
    envs = VectorWrapper(Lift(), emitter, family="lift", hooks=SignalHooks(latch=latch))
    envs.reset()
    for _ in range(8):
        observation, *_ = envs.step(Tensor(np.zeros((3, 2))))
        assert isinstance(observation["policy"], Tensor)  # what the trainer gets stays what it was
    assert emitter.flush()
    assert ends(publisher) == {"isaac-0": ["success"] * 2, "isaac-1": ["timeout"] * 2, "isaac-2": arm_2}
    assert [frame.n_steps for frame in publisher.frames] == [3] * 8


@pytest.mark.parametrize(
    ("infos", "told"),
    [
        ({"success": np.array([1.0, 0.0, np.nan])}, [True, False, False]),
        (
            {"is_success": np.array([True, True, False]), "_is_success": np.array([True, False, True])},
            [True, False, False],
        ),
        ({"success": np.array([[1], [0], [1]])}, [True, False, True]),
        ({}, [False, False, False]),
        ({"success": np.array([True, None, False], dtype=object)}, None),  # each slot is asked
        ({"success": np.ones(3), "is_success": np.zeros(3)}, None),
    ],
)
def test_successes_of_all_slots_are_read_at_once_where_they_can_be(
    infos: dict[str, Any], told: list[bool] | None
) -> None:
    found = told_successes(SignalHooks(latch=True), VectorInfo(infos, np.zeros(3, bool)), 3)
    assert (None if found is None else found.tolist()) == told
    hooked = SignalHooks(latch=True, success=lambda step: True)
    assert told_successes(hooked, VectorInfo(infos, np.zeros(3, bool)), 3) is None


def test_a_dimension_more_is_none(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    lift = Lift()
    lift.shape = (3, 1)
    envs = VectorWrapper(lift, emitter, family="lift")
    envs.reset()
    for _ in range(4):
        envs.step(Tensor(np.zeros((3, 2))))
    assert emitter.flush()
    assert ends(publisher) == {"isaac-0": ["success"], "isaac-1": ["timeout"], "isaac-2": ["failure"]}


def test_a_hook_of_success_sees_one_slot_with_arrays_for_tensors(
    emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    seen: list[Any] = []

    def nearly_there(step: StepContext) -> bool:
        seen.append(step.info["success"])
        return bool(step.info["progress"] > 0.9)

    hooks = SignalHooks(latch=True, success=nearly_there)
    envs = VectorWrapper(Lift(), emitter, family="lift", hooks=hooks)
    envs.reset()
    for _ in range(4):
        envs.step(Tensor(np.zeros((3, 2))))
    assert emitter.flush()
    assert ends(publisher) == {"isaac-0": ["success"], "isaac-1": ["success"], "isaac-2": ["failure"]}
    assert {np.ndim(value) for value in seen} == {0}


def test_what_another_vector_left_in_the_metadata_of_all_environments_is_not_this_ones(
    emitter: StepEmitter, publisher: MemoryPublisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(gymnasium.Env.metadata, "autoreset_mode", gymnasium.vector.AutoresetMode.NEXT_STEP)
    envs = VectorWrapper(Lift(), emitter, family="lift")
    envs.reset()
    for _ in range(8):
        envs.step(Tensor(np.zeros((3, 2))))
    assert emitter.flush()
    assert [frame.n_steps for frame in publisher.frames] == [3] * 8  # none of them only resets


def test_the_observation_at_an_end_is_said_to_be_the_next_episodes(
    emitter: StepEmitter, caplog: pytest.LogCaptureFixture
) -> None:
    envs = VectorWrapper(Lift(), emitter, family="lift")
    envs.reset()
    with caplog.at_level(logging.WARNING):
        for _ in range(8):
            envs.step(Tensor(np.zeros((3, 2))))
    assert [record.getMessage() for record in caplog.records if "final_obs" in record.getMessage()] == [
        "this environment resets in the step that ends an episode, and tells no final_obs: hooks that read the "
        "observation of such a step see the next episode's; read from info what must be right at the end"
    ]


def test_what_is_the_environments_own_can_be_had(emitter: StepEmitter) -> None:
    lift = Lift()
    envs = VectorWrapper(lift, emitter, family="lift")
    envs.reset()
    assert envs.unwrapped is lift  # type: ignore[comparison-overlap]
    assert envs.env.taken.tolist() == [0, 0, 0]  # type: ignore[attr-defined]
    envs.close()


def test_a_vector_of_gymnasium_that_is_cut_off_says_its_success(
    emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    class Arm(gymnasium.Env[Any, Any]):
        """Has reached what it was to at its second step, and lets go of it at the third."""

        observation_space = gymnasium.spaces.Discrete(2)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
            super().reset(seed=seed)
            self.taken = 0
            return 0, {"is_success": True}  # of the reset: nobody's success

        def step(self, action: Any) -> Any:
            self.taken += 1
            return 0, 0.0, False, self.taken == 3, {"progress": 0.5, "is_success": self.taken == 2}

    for mode in ("SameStep", "NextStep"):
        for latch in (False, True):
            made = gymnasium.vector.SyncVectorEnv([Arm] * 2, autoreset_mode=gymnasium.vector.AutoresetMode(mode))
            envs = VectorWrapper(
                made, emitter, family="reach", hooks=SignalHooks(latch=latch), agents=[mode, str(latch)]
            )
            envs.reset()
            for _ in range(3):
                envs.step(np.array([0, 0]))
            assert emitter.flush()
            assert {end.outcome for end in publisher.frames[-1].ends} == {"success" if latch else "timeout"}
            envs.close()
