import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.environments.signal_hooks import SignalHooks
from springback.producers.environments.vector_wrapper import VectorWrapper
from springback.producers.errors import SignalError
from tests.producers.environments.vectors.vector_lanes import HOOKS, Lane, Played, by_hand, forward, published

SLOTS, EPISODES = 3, 4
MODES = ["NextStep", "SameStep", "Disabled"]
KINDS = [SyncVectorEnv, AsyncVectorEnv, partial(AsyncVectorEnv, shared_memory=False)]
Make = Callable[[], gymnasium.Env[Any, Any]]


def lanes(**faults: Any) -> list[Make]:
    return [partial(Lane, number, faults.get(f"lane{number}")) for number in range(SLOTS)]


def run(
    envs: VectorWrapper, publisher: MemoryPublisher, emitter: StepEmitter, steps: int, seed: int = 5,
    policy: Callable[[Any], int] = forward,
) -> dict[str, list[Played]]:  # fmt: skip
    observations, _ = envs.reset(seed=seed)
    disabled = envs.metadata["autoreset_mode"].value == "Disabled"
    for _ in range(steps):
        observations, _, terminated, truncated, _ = envs.step(np.array([policy(seen) for seen in observations]))
        ended = terminated | truncated
        if disabled and ended.any():
            observations, _ = envs.reset(options={"reset_mask": ended})
    envs.close()
    assert emitter.flush()
    return published(publisher)


def prefixed(played: dict[str, list[Played]], episodes: int) -> dict[str, list[Played]]:
    """The first episodes of each agent; whatever is left was aborted at the close."""
    for agent, all_of_it in played.items():
        assert len(all_of_it) >= episodes, f"{agent} has played {len(all_of_it)}"
        assert all(later.outcome != "aborted" for later in all_of_it[:-1])
    return {agent: all_of_it[:episodes] for agent, all_of_it in played.items()}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS, ids=["sync", "async", "async-pipes"])
def test_each_mode_yields_the_episodes_of_a_hand_stepped_loop(
    kind: Any, mode: str, emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    envs = VectorWrapper(kind(lanes(), autoreset_mode=mode), emitter, family="lanes", hooks=HOOKS)
    streamed = run(envs, publisher, emitter, steps=25)
    by_agent = {
        f"fleet-{number}": by_hand(Lane(number), HOOKS, forward, 5 + number, EPISODES) for number in range(SLOTS)
    }
    assert prefixed(streamed, EPISODES) == by_agent
    outcomes = {episode.outcome for episodes in by_agent.values() for episode in episodes}
    assert outcomes == {"success", "failure", "timeout"}  # so that each is told from the others


@pytest.mark.parametrize("mode", MODES)
def test_each_mode_yields_the_hand_stepped_episodes_of_cartpole(
    mode: str, emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    hooks = SignalHooks(
        progress=lambda step: np.minimum(1.0, (step.step + 1) / 12.0), travel=lambda step: abs(step.observation[..., 0])
    )

    def lean(observation: Any) -> int:
        return int(observation[2] > 0.02)

    made: Any = gymnasium.make_vec(
        "CartPole-v1", num_envs=SLOTS, vectorization_mode="sync", max_episode_steps=40,
        vector_kwargs={"autoreset_mode": gymnasium.vector.AutoresetMode(mode)},
    )  # fmt: skip
    envs = VectorWrapper(made, emitter, family="balancing", hooks=hooks)
    streamed = run(envs, publisher, emitter, steps=180, policy=lean)
    alone: list[Any] = [gymnasium.make("CartPole-v1", max_episode_steps=40) for _ in range(SLOTS)]
    hand = {f"fleet-{slot}": by_hand(alone[slot], hooks, lean, 5 + slot, EPISODES) for slot in range(SLOTS)}
    for agent, episodes in prefixed(streamed, EPISODES).items():
        for one, other in zip(episodes, hand[agent]):
            assert one.outcome == other.outcome
            assert [(row[:5]) for row in one.rows] == [(row[:5]) for row in other.rows]


def test_a_vector_step_is_one_frame(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    envs = VectorWrapper(SyncVectorEnv(lanes()), emitter, family="lanes", agents=["a", "b", "c"])
    envs.reset()
    for _ in range(2):
        envs.step(np.array([1, 1, 1]))
    assert emitter.flush()
    assert [frame.n_steps for frame in publisher.frames] == [SLOTS, SLOTS]
    assert [[header.agent for header in frame.episodes] for frame in publisher.frames] == [["a", "b", "c"]] * 2
    envs.close()


def test_nothing_of_what_the_environments_do_is_changed(emitter: StepEmitter) -> None:
    bare, wrapped = (SyncVectorEnv(lanes(), autoreset_mode="SameStep") for _ in range(2))
    envs = VectorWrapper(wrapped, emitter, family="lanes")
    assert str(bare.reset(seed=1)) == str(envs.reset(seed=1))
    for tick in range(12):
        actions = np.full(SLOTS, tick % 3)
        assert str(bare.step(actions)) == str(envs.step(actions))
    envs.close()


def test_reports_and_traits_go_first(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    envs = VectorWrapper(SyncVectorEnv(lanes()), emitter, family="lanes", method="straight on")
    envs.describe_next_episode(1, task="t-1", stress=0.5)
    envs.reset()
    envs.report(planning_s=np.array([0.1, 0.2, 0.3]), mode=["walk", "wait", None], action="ahead")
    envs.step(np.array([1, 1, 1]))
    envs.step(np.array([1, 1, 1]))
    with pytest.raises(SignalError, match="no signal 'speed'"):
        envs.report(speed=1.0)
    envs.report(risk=np.zeros(SLOTS + 1))
    with pytest.raises(SignalError, match="one for each of 3 episodes"):
        envs.step(np.array([0, 0, 0]))
    assert emitter.flush()
    first, second, aborted = publisher.frames
    # The step that was not reported ended an episode, which must not go on in the next one.
    assert [(aborted.episodes[end.episode].agent, end.outcome) for end in aborted.ends] == [("fleet-2", "aborted")]
    for _ in range(2):
        envs.step(np.array([0, 0, 0]))
    assert emitter.flush()
    last = publisher.frames[-1]
    assert [(header.agent, header.episode) for header in last.episodes] == [("fleet-0", "1"), ("fleet-2", "1")]
    assert np.asarray(last.steps["step"]).tolist() == [1, 0]
    assert [header.stress for header in first.episodes] == [None, 0.5, None]
    assert {header.method for header in first.episodes} == {"straight on"}
    assert np.asarray(first.steps["planning_s"]).tolist() == [0.1, 0.2, 0.3]
    assert [first.steps[name].texts() for name in ("mode", "action")] == [  # type: ignore[union-attr]
        ["walk", "wait", "run"], ["ahead"] * SLOTS,
    ]  # fmt: skip
    assert "planning_s" not in second.steps
    envs.close()


def test_progress_must_come_from_somewhere(emitter: StepEmitter) -> None:
    made: Any = gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="vector_entry_point")
    envs = VectorWrapper(made, emitter, family="balancing")
    envs.reset(seed=1)
    with pytest.raises(SignalError, match="no key 'progress'"):
        envs.step(np.array([0, 1]))
    envs.close()


def test_what_is_no_vector_environment_is_refused(emitter: StepEmitter) -> None:
    single: Any = Lane(0)
    with pytest.raises(TypeError, match="VectorEnv"):
        VectorWrapper(single, emitter, family="lanes")
    with pytest.raises(ValueError, match="an agent each"):
        VectorWrapper(SyncVectorEnv(lanes()), emitter, family="lanes", agents=["a", "a", "b"])
    listed = gymnasium.wrappers.vector.DictInfoToList(SyncVectorEnv(lanes()))
    envs = VectorWrapper(listed, emitter, family="lanes")
    with pytest.raises(TypeError, match="put DictInfoToList and the like outside"):
        envs.reset()


def test_reset_and_close_abort_what_runs(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    envs = VectorWrapper(SyncVectorEnv(lanes(), autoreset_mode="Disabled"), emitter, family="lanes")
    envs.reset()
    envs.step(np.array([1, 1, 1]))
    envs.reset(options={"reset_mask": np.array([False, True, False])})
    envs.step(np.array([1, 1, 1]))
    envs.close()
    assert emitter.flush()
    played = published(publisher)
    assert {agent: [e.outcome for e in episodes] for agent, episodes in played.items()} == {
        "fleet-0": ["success"], "fleet-1": ["aborted", "aborted"], "fleet-2": ["aborted"],
    }  # fmt: skip
    assert [len(episode.rows) for episode in played["fleet-1"]] == [1, 1]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fault", ["observation", "reward", "endless reward"])
def test_a_nan_aborts_the_episode_of_its_slot_alone(
    mode: str, fault: str, emitter: StepEmitter, publisher: MemoryPublisher, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    made = SyncVectorEnv(lanes(lane1=(1, 1, fault)), autoreset_mode=mode)
    envs = VectorWrapper(made, emitter, family="lanes", hooks=HOOKS)

    def steady(observation: Any) -> int:
        return forward(np.nan_to_num(observation))

    played = run(envs, publisher, emitter, steps=25, policy=steady)
    assert envs.deaths.tolist() == [0, 1, 0]
    hand = [by_hand(Lane(number), HOOKS, forward, 0, EPISODES) for number in range(SLOTS)]
    assert played["fleet-0"][:EPISODES] == hand[0]
    assert played["fleet-2"][:EPISODES] == hand[2]
    assert [episode.outcome for episode in played["fleet-1"]][1] == "aborted"
    assert played["fleet-1"][1].rows == hand[1][1].rows[:1]  # what it had before
    assert played["fleet-1"][2:4] == hand[1][2:4]  # and on from its next reset


def test_what_is_broken_can_be_said_otherwise(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    made = SyncVectorEnv(lanes(lane1=(0, 1, "observation")))
    envs = VectorWrapper(made, emitter, family="lanes", broken=lambda step: False)
    played = run(envs, publisher, emitter, steps=6, policy=lambda observation: 1)
    assert played["fleet-1"][0].outcome != "aborted"
    assert envs.deaths.sum() == 0
