"""Success is seen: who says it, and when, in a single environment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.environments.signal_hooks import SignalHooks
from springback.producers.environments.wrapper import Wrapper
from springback.producers.errors import SignalError


class Told(gymnasium.Env[Any, Any]):
    """An arm whose `terminated` is never true: each step's info is the next of those it was given."""

    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Discrete(2)

    def __init__(self, *infos: dict[str, Any], terminates: bool = False) -> None:
        self.infos = infos
        self.terminates = terminates
        self.taken = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.taken = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        info = self.infos[self.taken]
        self.taken += 1
        return 0, 0.0, self.terminates and self.taken == len(self.infos), False, {"progress": 0.5, **info}


@pytest.fixture
def publisher() -> MemoryPublisher:
    return MemoryPublisher()


@pytest.fixture
def emitter(publisher: MemoryPublisher) -> Iterator[StepEmitter]:
    with StepEmitter(publisher, producer="arm-1", session="s", clock=lambda: 1.8e9) as emitter:
        yield emitter


def outcome(emitter: StepEmitter, publisher: MemoryPublisher, told: Told, hooks: SignalHooks | None = None) -> str:
    """How an episode ends that a step limit cuts off, unless it has terminated by then."""
    env = Wrapper(TimeLimit(told, len(told.infos)), emitter, family="reach", hooks=hooks)
    env.reset()
    for _ in told.infos:
        env.step(0)
    assert emitter.flush()
    return publisher.frames[-1].ends[0].outcome


@pytest.mark.parametrize("key", ["is_success", "success"])
@pytest.mark.parametrize(
    ("said", "cut_off", "terminated"),
    [
        (True, "success", "success"),
        (np.bool_(True), "success", "success"),
        (1.0, "success", "success"),  # Meta-World says it as a number
        (np.array([1.0], np.float32), "success", "success"),
        (False, "timeout", "failure"),
        (0.0, "timeout", "failure"),
        (None, "timeout", "failure"),
        (float("nan"), "timeout", "failure"),
    ],
)
def test_what_the_info_says_goes_before_the_step_limit(
    emitter: StepEmitter, publisher: MemoryPublisher, key: str, said: Any, cut_off: str, terminated: str
) -> None:
    assert outcome(emitter, publisher, Told({}, {key: said})) == cut_off
    assert outcome(emitter, publisher, Told({}, {key: said}, terminates=True)) == terminated


def test_the_hook_is_asked_before_the_step_limit_decides(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    there = SignalHooks(success=lambda step: step.info["distance"] < 0.05)
    assert outcome(emitter, publisher, Told({}, {"distance": 0.01}), there) == "success"
    assert outcome(emitter, publisher, Told({}, {"distance": 0.5}), there) == "timeout"


def test_progress_alone_makes_no_success_of_what_was_cut_off(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    assert outcome(emitter, publisher, Told({"progress": 1.0})) == "timeout"


def test_progress_that_float32_has_rounded_is_1(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    summed = float(np.cumsum(np.full(40, np.float32(1 / 40), np.float32))[-1])
    assert summed < 1.0
    assert outcome(emitter, publisher, Told({"progress": summed}, terminates=True)) == "success"


def test_a_success_that_is_undone_counts_only_where_it_is_latched(
    emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    undone: tuple[dict[str, Any], ...] = ({"success": 0.0}, {"success": 1.0}, {"success": 0.0})
    assert outcome(emitter, publisher, Told(*undone)) == "timeout"
    assert outcome(emitter, publisher, Told(*undone), SignalHooks(latch=True)) == "success"
    assert outcome(emitter, publisher, Told(*undone, terminates=True), SignalHooks(latch=True)) == "success"


def test_a_latched_success_does_not_outlive_its_episode(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    told = Told({"success": True}, {"success": False})
    env = Wrapper(TimeLimit(told, 2), emitter, family="reach", hooks=SignalHooks(latch=True))
    for infos in (told.infos, ({}, {})):
        told.infos = infos
        env.reset()
        env.step(0)
        env.step(0)
    assert emitter.flush()
    assert [end.outcome for frame in publisher.frames for end in frame.ends] == ["success", "timeout"]


def test_a_success_of_many_is_none_of_one(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    with pytest.raises(SignalError, match=r"success is of one episode, got 2 values: .*; .*springback\.VectorWrapper"):
        outcome(emitter, publisher, Told({"success": np.array([True, False])}))
