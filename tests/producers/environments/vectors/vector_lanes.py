"""A small deterministic environment, what a hand-stepped loop over it comes to, and what was published instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from springback.producers.contract.frame import TextColumn
from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.environments.signal_hooks import SignalHooks, StepContext

Policy = Callable[[Any], int]


class Lane(gymnasium.Env[Any, Any]):
    """Moves by the action towards an end that is another one in each episode; some episodes are cut off before it.

    Args:
        number: which lane; no two have the same episodes.
        fault: (episode, step, what) at which it raises, or has a NaN in its observation or an odd reward.
    """

    action_space = gymnasium.spaces.Discrete(3)
    observation_space = gymnasium.spaces.Box(-1.0, 100.0, (2,), dtype=np.float64)

    def __init__(self, number: int, fault: tuple[int, int, str] | None = None) -> None:
        self.number, self.fault = number, fault
        self.episode = -1
        self.place = self.taken = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.episode += 1
        self.place = self.taken = 0
        # Says what the next episode's is, which must not be taken for the last one's.
        return self._observation(), {"progress": 0.0, "instruction": f"lane {self.number}, {self.episode}", "risk": 9.0}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        fault = self.fault[2] if self.fault is not None and self.fault[:2] == (self.episode, self.taken) else ""
        if fault == "raise":
            message = f"lane {self.number} fell"
            raise RuntimeError(message)
        self.taken += 1
        length = 2 + (self.number + 2 * self.episode) % 4
        self.place = min(self.place + int(action), length)
        terminated = self.place >= length
        truncated = not terminated and self.taken >= 3 + self.number % 2
        info: dict[str, Any] = {"progress": self.place / length, "way": {"taken": self.taken}}
        if self.taken % 2:
            info["risk"] = 0.25 * self.taken
        if terminated:
            info["success"] = self.episode % 3 != 1
        observation = self._observation()
        if fault == "observation":
            observation[1] = np.nan
        reward = {"reward": float("nan"), "endless reward": float("-inf")}.get(fault, 1.0)
        return observation, reward, terminated, truncated, info

    def _observation(self) -> Any:
        return np.array([self.place, self.taken + 10 * self.episode], dtype=np.float64)


class Played(NamedTuple):
    """An episode as it is compared: rows of step, progress, travel, risk, action, mode; then its end."""

    rows: list[tuple[Any, ...]]
    outcome: str | None
    path: float | None
    actions: int | None
    instruction: str


def forward(observation: Any) -> int:
    """A policy that depends on the observation alone, whichever the autoreset mode."""
    return int(observation[0] + observation[1]) % 3


HOOKS = SignalHooks(
    travel=lambda step: step.observation[..., 0] * 0.5,
    mode=lambda step: "walk",
    navigation=lambda step: {"path": float(step.observation[0]), "actions": step.info["way"]["taken"]},
)


def by_hand(env: gymnasium.Env[Any, Any], hooks: SignalHooks, policy: Policy, seed: int, episodes: int) -> list[Played]:
    """The episodes of one environment, stepped and reset by hand, without any wrapper of ours."""
    played = []
    observation, reset_info = env.reset(seed=seed)
    for _ in range(episodes):
        rows: list[tuple[Any, ...]] = []
        while True:
            action = policy(observation)
            observation, reward, terminated, truncated, info = env.step(action)
            context = StepContext(env, action, observation, reward, terminated, truncated, info, len(rows))
            progress, travel = hooks.progress(context), hooks.travel(context) if hooks.travel else 0.0
            rows.append((len(rows), progress, travel, info.get("risk", 0.0), str(action), "walk"))
            if terminated or truncated:
                break
        outcome = "timeout" if not terminated else "success" if info.get("success", progress >= 1.0) else "failure"
        navigation = hooks.navigation(context) if hooks.navigation else {"path": None, "actions": None}
        played.append(
            Played(rows, outcome, navigation["path"], navigation["actions"], reset_info.get("instruction", ""))
        )
        observation, reset_info = env.reset()
    env.close()
    return played


def published(publisher: MemoryPublisher) -> dict[str, list[Played]]:
    """The published episodes of each agent, in their order."""
    found: dict[tuple[str, int], Played] = {}
    for frame in publisher.frames:
        keys = [(header.agent, int(header.episode)) for header in frame.episodes]
        for key, header in zip(keys, frame.episodes):
            found.setdefault(key, Played([], None, None, None, header.instruction))
        columns = [cells(frame.steps, name, frame.n_steps) for name in COLUMNS]
        for place, *row in zip(*columns):
            found[keys[place]].rows.append(tuple(row))
        for end in frame.ends:
            way = end.navigation
            found[keys[end.episode]] = found[keys[end.episode]]._replace(
                outcome=end.outcome, path=getattr(way, "path", None), actions=getattr(way, "actions", None)
            )
    agents: dict[str, list[Played]] = {}
    for agent, episode in sorted(found):
        agents.setdefault(agent, []).append(found[agent, episode])
    return agents


COLUMNS = ("episode", "step", "progress", "travel", "risk", "action", "mode")


def cells(steps: Any, name: str, rows: int) -> list[Any]:
    column = steps.get(name, np.zeros(rows))
    return column.texts() if isinstance(column, TextColumn) else np.nan_to_num(column).tolist()
