"""Several environments on one emitter: no two episodes are ever one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from springback.producers.emitter.publishers import JsonLinesPublisher, MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.environments.signal_hooks import SignalHooks
from springback.producers.environments.vector_wrapper import VectorWrapper
from springback.producers.environments.wrapper import Wrapper
from springback.stream_processors.offline.evaluation import evaluate

BALANCED = SignalHooks(progress=lambda step: (step.step + 1) / 5, success=lambda step: step.truncated)


def cart_pole() -> gymnasium.Env[Any, Any]:
    return gymnasium.make("CartPole-v1", max_episode_steps=5)


def played(envs: Sequence[Any], episodes: int) -> int:
    """Steps the environments in turn until so many episodes have ended."""
    for seed, env in enumerate(envs):
        env.reset(seed=seed)
    done = 0
    while done < episodes:
        for env in envs:
            *_, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                done += 1
                env.reset()
    return done


@pytest.mark.parametrize("agent", [None, "cart"])
def test_wrappers_made_alike_by_a_trainer_keep_their_episodes_apart(tmp_path: Path, agent: str | None) -> None:
    path = tmp_path / "out.jsonl"
    with StepEmitter(JsonLinesPublisher(path), producer="trainer-1") as emitter:
        arguments = {"emitter": emitter, "family": "balancing", "agent": agent, "hooks": BALANCED}
        done = played([Wrapper(cart_pole(), **arguments) for _ in range(4)], 20)  # type: ignore[arg-type]
    episodes = evaluate(path).summaries
    ended = [episode for episode in episodes if episode.outcome != "aborted"]
    assert (len(ended), len(episodes)) == (done, done + 4)  # the last ones are cut off by the close
    assert {episode.steps for episode in ended} == {5}
    agents = Counter(episode.key.agent for episode in episodes)
    assert set(agents) == ({"cart"} if agent else {"trainer-1", "trainer-1#2", "trainer-1#3", "trainer-1#4"})


def test_an_environment_made_after_another_was_closed_goes_on_counting_as_the_same_agent() -> None:
    publisher = MemoryPublisher()
    with StepEmitter(publisher, producer="trainer-1") as emitter:
        for _ in range(2):
            env = Wrapper(cart_pole(), emitter, family="balancing", hooks=BALANCED)
            played([env], 2)
            env.close()
    headers = [header for frame in publisher.frames for header in frame.episodes]
    assert {header.agent for header in headers} == {"trainer-1"}
    assert {header.episode for header in headers} == {"0", "1", "2", "3", "4", "5"}


def test_vectors_on_one_emitter_have_slots_of_their_own() -> None:
    with StepEmitter(MemoryPublisher(), producer="trainer-1") as emitter:
        made = [
            VectorWrapper(gymnasium.vector.SyncVectorEnv([cart_pole] * 2), emitter, family="balancing", hooks=BALANCED)
            for _ in range(2)
        ]
        assert [envs._agents for envs in made] == [["trainer-1-0", "trainer-1-1"], ["trainer-1-0#2", "trainer-1-1#2"]]
        for envs in made:
            envs.close()
