"""The Python of the README runs as it stands there: Kafka and Habitat are fakes, the rest is what a user has."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest

import springback
from tests.house import DATA, ROOT
from tests.producers.habitat.fake_habitat import FakeRLEnv, fake_habitat_sim, read_traces
from tests.producers.habitat.fake_vector import FakeVectorEnv
from tests.producers.habitat.live_habitat import LiveEnv, follow
from tests.producers.habitat.strict_habitat import StrictSimulator

README = (ROOT / "producers" / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
(ROBOTS,) = re.findall(r"```toml\n(agent = \{ segment = \"robot\" \}\ntime = \"header\".*?)```", README, re.DOTALL)
TRACES = DATA / "habitat_lab_pointnav.traces.jsonl.gz"


def drive_gymnasium(said: dict[str, Any]) -> None:
    env = said["env"]
    env.reset(seed=1)
    env.step(0)
    env.close()


def drive_latch(said: dict[str, Any]) -> None:
    class Reach(gymnasium.Wrapper[Any, Any, Any, Any]):
        """Is at its target at the first step alone."""

        solved = 1.0

        def step(self, action: Any) -> Any:
            told = {"obj_to_target": 1.0 - self.solved, "success": self.solved}
            self.solved = 0.0
            return *super().step(action)[:4], told

    env = springback.Wrapper(
        Reach(gymnasium.make("CartPole-v1", max_episode_steps=2)), said["emitter"], family="reach", hooks=said["hooks"]
    )
    env.reset(seed=1)
    env.step(0)
    env.step(1)
    said["emitter"].flush()
    assert [end.outcome for frame in said["publisher"].frames for end in frame.ends] == ["success"]


def drive_vector(said: dict[str, Any]) -> None:
    said["envs"].reset(seed=1)
    said["envs"].step(np.zeros(8, dtype=np.int64))
    said["envs"].close()


def drive_habitat(said: dict[str, Any]) -> None:
    env = said["env"]
    observations = env.reset()
    env.step(follow(observations))
    env.close()


def drive_habitat_vector(said: dict[str, Any]) -> None:
    said["envs"].reset()
    said["envs"].step_at(0, said["first"])


def drive_simulator(said: dict[str, Any]) -> None:
    said["loop"].step("move_forward")
    said["loop"].stop_episode()


def drive_agents(said: dict[str, Any]) -> None:
    said["both"].close()
    said["emitter"].flush()
    episodes = {(header.agent, header.task) for frame in said["publisher"].frames for header in frame.episodes}
    assert episodes == {("before-0", "room/12"), ("before-1", "room/12")}


class FakeNode:
    """As much of an rclpy node as is used; `spin` gives its subscription two messages, and then is interrupted."""

    def create_subscription(self, kind: Any, topic: str, heard: Callable[[Any], None], depth: int) -> None:
        self.heard = heard

    def create_timer(self, period_s: float, called: Callable[[], None]) -> None:
        self.called = called

    def spin(self, node: FakeNode) -> None:
        assert node is self
        for sec, done, result in ((10, 0.5, ""), (11, 1.0, "delivered")):
            stamp = SimpleNamespace(sec=sec, nanosec=0)
            self.heard(SimpleNamespace(header=SimpleNamespace(stamp=stamp), order="4", done=done, result=result))
            self.called()


def drive_node(said: dict[str, Any]) -> None:
    frames = said["publisher"].frames
    assert next((header.agent, header.episode) for frame in frames for header in frame.episodes) == ("robot_7", "4")
    assert [end.outcome for frame in frames for end in frame.ends] == ["success"]


def drive_stress(said: dict[str, Any]) -> None:
    said["episode"].step(progress=0.5)
    assert said["episode"].header.stress == 0.6
    drive_gymnasium(said)


def drive_spool(said: dict[str, Any]) -> None:
    assert Path("robot-7.spool").is_dir()
    assert Path("robot-8.spool").is_dir()
    said["emitter"].begin_episode(family="f").step(progress=0.5)


def drive_signals(said: dict[str, Any]) -> None:
    assert signal.signal(signal.SIGTERM, signal.SIG_DFL) is not signal.SIG_DFL
    said["emitter"].begin_episode(family="f").step(progress=0.5)


DRIVERS = [
    drive_spool, drive_signals,
    drive_gymnasium, drive_vector, drive_latch, drive_habitat, drive_habitat_vector,
    drive_habitat_vector, drive_simulator, drive_agents, drive_habitat,
    drive_habitat, drive_stress, drive_node,
]  # fmt: skip


def fake_habitat() -> Any:
    """The module `habitat`, as far as the examples use it; `VectorEnv` makes what it is told to make."""
    module: Any = ModuleType("habitat")
    module.Env = lambda config: LiveEnv()
    module.VectorEnv = lambda make, arguments: FakeVectorEnv([make(*own) for own in arguments])
    return module


def test_there_is_a_driver_for_each_example() -> None:
    assert len(EXAMPLES) == len(DRIVERS)


@pytest.mark.parametrize(("example", "drive"), list(zip(EXAMPLES, DRIVERS)))
def test_an_example_of_the_readme_runs(
    example: str, drive: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("robots.toml").write_text(ROBOTS)
    node = FakeNode()
    monkeypatch.setitem(sys.modules, "habitat_sim", fake_habitat_sim())
    publisher = springback.MemoryPublisher()
    monkeypatch.setattr(springback, "KafkaPublisher", lambda broker: publisher)
    traces = read_traces(TRACES)
    said: dict[str, Any] = {
        "publisher": publisher, "gymnasium": gymnasium, "habitat": fake_habitat(), "config": None,
        "hooks": springback.SignalHooks(progress=lambda step: (step.step + 1) / 100.0),
        "configs": [SimpleNamespace()] * 2, "make_gym_from_config": lambda config: FakeRLEnv(traces),
        "simulator": StrictSimulator([(0.0, 0.0, 0.0)] * 2), "goal": [1.0, 0.0, -3.0],
        "node": node, "rclpy": node, "Report": None,
        "first": ("stop", "move_forward", "turn_left", "turn_right").index(traces[0][0]["action"]),
    }  # fmt: skip
    if "emitter =" not in example:
        said["emitter"] = springback.StepEmitter(publisher, producer="before")
    exec(example, said)
    drive(said)
    said["emitter"].close()
    assert sum(frame.n_steps for frame in publisher.frames) >= 1
