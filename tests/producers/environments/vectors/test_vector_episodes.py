"""What the episodes of a vector's slots are called and begin with, and where they begin."""

from functools import partial
from typing import Any

import numpy as np
from gymnasium.vector import SyncVectorEnv

from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.step_emitter import StepEmitter
from springback.producers.environments.signal_hooks import SignalHooks
from springback.producers.environments.vector_wrapper import VectorWrapper
from tests.producers.environments.vectors.vector_lanes import Lane


def vector(emitter: StepEmitter, **options: Any) -> VectorWrapper:
    return VectorWrapper(SyncVectorEnv([partial(Lane, n) for n in (0, 1)]), emitter, family="lanes", **options)


def steps_of(publisher: MemoryPublisher, emitter: StepEmitter) -> list[list[tuple[str, int]]]:
    """Of each frame with steps: the episode and the number of each step."""
    assert emitter.flush()
    return [
        [(frame.episodes[place].episode, step) for place, step in zip(
            np.asarray(frame.steps["episode"]).tolist(), np.asarray(frame.steps["step"]).tolist())]
        for frame in publisher.frames if frame.n_steps
    ]  # fmt: skip


def test_a_slot_that_was_reset_by_hand_does_not_reset_again_by_itself(
    emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    envs = vector(emitter)
    envs.reset()
    forward = np.array([1, 0])
    for _ in range(2):
        envs.step(forward)  # the first slot is at its end
    envs.reset(options={"reset_mask": np.array([True, False])})
    for _ in range(2):
        envs.step(forward)
    envs.close()
    assert steps_of(publisher, emitter)[-2:] == [[("1", 0), ("0", 2)], [("1", 1), ("0", 3)]]


def test_an_episodes_own_id_goes_before_the_count(emitter: StepEmitter, publisher: MemoryPublisher) -> None:
    hooks = SignalHooks(traits=lambda info: {"episode": info["instruction"].replace(" ", "-")})
    envs = vector(emitter, hooks=hooks)
    envs.describe_next_episode(1, episode="mine", stress=0.5)
    envs.reset()
    envs.step(np.array([1, 1]))
    envs.reset()
    envs.step(np.array([1, 1]))
    envs.close()
    assert steps_of(publisher, emitter) == [[("lane-0,-0", 0), ("mine", 0)], [("lane-0,-1", 0), ("lane-1,-1", 0)]]
    stress = {header.episode: header.stress for frame in publisher.frames for header in frame.episodes}
    assert stress == {"lane-0,-0": None, "mine": 0.5, "lane-0,-1": None, "lane-1,-1": None}


def test_each_slot_says_its_stress_and_the_magnitude_that_was_realised(
    emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    hooks = SignalHooks(
        stress=lambda info: {"lane-0,-0": 0.25}.get(info["instruction"].replace(" ", "-")),
        realised_magnitude=lambda step: np.float64(0.5 + step.step),
    )
    envs = vector(emitter, hooks=hooks)
    envs.reset()
    for _ in range(2):
        envs.step(np.array([1, 0]))  # the first slot is at its end
    envs.close()
    assert emitter.flush()
    assert {header.agent[-1]: header.stress for frame in publisher.frames for header in frame.episodes} == {
        "0": 0.25, "1": None,
    }  # fmt: skip
    ends = [end for frame in publisher.frames for end in frame.ends if end.outcome != "aborted"]
    assert [end.realised_magnitude for end in ends] == [1.5]


def test_what_was_reported_of_a_step_that_never_came_is_forgotten(
    emitter: StepEmitter, publisher: MemoryPublisher
) -> None:
    envs = vector(emitter)
    envs.reset()
    envs.report(planning_s=3.0)
    envs.reset()
    envs.step(np.array([1, 1]))
    envs.close()
    assert emitter.flush()
    assert all("planning_s" not in frame.steps for frame in publisher.frames)
