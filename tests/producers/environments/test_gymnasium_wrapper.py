from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.wrappers import Autoreset, TimeLimit

from springback.producers.contract.frame import EpisodeEnd, EpisodeHeader
from springback.producers.emitter.measured_stress import MeasuredStress
from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.environments.signal_hooks import SignalHooks
from springback.producers.environments.wrapper import Wrapper
from springback.producers.errors import SignalError

NOW_S = 1_800_000_000.0


class Walk(gymnasium.Env[Any, Any]):
    """Steps of 1 towards `length`; each step's info is what the test wants it to be."""

    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Discrete(100)

    def __init__(self, length: int = 3, info: Mapping[str, Any] | None = None) -> None:
        self.length = length
        self.info = dict(info or {})
        self.place = 0
        self.closed = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = 0
        return 0, {"instruction": "walk to the end"}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.place += action
        info = {"progress": self.place / self.length, **self.info}
        return self.place, 0.0, self.place == self.length, False, info

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def publisher() -> MemoryPublisher:
    return MemoryPublisher()


@pytest.fixture
def emitter(publisher: MemoryPublisher) -> Iterator[StepEmitter]:
    with StepEmitter(publisher, producer="trainer-1", session="s", clock=lambda: NOW_S) as emitter:
        yield emitter


def column(publisher: MemoryPublisher, name: str) -> list[Any]:
    cells: list[Any] = []
    for frame in publisher.frames:
        if name in frame.steps:
            values: Any = frame.steps[name]
            cells += values.texts() if hasattr(values, "texts") else values.tolist()
    return cells


def headers(publisher: MemoryPublisher) -> list[EpisodeHeader]:
    seen: dict[str, EpisodeHeader] = {}
    for frame in publisher.frames:
        seen.update({header.episode: header for header in frame.episodes})
    return list(seen.values())


def ends(publisher: MemoryPublisher) -> list[EpisodeEnd]:
    return [end for frame in publisher.frames for end in frame.ends]


def outcomes(publisher: MemoryPublisher) -> list[str]:
    return [end.outcome for end in ends(publisher)]


def test_reports_each_step_and_changes_nothing(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    bare, wrapped = Walk(), Wrapper(Walk(), emitter, family="walking")
    assert wrapped.reset(seed=1) == bare.reset(seed=1)
    for action in (1, 0, 1, 1):
        assert wrapped.step(action) == bare.step(action)
    assert emitter.flush()
    assert column(publisher, "step") == [0, 1, 2, 3]
    assert column(publisher, "progress") == [1 / 3, 1 / 3, 2 / 3, 1.0]
    assert column(publisher, "action") == ["1", "0", "1", "1"]
    assert outcomes(publisher) == ["success"]
    assert headers(publisher)[0].instruction == "walk to the end"


def test_signals_come_from_hooks_then_info_and_the_agents_report_goes_first(
    emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    hooks = SignalHooks(
        travel=lambda step: step.action * 0.5,
        mode=lambda step: "walk" if step.action else None,
        action=lambda step: f"step {step.step}",
    )
    env = Wrapper(Walk(info={"risk": 0.25, "planning_s": 9.0}), emitter, family="walking", hooks=hooks)
    env.reset()
    env.report(planning_s=0.5)
    env.step(1)
    env.step(0)
    assert emitter.flush()
    assert column(publisher, "travel") == [0.5, 0.0]
    assert column(publisher, "mode") == ["walk", "run"]
    assert column(publisher, "action") == ["step 0", "step 1"]
    assert column(publisher, "risk") == [0.25, 0.25]
    assert column(publisher, "planning_s") == [0.5, 9.0]


def test_report_refuses_an_unknown_signal(emitter: StepEmitter) -> None:
    env = Wrapper(Walk(), emitter, family="walking")
    with pytest.raises(SignalError, match="there is no signal 'speed'; the signals are progress, "):
        env.report(speed=1.0)


def test_a_report_does_not_outlive_a_reset(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    env = Wrapper(Walk(), emitter, family="walking")
    env.reset()
    env.report(retries=1)
    env.reset()
    env.step(0)
    assert emitter.flush()
    assert column(publisher, "retries") == []


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({}, "success"),
        ({"success": False}, "failure"),
        ({"is_success": np.bool_(True), "progress": 0.5}, "success"),
        ({"progress": 0.5}, "failure"),
    ],
)
def test_termination_ends_as_success_or_failure(
    emitter: StepEmitter, publisher: MemoryPublisher, info: dict[str, Any], expected: str
) -> None:
    env = Wrapper(Walk(length=1, info=info), emitter, family="walking")
    env.reset()
    env.step(1)
    assert emitter.flush()
    assert outcomes(publisher) == [expected]


def test_truncation_ends_as_timeout_and_termination_goes_before_it(
    emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    env = Wrapper(TimeLimit(Walk(length=2), max_episode_steps=2), emitter, family="walking")
    env.reset()
    env.step(0)
    env.step(1)
    env.reset()
    env.step(1)
    env.step(1)
    assert emitter.flush()
    assert outcomes(publisher) == ["timeout", "success"]


def test_reset_and_close_in_mid_episode_abort_it(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    walk = Walk()
    env = Wrapper(walk, emitter, family="walking")
    env.reset()
    env.step(1)
    env.reset()
    env.step(1)
    env.close()
    env.close()
    assert emitter.flush()
    assert outcomes(publisher) == ["aborted", "aborted"]
    assert [header.episode for header in headers(publisher)] == ["0", "1"]
    assert walk.closed
    assert emitter.report.steps_sent == 2  # the emitter outlives the environment


def test_the_final_info_is_what_the_navigation_hook_sees(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    hooks = SignalHooks(navigation=lambda step: {"path": float(step.step + 1), "actions": step.info["taken"]})
    env = Wrapper(Walk(length=2, info={"taken": np.int64(2)}), emitter, family="walking", hooks=hooks)
    env.reset()
    env.step(1)
    env.step(1)
    assert emitter.flush()
    navigation = ends(publisher)[0].navigation
    assert navigation is not None
    assert (navigation.path, navigation.actions) == (2.0, 2)


def test_the_stress_hook_gives_what_was_measured_at_the_reset(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    loads: list[Any] = [np.float32(5.0), 30.0, None]

    class Loaded(Walk):
        """Weighs its load at each reset."""

        def reset(self, **options: Any) -> tuple[int, dict[str, Any]]:
            place, info = super().reset(**options)
            return place, info | {"payload_kg": loads.pop(0)}

    hooks = SignalHooks(stress=MeasuredStress("payload_kg", zero=0.0, one=20.0))
    env = Wrapper(Loaded(length=1), emitter, family="walking", hooks=hooks)
    for _ in range(3):
        env.reset()
        env.step(1)
    assert emitter.flush()
    assert [header.stress for header in headers(publisher)] == [0.25, 1.0, None]  # of 0 to 20 kg; undeclared


def test_the_magnitude_that_was_realised_is_asked_at_the_end(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    hooks = SignalHooks(realised_magnitude=lambda step: step.info["pushes"] / 10)
    for hooked, info in ((None, {"realised_magnitude": np.float32(0.5)}), (hooks, {"pushes": 3}), (None, {})):
        env = Wrapper(Walk(length=1, info=info), emitter, family="walking", hooks=hooked)
        env.reset()
        env.step(1)
        assert emitter.flush()
    assert [end.realised_magnitude for end in ends(publisher)] == [0.5, 0.3, None]


def test_traits_of_the_wrapper_hold_on_and_those_of_an_episode_once(
    emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    env = Wrapper(Walk(length=1), emitter, family="walking", agent="walker", method="straight on", version="2")
    env.describe_next_episode(task="t-1", stress=0.4, perturbation="physical", episode="first")
    for _ in range(2):
        env.reset()
        env.step(1)
    assert emitter.flush()
    first, second = headers(publisher)
    assert (first.agent, first.episode, first.task, first.stress) == ("walker", "first", "t-1", 0.4)
    assert (second.agent, second.episode, second.task, second.stress) == ("walker", "1", None, None)
    assert (first.method, first.version) == (second.method, second.version) == ("straight on", "2")


def test_a_missing_progress_says_what_to_do(emitter: StepEmitter) -> None:
    env = Wrapper(gymnasium.make("CartPole-v1"), emitter, family="balancing")
    env.reset(seed=0)
    with pytest.raises(SignalError, match=r"info has no key 'progress' .*SignalHooks\(progress="):
        env.step(0)
    env.close()


def test_a_step_without_an_episode_is_refused(emitter: StepEmitter) -> None:
    env = Wrapper(Walk(length=1), emitter, family="walking")
    with pytest.raises(ResetNeeded):
        env.step(0)
    env.reset()
    env.step(1)
    with pytest.raises(ResetNeeded, match="also after an episode's end"):
        env.step(0)


def test_the_resetting_step_of_autoreset_begins_an_episode_and_is_not_reported(
    emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    env = Wrapper(Autoreset(Walk(length=2)), emitter, family="walking")
    env.reset()
    for action in (1, 1, 1, 1, 1):  # the third only resets
        env.step(action)
    assert emitter.flush()
    assert column(publisher, "step") == [0, 1, 0, 1]
    assert column(publisher, "progress") == [0.5, 1.0, 0.5, 1.0]
    assert outcomes(publisher) == ["success", "success"]


def test_numpy_values_become_plain_and_a_nan_is_left_to_the_worker(
    emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    info = {"progress": np.float32(0.25), "risk": np.array([0.5]), "travel": float("nan"), "violation": True}
    env = Wrapper(Walk(info=info), emitter, family="walking")
    env.reset()
    env.step(0)
    assert emitter.flush()
    assert column(publisher, "progress") == [0.25]
    assert column(publisher, "risk") == [0.5]
    assert column(publisher, "violation") == [1.0]
    assert np.isnan(column(publisher, "travel")[0])


def test_an_array_where_a_number_belongs_is_refused(emitter: StepEmitter) -> None:
    env = Wrapper(Walk(info={"risk": np.array([0.1, 0.2])}), emitter, family="walking")
    env.reset()
    with pytest.raises(SignalError, match="risk must be a number"):
        env.step(0)


def test_the_clock_is_the_emitters_unless_another_is_given(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    ticks = iter([NOW_S + 1.0, NOW_S + 2.0])
    plain = Wrapper(Walk(), emitter, family="walking")
    timed = Wrapper(Walk(length=1), emitter, family="walking", agent="timed", clock=lambda: next(ticks))
    for env, action in ((plain, 0), (timed, 1)):
        env.reset()
        env.step(action)
    assert emitter.flush()
    assert column(publisher, "time_s") == [NOW_S, NOW_S + 1.0]
    assert ends(publisher)[0].time_s == NOW_S + 2.0
