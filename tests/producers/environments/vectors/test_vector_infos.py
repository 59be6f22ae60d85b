"""Infos in the same-step mode in every form in which vector environments give the ended episode's own."""

from functools import partial
from typing import Any

import gymnasium
import gymnasium.vector
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.environments.isolated import IsolatedEnvironment
from springback.producers.environments.signal_hooks import SignalHooks
from springback.producers.environments.vector_signals import VectorInfo, gathered, has_nan, info_of_slot, with_finals
from springback.producers.environments.vector_wrapper import AnyVectorWrapper, VectorWrapper
from springback.producers.environments.wrapper import Wrapper
from tests.producers.environments.vectors.vector_lanes import HOOKS, Lane, by_hand, forward, published

SLOTS, EPISODES = 3, 4


class OneByOne(AnyVectorWrapper):
    """Gives the final infos slot by slot, as environments do that are not Gymnasium's own."""

    def __init__(self, envs: Any, form: type) -> None:
        super().__init__(envs)
        self.form = form

    def step(self, actions: Any) -> Any:
        *result, infos = super().step(actions)
        if "final_info" in infos:
            finals = infos["final_info"]
            listed = [info_of_slot(finals, slot) if has else None for slot, has in enumerate(infos["_final_info"])]
            infos["final_info"] = listed if self.form is list else np.fromiter(listed, dtype=object, count=SLOTS)
        return (*result, infos)


@pytest.mark.parametrize("form", [list, np.ndarray])
def test_final_infos_one_by_one_give_the_hand_stepped_episodes(
    form: type, emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    made = SyncVectorEnv([partial(Lane, number) for number in range(SLOTS)], autoreset_mode="SameStep")
    envs = VectorWrapper(OneByOne(made, form), emitter, family="lanes", hooks=HOOKS)
    observations, _ = envs.reset()
    for _ in range(25):
        observations, *_ = envs.step(np.array([forward(seen) for seen in observations]))
    envs.close()
    assert emitter.flush()
    for agent, played in published(publisher).items():
        assert played[:EPISODES] == by_hand(Lane(int(agent[-1])), HOOKS, forward, 0, EPISODES)


def test_infos_one_by_one_are_gathered_as_gymnasium_does() -> None:
    infos: list[Any] = [{"x": 1.0, "word": "a", "way": {"p": np.zeros(2)}}, None, {"x": 2.5, "odd": [1, 2]}]
    found = gathered(infos)
    vector: dict[str, Any] = {}
    made = SyncVectorEnv([partial(Lane, number) for number in range(SLOTS)])
    for slot, info in enumerate(infos):
        vector = made._add_info(vector, info or {}, slot)
    assert found.keys() == vector.keys()
    for slot in range(SLOTS):
        assert str(info_of_slot(found, slot)) == str(info_of_slot(vector, slot))
    assert gathered([None, None]) == {}
    assert gathered([{"p": np.zeros(2)}, {"p": np.zeros(3)}])["p"].dtype == object


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_statistics_are_the_ended_episodes(mode: str, emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    seen: list[Any] = []

    def travel(step: Any) -> Any:
        seen.append(step.info.get("episode", {}).get("l"))
        return None

    hooks = SignalHooks(
        travel=travel,
        success=lambda step: step.info["episode"]["l"] == 2,
        navigation=lambda step: {"actions": step.info["episode"]["l"]},
    )
    made: Any = SyncVectorEnv([partial(Lane, number) for number in range(SLOTS)], autoreset_mode=mode)
    envs = VectorWrapper(gymnasium.wrappers.vector.RecordEpisodeStatistics(made), emitter, family="lanes", hooks=hooks)
    envs.reset()
    for _ in range(2):
        envs.step(np.array([1, 1, 1]))
    assert emitter.flush()
    (end,) = publisher.frames[-1].ends
    assert end.navigation is not None
    assert (end.outcome, end.navigation.actions) == ("success", 2)
    assert seen[0] is None
    assert seen[1].tolist() == [2, 0, 0]
    envs.close()


def test_final_observations_may_be_a_dict_of_arrays() -> None:
    ended = np.array([False, True])
    now, last = {"x": np.array([1.0, 2.0])}, {"x": np.array([0.0, 9.0])}
    found = with_finals(now, last, ended)
    assert found["x"].tolist() == [1.0, 9.0]
    listed = with_finals(now, [None, {"x": 9.0}], ended)
    assert listed["x"].tolist() == [1.0, 9.0]
    assert now["x"].tolist() == [1.0, 2.0]


def test_what_only_the_next_episode_says_is_absent_of_the_last_step() -> None:
    infos = {"risk": np.array([9.0, 0.5]), "final_info": [{"x": 1.0}, None]}
    info = VectorInfo(infos, np.array([True, False]))
    assert info["risk"].tolist() == [None, 0.5]
    assert info["x"].tolist() == [1.0, None]
    assert (info.of_slot(0), info.of_slot(1)) == ({"x": 1.0}, {"risk": 0.5})


def test_infos_may_be_dicts_in_dicts() -> None:
    way = {"p": np.array([1.0, 2.0, 0.0]), "_p": np.array([True, True, False])}
    last = {"p": np.array([7.0, 0.0, 0.0]), "_p": np.array([True, False, False])}
    infos = {"way": way, "_way": np.array([True, True, False]), "final_info": {"way": last}}
    info = VectorInfo(infos, np.array([True, False, False]))
    assert info["way"]["p"].tolist() == [7.0, 2.0, None]
    assert [info.of_slot(slot).get("way") for slot in range(3)] == [{"p": 7.0}, {"p": 2.0}, None]
    assert list(info) == ["way"]
    assert len(info) == 1


@pytest.mark.parametrize("nested", [dict, tuple])
def test_a_nan_is_found_in_every_part_of_an_observation(nested: type) -> None:
    parts = (np.zeros((3, 2)), np.array([0.0, np.nan, 0.0]), np.zeros(3, dtype=np.int64))
    values: Any = parts if nested is tuple else {"a": {"b": parts[1]}, "c": parts[0]}
    assert has_nan(values, 3).tolist() == [False, True, False]


class Counted(Lane):
    """Counts what reaches it."""

    steps = 0

    def step(self, action: Any) -> Any:
        Counted.steps += 1
        return super().step(action)


def test_a_dead_environment_is_not_touched_before_its_reset(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    Counted.steps = 0
    env = IsolatedEnvironment(lambda: Counted(0, (0, 1, "raise")))
    env.reset()
    env.step(0)
    for _ in range(3):
        *_, truncated, info = env.step(0)
        assert (truncated, info["abort_reason"]) == (True, "RuntimeError: lane 0 fell")
    assert Counted.steps == 2


def test_closing_after_the_emitter_closes_the_environments(publisher: MemoryPublisher) -> None:
    closed: list[int] = []

    class Closing(Lane):
        def close(self) -> None:
            closed.append(self.number)

    with StepEmitter(publisher, producer="fleet") as emitter:
        envs = VectorWrapper(SyncVectorEnv([partial(Closing, n) for n in (1, 2)]), emitter, family="lanes")
        envs.reset()
        env = Wrapper(Closing(3), emitter, family="lanes")
        env.reset()
    envs.close()
    env.close()
    assert closed == [1, 2, 3]
    assert {end.outcome for frame in publisher.frames for end in frame.ends} == {"aborted"}
