"""habitat-lab's `VectorEnv` without its processes: environments that reset by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from tests.producers.habitat.fake_habitat import FakeRLEnv, FakeTask


class FakeVectorEnv:
    """`VectorEnv`: environments that reset by themselves; each answers one question at a time."""

    def __init__(self, envs: Sequence[FakeRLEnv], auto_reset_done: bool = True) -> None:
        self.envs = list(envs)
        self.auto_reset_done = auto_reset_done
        names = sorted(FakeTask.actions)  # habitat-lab sorts them, so the order is not that of the indices
        self.orig_action_spaces = [SimpleNamespace(spaces=dict.fromkeys(names)) for _ in envs]
        self.waiting: dict[int, Any] = {}
        self.dead: set[int] = set()  # of them nothing comes back,
        self.broken: set[int] = set()  # and to them nothing can be sent either
        self._paused: list[tuple[int, FakeRLEnv]] = []

    @property
    def num_envs(self) -> int:
        return len(self.envs)

    def call_at(self, index: int, function_name: str, function_args: dict[str, Any] | None = None) -> Any:
        self._ask(index)
        found = getattr(self.envs[index], function_name)
        return found(**(function_args or {})) if callable(found) else found

    def current_episodes(self) -> list[Any]:
        return [self.call_at(index, "current_episode") for index in range(self.num_envs)]

    def reset(self) -> list[Any]:
        return [env.reset() for env in self.envs]

    def reset_at(self, index_env: int) -> list[Any]:
        self._ask(index_env)
        return [self.envs[index_env].reset()]

    def async_step_at(self, index_env: int, action: Any) -> None:
        self._ask(index_env)
        self.waiting[index_env] = action

    def wait_step_at(self, index_env: int) -> tuple[Any, ...]:
        action = self.waiting.pop(index_env)
        if index_env in self.dead:
            raise EOFError
        env = self.envs[index_env]
        observations, reward, done, info = env.step(action)
        if self.auto_reset_done and done:
            observations = env.reset()
        return observations, reward, done, info

    def pause_at(self, index: int) -> None:
        self._paused.append((index, self.envs.pop(index)))

    def resume_all(self) -> None:
        for index, env in reversed(self._paused):
            self.envs.insert(index, env)
        self._paused = []

    def close(self) -> None:
        for env in self.envs:
            env.close()

    def _ask(self, index: int) -> None:
        if index in self.broken:
            raise BrokenPipeError
        assert index not in self.waiting, "Tried to write to process but the last write has not been read"
