from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.environments.isolated import IsolatedEnvironment, isolated
from springback.producers.environments.vector_wrapper import VectorWrapper
from springback.producers.environments.wrapper import Wrapper
from tests.producers.environments.vectors.vector_lanes import HOOKS, Lane, Played, by_hand, forward, published

SLOTS = 3
FAULT = (1, 1, "raise")
Make = Callable[[], gymnasium.Env[Any, Any]]


def lanes() -> list[Make]:
    return [partial(Lane, number, FAULT if number == 1 else None) for number in range(SLOTS)]


def step_on(envs: VectorWrapper, steps: int) -> None:
    observations, _ = envs.reset()
    for _ in range(steps):
        observations, _, terminated, truncated, _ = envs.step(np.array([forward(seen) for seen in observations]))
        ended = terminated | truncated
        if envs.metadata["autoreset_mode"].value == "Disabled" and ended.any():
            observations, _ = envs.reset(options={"reset_mask": ended})


def hand(number: int, episodes: int) -> list[Played]:
    return by_hand(Lane(number), HOOKS, forward, 0, episodes)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
@pytest.mark.parametrize("kind", [SyncVectorEnv, AsyncVectorEnv])
def test_an_isolated_death_ends_one_episode(
    kind: Any, mode: str, emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    made = kind([isolated(make) for make in lanes()], autoreset_mode=mode)
    envs = VectorWrapper(made, emitter, family="lanes", hooks=HOOKS)
    step_on(envs, 25)
    envs.close()
    assert emitter.flush()
    played = published(publisher)
    assert played["fleet-0"][:4] == hand(0, 4)
    assert played["fleet-2"][:4] == hand(2, 4)
    died = played["fleet-1"][1]
    assert (died.outcome, died.rows) == ("aborted", hand(1, 2)[1].rows[:1])
    assert played["fleet-1"][2] == hand(1, 1)[0]  # a new environment, so its first episode again
    assert envs.deaths[1] >= 1
    assert envs.deaths[[0, 2]].sum() == 0


def test_a_death_of_a_plain_sub_environment_is_passed_on_and_the_others_go_on(
    emitter: StepEmitter, publisher: MemoryPublisher, caplog: pytest.LogCaptureFixture
) -> None:
    made = SyncVectorEnv(lanes(), autoreset_mode="Disabled")
    envs = VectorWrapper(made, emitter, family="lanes", hooks=HOOKS)
    with pytest.raises(RuntimeError, match="lane 1 fell"):
        step_on(envs, 25)
    assert emitter.flush()
    assert "fleet-1 died: RuntimeError: lane 1 fell" in caplog.text
    last = {agent: episodes[-1].outcome for agent, episodes in published(publisher).items()}
    assert last == {"fleet-0": None, "fleet-1": "aborted", "fleet-2": None}
    assert envs.deaths.tolist() == [0, 1, 0]
    rows = {agent: len(episodes[-1].rows) for agent, episodes in published(publisher).items()}
    made.envs[1] = Lane(1)
    envs.reset(options={"reset_mask": np.array([False, True, False])})
    envs.step(np.array([0, 1, 0]))
    assert emitter.flush()
    later = published(publisher)
    assert len(later["fleet-0"][-1].rows) == rows["fleet-0"] + 1
    assert len(later["fleet-1"][-1].rows) == 1
    envs.close()


@pytest.mark.filterwarnings("ignore:.*ERROR:UserWarning")  # Gymnasium's own report of it
@pytest.mark.parametrize("killed", [False, True], ids=["exception", "kill -9"])
def test_a_dead_worker_process_ends_all_episodes_with_what_they_had(
    killed: bool, emitter: StepEmitter, publisher: MemoryPublisher, caplog: pytest.LogCaptureFixture
) -> None:
    made: Any = AsyncVectorEnv(lanes() if not killed else [partial(Lane, number) for number in range(SLOTS)])
    envs = VectorWrapper(made, emitter, family="lanes", hooks=HOOKS)
    try:
        if killed:
            step_on(envs, 1)
            os.kill(made.processes[1].pid, signal.SIGKILL)
            made.processes[1].join()
            with pytest.raises((EOFError, OSError)):
                envs.step(np.array([1, 1, 1]))
        else:
            with pytest.raises(RuntimeError, match="lane 1 fell"):
                step_on(envs, 25)
        assert emitter.flush()
        played = published(publisher)
        assert [episodes[-1].outcome for _, episodes in sorted(played.items())] == ["aborted"] * SLOTS
        assert all(episode.rows for episodes in played.values() for episode in episodes)
        assert "fleet-1 died" in caplog.text
        assert envs.deaths.tolist() == [0, 1, 0]
    finally:
        end_processes(made)


def end_processes(made: Any) -> None:
    """What Gymnasium's own close does not do once a worker is dead."""
    for pipe in made.parent_pipes:
        if pipe is not None:
            pipe.close()
    for process in made.processes:
        process.terminate()
        process.join()
    made.closed = True


def test_an_isolated_death_in_a_single_environment(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    env = Wrapper(IsolatedEnvironment(lambda: Lane(1, (0, 1, "raise"))), emitter, family="lanes", agent="one")
    env.reset()
    env.step(1)
    *_, truncated, info = env.step(1)
    env.reset()
    env.step(1)
    env.close()
    assert truncated
    assert info["abort_reason"] == "RuntimeError: lane 1 fell"
    assert emitter.flush()
    assert [(len(e.rows), e.outcome) for e in published(publisher)["one"]] == [(1, "aborted"), (1, "aborted")]


class Fragile(Lane):
    def close(self) -> None:
        message = "cannot close"
        raise OSError(message)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        message = "cannot reset"
        raise OSError(message)


def test_what_can_never_be_reset_is_told(caplog: pytest.LogCaptureFixture) -> None:
    made = []

    def make() -> Lane:
        made.append(Fragile(0))
        return made[-1]

    env = IsolatedEnvironment(make)
    caplog.set_level(logging.WARNING)
    with pytest.raises(OSError, match="cannot reset"):
        env.reset()
    env.close()
    assert len(made) == 3
    assert "could not be closed: OSError: cannot close" in caplog.text
